"""Measures of pairs and of edges, beside NetworkX's or the definition."""

from __future__ import annotations

import numpy as np
import pytest

import tiergraph as tg
from tiergraph import measures

nx = pytest.importorskip("networkx", reason="no NetworkX")


@pytest.fixture(params=[True, False], ids=["directed", "undirected"])
def both(request, tmp_path):
    """The same graph in NetworkX and on disk, with ids that have gaps."""
    drawn = nx.gnp_random_graph(150, 0.06, seed=2, directed=request.param)
    memory = nx.relabel_nodes(drawn, lambda v: 5 * v + 2)
    path = tmp_path / "g.tg"
    tg.build(memory.edges(), path, undirected=not request.param, ids="map")
    with tg.open(path, memory="64MiB") as graph:
        yield memory, graph


@pytest.mark.parametrize("by", ["jaccard", "overlap", "common"])
def test_similar_vertices_are_those_by_the_definition(both, by):
    memory, graph = both
    vertex = int(graph.ids[40])

    def value(other):
        own, others = set(memory[vertex]), set(memory[other])
        common = len(own & others)
        divisors = {
            "jaccard": len(own | others),
            "overlap": min(len(own), len(others)),
            "common": 1,
        }
        return common / divisors[by] if common else 0.0

    expected = sorted((-value(v), v) for v in memory if v != vertex and value(v))[:20]
    found = measures.similar(graph, vertex, by=by, top=20)
    assert [v for v, _ in found] == [v for _, v in expected]
    assert [x for _, x in found] == pytest.approx([-x for x, _ in expected])


def test_similar_vertices_are_found_by_ids_that_no_float_tells_apart(tmp_path):
    first = 2**53
    tg.build([(first + 1, first), (first + 3, first)], tmp_path / "g.tg", ids="map")
    with tg.open(tmp_path / "g.tg") as graph:
        assert measures.similar(graph, first + 1, by="jaccard") == [(first + 3, 1.0)]


def test_pairs_are_compared_by_the_definition(both, tmp_path):
    memory, graph = both
    drawn = np.random.default_rng(4).choice(graph.ids, (500, 2))
    drawn[7] = drawn[7, 0]
    into = memory.reverse(copy=False) if graph.directed else memory

    def value(by, u, v):
        own, others = set(memory[u]), set(memory[v])
        common, either = own & others, own | others
        degrees = [len(into[w]) for w in common]
        return {
            "common": len(common),
            "jaccard": len(common) / len(either) if either else 0,
            "overlap": len(common) / min(len(own), len(others)) if own and others else 0,
            "adamic_adar": sum(1 / np.log(d) for d in degrees if d > 1),
            "resource_allocation": sum(1 / d for d in degrees),
        }[by]

    for by in ("common", "jaccard", "overlap", "adamic_adar", "resource_allocation"):
        expected = [value(by, u, v) for u, v in drawn.tolist()]
        np.testing.assert_allclose(graph.similarity(drawn, by=by), expected)
    for none in (np.empty((0, 2), np.uint64), np.zeros((0, 2)), [], np.array([])):
        assert graph.similarity(none).shape == (0,)
    with pytest.raises(tg.InputError, match=r"expected pairs of vertex ids, of shape \(p, 2\)"):
        graph.similarity(drawn.ravel())
    with pytest.raises(tg.InputError, match=r"cannot find vertex `3`"):
        graph.similarity([[2, 3]])


def test_pairs_are_given_by_names_too(tmp_path):
    tg.build((["a", "b", "c"], ["x", "x", "y"]), tmp_path / "g.tg", ids="names")
    with tg.open(tmp_path / "g.tg") as graph:
        assert graph.similarity([("a", "b"), ("a", "c")]).tolist() == [1, 0]


def test_assortativity_and_reciprocity_are_networkxs(both):
    memory, graph = both
    expected = nx.degree_assortativity_coefficient(memory)
    assert measures.degree_assortativity(graph) == pytest.approx(expected)
    mutual = graph.mutual()
    if graph.directed:
        assert graph.last_run["reciprocity"] == pytest.approx(nx.reciprocity(memory))
        counts = {v: sum(memory.has_edge(u, v) for u in memory[v]) for v in memory}
        assert mutual.tolist() == [counts[v] for v in graph.ids.tolist()]
    else:
        assert graph.last_run["reciprocity"] == 1
    ring = nx.cycle_graph(10)
    tg.build(ring.edges(), graph.path + "-ring.tg", undirected=True)
    with tg.open(graph.path + "-ring.tg") as even:
        assert np.isnan(measures.degree_assortativity(even))


def test_walks_with_restart_are_personalised_ranks(both):
    memory, graph = both
    source = int(graph.ids[7])
    found = measures.random_walk_with_restart(graph, source, restart=0.2, top=5)
    ranks = nx.pagerank(memory, alpha=0.8, personalization={source: 1}, tol=1e-10)
    best = sorted(ranks.items(), key=lambda pair: -pair[1])[:5]
    assert [v for v, _ in found] == [v for v, _ in best]
    assert [x for _, x in found] == pytest.approx([x for _, x in best], rel=1e-3)


def test_statistics_of_degrees(both):
    memory, graph = both
    found = measures.degree_statistics(graph)
    degrees = np.array([memory.degree(v) for v in memory])
    if graph.directed:
        degrees = np.array([memory.out_degree(v) for v in memory])
    assert found["out"]["mean"] == pytest.approx(degrees.mean())
    assert found["out"]["deviation"] == pytest.approx(degrees.std())
    assert found["out"]["largest"] == degrees.max()
    spread = np.abs(degrees[:, None] - degrees).sum() / (2 * len(degrees) ** 2 * degrees.mean())
    assert found["out"]["gini"] == pytest.approx(spread)
