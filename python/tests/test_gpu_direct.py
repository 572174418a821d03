"""Blocks from storage to the GPU by cuFile: the same results, and what a run says of the way."""

from __future__ import annotations

import os

import numpy as np
import pytest
from gpu_graphs import each_layout, needs_gpu, skewed, unnoted, weighted
from test_gpu_trace import spans_of

import tiergraph as tg

pytestmark = needs_gpu

LAYOUTS = [
    {"codec": "packed", "block_bytes": 4096},
    {"codec": "raw", "block_bytes": 4096},
    {"codec": "raw", "block_bytes": 65536},
]


def opened(path, **options) -> tg.Graph:
    """The graph, read by cuFile."""
    return tg.open(path, device="cuda", transfers="direct", **options)


@pytest.fixture(scope="module", autouse=True)
def cufile(tmp_path_factory):
    """Skips the tests, with the reason, where there is no cuFile, or it knows no drive."""
    path = tmp_path_factory.mktemp("cufile") / "g.tg"
    tg.build((np.array([0]), np.array([1])), path)
    try:
        opened(path).wcc()
    except tg.DeviceError as error:
        if not any(known in str(error) for known in ("cannot use cuFile", "unknown to cuFile")):
            raise
        pytest.skip(f"cuFile cannot be used here: {str(error).splitlines()[0]}")


@pytest.fixture
def edges():
    """A graph of some dozen blocks of 4 KiB, with weights."""
    return weighted(lambda rng: skewed(rng, 1000, 8000, 1.4), seed=3)


@pytest.mark.parametrize("stripes", [1, 3])
@each_layout(LAYOUTS)
def test_direct_equals_cpu(tmp_path, edges, layout, stripes):
    folders = [tmp_path / f"stripe-{i}" for i in range(stripes)]
    if stripes > 1:
        layout = {**layout, "stripe": list(map(str, folders))}
    for folder in folders:
        folder.mkdir()
    unnoted(edges, tmp_path, **layout)
    cpu = tg.open(tmp_path / "g.tg")
    for residency in (True, False):
        gpu = opened(tmp_path / "g.tg", device_residency=residency, threads=2)
        ranks = gpu.pagerank(iterations=3)
        np.testing.assert_allclose(ranks, cpu.pagerank(iterations=3), rtol=1e-4)
        np.testing.assert_array_equal(gpu.wcc(), cpu.wcc())
        np.testing.assert_array_equal(gpu.bfs(0), cpu.bfs(0))
        np.testing.assert_array_equal(gpu.sssp(0), cpu.sssp(0))


def test_a_run_says_which_way_bytes_went(tmp_path, edges):
    unnoted(edges, tmp_path, codec="raw", block_bytes=4096)
    gpu = opened(tmp_path / "g.tg", device_residency=False)
    gpu.pagerank(iterations=2)
    run = gpu.last_run
    assert (run["transfers"], run["io_engine"]) == ("direct", "cufile")
    assert "compatibility mode" in run["io_engine_why"] or "direct where" in run["io_engine_why"]
    assert run["bytes_read"] == 2 * run["pass_bytes"]


def test_reads_are_on_the_timeline(tmp_path, edges):
    unnoted(edges, tmp_path, codec="raw", block_bytes=4096)
    gpu = opened(tmp_path / "g.tg", device_residency=False, threads=2)
    gpu.pagerank(iterations=2, trace=tmp_path / "run.json")
    spans, run = spans_of(tmp_path / "run.json"), gpu.last_run
    assert len(spans["storage to device"]) == 2 * run["pass_bytes"] // 4096
    assert not spans["storage to host"]
    assert not spans["host to device"]
    assert 0 < run["storage_to_device_seconds"] <= 1.05 * run["seconds"]
    assert run["storage_to_host_seconds"] == run["host_to_device_seconds"] == 0


def test_damage_is_found_before_it_is_computed_on(tmp_path, edges):
    unnoted(edges, tmp_path, codec="raw")
    blocks = tmp_path / "g.tg" / "in.blocks"
    data = bytearray(blocks.read_bytes())
    data[100] ^= 1
    blocks.write_bytes(data)
    for residency in (True, False):
        with pytest.raises(tg.FormatError, match=r"in\.blocks"):
            opened(tmp_path / "g.tg", device_residency=residency).pagerank()


def test_a_file_that_is_cut_short_is_named(tmp_path, edges):
    unnoted(edges, tmp_path, codec="raw", block_bytes=4096)
    gpu = opened(tmp_path / "g.tg", device_residency=False)
    blocks = tmp_path / "g.tg" / "in.blocks"
    os.truncate(blocks, blocks.stat().st_size - 4096)
    with pytest.raises(tg.IoError, match=r"in\.blocks.*unexpected end of file"):
        gpu.pagerank()
