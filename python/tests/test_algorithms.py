"""Algorithms that are run by name: their methods, `Graph.run`, and the commands made of them.

What their values are is compared with serial verifiers in `crates/analytics/tests`, and with LDBC
Graphalytics' in `test_conformance.py`.
"""

from __future__ import annotations

import inspect
import json
import warnings

import numpy as np
import pytest

import tiergraph as tg
from tiergraph.algorithms import COMMON, REGISTERED
from tiergraph.cli import main
from tiergraph.cli.registered import commands

FOUND = {
    "triangles": {"triangles", "transitivity"},
    "clustering": {"average_clustering"},
    "cdlp": {"communities", "largest"},
    "kcore": {"largest_core"},
    "scc": {"components", "largest"},
    "louvain": {"communities", "largest", "modularity"},
    "leiden": {"communities", "largest", "modularity"},
    "betweenness": {"sources"},
    "independent_set": {"size"},
    "coloring": {"colors"},
    "harmonic": {"effective_diameter", "mean_distance", "standard_error"},
    "mutual": {"reciprocity"},
}
"""What each finds of the whole graph."""

# Two triangles that share vertex 30, a path to 70, and 80 by itself with a loop.
EDGES = [(10, 20), (20, 30), (30, 10), (30, 40), (40, 50), (50, 30), (50, 60), (60, 70), (80, 80)]


@pytest.fixture(params=[True, False], ids=["directed", "undirected"])
def graph(request, tmp_path):
    """A small graph with ids that have gaps, reordered by degree."""
    src, dst = np.array(EDGES, dtype=np.uint64).T
    path = tmp_path / "g.tg"
    tg.build((src, dst), path, undirected=not request.param, ids="map", order="degree")
    with tg.open(path, memory="64MiB") as opened:
        yield opened


def test_walks_are_written_as_rows(tmp_path, six):
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "walks.parquet"
    command = ["walks", six.path, "-o", str(out), "--length", "5", "--repeat", "2", "--seed", "3"]
    assert main(command) == 0
    written = np.array(parquet.read_table(out)["walk"].to_pylist(), np.uint64)
    expected = np.concatenate(list(six.random_walks(length=5, repeat=2, seed=3)))
    np.testing.assert_array_equal(written, expected)
    assert main(["walks", six.path, "-o", str(out), "--start", "10", "--start", "30"]) == 0
    assert [w[0] for w in parquet.read_table(out)["walk"].to_pylist()] == [10, 30]
    assert main(["walks", six.path, "-o", str(tmp_path / "walks.csv")]) == 1
    assert main(["walks", six.path, "-o", str(out), "--start", "x"]) == 1


def test_every_algorithm_is_here():
    assert set(FOUND) == set(REGISTERED)


@pytest.mark.parametrize("name", FOUND)
def test_by_name_and_by_method_are_the_same(graph, name):
    values = getattr(graph, name)()
    assert values.shape == (graph.vertices,)
    run = graph.last_run
    assert set(run) >= FOUND[name]
    assert (run["algorithm"], run["device"]) == (name, "cpu")
    np.testing.assert_array_equal(graph.run(name), values)
    named = inspect.signature(getattr(tg.Graph, name)).parameters
    assert set(named) - {"self", *COMMON} == set(REGISTERED[name].help)


def test_values_are_those_of_ids(graph):
    by_id = dict(zip(graph.ids.tolist(), graph.triangles().tolist(), strict=True))
    assert by_id == {10: 1, 20: 1, 30: 2, 40: 1, 50: 1, 60: 0, 70: 0, 80: 0}
    assert graph.last_run["triangles"] == 2
    cores = dict(zip(graph.ids.tolist(), graph.kcore().tolist(), strict=True))
    assert cores == {10: 2, 20: 2, 30: 2, 40: 2, 50: 2, 60: 1, 70: 1, 80: 0}
    strong = graph.scc().tolist()
    if graph.directed:
        assert strong == [10, 10, 10, 10, 10, 60, 70, 80]
    else:
        assert strong == graph.wcc().tolist() == [10] * 7 + [80]
    labels = graph.leiden()
    assert set(labels.tolist()) <= set(graph.ids.tolist())
    assert labels[-1] == 80
    assert graph.cdlp(iterations=1)[-1] == 80


def test_those_with_commands_of_their_own_run_by_name_too(graph):
    start = int(graph.ids[0])
    for name, options in {"pagerank": {}, "wcc": {}, "bfs": {"source": start}}.items():
        values = getattr(graph, name)(**options)
        np.testing.assert_array_equal(graph.run(name, **options), values)
        assert graph.last_run["algorithm"] == name
    lengths = graph.run("sssp", source=start)
    np.testing.assert_array_equal(lengths, graph.sssp(start))
    with pytest.raises(tg.InputError, match=r"expected one of `betweenness`, `bfs`, .*`wcc`"):
        graph.run("close")


def test_betweenness_of_sources_and_of_a_sample(graph):
    exact = graph.betweenness()
    at = graph.ids.tolist().index(60)
    # Every path from the triangles to 70 leads through 60.
    assert exact[at] == 5
    whole = graph.betweenness(samples=graph.vertices)
    np.testing.assert_allclose(whole, exact)
    some = [graph.betweenness(sources=[int(v)]) for v in graph.ids]
    np.testing.assert_allclose(sum(some), exact)
    graph.betweenness(samples=3, seed=4)
    assert graph.last_run["error_bound"] > 0
    with pytest.raises(tg.InputError, match="or `samples`"):
        graph.betweenness(sources=[10], samples=3)
    with pytest.raises(tg.InputError, match="11"):
        graph.betweenness(sources=[11])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda g: g.run("page_rank"), "one of `betweenness`"),
        (lambda g: g.run("cdlp", rounds=3), "it has iterations"),
        (lambda g: g.cdlp(iterations=0), "from 1"),
        (lambda g: g.leiden(objective="surprise"), "`modularity`, `cpm`"),
        (lambda g: g.leiden(resolution=-1), "from 0"),
        (lambda g: g.harmonic(registers=15), "from 16"),
        (lambda g: g.harmonic(registers=48), "power of two"),
    ],
)
def test_what_they_do_not_take_is_refused(graph, call, said):
    with pytest.raises(tg.InputError, match=said):
        call(graph)


@pytest.mark.parametrize("name", ["triangles", "leiden", "kcore", "harmonic", "betweenness"])
def test_memory_that_holds_no_state_is_refused_with_what_would_do(tmp_path, name):
    tg.generate("rmat", tmp_path / "g.tg", scale=15, undirected=True)
    options = {"registers": 1024} if name == "harmonic" else {}
    with (
        pytest.raises(tg.BudgetError, match="MiB"),
        tg.open(tmp_path / "g.tg", memory="21MiB") as graph,
    ):
        graph.run(name, **options)


@pytest.mark.parametrize("name", FOUND)
def test_commands_print_and_write(graph, capfd, tmp_path, name):
    command = name.replace("_", "-")
    assert set(commands()) >= {command}
    out = tmp_path / "result.parquet"
    assert main([command, graph.path, "--memory", "64MiB", "--json", "-o", str(out)]) == 0
    run = json.loads(capfd.readouterr().out)
    assert set(run) >= FOUND[name]
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(out)
    assert table.column_names == ["vertex", REGISTERED[name].column]
    assert table["vertex"].to_pylist() == graph.ids.tolist()
    np.testing.assert_array_equal(table[1].to_numpy(), graph.run(name))
    assert main([command, graph.path, "--memory", "64MiB", "--top", "3"]) == 0
    printed = capfd.readouterr()
    assert REGISTERED[name].column in printed.out
    assert len(printed.out.splitlines()) <= 4


def test_options_are_the_methods(graph, capfd):
    arguments = ["cdlp", graph.path, "--iterations", "1", "--json"]
    assert main(arguments) == 0
    assert json.loads(capfd.readouterr().out)["iterations"] == 1
    arguments = ["betweenness", graph.path, "--source", "10", "--source", "20", "--json"]
    assert main(arguments) == 0
    assert json.loads(capfd.readouterr().out)["sources"] == 2
    assert main(["leiden", graph.path, "--objective", "surprise"]) == 1
    assert "--objective" in capfd.readouterr().err
    assert main(["harmonic", "--help"]) == 0
    assert "power of two" in capfd.readouterr().out


@pytest.mark.parametrize("simple", [True, False])
@pytest.mark.parametrize("memory", [None, "64MiB"])
def test_one_core_is_that_of_all_core_numbers(tmp_path, simple, memory):
    random = np.random.default_rng(9)
    src, dst = (random.random((2, 200_000)) ** 3 * 40_000).astype(int)
    how = {"undirected": True, "ids": "dense"}
    if simple:
        how |= {"dedup": True, "drop_self_loops": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tg.InputWarning)
        tg.build((src, dst), tmp_path / "g.tg", **how)
    with tg.open(tmp_path / "g.tg", memory=memory, threads=2) as graph:
        cores = graph.kcore()
        for k in (1, 2, 5, int(cores.max()), int(cores.max()) + 1):
            found = graph.kcore(k=k)
            np.testing.assert_array_equal(found, np.where(cores >= k, k, 0))
            assert graph.last_run["size"] == (cores >= k).sum()
            ways = {step["how"] for step in graph.last_run["details"]}
            # Of a graph that was built so, nothing has to be counted.
            assert ("count" in ways) == (not simple)
        with pytest.raises(tg.InputError, match="k"):
            graph.kcore(k=0)


@pytest.mark.parametrize("name", ["louvain", "triangles", "kcore", "cdlp", "scc"])
def test_a_graph_without_the_neighbours_that_are_needed_says_so(name, tmp_path):
    """A directed graph for sampling has neighbours in one direction alone."""
    path = tmp_path / "g.tg"
    tg.generate("rmat", path, scale=8, layouts="sampling")
    with pytest.raises(tg.InputError, match="the out-neighbours of vertices") as caught:
        tg.open(path).run(name)
    assert str(path) in str(caught.value)
    assert 'layouts="both"' in str(caught.value)


def test_a_source_counts_once(graph):
    once = graph.betweenness(sources=[10, 60])
    assert once.any()
    np.testing.assert_array_equal(graph.betweenness(sources=[60, 10, 60, 10, 10]), once)
    assert graph.last_run["sources"] == 2


def test_the_average_of_no_coefficients_is_zero(tmp_path):
    tg.build((np.empty(0, np.uint64), np.empty(0, np.uint64)), tmp_path / "none.tg")
    with tg.open(tmp_path / "none.tg") as empty:
        empty.clustering()
        assert str(empty.last_run["average_clustering"]) == "0.0"
