"""What a training job takes is measured, and hardware is planned for it."""

import json
import subprocess
import sys

import numpy as np
import pytest

import tiergraph as tg

JOB = tg.Job(
    batch_size=8000,
    drive_bytes=262_144 * 4096,
    drive_reads=262_144,
    host_bytes=87_381 * 4096,
    train_seconds=0.015,
    lookup_seconds=0.0,
    is_on_gpu=True,
)
"""As in Hyperion's figure 4, with a third as many rows in the host's memory."""


def tiergraph(*arguments):
    command = [sys.executable, "-m", "tiergraph", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_best_number_of_drives_fills_the_link():
    plan = tg.plan(JOB)
    assert (plan.best.drives, plan.best.bottleneck, plan.one_more) == (7, "link", 0.0)
    assert plan.estimates[11].dollars == 48_971
    assert plan.best in plan.estimates
    assert tg.plan(JOB, machine="b", gpu="h800").best.bottleneck == "drives"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "job.json"
    path.write_text(json.dumps(JOB._asdict()))
    return path


def test_the_command_says_the_same(file):
    said = tiergraph("plan", file, "--json")
    found = json.loads(said.stdout)
    assert found["best"] == tg.plan(JOB).best._asdict()
    assert len(found["estimates"]) == 12
    table = tiergraph("plan", file, "--budget", "46500").stdout
    assert "3 *" in table
    assert "the budget pays for no more of them" in table
    assert "One drive more: +0.0%" in tiergraph("plan", file).stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot read"),
        ("{", "expected JSON"),
        ("[]", "got list"),
        ("{}", "got no entry"),
        (json.dumps(JOB._asdict() | {"more": 1}), "more"),
        (json.dumps(JOB._asdict() | {"batch_size": "x"}), "batch_size"),
    ],
)
def test_files_that_are_no_jobs_are_refused(tmp_path, text, said):
    path = tmp_path / "job.json"
    if text is not None:
        path.write_text(text)
    refused = tiergraph("plan", path)
    assert refused.returncode == 1
    assert said in refused.stderr
    assert "internal" not in refused.stderr


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"budget": 100}, "a machine with one drive"),
        ({"budget": 0}, "budget"),
        ({"machine": "c"}, "`a`, `b`"),
        ({"gpu": "b200"}, "`a100`"),
        ({"drive": "t705"}, "its price"),
    ],
)
def test_questions_without_an_answer_are_refused(asked, said):
    with pytest.raises(tg.InputError, match=said):
        tg.plan(JOB, **asked)


def test_a_catalogue_of_ones_own_has_parts_and_prices(tmp_path):
    parts = tmp_path / "parts.toml"
    parts.write_text(
        """
        dollars_per_kwh = 0.2
        [machines.desk]
        name = "a workstation"
        dollars = 2000
        drive_slots = 2
        link_bytes_per_second = 12e9
        watts = 300
        source = "a shop"
        [gpus.card]
        name = "a card"
        dollars = 500
        source = "a shop"
        [drives.cheap]
        name = "a drive"
        bytes_per_second = 3e9
        reads_per_second = { 4096 = 500_000 }
        latency_us = 80
        dollars = 80
        source = "a shop"
        """
    )
    plan = tg.plan(JOB, machine="desk", gpu="card", drive="cheap", parts=parts)
    assert [estimate.drives for estimate in plan.estimates] == [1, 2]
    assert plan.estimates[0].dollars == pytest.approx(2000 + 500 + 80 + 0.3 * 43_800 * 0.2)
    parts.write_text("[machines]")
    with pytest.raises(tg.FormatError, match=r"parts\.toml"):
        tg.plan(JOB, parts=parts)
    with pytest.raises(tg.IoError, match="missing"):
        tg.plan(JOB, parts=tmp_path / "missing.toml")


def test_a_job_is_measured_on_a_loader(tmp_path):
    pytest.importorskip("torch_geometric", reason="loaders hand over PyG data")
    path = tmp_path / "g.tg"
    tg.generate("rmat", path, scale=14, features=1024, layouts="training")
    seeds = np.arange(0, 1 << 14, 7)
    how = {"batch_size": 32, "threads": 1, "memory": "72MiB"}
    loader = tg.NeighborLoader(path, [10, 5], input_nodes=seeds, **how)
    trained = []
    job = tg.measure_job(loader, lambda batch: trained.append(batch.x.sum()), batches=6)
    assert len(trained) == 3
    assert (job.batch_size, job.is_on_gpu, job.host_bytes) == (32, False, 0)
    assert job.drive_bytes >= job.drive_reads * 4096 > 0
    assert job.train_seconds > 0
    # The epoch that was begun begins anew.
    assert loader.epoch == 0
    assert sum(1 for _ in loader) == -(-len(seeds) // 32)
    assert tg.plan(job, gpu="none").best.link_seconds == 0
