"""Runs that are killed go on from their checkpoints, to the answer that they would have given."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiergraph as tg
from tiergraph import centrality


class StoppedError(Exception):
    """What a progress callable raises to stop a run."""


def stop_after(iterations: int) -> Any:
    """A progress callable that stops a run with the iteration after so many."""

    def progress(_stage: str, done: int, _total: int, unit: str) -> None:
        if unit == "iterations" and done > iterations:
            raise StoppedError

    return progress


@pytest.fixture(scope="module", params=[True, False], ids=["directed", "undirected"])
def web(request, tmp_path_factory) -> Path:
    """A graph that takes each algorithm several iterations: hubs, and a tail of 60 hops."""
    random = np.random.default_rng(7)
    src, dst = (random.random((2, 30_000)) ** 4 * 3000).astype(int)
    tail = np.arange(3000, 3060)
    edges = np.concatenate([[src, dst], [tail - 1, tail], [[3059], [0]]], axis=1)
    weights = random.random(edges.shape[1]) + 0.01
    path = tmp_path_factory.mktemp("checkpoints") / "web.tg"
    how = {"ids": "dense", "dedup": True, "block_bytes": 4096}
    tg.build((*edges, weights), path, undirected=not request.param, **how)
    return path


RUNS: dict[str, dict[str, Any]] = {
    "pagerank": {"tolerance": 1e-9},
    "bfs": {"source": 2},
    "sssp": {"source": 2},
    "cdlp": {"iterations": 12},
    "kcore": {},
    "kcore of one k": {"k": 9},
    "independent_set": {"seed": 5},
    "harmonic": {"registers": 32},
    "betweenness": {"samples": 12, "seed": 3},
    "leiden": {},
}


def same(found: Any, expected: Any, name: str) -> bool:
    """Whether two results are equal; sums of floats up to their last bits."""
    if name == "pagerank":
        return np.allclose(found, expected, rtol=1e-5, atol=0)
    return bool(np.array_equal(found, expected, equal_nan=True))


def run(graph: tg.Graph, name: str, **more: Any) -> Any:
    return getattr(graph, name.partition(" ")[0])(**RUNS[name], **more)


@pytest.mark.parametrize("name", RUNS)
def test_a_stopped_run_goes_on_to_the_same_answer(name, web, tmp_path):
    folder = tmp_path / "kept"
    with tg.open(web) as graph:
        expected = run(graph, name)
        whole = graph.last_run["iterations"]
    stop = stop_after({"leiden": whole - 2, "bfs": 1}.get(name, 2))
    with tg.open(web, checkpoint=folder, checkpoint_every=1, threads=2) as graph:
        with pytest.raises(StoppedError):
            run(graph, name, progress=stop)
        left = list(folder.iterdir())
        assert [file.suffix for file in left] == [".checkpoint"]
    with tg.open(web, checkpoint=folder, resume=True, threads=1) as graph:
        found = run(graph, name)
        said = graph.last_run
        assert said["resumed_after"] >= 1
        # Shortest paths end along lists, in windows of whatever is left.
        assert said["iterations"] < whole or name == "sssp"
        assert same(found, expected, name)
        assert not list(folder.iterdir()), "a run that has its result leaves nothing"
        # The next one begins anew.
        run(graph, name)
        assert graph.last_run["resumed_after"] is None


def test_it_goes_on_as_often_as_it_is_stopped(web, tmp_path):
    with tg.open(web) as graph:
        expected = graph.pagerank(iterations=20)
    folder, stops = tmp_path / "kept", 0
    while True:
        with tg.open(web, checkpoint=folder, checkpoint_every=3, resume=True) as graph:
            try:
                found = graph.pagerank(iterations=20, progress=stop_after(4))
            except StoppedError:
                stops += 1
                continue
            break
    # Of each five iterations, those after the third are lost.
    assert stops == 6
    assert graph.last_run["resumed_after"] == 18
    assert np.allclose(found, expected, rtol=1e-5, atol=0)


def test_triangles_go_on_with_the_next_part(tmp_path):
    random = np.random.default_rng(3)
    path, folder = tmp_path / "dense.tg", tmp_path / "kept"
    src, dst = random.integers(0, 60_000, (2, 4_000_000))
    tg.build((src, dst), path, undirected=True, dedup=True)
    with tg.open(path) as graph:
        expected = graph.triangles()
    memory = "48MiB"
    with tg.open(path, memory=memory, threads=1) as graph:
        assert (graph.triangles() == expected).all()
        assert graph.last_run["iterations"] >= 5, "it should take several parts"
    with (
        tg.open(path, memory=memory, threads=1, checkpoint=folder, checkpoint_every=1) as graph,
        pytest.raises(StoppedError),
    ):
        graph.triangles(progress=stop_after(3))
    with tg.open(path, memory="64MiB", checkpoint=folder, resume=True) as graph:
        assert (graph.triangles() == expected).all()
        assert graph.last_run["resumed_after"] >= 3


def test_strong_components_outside_memory(tmp_path):
    random = np.random.default_rng(4)
    path, folder = tmp_path / "wide.tg", tmp_path / "kept"
    # Dense parts, with edges from each to the next.
    src, dst = random.integers(0, 20_000, (2, 4_000_000))
    part = np.arange(4_000_000) // 1_000_000 * 20_000
    src += np.minimum(part, np.roll(part, 1000))
    dst += part
    tg.build((src, dst), path, block_bytes=1 << 16)
    with tg.open(path) as graph:
        expected = graph.scc()
    how: dict[str, Any] = {"memory": "33MiB", "threads": 1}
    with tg.open(path, **how) as graph:
        assert (graph.scc() == expected).all()
        steps = [step["how"] for step in graph.last_run["details"]]
        assert steps.count("trim") >= 2
    with (
        tg.open(path, **how, checkpoint=folder, checkpoint_every=1) as graph,
        pytest.raises(StoppedError),
    ):
        graph.scc(progress=stop_after(len(steps) - 3))
    with tg.open(path, memory="40MiB", checkpoint=folder, resume=True) as graph:
        assert (graph.scc() == expected).all()
        assert graph.last_run["resumed_after"] >= 2


@pytest.mark.parametrize("name", ["eigenvector", "katz", "hits", "pagerank"])
def test_loops_of_passes_go_on(name, web, tmp_path, monkeypatch):
    loop = getattr(centrality, name)
    how = {"alpha": 0.001} if name == "katz" else {}
    with tg.open(web) as graph:
        expected = loop(graph, **how)
    passes = 0
    plain = tg.Graph.propagate

    def counted(self: tg.Graph, *arguments: Any, **options: Any) -> Any:
        nonlocal passes
        passes += 1
        if passes == 5:
            raise StoppedError
        return plain(self, *arguments, **options)

    with tg.open(web, checkpoint=tmp_path, checkpoint_every=1) as graph:
        with monkeypatch.context() as patched:
            patched.setattr(tg.Graph, "propagate", counted)
            with pytest.raises(StoppedError):
                loop(graph, **how)
        with pytest.raises(tg.InputError, match="no checkpoint of a run that did not end"):
            loop(graph, **how)
        # Other options are another loop.
        loop(graph, tolerance=1e-3, **how)
    with tg.open(web, checkpoint=tmp_path, resume=True) as graph:
        passes = 5
        with monkeypatch.context() as patched:
            patched.setattr(tg.Graph, "propagate", counted)
            found = loop(graph, **how)
        saved = passes - 5
        loop(graph, **how)
        assert saved < passes
    assert np.allclose(found, expected, rtol=1e-9)
    assert not list(tmp_path.iterdir())


def test_a_loop_of_ones_own(web, tmp_path):
    """Whose options are NumPy's, and whose values are not in one piece."""

    def step(values: Any) -> Any:
        return np.stack([values / 2 + 1, values], axis=1)[:, 0]

    how: dict[str, Any] = {"iterations": 60, "tolerance": 1e-9, "name": "halves"}
    options = {"by": np.float32(0.5), "count": np.int64(3), "start": np.zeros(4)}
    first = np.zeros(3060)
    with tg.open(web) as graph:
        expected = graph.fixed_point(step, first, options=options, **how)
    assert np.allclose(expected, 2)
    with tg.open(web, checkpoint=tmp_path, checkpoint_every=1) as graph:
        assert graph.fixed_point(step, first, options=options, **(how | {"iterations": 9})) is None
        assert len(list(tmp_path.iterdir())) == 1, "it has no result yet"
        assert (graph.last_run["converged"], graph.last_run["iterations"]) == (False, 9)
        for name in ("../up", "", "a/b", 3):
            with pytest.raises(tg.InputError, match="name"):
                graph.fixed_point(step, first, options=options, **(how | {"name": name}))
    with tg.open(web, checkpoint=tmp_path, checkpoint_every=1, resume=True) as graph:
        assert np.array_equal(graph.fixed_point(step, first, options=options, **how), expected)
        said = graph.last_run
        assert said["checkpoints_written"] > 9
        assert (said["resumed_after"], said["converged"]) == (9, True)
        assert said["iterations"] == said["checkpoints_written"] + 1
    assert not list(tmp_path.iterdir())


def test_a_loop_says_what_all_of_its_runs_took(web, tmp_path):
    """Of which the first reads the graph, and the others find it in memory."""
    runs = []

    def step(values: Any) -> Any:
        for _ in range(2):
            values = graph.propagate(values / 100)
            runs.append(graph.last_run)
        return values + 1

    how: dict[str, Any] = {"iterations": 50, "tolerance": 1e-9, "name": "twice", "options": {}}
    with tg.open(web, checkpoint=tmp_path, checkpoint_every=2) as graph:
        graph.fixed_point(step, np.zeros(3060), **how)
        said = graph.last_run
    iterations = said["iterations"]
    assert 2 * iterations == len(runs) > 4
    assert (said["algorithm"], said["converged"]) == ("twice", True)
    assert said["checkpoints_written"] == (iterations - 1) // 2
    assert "checkpoint_why" in runs[-1]
    assert "checkpoint_why" not in said
    for counted in ("bytes_read", "compute_seconds", "wait_seconds", "passes"):
        assert said[counted] == pytest.approx(sum(run[counted] for run in runs))
    assert said["bytes_read"] > runs[-1]["bytes_read"] == 0
    assert said["seconds"] > sum(run["seconds"] for run in runs)
    assert sum(entry["bytes_read"] for entry in said["details"]) == said["bytes_read"]
    changes = [entry["measure"] for entry in said["details"]]
    assert len(changes) == iterations
    assert changes[-1] < 1e-9 <= changes[-2]


def test_a_long_loop_lists_its_first_iterations(web):
    with tg.open(web) as graph:
        how: dict[str, Any] = {"iterations": 1200, "tolerance": 1e-9, "name": "up", "options": {}}
        assert graph.fixed_point(lambda values: values + 1, np.zeros(3060), **how) is None
        details = graph.last_run["details"]
        assert (len(details), details[-1]["iterations"]) == (1000, 201)
        for first in (np.zeros(3), "abc", np.full(3060, np.nan)):
            with pytest.raises(tg.InputError, match="cannot use `first`"):
                graph.fixed_point(np.sqrt, first, **how)


def test_a_ceiling_is_measured_around_a_loop(web, monkeypatch):
    measured = []
    with tg.open(web) as graph:
        monkeypatch.setattr(tg.graph, "CEILING_SECONDS", 0.01)
        plain = tg.Graph._measuring_ceiling
        monkeypatch.setattr(
            tg.Graph,
            "_measuring_ceiling",
            lambda self: measured.append(self.ceiling) or plain(self),
        )
        graph.ceiling = True
        centrality.katz(graph, alpha=1e-4)
        assert graph.last_run["read_ceiling"] > 0
        assert measured == [True] + [False] * graph.last_run["iterations"]
        assert graph.ceiling


def test_a_process_that_is_killed(web, tmp_path):
    folder = tmp_path / "kept"
    code = f"""
import os, signal, tiergraph as tg
def progress(stage, done, total, unit):
    if unit == "iterations" and done > 3:
        os.kill(os.getpid(), signal.SIGKILL)
graph = tg.open({str(web)!r}, checkpoint={str(folder)!r}, checkpoint_every=1)
graph.kcore(progress=progress)
"""
    ended = subprocess.run([sys.executable, "-c", code], check=False)
    assert ended.returncode == -signal.SIGKILL
    command = [sys.executable, "-m", "tiergraph", "kcore", str(web), "--json"]
    kept = ["--checkpoint", str(folder)]
    refused = subprocess.run([*command, *kept], check=False, capture_output=True, text=True)
    assert refused.returncode != 0
    assert "no checkpoint of a run that did not end" in refused.stderr
    assert "`--resume`" in refused.stderr
    out = tmp_path / "cores.npy"
    more = [*kept, "--resume", "-o", str(out)]
    went_on = subprocess.run([*command, *more], check=True, capture_output=True, text=True)
    assert json.loads(went_on.stdout)["resumed_after"] >= 3
    with tg.open(web) as graph:
        assert (np.load(out)["core"] == graph.kcore()).all()
    assert not list(folder.iterdir())


def stopped(web: Path, folder: Path) -> Path:
    """The checkpoint of a run that was stopped."""
    with (
        tg.open(web, checkpoint=folder, checkpoint_every=1) as graph,
        pytest.raises(StoppedError),
    ):
        graph.kcore(progress=stop_after(2))
    (file,) = folder.iterdir()
    return file


def test_it_is_not_gone_on_from_unasked(web, tmp_path):
    file = stopped(web, tmp_path)
    before = file.read_bytes()
    with tg.open(web, checkpoint=tmp_path) as graph:
        with pytest.raises(tg.InputError) as refused:
            graph.kcore()
        assert str(file) in str(refused.value)
        assert "`resume=True`" in str(refused.value)
        assert file.read_bytes() == before
        # Runs of other algorithms and options have checkpoints of their own.
        graph.pagerank()
        assert graph.last_run["resumed_after"] is None
        assert file.read_bytes() == before


def test_another_build_is_refused(web, tmp_path):
    file = stopped(web, tmp_path / "kept")
    with tg.open(web) as graph:
        tg.build(
            graph.edge_batches(), tmp_path / "again.tg", undirected=not graph.directed, ids="dense"
        )
    with (
        tg.open(tmp_path / "again.tg", checkpoint=file.parent, resume=True) as graph,
        pytest.raises(tg.InputError, match="another build"),
    ):
        graph.kcore()


def test_damage_is_found_wherever_it_is(web, tmp_path):
    file = stopped(web, tmp_path)
    whole = file.read_bytes()
    with tg.open(web, checkpoint=tmp_path, resume=True) as graph:
        for at in [0, 1, len(whole) // 2, *range(len(whole) - 300, len(whole), 7), len(whole) - 1]:
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
            with pytest.raises(tg.FormatError) as refused:
                graph.kcore()
            assert str(file) in str(refused.value)
            assert "delete the file" in str(refused.value)
        for length in [0, 1, 19, 20, 300, len(whole) - 1]:
            file.write_bytes(whole[:length])
            with pytest.raises(tg.FormatError):
                graph.kcore()
        file.write_bytes(whole)
        graph.kcore()
        assert graph.last_run["resumed_after"] >= 2


def test_a_folder_that_cannot_be_written(web, tmp_path):
    (tmp_path / "file").write_text("mine")
    with tg.open(web, checkpoint=tmp_path / "file" / "kept") as graph:
        with pytest.raises(tg.IoError, match="folder of checkpoints"):
            graph.kcore()
        with pytest.raises(tg.IoError, match="folder of checkpoints"):
            graph.bfs(1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_drive_ends_the_run_and_spares_the_checkpoint(web, tmp_path):
    file = stopped(web, tmp_path)
    before = file.read_bytes()
    os.symlink("/dev/full", tmp_path / f".{file.name}.new")
    with tg.open(web, checkpoint=tmp_path, checkpoint_every=1, resume=True) as graph:
        with pytest.raises(tg.IoError, match="write the checkpoint"):
            graph.kcore()
        assert file.read_bytes() == before
        graph.kcore()
        assert graph.last_run["resumed_after"] >= 2


def test_what_leaves_none_says_so(web, tmp_path):
    with tg.open(web, checkpoint=tmp_path / "kept", checkpoint_every=1) as graph:
        graph.wcc()
        assert "leaves none" in graph.last_run["checkpoint_why"]
        graph.pagerank(iterations=5)
        assert "checkpoint_why" not in graph.last_run
        assert graph.last_run["checkpoints_written"] == 5
        assert graph.last_run["checkpoint_seconds"] > 0
    with tg.open(web) as graph:
        graph.pagerank()
        assert "checkpoint" not in graph.last_run


@pytest.mark.parametrize("every", ["0", 0, "5 hours", "-1", "1.5h", "", True, None, "9999999999"])
def test_how_often_is_checked(every, web, tmp_path):
    with pytest.raises(tg.InputError, match="checkpoint_every"):
        tg.open(web, checkpoint=tmp_path, checkpoint_every=every)


def test_times_are_taken(web, tmp_path):
    for every in ["90s", "5min", "2h", "500", 500]:
        with tg.open(web, checkpoint=tmp_path, checkpoint_every=every) as graph:
            graph.kcore()
            assert graph.last_run["checkpoints_written"] == 0


def test_resume_needs_a_folder(web):
    with pytest.raises(tg.InputError, match="checkpoint"):
        tg.open(web, resume=True)


def test_how_often_needs_a_folder(web):
    with pytest.raises(tg.InputError) as refused:
        tg.open(web, checkpoint_every=5)
    assert (
        str(refused.value)
        == 'cannot use `checkpoint_every=5`: expected `checkpoint="DIR"`, got none'
    )
    command = [sys.executable, "-m", "tiergraph", "kcore", str(web), "--checkpoint-every", "5"]
    said = subprocess.run(command, check=False, capture_output=True, text=True)
    assert said.returncode != 0
    assert "cannot use `--checkpoint-every 5`: expected `--checkpoint DIR`, got none" in said.stderr
