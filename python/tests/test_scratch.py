"""Room on disks: what temporary files take is known before, counted, and put elsewhere."""

from __future__ import annotations

import gzip
import os
import subprocess

import numpy as np
import pytest

import tiergraph as tg

SMALL = {"scale": 18, "edge_factor": 16, "seed": 3, "memory": "96MiB", "undirected": True}


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 8 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tiergraph-test", folder]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no permission to mount a small file system")
    yield folder
    # The kernel lets go of a ring's files some time after the ring is closed.
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_temporary_files_go_where_they_are_put_and_are_counted(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    shown = []
    stats = tg.generate(
        "rmat", tmp_path / "g.tg", scratch=scratch, progress=lambda *now: shown.append(now), **SMALL
    )
    # Edges of 8 bytes each, at least.
    assert stats["scratch_bytes"] >= 8 * stats["edges"]
    assert any(stage == "scratch" and done > 0 for stage, done, _, _ in shown)
    assert list(scratch.iterdir()) == []
    plain = tg.generate("rmat", tmp_path / "p.tg", **SMALL)
    assert (plain["edges"], plain["bytes"]) == (stats["edges"], stats["bytes"])
    assert plain["scratch_bytes"] >= 8 * stats["edges"]


def test_a_build_without_room_is_refused_before_the_first_byte(tmp_path, small_disk):
    shown = []
    with pytest.raises(tg.IoError) as refused:
        tg.generate(
            "rmat",
            tmp_path / "g.tg",
            scratch=small_disk,
            progress=lambda *now: shown.append(now),
            **SMALL,
        )
    text = str(refused.value)
    assert "edges written aside 32.0 MiB" in text
    assert "got `8.0 MiB`" in text
    assert 'hint: `scratch="DIR"` puts temporary files on another disk' in text
    assert not shown
    assert [p.name for p in tmp_path.iterdir()] == ["disk"]
    with pytest.raises(tg.IoError, match="find room for the build in"):
        tg.generate("rmat", small_disk / "g.tg", **SMALL)
    assert list(small_disk.iterdir()) == []


def test_text_is_estimated_by_its_head(tmp_path, small_disk):
    edges = np.random.default_rng(1).integers(1 << 16, size=(2, 1 << 21))
    with open(tmp_path / "edges.txt", "w") as file:
        file.write("# a comment\n" * 10)
        np.savetxt(file, edges.T, fmt="%d")
    with pytest.raises(tg.IoError, match="find room for the build in"):
        tg.build(tmp_path / "edges.txt", tmp_path / "g.tg", scratch=small_disk)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["disk", "edges.txt"]


def test_a_disk_that_fills_up_says_what_to_do_and_keeps_nothing(tmp_path, small_disk):
    edges = np.random.default_rng(1).integers(1 << 16, size=(2, 1 << 21))
    with gzip.open(tmp_path / "edges.txt.gz", "wt", compresslevel=1) as file:
        np.savetxt(file, edges.T, fmt="%d")
    with pytest.raises(tg.IoError, match="No space left") as failed:
        tg.build(tmp_path / "edges.txt.gz", tmp_path / "g.tg", scratch=small_disk)
    assert 'hint: `scratch="DIR"` puts temporary files on another disk' in str(failed.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["disk", "edges.txt.gz"]
    assert list(small_disk.iterdir()) == []


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(tg.InputError, match="put temporary files in"):
        tg.generate("rmat", tmp_path / "g.tg", scale=8, scratch=tmp_path / "none")
