"""A cgroup of a tenth more than `--memory` never ends a run: graphs, algorithms, loaders."""

from __future__ import annotations

import json
import sys

import limits
import pytest
from shapes import FILES, SHAPES, clique, one_edge, random, road
from test_memory_builds import hinted
from test_memory_runs import RUNS

import tiergraph as tg

OWN = """
import json, sys
import numpy as np
import tiergraph as tg
path, memory, what = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
try:
    if what == "loader":
        loader = tg.NeighborLoader(path, [5, 5], np.arange(2), memory=memory, batch_size=64)
        for number, batch in zip(range(3), loader):
            pass
    else:
        graph = tg.open(path, memory=memory)
        getattr(graph, what[0])(np.zeros((graph.vertices, 4), np.float32), **what[1])
except tg.BudgetError as error:
    print(json.dumps({"enough": error.enough_bytes, "text": str(error)}))
else:
    print(json.dumps({"peak": tg._native.peak_rss_bytes()}))
"""


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Builds the graph of a shape, once."""
    folder = tmp_path_factory.mktemp("graphs")

    def graph(shape, **options):
        made = folder / f"{shape.__name__}-{'-'.join(options)}.tg"
        if not made.exists():
            tg.build(shape(), made, ids="dense", **options)
        return made

    return graph


def assert_kept(arguments, modules="tiergraph.cli"):
    memory = hinted(limits.tiergraph(*arguments, "--memory", "1MiB", limit=1 << 40).err)
    loaded = limits.loaded_bytes(modules)
    limit = memory + memory // 10 + loaded
    done = limits.tiergraph(*arguments, "--json", "--memory", memory, limit=limit)
    assert (done.killed, done.code) == (False, 0), done.err
    assert json.loads(done.out)["peak_rss_bytes"] <= limit


@pytest.mark.parametrize("algorithm", RUNS)
@pytest.mark.parametrize("shape", [*SHAPES, *FILES])
def test_an_algorithm_stays_within_its_limit(graphs, tmp_path, shape, algorithm):
    options = {"codec": "raw"} if shape is random else {"undirected": True}
    arguments = [algorithm, graphs(shape, **options), *RUNS[algorithm]]
    source = ["--source", 0] if "--source" in arguments else []
    assert_kept([*arguments, *source, "-o", tmp_path / "out.npy"])


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_propagate_says_once_with_what_a_graph_is_to_be_opened(graphs, shape, transpose):
    graph = graphs(shape, layouts="both", undirected=True)
    what = ["propagate", {"transpose": transpose}]
    # Opening is refused first, and then the run.
    opened = own(graph, 1 << 20, what, 1 << 40)["enough"]
    memory = own(graph, opened, what, 1 << 40)["enough"]
    x = tg.open(graph).vertices * 4 * 4
    limit = memory + memory // 10 + limits.loaded_bytes("tiergraph, numpy") + x
    done = own(graph, memory, what, limit)
    assert "peak" in done, done
    assert done["peak"] <= limit


@pytest.mark.parametrize("shape", [clique, one_edge, random, road])
def test_a_loader_stays_within_its_limit(graphs, shape):
    pytest.importorskip("torch_geometric", reason="loaders hand over PyG data")
    graph = graphs(shape, layouts="both", undirected=True)
    memory = own(graph, 1 << 20, "loader", 1 << 40)["enough"]
    limit = memory + memory // 10 + limits.loaded_bytes("tiergraph, torch, torch_geometric.data")
    assert "peak" in own(graph, memory, "loader", limit)


def own(graph, memory, what, limit):
    command = [sys.executable, "-c", OWN, graph, memory, json.dumps(what)]
    done = limits.run(command, limit)
    assert (done.killed, done.code) == (False, 0), done.err
    return json.loads(done.out)
