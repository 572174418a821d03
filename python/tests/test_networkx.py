"""NetworkX's functions run on graphs of tiergraph, and pass NetworkX's own tests there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import tiergraph as tg
from tiergraph.attached.names import Names

nx = pytest.importorskip("networkx", "3.4", reason="no NetworkX of 3.4 or newer")
pytest.importorskip("scipy", reason="NetworkX's PageRank is SciPy's")

TESTS = {
    "link_analysis/tests/test_pagerank.py": ["pagerank"],
    "link_analysis/tests/test_hits.py": ["hits"],
    "components/tests/test_connected.py": [
        "connected_components",
        "number_connected_components",
        "is_connected",
        "node_connected_component",
    ],
    "components/tests/test_weakly_connected.py": [
        "weakly_connected_components",
        "number_weakly_connected_components",
        "is_weakly_connected",
    ],
    "centrality/tests/test_eigenvector_centrality.py": ["eigenvector_centrality"],
    "centrality/tests/test_katz_centrality.py": ["katz_centrality"],
    "shortest_paths/tests/test_unweighted.py": ["single_source_shortest_path_length"],
    "shortest_paths/tests/test_weighted.py": [
        "single_source_dijkstra_path_length",
        "single_source_bellman_ford_path_length",
    ],
    "shortest_paths/tests/test_generic.py": ["has_path"],
    "components/tests/test_strongly_connected.py": [
        "strongly_connected_components",
        "number_strongly_connected_components",
        "is_strongly_connected",
    ],
    "tests/test_cluster.py": ["triangles", "clustering", "average_clustering", "transitivity"],
    "tests/test_core.py": ["core_number"],
    "centrality/tests/test_betweenness_centrality.py": ["betweenness_centrality"],
    "community/tests/test_louvain.py": ["louvain_communities"],
    "tests/test_link_prediction.py": [
        "jaccard_coefficient",
        "adamic_adar_index",
        "resource_allocation_index",
    ],
    "tests/test_isolate.py": ["isolates", "number_of_isolates"],
    "tests/test_dag.py": ["descendants"],
    "traversal/tests/test_bfs.py": ["descendants_at_distance"],
}
"""NetworkX's tests of what the backend has: what else they call, NetworkX does."""


NOT_FOR_US = {
    # It takes the largest component to be the first that a search of NetworkX's own finds.
    "components/tests/test_strongly_connected.py": "test_condensation_mapping_and_members",
    # They compare with a list of communities in the order in which a run of NetworkX lists them.
    "community/tests/test_louvain.py": (
        "test_karate_club_partition or test_undirected_selfloops or test_none_weight_param"
    ),
}
"""Tests of what is NetworkX's own, and not of what it promises."""


@pytest.mark.parametrize("file", TESTS)
def test_networkx_own_tests_pass(file, tmp_path):
    path = Path(nx.__file__).parent / "algorithms" / file
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)]
    command += ["--backend", "tiergraph", "--fallback-to-nx", "-c", os.devnull]
    command += ["-o", "log_file=calls.txt", "-o", "log_file_level=DEBUG"]
    if file in NOT_FOR_US:
        command += ["-k", f"not ({NOT_FOR_US[file]})"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert re.search(r"\d+ passed", done.stdout.splitlines()[-1])
    calls = (tmp_path / "calls.txt").read_text()
    for name in TESTS[file]:
        assert re.search(f"Using backend 'tiergraph' for call to '{name}'", calls), name


@pytest.fixture(params=[True, False], ids=["directed", "undirected"])
def both(request, tmp_path):
    """The same graph in NetworkX and on disk, with ids that have gaps."""
    kind = nx.DiGraph if request.param else nx.Graph
    sparse = nx.gnp_random_graph(400, 0.004, seed=3, directed=request.param)
    memory = kind(nx.relabel_nodes(sparse, lambda v: 7 * v + 3).edges())
    path = tmp_path / "g.tg"
    tg.build(memory.edges(), path, undirected=not request.param, ids="map")
    with tg.open(path, memory="64MiB") as graph:
        yield memory, graph


def test_what_networkx_says_of_a_graph_on_disk(both):
    memory, graph = both
    assert (len(graph), graph.number_of_nodes()) == (len(memory), len(memory))
    ranks, expected = nx.pagerank(graph, tol=1e-9), nx.pagerank(memory, tol=1e-9)
    assert ranks == pytest.approx(expected, abs=1e-6)
    here = dict.fromkeys(list(memory)[:3], 1.0)
    ranks = nx.pagerank(graph, personalization=here)
    assert ranks == pytest.approx(nx.pagerank(memory, personalization=here), abs=1e-6)
    names = ["weakly_connected_components", "number_weakly_connected_components"]
    if not memory.is_directed():
        names = ["connected_components", "number_connected_components"]
    found, known = (list(getattr(nx, names[0])(g)) for g in (graph, memory))
    assert sorted(map(sorted, found)) == sorted(map(sorted, known))
    assert getattr(nx, names[1])(graph) == len(known)
    start = max(memory, key=memory.degree)
    for cutoff in (None, 2, 1.5, 0, -1):
        hops = nx.single_source_shortest_path_length(graph, start, cutoff=cutoff)
        assert hops == nx.single_source_shortest_path_length(memory, start, cutoff=cutoff)
        assert list(hops.values()) == sorted(hops.values())
    assert nx.descendants(graph, start) == nx.descendants(memory, start)
    assert nx.descendants_at_distance(graph, start, 2) == nx.descendants_at_distance(
        memory, start, 2
    )
    far = max(memory)
    assert nx.has_path(graph, start, far) == nx.has_path(memory, start, far)
    assert nx.number_of_isolates(graph) == 0
    for measure in (nx.eigenvector_centrality, nx.katz_centrality):
        how = {"max_iter": 2000, "tol": 1e-9}
        assert measure(graph, **how) == pytest.approx(measure(memory, **how), abs=1e-5)


def test_weights_count_as_networkx_counts_them(tmp_path):
    random = np.random.default_rng(0)
    edges = [(u, v, float(w)) for u, v, w in random.integers(1, 60, (300, 3))]
    memory = nx.MultiDiGraph()
    memory.add_weighted_edges_from(edges)
    tg.build(edges, tmp_path / "w.tg", ids="map")
    with tg.open(tmp_path / "w.tg") as graph:
        assert nx.pagerank(graph) == pytest.approx(nx.pagerank(memory), abs=1e-6)
        assert nx.pagerank(graph, weight=None) == pytest.approx(
            nx.pagerank(memory, weight=None), abs=1e-6
        )
        start = edges[0][0]
        far = nx.single_source_dijkstra_path_length(graph, start)
        assert far == nx.single_source_dijkstra_path_length(memory, start)
        hubs, authorities = nx.hits(graph)
        expected = nx.hits(nx.DiGraph(_summed(memory)))
        assert hubs == pytest.approx(expected[0], abs=1e-6)
        assert authorities == pytest.approx(expected[1], abs=1e-6)


def test_edges_without_the_attribute_that_weighs_them_count_one(tmp_path):
    memory = nx.gnp_random_graph(20, 0.2, seed=2)
    nx.set_edge_attributes(memory, {e: 1 + sum(e) % 5 for e in memory.edges()}, "weight")
    tg.build(memory, tmp_path / "w.tg")
    start = next(iter(memory.edges()))[0]
    measures = [
        nx.pagerank,
        partial(nx.eigenvector_centrality, max_iter=2000),
        partial(nx.katz_centrality, alpha=0.02),
        partial(nx.single_source_dijkstra_path_length, source=start),
        partial(nx.single_source_bellman_ford_path_length, source=start),
    ]
    with tg.open(tmp_path / "w.tg") as graph:
        for weight, measure in product(("weight", "length", None), measures):
            theirs = measure(memory, weight=weight)
            assert measure(graph, weight=weight) == pytest.approx(theirs, abs=1e-4)
        with pytest.raises(NotImplementedError, match="louvain_communities"):
            nx.community.louvain_communities(graph, weight="length")


def _summed(multi):
    """A graph with one edge for all between two nodes."""
    single = nx.DiGraph()
    single.add_nodes_from(multi)
    for u, v, weight in multi.edges(data="weight"):
        before = single.get_edge_data(u, v, {"weight": 0})["weight"]
        single.add_edge(u, v, weight=before + weight)
    return single


def test_a_cutoff_leaves_the_source(tmp_path):
    memory = nx.Graph()
    memory.add_weighted_edges_from([(0, 1, 0.0), (1, 2, 0.5), (2, 3, 2.0)])
    tg.build(memory, tmp_path / "w.tg")
    with tg.open(tmp_path / "w.tg") as graph:
        for cutoff, weight in product((-1, 0, 0.25, 0.5, 2.5), ("weight", None)):
            how = {"source": 0, "cutoff": cutoff, "weight": weight}
            theirs = nx.single_source_dijkstra_path_length(memory, **how)
            assert nx.single_source_dijkstra_path_length(graph, **how) == theirs


def test_hubs_are_what_their_authorities_add_up_to(both):
    memory, graph = both
    for normalized in (True, False):
        ours = nx.hits(graph, normalized=normalized, tol=1e-12, max_iter=10_000)
        theirs = nx.hits(memory, normalized=normalized, tol=1e-12)
        for found, known in zip(ours, theirs, strict=True):
            # Vectors that are not scaled may have either sign.
            assert found == pytest.approx({v: abs(x) for v, x in known.items()}, abs=1e-5)


@pytest.mark.parametrize("normalized", [True, False])
def test_a_graph_without_edges_has_no_hubs(normalized):
    with pytest.raises(nx.NetworkXError, match="without edges"):
        nx.hits(nx.empty_graph(3), normalized=normalized, backend="tiergraph")


def test_what_it_has_not_is_refused_by_name(both):
    _, graph = both
    with pytest.raises(NotImplementedError, match="eccentricity"):
        nx.eccentricity(graph)
    with pytest.raises(nx.NodeNotFound):
        nx.single_source_shortest_path_length(graph, -1)
    with pytest.raises(nx.PowerIterationFailedConvergence):
        nx.pagerank(graph, max_iter=1, tol=1e-12)


def test_a_graph_of_networkx_is_converted(tmp_path):
    memory = nx.les_miserables_graph()
    ranks = nx.pagerank(memory, backend="tiergraph")
    assert ranks == pytest.approx(nx.pagerank(memory), abs=1e-6)
    negative = nx.Graph([(0, 1, {"weight": -1})])
    with pytest.raises(NotImplementedError, match="tiergraph"):
        nx.pagerank(negative, backend="tiergraph")
    with pytest.raises(NotImplementedError):
        nx.single_source_dijkstra_path_length(
            memory, "Valjean", weight=lambda *_: 1, backend="tiergraph"
        )


def test_structure_of_a_graph_on_disk_is_networkxs(both):
    memory, graph = both
    if memory.is_directed():
        theirs = sorted(map(sorted, nx.strongly_connected_components(memory)))
        assert sorted(map(sorted, nx.strongly_connected_components(graph))) == theirs
    else:
        assert nx.triangles(graph) == nx.triangles(memory)
        assert nx.clustering(graph) == pytest.approx(nx.clustering(memory))
        assert nx.core_number(graph) == nx.core_number(memory)
        parts = nx.community.louvain_communities(graph, seed=1)
        assert set().union(*parts) == set(memory)
        theirs = nx.community.louvain_communities(memory, seed=1)
        ours = nx.community.modularity(memory, parts)
        assert ours == pytest.approx(nx.community.modularity(memory, theirs), rel=0.02)
    ours, theirs = nx.betweenness_centrality(graph), nx.betweenness_centrality(memory)
    assert ours == pytest.approx(theirs)


def test_what_networkx_means_otherwise_is_left_to_it(both):
    memory, graph = both
    with pytest.raises(Exception, match="not implemented"):
        nx.betweenness_centrality(graph, k=5)
    if memory.is_directed():
        with pytest.raises(Exception, match="not implemented"):
            nx.clustering(graph)


def test_ids_that_no_float_tells_apart_are_nodes_of_their_own(tmp_path):
    ids = [2**53 + i for i in range(3)]
    memory = nx.path_graph(ids)
    tg.build(memory.edges(), tmp_path / "g.tg", undirected=True, ids="map")
    with tg.open(tmp_path / "g.tg") as graph:
        assert nx.has_path(graph, ids[1], ids[2])
        assert nx.node_connected_component(graph, ids[1]) == set(ids)
        here = {ids[1]: 1}
        assert nx.pagerank(graph, personalization=here) == pytest.approx(
            nx.pagerank(memory, personalization=here), abs=1e-6
        )


def test_names_are_read_and_looked_up_together(tmp_path, monkeypatch):
    memory = nx.Graph((f"a{i}", f"b{i}") for i in range(200))
    tg.build(memory.edges(), tmp_path / "g.tg", undirected=True)
    calls = []
    for name in ("find", "_texts"):
        own = getattr(Names, name)
        monkeypatch.setattr(Names, name, lambda *a, own=own: calls.append(own) or own(*a))
    few = [f"a{i}" for i in range(150)]
    pairs = [(v, "b7") for v in few]
    here = dict.fromkeys([*few, "absent"], 1.0)
    with tg.open(tmp_path / "g.tg") as graph:
        found = list(nx.connected_components(graph))
        assert sorted(map(sorted, found)) == sorted(map(sorted, nx.connected_components(memory)))
        ranks = nx.pagerank(graph, personalization=here)
        assert ranks == pytest.approx(nx.pagerank(memory, personalization=here), abs=1e-6)
        ours = list(nx.jaccard_coefficient(graph, pairs))
        assert ours == list(nx.jaccard_coefficient(memory, pairs))
        with pytest.raises(nx.NodeNotFound, match="Node absent"):
            nx.jaccard_coefficient(graph, [("a1", "absent")])
    assert len(calls) < 20


@pytest.fixture
def looped(tmp_path):
    """The same graph in NetworkX and on disk; edges lead from nodes to themselves, some twice."""
    memory = nx.gnp_random_graph(30, 0.2, seed=5)
    memory.add_edges_from((v, v) for v in range(0, 30, 2))
    memory.__networkx_cache__ = None
    edges = [*memory.edges(), (0, 0), (2, 2)]
    tg.build(edges, tmp_path / "loops.tg", undirected=True, vertices=30)
    with tg.open(tmp_path / "loops.tg") as graph:
        yield memory, graph


def test_nodes_are_not_their_own_common_neighbours(looped):
    memory, graph = looped
    pairs = [(u, v) for u in memory for v in memory]
    theirs = list(nx.jaccard_coefficient(memory, pairs))
    assert list(nx.jaccard_coefficient(graph, pairs)) == theirs
    assert list(nx.jaccard_coefficient(memory, pairs, backend="tiergraph")) == theirs


@pytest.mark.parametrize("measure", ["adamic_adar_index", "resource_allocation_index"])
def test_degrees_that_networkx_counts_otherwise_are_left_to_it(looped, measure):
    memory, graph = looped
    for how in ({"G": graph}, {"G": memory, "backend": "tiergraph"}):
        with pytest.raises(NotImplementedError, match=measure):
            getattr(nx, measure)(ebunch=[(0, 1)], **how)


def test_a_graph_with_self_loops_has_no_core_numbers(looped):
    memory, graph = looped
    for how in ({"G": memory}, {"G": graph}, {"G": memory, "backend": "tiergraph"}):
        with pytest.raises(nx.NetworkXNotImplemented, match="self loops"):
            nx.core_number(**how)


@pytest.mark.parametrize("measure", ["clustering", "triangles"])
def test_nodes_are_given_as_networkx_takes_them(looped, measure):
    memory, graph = looped
    some = dict.fromkeys([3, 4, 99, 5])
    measure = getattr(nx, measure)
    ways = [some, some.keys(), np.array([3, 4]), frozenset(some), nx.path_graph(4).nodes, (3, 4), 3]
    for nodes in [*ways, range(5), [], "ab"]:
        theirs = measure(memory, nodes)
        assert measure(graph, nodes) == pytest.approx(theirs)
        assert measure(memory, nodes, backend="tiergraph") == pytest.approx(theirs)
    assert measure(graph, iter([3, 4])).keys() == {3, 4}
    for nodes in (99, [[3]]):
        for how in ({"G": memory}, {"G": graph}, {"G": memory, "backend": "tiergraph"}):
            with pytest.raises(nx.NetworkXError, match=r"Node .*(3|99)"):
                measure(nodes=nodes, **how)


def test_a_node_may_be_anything_with_a_hash():
    memory = nx.Graph([(len, print), (print, "x")])
    memory.__networkx_cache__ = None
    assert nx.has_path(memory, len, "x", backend="tiergraph")
    with pytest.raises(nx.NodeNotFound):
        nx.has_path(memory, [len], "x", backend="tiergraph")
    with pytest.raises(NotImplementedError, match="for the given arguments"):
        nx.pagerank(memory, weight=lambda *_: 1, backend="tiergraph")
