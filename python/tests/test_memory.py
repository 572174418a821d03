"""`memory=` is a promise: the process stays under it, beyond what Python itself holds."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import tiergraph as tg
from tiergraph.sources.edges import BATCH_EDGES, WAITING_EDGE_BYTES, batch_edges

MEMORY = 64 << 20

# Not `ru_maxrss`: a process inherits that of the one that started it.
PEAK = """
import json, re, sys
import numpy, tiergraph as tg
def peak():
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1]) * 1024
"""

PROGRAM = """
base = peak()
graph = tg.open(sys.argv[1], memory=int(sys.argv[2]), threads=2)
getattr(graph, sys.argv[3])(*json.loads(sys.argv[4]))
print(json.dumps({"beyond": peak() - base, **graph.last_run}))
"""

BUILD = """
import pyarrow.dataset, pyarrow.parquet
base = peak()
stats = tg.build(sys.argv[1], sys.argv[2], memory=int(sys.argv[3]), threads=2)
print(json.dumps({"beyond": peak() - base, **stats}))
"""


def run(program, *arguments):
    command = [sys.executable, "-c", PEAK + program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """2^19 vertices and 16 M edges of raw ids: larger than the budget."""
    path = tmp_path_factory.mktemp("memory") / "g.tg"
    tg.generate("rmat", path, scale=19, edge_factor=32, seed=1, codec="raw", memory="256MiB")
    assert sum(f.stat().st_size for f in path.iterdir()) > MEMORY
    return path


@pytest.mark.parametrize(("algorithm", "arguments"), [("pagerank", []), ("wcc", []), ("bfs", [0])])
def test_a_run_stays_under_its_memory(graph, algorithm, arguments):
    measured = run(PROGRAM, graph, MEMORY, algorithm, json.dumps(arguments))
    assert measured["beyond"] <= MEMORY
    assert measured["bytes_read"] > 0


def test_a_budget_below_the_vertex_state_is_refused(graph):
    with pytest.raises(tg.BudgetError):
        tg.open(graph, memory="1MiB").pagerank(iterations=1)


@pytest.mark.parametrize("row_group_size", [1 << 20, 1 << 23])
def test_a_build_from_parquet_stays_under_its_memory(tmp_path, row_group_size):
    """8 M edges of 16 bytes, in row groups of an eighth of the budget and of all of it."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    edges = np.random.default_rng(1).integers(1 << 16, size=(2, 1 << 23))
    table = pa.table({"src": edges[0], "dst": edges[1]})
    parquet.write_table(table, tmp_path / "edges.parquet", row_group_size=row_group_size)
    measured = run(BUILD, tmp_path / "edges.parquet", tmp_path / "g.tg", 2 * MEMORY)
    assert measured["edges_read"] == 1 << 23
    assert measured["beyond"] <= 2 * MEMORY


def test_batches_on_their_way_take_an_eighth_of_the_memory():
    assert batch_edges(None) == batch_edges(1 << 30) == BATCH_EDGES
    for memory in (4 << 20, 8 << 20, 64 << 20):
        assert batch_edges(memory) * WAITING_EDGE_BYTES <= memory // 8


def test_a_budget_below_what_reading_holds_is_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    ids = np.arange(1 << 20)
    parquet.write_table(pa.table({"src": ids, "dst": ids}), tmp_path / "edges.parquet")
    with pytest.raises(tg.BudgetError, match="the edges that are being read"):
        tg.build(tmp_path / "edges.parquet", tmp_path / "g.tg", memory="16MiB")
