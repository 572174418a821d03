"""LDBC Graphalytics' validation graphs against the outputs that come with them."""

from __future__ import annotations

import os

import numpy as np
import pytest

import tiergraph as tg

FOLDER = "conformance/ldbc-graphalytics/validation-graphs"
UNREACHABLE = 9223372036854775807
DIRECTIONS = [("dir", False), ("undir", True)]
TOLERANCE = 1e-4
DEVICE = os.environ.get("TIERGRAPH_TEST_DEVICE", "cpu")
"""Where the algorithms run: `make gpu-test` runs these tests on `cuda` too."""


def read_output(path, kind):
    pairs = [line.split() for line in path.read_text().splitlines()]
    ids = np.array([int(v) for v, _ in pairs], dtype=np.uint64)
    values = np.array([kind(x) for _, x in pairs])
    order = np.argsort(ids)
    return ids[order], values[order]


def build(data, tmp_path, name, undirected, **options):
    path = tmp_path / "g.tg"
    tg.build(data(f"{FOLDER}/{name}"), path, undirected=undirected, ids="map", **options)
    return tg.open(path, memory="256MiB", device=DEVICE)


def graph_of(data, tmp_path, algorithm, direction, undirected):
    """The graph of `algorithm`'s own folder, and where its output is."""
    name = f"{algorithm}/{direction}-input"
    if algorithm == "sssp":
        graph = build(data, tmp_path, f"{name}.e", undirected, format="graphalytics")
    else:
        graph = build(data, tmp_path, name, undirected, format="adjacency")
    return graph, data(f"{FOLDER}/{algorithm}/{direction}-output")


def example(data, tmp_path, direction):
    undirected = direction == "undirected"
    name = f"example/example-{direction}.e"
    return build(data, tmp_path, name, undirected, format="graphalytics")


def example_output(data, direction, algorithm):
    return data(f"{FOLDER}/example/example-{direction}-{algorithm}")


def check_bfs(graph, source, output):
    ids, expected = read_output(output, int)
    np.testing.assert_array_equal(graph.ids, ids)
    depths = graph.bfs(source).astype(np.int64)
    np.testing.assert_array_equal(np.where(depths < 0, UNREACHABLE, depths), expected)


def check_wcc(graph, output):
    ids, expected = read_output(output, int)
    np.testing.assert_array_equal(graph.ids, ids)
    pairs = set(zip(graph.wcc().tolist(), expected.tolist(), strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def check_pagerank(graph, iterations, output):
    ids, expected = read_output(output, float)
    np.testing.assert_array_equal(graph.ids, ids)
    ranks = graph.pagerank(damping=0.85, iterations=iterations)
    np.testing.assert_allclose(ranks, expected, rtol=TOLERANCE)


def check_sssp(graph, source, output):
    ids, expected = read_output(output, float)
    np.testing.assert_array_equal(graph.ids, ids)
    np.testing.assert_allclose(graph.sssp(source), expected, rtol=TOLERANCE)


def check_cdlp(graph, iterations, output):
    ids, expected = read_output(output, int)
    np.testing.assert_array_equal(graph.ids, ids)
    np.testing.assert_array_equal(graph.cdlp(iterations=iterations), expected)


def check_lcc(graph, output):
    ids, expected = read_output(output, float)
    np.testing.assert_array_equal(graph.ids, ids)
    np.testing.assert_allclose(graph.clustering(), expected, rtol=TOLERANCE)


@pytest.mark.parametrize(("direction", "undirected"), DIRECTIONS)
def test_cdlp(data, tmp_path, direction, undirected):
    graph, output = graph_of(data, tmp_path, "cdlp", direction, undirected)
    check_cdlp(graph, 5, output)


@pytest.mark.parametrize(("direction", "undirected"), DIRECTIONS)
def test_lcc(data, tmp_path, direction, undirected):
    graph, output = graph_of(data, tmp_path, "lcc", direction, undirected)
    check_lcc(graph, output)


@pytest.mark.parametrize(("direction", "undirected"), DIRECTIONS)
def test_bfs(data, tmp_path, direction, undirected):
    graph, output = graph_of(data, tmp_path, "bfs", direction, undirected)
    check_bfs(graph, 1, output)


@pytest.mark.parametrize(("direction", "undirected"), DIRECTIONS)
def test_wcc(data, tmp_path, direction, undirected):
    graph, output = graph_of(data, tmp_path, "wcc", direction, undirected)
    check_wcc(graph, output)


@pytest.mark.parametrize(("direction", "undirected"), DIRECTIONS)
def test_pagerank(data, tmp_path, direction, undirected):
    graph, output = graph_of(data, tmp_path, "pr", direction, undirected)
    check_pagerank(graph, 26 if undirected else 14, output)


@pytest.mark.parametrize(("direction", "undirected"), DIRECTIONS)
def test_sssp(data, tmp_path, direction, undirected):
    graph, output = graph_of(data, tmp_path, "sssp", direction, undirected)
    check_sssp(graph, 1, output)


@pytest.mark.parametrize(("direction", "source"), [("directed", 1), ("undirected", 2)])
def test_example(data, tmp_path, direction, source):
    graph = example(data, tmp_path, direction)
    check_bfs(graph, source, example_output(data, direction, "BFS"))
    check_wcc(graph, example_output(data, direction, "WCC"))
    check_pagerank(graph, 2, example_output(data, direction, "PR"))
    check_sssp(graph, source, example_output(data, direction, "SSSP"))
    check_cdlp(graph, 2, example_output(data, direction, "CDLP"))
    check_lcc(graph, example_output(data, direction, "LCC"))
