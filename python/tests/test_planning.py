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
    plan = tg.plan(JOB, drive="p5510")
    assert (plan.best.drives, plan.best.bottleneck, plan.one_more) == (7, "link", 0.0)
    assert plan.estimates[11].dollars == 48_971
    assert plan.best in plan.estimates
    assert tg.plan(JOB, drive="p5510", machine="b", gpu="h800").best.bottleneck == "drives"
    both = tg.plan(JOB)
    assert [kind.drive for kind in both.kinds] == ["980pro", "p5510"]
    assert both.kinds == [both.best, plan.best]
    assert both == tg.plan(JOB, drive=["p5510", "980pro"])


def test_more_memory_misses_less_and_is_worth_something():
    assert tg.plan(JOB).more_memory is None
    misses = ((0.0, 674_082.0), (1e6, 337_041.0), (10e6, 0.0))
    rows = {"row_bytes": 4096.0, "device_rows": 1e6, "host_rows": 2e6, "misses": misses}
    job = JOB._replace(**rows)
    plan = tg.plan(job, drive="p5510")
    assert plan.more_memory.device > 0.1
    assert plan.best.host_cache_bytes == 8192e6
    # All rows in memory, said as people say it.
    plan = tg.plan(job, drive="p5510", host_cache="40GB")
    assert (plan.best.drives, plan.best.drive_seconds) == (1, 0)
    assert (
        plan.best.seeds_per_second > tg.plan(job, drive="p5510", host_cache=0).best.seeds_per_second
    )
    with pytest.raises(tg.InputError, match="misses"):
        tg.plan(JOB, host_cache="1GiB")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "job.json"
    path.write_text(json.dumps(JOB._asdict()))
    return path


def test_the_command_says_the_same(file):
    said = tiergraph("plan", file, "--json")
    found = json.loads(said.stdout)
    plan = tg.plan(JOB)
    assert found["best"] == plan.best._asdict()
    assert [found["limit"], found["one_more"]] == [plan.limit, plan.one_more]
    assert len(found["estimates"]) == 12
    assert len(found["kinds"]) == 2
    table = tiergraph("plan", file, "--drive", "p5510", "--budget", "46500").stdout
    assert "3 *" in table
    assert "the budget pays for no more of them" in table
    both = tiergraph("plan", file).stdout
    assert "One drive more: +0.0%" in both
    assert "x p5510: " in both


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot read"),
        ("{", "expected JSON"),
        ("[]", "got list"),
        ("{}", "got no entry"),
        (json.dumps(JOB._asdict() | {"more": 1}), "more"),
        (json.dumps(JOB._asdict() | {"batch_size": "x"}), "batch_size"),
        (json.dumps(JOB._asdict() | {"misses": [[1, 2, 3]]}), "pairs of numbers"),
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


def test_no_more_rows_lie_in_memory_than_a_machine_and_a_gpu_have():
    # 2 TB of rows, and what most of them miss.
    misses = ((0.0, 262_144.0), (1e6, 131_072.0), (1e8, 0.0))
    large = JOB._replace(row_bytes=20_000.0, device_rows=1e5, host_rows=9e7, misses=misses)
    with pytest.raises(tg.InputError, match=r"memory of `a`: expected 768000000000 bytes at most"):
        tg.plan(large, host_cache=800_000_000_000)
    with pytest.raises(tg.InputError, match=r"memory of `a100`: expected 80000000000 bytes"):
        tg.plan(large, device_cache=81_000_000_000)
    # What was measured with more than a machine has gets what fits.
    assert tg.plan(large).best.host_cache_bytes == pytest.approx(768e9)


def test_a_job_may_be_what_its_file_says():
    said = json.loads(json.dumps(JOB._asdict()))
    assert tg.plan(said) == tg.plan(JOB)
    for wrong in ({"batch_size": 3}, said | {"batch_size": 0}, "job.json"):
        with pytest.raises(tg.InputError, match="cannot read the job"):
            tg.plan(wrong)


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
    how = {"batch_size": 32, "threads": 1, "memory": "72MiB", "io": "modelled:p5510"}
    how["shuffle"] = True
    loader = tg.NeighborLoader(path, [10, 5], input_nodes=seeds, **how)
    trained = []
    job = tg.measure_job(loader, lambda batch: trained.append(batch.x.sum()), batches=6)
    assert len(trained) == 6 + 4
    assert (job.batch_size, job.is_on_gpu, job.host_bytes) == (32, False, 0)
    assert job.drive_bytes >= job.drive_reads * 4096 > 0
    assert job.train_seconds > 0
    # Two cores, and not the drive, set the pace: what they take is known.
    assert job.lookup_seconds > 0
    # The epoch that was begun begins anew.
    assert loader.epoch == 0
    assert sum(1 for _ in loader) == -(-len(seeds) // 32)
    assert tg.plan(job, gpu="none").best.link_seconds == 0
    # What it misses is what it was seen to want and not have.
    kept, read = loader.kept(), loader.last_epoch
    assert (job.row_bytes, job.host_rows) == (4096, kept["kept_rows"])
    at, missed = np.transpose(job.misses)
    assert at[0] == 0
    assert at[-1] == 1 << 14
    assert missed[0] == pytest.approx(read["nodes"] / read["batches"], rel=0.1)
    assert missed[-1] == 0
    expected = np.interp(job.host_rows, at, missed)
    assert expected == pytest.approx(read["missed_rows"] / read["batches"], rel=0.25)
    with pytest.raises(tg.InputError, match="as in `p5510"):
        tg.measure_job(loader, trained.append, drives="p5510 x 2")
    with pytest.raises(tg.InputError, match="floppy"):
        tg.measure_job(loader, trained.append, drives="floppy")


def test_the_command_measures_a_graph_and_draws_its_plan(tmp_path):
    pytest.importorskip("torch_geometric", reason="training needs PyTorch and PyG")
    path, job, curve = tmp_path / "g.tg", tmp_path / "job.json", tmp_path / "plan.png"
    tg.generate("rmat", path, scale=12, features=64, layouts="training")
    labels, train = np.arange(1 << 12) % 3, np.arange(2000)
    tg.add_features(path, labels=labels, splits={"train": train, "val": train, "test": train})
    flags = ("--fanout", "5,5", "--hidden", "16", "--batch-size", "200", "--drive", "p5510")
    said = tiergraph("plan", path, *flags, "--job", job, "--curve", curve, "--json")
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    assert found["job"]["batch_size"] == 200
    assert found["best"]["link_seconds"] == 0
    assert found["limit"].startswith("Nothing is read from drives")
    assert curve.read_bytes().startswith(b"\x89PNG")
    again = json.loads(tiergraph("plan", job, "--drive", "p5510", "--json").stdout)
    assert again["estimates"] == found["estimates"]


RUN = {
    "algorithm": "pagerank",
    "device": "cpu",
    "iterations": 10,
    "seconds": 5.0,
    "compute_seconds": 6.0,
    "wait_seconds": 2.0,
    "threads": 2,
    "pass_bytes": 1_300_000_000,
    "read_ceiling": 1e9,
}


def test_iterations_are_planned_from_a_run(tmp_path):
    pytest.importorskip("matplotlib", reason="curves are drawn by it")
    seconds = {(e.drives, e.resident_bytes): e.seconds for e in tg.plan_passes(RUN, drives=[1, 2])}
    assert seconds[1, 0] == pytest.approx(1.4)
    assert seconds[2, 0] == pytest.approx(0.75)
    assert seconds[1, 1.3e9] == pytest.approx(0.4)
    file = tmp_path / "run.json"
    file.write_text(json.dumps(RUN))
    table = tiergraph("plan", file).stdout
    assert "1400.0" in table
    assert "400.0 *" in table
    found = json.loads(tiergraph("plan", file, "--drive", "p5510", "--json").stdout)
    assert found["estimates"][0]["drive_seconds"] == pytest.approx(0.2)
    # What a run has no use for is not left out without a word.
    for flags in (("--budget", "9"), ("--curve", tmp_path / "c.png"), ("--fanout", "3")):
        refused = tiergraph("plan", file, *flags)
        assert refused.returncode == 1
        assert "got others" in refused.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"algorithm": "bfs"}, "bfs on cpu"),
        ({"device": "cuda:0"}, "pagerank on cuda"),
        ({"wait_seconds": None}, "without wait_seconds"),
        ({"read_ceiling": None}, "ceiling"),
        ({"seconds": 0}, "`seconds`"),
    ],
)
def test_runs_that_say_too_little_are_refused(change, said):
    with pytest.raises(tg.InputError, match=said):
        tg.plan_passes(RUN | change)


def test_a_real_run_is_planned_near_what_it_took(tmp_path):
    path = tmp_path / "g.tg"
    tg.generate("rmat", path, scale=16)
    with tg.open(path) as graph:
        graph.ceiling = True
        graph.pagerank(iterations=20)
        run = graph.last_run
    (estimate,) = tg.plan_passes(run, drives=[1], shares=[1.0])
    assert estimate.bottleneck == "compute"
    assert estimate.seconds <= 1.01 * run["seconds_per_iteration"]
