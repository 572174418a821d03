"""`memory=` is a promise: the process stays under it, beyond what Python itself holds."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import tiergraph as tg

MEMORY = 64 << 20

PROGRAM = """
import json, resource, sys
import numpy, tiergraph as tg
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
base = peak()
graph = tg.open(sys.argv[1], memory=int(sys.argv[2]), threads=2)
getattr(graph, sys.argv[3])(*json.loads(sys.argv[4]))
print(json.dumps({"beyond": peak() - base, **graph.last_run}))
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """2^19 vertices and 16 M edges of raw ids: larger than the budget."""
    path = tmp_path_factory.mktemp("memory") / "g.tg"
    tg.generate("rmat", path, scale=19, edge_factor=32, seed=1, codec="raw", memory="256MiB")
    assert sum(f.stat().st_size for f in path.iterdir()) > MEMORY
    return path


@pytest.mark.parametrize(("algorithm", "arguments"), [("pagerank", []), ("wcc", []), ("bfs", [0])])
def test_a_run_stays_under_its_memory(graph, algorithm, arguments):
    command = [sys.executable, "-c", PROGRAM, graph, str(MEMORY), algorithm, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    run = json.loads(done.stdout)
    assert run["beyond"] <= MEMORY
    assert run["bytes_read"] > 0


def test_a_budget_below_the_vertex_state_is_refused(graph):
    with pytest.raises(tg.BudgetError):
        tg.open(graph, memory="1MiB").pagerank(iterations=1)
