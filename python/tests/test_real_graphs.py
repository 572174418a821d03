"""Real graphs: counts found by parsing, results by the serial verifiers."""

from __future__ import annotations

import gzip

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
