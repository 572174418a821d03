"""Real graphs: counts found by parsing, results by the serial verifiers."""

from __future__ import annotations

import gzip
import lzma

import numpy as np
import pytest
import reference

import tiergraph as tg


def parse(path):
    raw = path.read_bytes()
    lines = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode().splitlines()
    pairs = [line.split()[:2] for line in lines if not line.startswith("#")]
    table = np.array(pairs, dtype=np.int64)
    return table[:, 0], table[:, 1]


@pytest.mark.parametrize(
    ("name", "vertices", "edges", "options"),
    [
        ("wiki-Vote.txt", 7115, 103689, {}),
        ("facebook_combined.txt.gz", 4039, 88234, {"undirected": True}),
        ("email-Enron.txt.gz", 36692, 183831, {"undirected": True, "dedup": True}),
    ],
)
def test_snap(data, tmp_path, name, vertices, edges, options):
    file = data(f"graphs/snap/{name}")
    stats = tg.build(file, tmp_path / "g.tg", ids="map", **options)
    assert (stats["vertices"], stats["edges"]) == (vertices, edges)
    graph = tg.open(tmp_path / "g.tg", memory="256MiB")
    src, dst = parse(file)
    if options:
        pairs = np.unique(np.sort(np.stack([src, dst], axis=1), axis=1), axis=0)
        src, dst = reference.both_ways(pairs[:, 0], pairs[:, 1])
    ids = graph.ids.astype(np.int64)
    source = int(src[0])
    np.testing.assert_array_equal(ids, np.unique([src, dst]))
    np.testing.assert_array_equal(graph.wcc(), reference.components(ids, src, dst))
    np.testing.assert_array_equal(graph.bfs(source), reference.bfs(ids, src, dst, source))
    expected = reference.pagerank(ids, src, dst, 10)
    np.testing.assert_allclose(graph.pagerank(iterations=10), expected, rtol=1e-4)


def test_web_crawl_from_bvgraph(data, tmp_path):
    stats = tg.build(data("graphs/cnr-2000/cnr-2000.graph"), tmp_path / "g.tg")
    assert (stats["vertices"], stats["edges"]) == (325557, 3216152)
    graph = tg.open(tmp_path / "g.tg", memory="256MiB")
    assert np.unique(graph.wcc()).size == 1
    assert graph.degrees().sum() == graph.degrees("in").sum() == 3216152


def test_both_forms_of_a_crawl_are_one_graph(data, tmp_path):
    for name in ("cnr-2000.graph", "cnr-2000.graph-txt.gz"):
        tg.build(data(f"graphs/cnr-2000-ascii/{name}"), tmp_path / f"{name}.tg")
    a, b = (
        tg.open(tmp_path / f"{name}.tg", memory="256MiB")
        for name in ("cnr-2000.graph", "cnr-2000.graph-txt.gz")
    )
    np.testing.assert_array_equal(a.degrees(), b.degrees())
    np.testing.assert_allclose(a.pagerank(iterations=5), b.pagerank(iterations=5), rtol=1e-5)


def test_a_directory_stands_for_the_one_graph_in_it(data, tmp_path):
    folder = data("graphs/cnr-2000")
    report = tg.build(folder, tmp_path / "g.tg")
    assert (report["vertices"], report["edges"]) == (325_557, 3_216_152)
    with pytest.raises(tg.InputError, match="a directory without any"):
        tg.build(tmp_path, tmp_path / "h.tg")


GOLDEN = "graphs/dialects/4"
"""One graph of 14 vertices and 53 arcs, in many dialects (`.graph` there is not METIS's: GAP's)."""


@pytest.mark.parametrize("suffix", ["el", "wel", "mtx", "gr"])
def test_one_graph_in_many_dialects(data, tmp_path, suffix):
    path = data(f"{GOLDEN}.{suffix}")
    how = {"dedup": True, "drop_self_loops": True, "weights": "none"}
    plain = {"vertices": 14} if suffix in ("el", "wel") else {}
    stats = tg.build(path, tmp_path / "g.tg", **how, **plain)
    assert (stats["vertices"], stats["edges"]) == (14, 53)
    tg.build(data(f"{GOLDEN}.el"), tmp_path / "el.tg", vertices=14, **how)
    with tg.open(tmp_path / "g.tg") as graph, tg.open(tmp_path / "el.tg") as plain:
        assert (graph.to_scipy() != plain.to_scipy()).nnz == 0


@pytest.mark.parametrize(
    ("name", "vertices", "edges"),
    [
        ("metis/karate.graph", 34, 78),
        ("metis/jazz.graph", 198, 2742),
        ("metis/power.graph", 4941, 6594),
        ("dialects/dolphins.mtx", 62, 159),
    ],
)
def test_graphs_with_a_header(data, tmp_path, name, vertices, edges):
    stats = tg.build(data(f"graphs/{name}"), tmp_path / "g.tg")
    assert (stats["vertices"], stats["edges"]) == (vertices, edges)
    with tg.open(tmp_path / "g.tg") as graph:
        assert not graph.directed


@pytest.mark.parametrize(
    ("name", "triangles"),
    [("karate", 45), ("A", 11), ("jagmesh7", 2016), ("bcsstk13", 342300), ("LFAT5", 0)],
)
def test_triangles_of_matrices(data, tmp_path, name, triangles):
    path = data(f"graphs/mtx/{name}.mtx")
    tg.build(path, tmp_path / "g.tg", weights="none", undirected=True, drop_self_loops=True)
    with tg.open(tmp_path / "g.tg", memory="256MiB") as graph:
        graph.triangles()
        assert graph.last_run["triangles"] == triangles


def test_a_zipped_mesh_and_a_road_network(data, tmp_path):
    stats = tg.build(data("graphs/metis/wing.graph.gz"), tmp_path / "wing.tg")
    assert (stats["vertices"], stats["edges"]) == (62032, 121544)
    with lzma.open(data("graphs/dimacs/NY.gr.xz")) as packed:
        (tmp_path / "NY.gr").write_bytes(packed.read())
    stats = tg.build(tmp_path / "NY.gr", tmp_path / "NY.tg")
    assert (stats["vertices"], stats["edges"]) == (264346, 365050)
    with tg.open(tmp_path / "NY.tg", memory="256MiB") as graph:
        assert np.unique(graph.wcc()).size == 1


def test_strong_components_of_a_crawl_are_those_that_came_with_it(data, tmp_path):
    tg.build(data("graphs/cnr-2000/cnr-2000.graph"), tmp_path / "g.tg")
    expected = np.fromfile(data("graphs/cnr-2000/cnr-2000.scc"), ">i4")
    for memory in ("256MiB", "58MiB"):
        with tg.open(tmp_path / "g.tg", memory=memory) as graph:
            found = graph.scc()
            assert (graph.last_run["components"], graph.last_run["largest"]) == (100977, 112023)
        pairs = set(zip(found.tolist(), expected.tolist(), strict=True))
        assert len(pairs) == 100977
