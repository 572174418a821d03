"""Algorithms on the command line: one refusal says what is enough, and that is never exceeded."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import limits
import numpy as np
import pytest

import tiergraph as tg

VERTICES = 1 << 22
BASELINE = 5 << 20
"""Bytes by which a process that only loads modules differs from one that runs, at most."""
RUNS = {
    "wcc": [],
    "bfs": ["--source", 5, "--top", 10],
    "sssp": ["--source", 5, "--top", 10],
    "pagerank": ["--iterations", 2],
}


@pytest.fixture(scope="module")
def sparse(tmp_path_factory):
    """As many vertices as edges, most of them in small components: what a run holds is state."""
    path = tmp_path_factory.mktemp("sparse") / "g.tg"
    tg.generate("uniform", path, vertices=VERTICES, edges=VERTICES, undirected=True, seed=2)
    return path


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """The same, called by ids of its own."""
    path = tmp_path_factory.mktemp("mapped") / "g.tg"
    ids = np.random.default_rng(3).integers(VERTICES, size=(2, VERTICES), dtype=np.uint64)
    tg.build((ids[0] * 7 + 5, ids[1] * 7 + 5), path, ids="map", undirected=True)
    return path


def hinted(*arguments):
    """The memory that a command asks for that is given almost none."""
    command = [sys.executable, "-m", "tiergraph", *map(str, arguments), "--memory", "1MiB"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1, refused.stderr
    return int(re.search(r"hint: run with `--memory (\d+)MiB` or more", refused.stderr)[1]) << 20


@pytest.mark.parametrize("suffix", ["npy", "parquet", None])
@pytest.mark.parametrize("algorithm", RUNS)
def test_what_a_refusal_asks_for_is_enough_until_the_process_ends(
    sparse, tmp_path, algorithm, suffix
):
    arguments = [algorithm, sparse, *RUNS[algorithm]]
    memory = hinted(*arguments)
    output = [] if suffix is None else ["-o", tmp_path / f"out.{suffix}"]
    loaded = limits.loaded_bytes(limits.MODULES if suffix == "parquet" else "tiergraph.cli")
    limit = memory + memory // 10 + loaded
    run = limits.tiergraph(*arguments, *output, "--json", "--memory", memory, limit=limit)
    assert (run.killed, run.code) == (False, 0), run.err
    # The process's own peak, and not that of before the result was looked through and written.
    peak = json.loads(run.out)["peak_rss_bytes"] - loaded
    assert VERTICES * 8 - BASELINE < peak <= memory


def test_what_a_run_frees_stays_until_the_graph_is_closed(tmp_path):
    path = tmp_path / "g.tg"
    tg.generate("uniform", path, vertices=2 * VERTICES, edges=2 * VERTICES, undirected=True, seed=2)
    memory = hinted("pagerank", path)
    script = f"""
import tiergraph as tg

def held(of="VmRSS:"):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(of))

before = held()
graph = tg.open({str(path)!r}, memory="{memory}")
graph.pagerank(iterations=2)
graph.bfs(5)
graph.wcc()
once = held()
for _ in range(3):
    graph.wcc()
assert abs(held() - once) < 4 << 20, (held(), once)
assert held("VmHWM:") < before + {memory}, (held("VmHWM:") - before, {memory})
graph.close()
print(once - held())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > VERTICES * 4


def test_a_csv_and_ids_of_the_users_own_stay_within_memory(mapped, tmp_path):
    memory = hinted("wcc", mapped)
    limit = memory + memory // 10 + limits.loaded_bytes()
    output = tmp_path / "out.csv"
    run = limits.tiergraph("wcc", mapped, "-o", output, "--memory", memory, limit=limit)
    assert (run.killed, run.code) == (False, 0), run.err
    with output.open() as lines:
        assert next(lines) == "vertex,component\n"
        assert all(int(word) % 7 == 5 for word in next(lines).split(","))


def test_components_and_their_sizes_are_those_of_numpy(mapped):
    graph = tg.open(mapped)
    components = graph.wcc(largest=20)
    run = graph.last_run
    names, sizes = np.unique(components, return_counts=True)
    assert (run["components"], run["largest_component"]) == (len(names), sizes.max())
    order = np.lexsort((names, -sizes))[:20]
    assert run["largest"] == [[int(names[i]), int(sizes[i])] for i in order]
    assert run["component_sizes"] == np.bincount(np.log2(sizes).astype(int)).tolist()


def test_ids_come_in_parts(mapped, sparse):
    for path in (mapped, sparse):
        graph = tg.open(path)
        n = graph.vertices
        for start, stop in [
            (0, 0),
            (0, 1),
            (131_071, 131_073),
            (5, 400_000),
            (n - 1, n),
            (n, n + 9),
        ]:
            np.testing.assert_array_equal(graph.ids_of(start, stop), graph.ids[start:stop])


def test_a_build_reports_the_peak_of_its_process(tmp_path):
    report = tg.generate("rmat", tmp_path / "g.tg", scale=10)
    assert report["peak_rss_bytes"] > 10 << 20
