"""Edges are read back as they were: in batches, files, matrices, parts, and of single vertices."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import tiergraph as tg
from tiergraph.cli import main

WEIGHTS = {".parquet": "weight", ".csv": "weight", ".txt": "3"}


@pytest.fixture(params=["directed", "undirected"])
def edges(request):
    """Edges with weights between ids that have gaps, each once, and whether they are undirected."""
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 80, (2, 600)).astype(np.uint64) * np.uint64(7) + np.uint64(3)
    if request.param == "undirected":
        src, dst = np.minimum(src, dst), np.maximum(src, dst)
    pairs = np.unique(np.stack([src, dst], 1), axis=0)
    return pairs[:, 0], pairs[:, 1], rng.integers(1, 9, len(pairs)).astype(float), request.param


def built(edges, path, *, weighted=True, **options):
    """A graph of the edges."""
    src, dst, weights, kind = edges
    given = (src, dst, weights) if weighted else (src, dst)
    tg.build(given, path, undirected=kind == "undirected", ids="map", overwrite=True, **options)
    return tg.open(path, memory="64MiB")


def listed(batches, undirected):
    """Edges in one order."""
    columns = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    return sorted((*sorted(row[:2]), *row[2:]) if undirected else row for row in rows)


@pytest.mark.parametrize("layouts", ["analytics", "training", "both", "sampling"])
@pytest.mark.parametrize("order", ["none", "degree"])
def test_batches_are_the_edges_whatever_the_layout(edges, tmp_path, layouts, order):
    src, dst, _, kind = edges
    path = tmp_path / "g.tg"
    with built(edges, path, weighted=False, layouts=layouts, order=order) as graph:
        undirected = kind == "undirected"
        found = listed(graph.edge_batches(), undirected)
        assert found == listed([(src, dst)], undirected)
        assert found == listed(graph.edge_batches(), undirected)


@pytest.mark.parametrize("codec", ["packed", "raw"])
def test_batches_have_weights(edges, tmp_path, codec):
    src, dst, weights, kind = edges
    with built(edges, tmp_path / "g.tg", codec=codec) as graph:
        found = listed(graph.edge_batches(), kind == "undirected")
        assert found == listed([(src, dst, weights)], kind == "undirected")
        tg.build(
            graph.edge_batches(), tmp_path / "again.tg", ids="map", undirected=not graph.directed
        )
        with tg.open(tmp_path / "again.tg") as again:
            assert listed(again.edge_batches(), kind == "undirected") == found


@pytest.mark.parametrize(
    ("codec", "layouts"), [("packed", "analytics"), ("packed", "both"), ("raw", "both")]
)
def test_neighbors_are_those_of_the_edges(edges, tmp_path, codec, layouts):
    src, dst, _, kind = edges
    options = {"codec": codec} | ({} if codec == "raw" else {"layouts": layouts})
    with built(edges, tmp_path / "g.tg", weighted=False, order="degree", **options) as graph:
        for vertex in graph.ids[::7].tolist():
            out, into = dst[src == vertex], src[dst == vertex]
            if kind == "undirected":
                out = into = np.concatenate([out, into[into != vertex]])
            np.testing.assert_array_equal(graph.neighbors(vertex), np.sort(out))
            found = graph.neighbors(vertex, direction="in")
            np.testing.assert_array_equal(found, np.sort(into))
        with pytest.raises(tg.InputError, match="find vertex"):
            graph.neighbors(4)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".txt"])
def test_files_are_built_again_as_they_were(edges, tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    kind = edges[3]
    out = tmp_path / f"edges{suffix}"
    with built(edges, tmp_path / "g.tg") as graph:
        graph.export(out)
        undirected = not graph.directed
        tg.build(out, tmp_path / "b.tg", ids="map", undirected=undirected, weights=WEIGHTS[suffix])
        with tg.open(tmp_path / "b.tg") as again:
            ours = listed(graph.edge_batches(), kind == "undirected")
            assert listed(again.edge_batches(), kind == "undirected") == ours


def test_matrices_are_scipys(edges, tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    io = pytest.importorskip("scipy.io")
    src, dst, weights, kind = edges
    with built(edges, tmp_path / "g.tg") as graph:
        at = np.searchsorted(graph.ids, src), np.searchsorted(graph.ids, dst)
        expected = np.zeros((graph.vertices,) * 2)
        expected[at] = weights
        if kind == "undirected":
            expected[at[::-1]] = weights
        np.testing.assert_array_equal(graph.to_scipy().toarray(), expected)
        graph.export(tmp_path / "m.npz")
        np.testing.assert_array_equal(sparse.load_npz(tmp_path / "m.npz").toarray(), expected)
        graph.export(tmp_path / "m.mtx")
        np.testing.assert_array_equal(io.mmread(tmp_path / "m.mtx").toarray(), expected)
        tg.build(tmp_path / "m.mtx", tmp_path / "again.tg")
        with tg.open(tmp_path / "again.tg") as again:
            assert again.ids.tolist() == list(range(1, graph.vertices + 1))
            np.testing.assert_array_equal(again.to_scipy().toarray(), expected)


def test_metis_has_every_edge_at_both_ends(edges, tmp_path):
    pytest.importorskip("scipy")
    src, dst, weights, kind = edges
    with built(edges, tmp_path / "g.tg") as graph:
        if kind == "directed":
            with pytest.raises(tg.InputError, match="no direction"):
                graph.export(tmp_path / "m.graph")
            assert not list(tmp_path.glob("*.part"))
            return
        with pytest.warns(tg.InputWarning, match="14 self-loops are not in `m.graph`"):
            graph.export(tmp_path / "m.graph")
        head, *lines = (tmp_path / "m.graph").read_text().splitlines()
        other = src != dst
        assert head == f"{graph.vertices} {other.sum()} 1"
        found = set()
        for v, line in enumerate(lines):
            words = list(map(int, line.split()))
            found |= {(v, u - 1, w) for u, w in zip(words[::2], words[1::2], strict=True)}
        at = (np.searchsorted(graph.ids, ids[other]).tolist() for ids in (src, dst))
        rows = list(zip(*at, weights[other].astype(int).tolist(), strict=True))
        assert found == {*rows, *((b, a, w) for a, b, w in rows)}
        tg.build(tmp_path / "m.graph", tmp_path / "again.tg")
        with tg.open(tmp_path / "again.tg") as again:
            matrix = graph.to_scipy().tolil()
            matrix.setdiag(0)
            np.testing.assert_array_equal(again.to_scipy().toarray(), matrix.toarray())


def test_networkx_and_its_guard(edges, tmp_path):
    pytest.importorskip("networkx")
    src, dst, weights, _ = edges
    with built(edges, tmp_path / "g.tg") as graph:
        made = graph.to_networkx()
        assert made.is_directed() == graph.directed
        assert made.number_of_edges() == graph.edges
        assert set(made) == set(graph.ids.tolist())
        assert made[int(src[5])][int(dst[5])]["weight"] == weights[5]
        with pytest.raises(tg.InputError, match="at most 10 edges"):
            graph.to_networkx(limit=10)


def test_a_subgraph_keeps_ids_and_the_edges_between_them(edges, tmp_path):
    src, dst, weights, kind = edges
    with built(edges, tmp_path / "g.tg") as graph:
        some = graph.ids[::2]
        graph.subgraph(some, tmp_path / "s.tg")
        kept = np.isin(src, some) & np.isin(dst, some)
        with tg.open(tmp_path / "s.tg") as part:
            ours = listed(part.edge_batches(), kind == "undirected")
            expected = [(src[kept], dst[kept], weights[kept])]
            assert ours == listed(expected, kind == "undirected")


def test_the_command_and_what_it_refuses(edges, tmp_path, capfd):
    with built(edges, tmp_path / "g.tg") as graph:
        path, count = graph.path, graph.edges
    out = tmp_path / "edges.csv"
    assert main(["export", path, str(out), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["edges"] == count
    assert len(out.read_text().splitlines()) == count + 1
    assert main(["export", path, str(tmp_path / "edges.xlsx")]) == 1
    assert ".parquet, .csv" in capfd.readouterr().err
    assert main(["export", path, str(tmp_path / "none" / "edges.csv")]) == 1
    assert "writable directory" in capfd.readouterr().err


def test_walks_go_along_edges_and_are_the_same_in_any_batches(edges, tmp_path):
    src, dst, _, kind = edges
    with built(edges, tmp_path / "g.tg", weighted=False) as graph:
        arcs = set(zip(src.tolist(), dst.tolist(), strict=True))
        if kind == "undirected":
            arcs |= {(b, a) for a, b in arcs}
        leaves = {a for a, _ in arcs}
        whole = np.concatenate(list(graph.random_walks(length=12, repeat=2, seed=5)))
        assert whole.shape == (2 * graph.vertices, 13)
        np.testing.assert_array_equal(whole[:, 0], np.tile(graph.ids, 2))
        for walk in whole[::5].tolist():
            for a, b in itertools.pairwise(walk):
                assert (a, b) in arcs or (a == b and a not in leaves)
        parts = graph.random_walks(length=12, repeat=2, seed=5, walks=7)
        np.testing.assert_array_equal(np.concatenate(list(parts)), whole)
        others = np.concatenate(list(graph.random_walks(length=12, repeat=2, seed=6)))
        assert (others != whole).any()
        start = graph.ids[:3]
        few = np.concatenate(list(graph.random_walks(start, length=4)))
        assert few.shape == (3, 5)


def test_walks_of_node2vec_return_as_they_are_told(tmp_path):
    tg.generate("uniform", tmp_path / "g.tg", vertices=200, edges=1000, undirected=True)
    with tg.open(tmp_path / "g.tg", memory="64MiB") as graph:

        def returns(**how):
            walks = np.concatenate(list(graph.random_walks(length=40, repeat=4, **how)))
            return float((walks[:, 2:] == walks[:, :-2]).mean())

        often, evenly, seldom = returns(p=0.05), returns(), returns(p=20.0)
        assert often > 1.5 * evenly > 1.5 * 1.5 * seldom
        with pytest.raises(tg.InputError, match="above 0"):
            next(iter(graph.random_walks(p=0)))
