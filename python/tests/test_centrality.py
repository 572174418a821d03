"""Centralities by passes: the same at any scale of weights, and plain about what they cannot do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tiergraph as tg
from tiergraph import centrality, measures

SRC, DST = np.array([0, 0, 0, 1, 2]), np.array([1, 2, 3, 2, 4])
WEIGHTS = np.array([1.0, 2.0, 3.0, 2.0, 0.5])
MEASURES = ("pagerank", "eigenvector", "katz", "hits")


@pytest.fixture
def five(tmp_path):
    """Five vertices without directions."""
    tg.build((SRC, DST), tmp_path / "five.tg", undirected=True)
    with tg.open(tmp_path / "five.tg") as graph:
        yield graph


def weighted(path, weights, undirected=True):
    tg.build((SRC, DST, weights), path, undirected=undirected, overwrite=True)
    return tg.open(path)


def matrix(weights):
    dense = np.zeros((5, 5))
    dense[SRC, DST] = dense[DST, SRC] = weights
    return dense


@pytest.mark.parametrize("scale", [1e-310, 1e-160, 1e-7, 1e-6, 1e-2, 1, 1e160, 5e307])
def test_the_scale_of_weights_does_not_matter(scale, tmp_path):
    _, vectors = np.linalg.eigh(matrix(WEIGHTS))
    expected = np.abs(vectors[:, -1])
    with weighted(tmp_path / "w.tg", WEIGHTS) as graph:
        ranks, (hubs, authorities) = (
            getattr(centrality, name)(graph, weights=True) for name in ("pagerank", "hits")
        )
    with weighted(tmp_path / "w.tg", WEIGHTS * scale) as graph:
        found = centrality.eigenvector(graph, weights=True)
        np.testing.assert_allclose(found, expected, atol=1e-5)
        np.testing.assert_allclose(centrality.pagerank(graph, weights=True), ranks, rtol=1e-9)
        both = centrality.hits(graph, weights=True)
        np.testing.assert_allclose(both, (hubs, authorities), rtol=1e-9)


def test_heavy_arcs_that_are_in_no_circle_do_not_slow_the_others(tmp_path):
    # A circle of three, whose eigenvalue is 2, and an arc out of it that weighs a hundred.
    edges = (np.array([0, 1, 2, 0]), np.array([1, 2, 0, 3]), np.array([1.0, 2, 4, 100]))
    tg.build(edges, tmp_path / "g.tg")
    with tg.open(tmp_path / "g.tg") as graph:
        found = centrality.eigenvector(graph, weights=True)
    expected = np.array([1, 1 / 2, 1 / 2, 50])
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=1e-5)


def test_weights_of_one_are_no_weights(five, tmp_path):
    with weighted(tmp_path / "w.tg", np.ones(5)) as graph:
        for name in MEASURES:
            measure = getattr(centrality, name)
            np.testing.assert_array_equal(measure(graph, weights=True), measure(five))


def test_katz_is_as_exact_for_a_small_beta(five):
    whole = np.linalg.solve(np.eye(5) - 0.1 * matrix(1), np.ones(5))
    for beta in (1e-12, 1, 1e200):
        found = centrality.katz(five, beta=beta)
        np.testing.assert_allclose(found / beta, whole, rtol=1e-6)
    own = np.array([1e-9, 0, 0, 0, -2e-9])
    expected = np.linalg.solve(np.eye(5) - 0.1 * matrix(1), own)
    np.testing.assert_allclose(centrality.katz(five, beta=own.tolist()), expected, atol=1e-15)


@pytest.mark.parametrize("name", MEASURES)
def test_the_last_run_is_the_whole_loop(name, five, tmp_path):
    measure = getattr(centrality, name)
    measure(five)
    said = five.last_run
    assert (said["algorithm"], said["converged"]) == (name, True)
    assert said["iterations"] == len(said["details"]) > 1
    with tg.open(five.path, checkpoint=tmp_path / "kept", checkpoint_every=1) as graph:
        measure(graph)
        assert graph.last_run["checkpoints_written"] == said["iterations"] - 1
        assert "checkpoint_why" not in graph.last_run
        with pytest.raises(centrality.NotConvergedError, match="`resume=True` goes on"):
            measure(graph, iterations=2, tolerance=1e-12)
        assert graph.last_run["converged"] is False
    with tg.open(five.path, checkpoint=tmp_path / "kept", resume=True) as graph:
        measure(graph, iterations=2000, tolerance=1e-12)
        assert graph.last_run["resumed_after"] == 2
    assert not list((tmp_path / "kept").iterdir())


def test_what_did_not_converge_says_how_near_it_came(five):
    with pytest.raises(centrality.NotConvergedError) as raised:
        centrality.pagerank(five, iterations=3)
    error = raised.value
    assert (error.iterations, error.change) == (3, five.last_run["details"][-1]["measure"])
    assert str(error) == (
        "cannot find the fixed point of `pagerank`: expected a change of less than 1e-06 within "
        f"3 iterations, got {error.change:.3g} in the last\n\n"
        "hint: give more `iterations`, or a larger `tolerance`"
    )
    with pytest.raises(centrality.NotConvergedError, match="beyond float64's range\n\nhint: `alph"):
        centrality.katz(five, alpha=2.0)


def test_values_may_be_lists(five):
    given: dict[str, Any] = {"teleport": [0, 2, 0, 0, 2], "start": (1, 1, 1, 1, 4)}
    ranks = centrality.pagerank(five, **given, sinks=[1, 0, 0, 0, 0])
    halves = np.array([0, 0.5, 0, 0, 0.5])
    np.testing.assert_allclose(ranks, centrality.pagerank(five, teleport=halves), atol=1e-5)
    assert ranks.sum() == pytest.approx(1)
    for name in ("eigenvector", "katz", "hits"):
        measure = getattr(centrality, name)
        expected = measure(five)
        np.testing.assert_allclose(measure(five, start=[1, 2, 1, 2, 1]), expected, atol=1e-5)
    upside_down = centrality.eigenvector(five, start=[-1] * 5)
    np.testing.assert_allclose(upside_down, centrality.eigenvector(five), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("pagerank", {"damping": 2}, "`damping=2`: expected a finite number from 0 to 1"),
        ("pagerank", {"damping": np.nan}, "`damping=nan`: expected a finite number"),
        ("pagerank", {"teleport": np.zeros(5)}, "`teleport`: .*above 0, got zeros alone"),
        ("pagerank", {"teleport": [1, 1, 1, -1, 0]}, "`teleport`: .*above 0, got `-1`"),
        ("pagerank", {"sinks": [1.0]}, r"`sinks`: expected .*shape \(5,\), got \(1,\)"),
        ("pagerank", {"start": [1, 1, 1, 1, np.inf]}, "`start`: .*got inf at position 4"),
        ("pagerank", {"iterations": 0}, "`iterations=0`"),
        ("pagerank", {"tolerance": -1}, "`tolerance=-1`"),
        ("pagerank", {"teleports": [1]}, "did you mean `teleport`"),
        ("hits", {"start": np.zeros(5)}, "`start`: .*above 0, got zeros alone"),
        ("hits", {"weights": "w"}, '`weights="w"`: expected True or False'),
        ("eigenvector", {"start": np.zeros(5)}, "`start`: expected a value other than 0"),
        ("eigenvector", {"start": "abc"}, "`start`: expected an array of real numbers"),
        ("katz", {"beta": np.ones(3)}, r"`beta`: expected .*shape \(5,\), got \(3,\)"),
        ("katz", {"beta": "x"}, '`beta="x"`: expected a finite number'),
        ("katz", {"beta": [[1], [1, 2]]}, "`beta`: expected an array of numbers"),
        ("katz", {"alpha": "x"}, '`alpha="x"`: expected a finite number'),
    ],
)
def test_what_cannot_be_used_is_named(name, given, message, five):
    with pytest.raises(tg.InputError, match=message):
        getattr(centrality, name)(five, **given)


def test_a_path_is_no_graph(five):
    for call in (centrality.pagerank, measures.degree_assortativity, measures.degree_statistics):
        with pytest.raises(tg.InputError, match="expected an opened graph, which `tier"):
            call("g.tg")
    with pytest.raises(tg.InputError, match=r'`graph="g.tg"`: expected an opened graph'):
        measures.similar("g.tg", 10)


@pytest.mark.parametrize("name", MEASURES)
def test_a_graph_without_vertices_has_no_values(name, tmp_path):
    tg.build((SRC[:0], DST[:0]), tmp_path / "empty.tg")
    with tg.open(tmp_path / "empty.tg") as graph:
        found = getattr(centrality, name)(graph)
        for values in found if name == "hits" else [found]:
            assert (values.shape, values.dtype) == ((0,), np.float64)


def test_they_are_there_without_an_import_of_their_own():
    assert tg.centrality is centrality
    assert tg.measures is measures
    assert {"centrality", "measures"} <= set(tg.__all__)
