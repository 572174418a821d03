import os

import numpy as np
import pytest
import reference

import tiergraph as tg


def arcs_of(graph):
    """Sorted (degree out, degree in) and a pagerank: enough to tell two graphs apart."""
    return graph.ids.tolist(), graph.degrees().tolist(), graph.degrees("in").tolist()


def test_arrays_batches_and_files_give_one_graph(edges, tmp_path):
    src, dst, weights = edges
    text = tmp_path / "edges.txt"
    text.write_text("".join(f"{s} {d} {w}\n" for s, d, w in zip(*edges, strict=True)))
    np.save(tmp_path / "edges.npy", np.stack([src, dst], axis=1))
    sources = {
        "arrays": ((src, dst), {}),
        "batches": (((src[i : i + 2], dst[i : i + 2]) for i in range(0, 6, 2)), {}),
        "weighted": ((src, dst, weights), {}),
        "text": (text, {"weights": "3"}),
        "npy": (tmp_path / "edges.npy", {}),
    }
    expected = [10, 20, 30, 40, 70, 90], [2, 1, 2, 0, 1, 0], [1, 1, 2, 1, 0, 1]
    for name, (source, options) in sources.items():
        stats = tg.build(source, tmp_path / f"{name}.tg", ids="map", **options)
        assert (stats["vertices"], stats["edges"]) == (6, 6), name
        graph = tg.open(tmp_path / f"{name}.tg")
        assert arcs_of(graph) == expected, name
        assert graph.weighted == (name in ("weighted", "text")), name
    from_text = tg.open(tmp_path / "text.tg").sssp(10)
    np.testing.assert_array_equal(from_text, tg.open(tmp_path / "weighted.tg").sssp(10))


def test_tables_are_built_from(edges, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pa.table(dict(zip(("src", "dst", "weight"), edges, strict=True)))
    for name, part in (("a", table.slice(0, 4)), ("b", table.slice(4))):
        parquet.write_table(part, tmp_path / f"{name}.parquet")
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    tg.build(files, tmp_path / "g.tg", ids="map")
    assert tg.open(tmp_path / "g.tg").sssp(10).tolist()[:4] == [0.0, 1.0, 2.5, 6.5]


@pytest.mark.parametrize("order", ["none", "degree", "auto"])
@pytest.mark.parametrize("codec", ["packed", "raw"])
@pytest.mark.parametrize("undirected", [False, True])
def test_every_order_and_codec_gives_the_same_results(tmp_path, order, codec, undirected):
    rng = np.random.default_rng(7)
    src, dst = rng.zipf(1.3, 5000) % 700, rng.integers(0, 700, 5000)
    weights = rng.random(5000)
    path = tmp_path / "g.tg"
    options = {"order": order, "codec": codec, "undirected": undirected, "ids": "map"}
    tg.build((src, dst, weights), path, dedup=False, **options)
    graph = tg.open(path, memory="256MiB")
    arcs = reference.both_ways(src, dst, weights) if undirected else (src, dst, weights)
    vertices = graph.ids.astype(np.int64)
    source = int(src[0])
    np.testing.assert_array_equal(vertices, np.unique([src, dst]))
    np.testing.assert_array_equal(graph.wcc(), reference.components(vertices, src, dst))
    np.testing.assert_array_equal(
        graph.bfs(source), reference.bfs(vertices, arcs[0], arcs[1], source)
    )
    np.testing.assert_allclose(
        graph.sssp(source), reference.sssp(vertices, *arcs, source), rtol=1e-6
    )
    expected = reference.pagerank(vertices, arcs[0], arcs[1], 10)
    np.testing.assert_allclose(graph.pagerank(iterations=10), expected, rtol=1e-4)


def test_duplicates_and_self_loops_are_dropped_where_asked(tmp_path):
    source = np.array([0, 0, 1, 1]), np.array([1, 1, 1, 2])
    count = {}
    for dedup in (False, True):
        for drop in (False, True):
            path = tmp_path / f"{dedup}-{drop}.tg"
            tg.build(source, path, dedup=dedup, drop_self_loops=drop)
            count[dedup, drop] = tg.open(path).edges
    assert count == {(False, False): 4, (False, True): 3, (True, False): 3, (True, True): 2}


def test_vertices_without_edges_are_kept(tmp_path):
    tg.build((np.array([0]), np.array([1])), tmp_path / "g.tg", ids="dense", vertices=5)
    graph = tg.open(tmp_path / "g.tg")
    assert graph.vertices == 5
    assert graph.wcc().tolist() == [0, 0, 2, 3, 4]


def test_a_graph_is_replaced_only_where_asked(tmp_path, edges):
    path = tmp_path / "g.tg"
    tg.build(edges, path, ids="map")
    with pytest.raises(tg.Error, match="overwrite"):
        tg.build((np.array([0]), np.array([1])), path)
    assert tg.open(path).vertices == 6
    tg.build((np.array([0]), np.array([1])), path, overwrite=True)
    assert tg.open(path).vertices == 2


def test_a_failed_build_leaves_nothing_behind(tmp_path):
    def batches():
        yield np.array([0, 1]), np.array([1, 2])
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        tg.build(batches(), tmp_path / "g.tg")
    assert list(tmp_path.iterdir()) == []


def test_stripes_hold_the_blocks(tmp_path):
    stripes = [tmp_path / "ssd0", tmp_path / "ssd1"]
    for stripe in stripes:
        stripe.mkdir()
    options = {"scale": 12, "seed": 1, "codec": "raw", "block_bytes": "64KiB"}
    tg.generate("rmat", tmp_path / "s.tg", stripe=[str(s) for s in stripes], **options)
    tg.generate("rmat", tmp_path / "g.tg", **options)
    assert all(any(stripe.rglob("*.blocks*")) for stripe in stripes)
    striped, plain = tg.open(tmp_path / "s.tg"), tg.open(tmp_path / "g.tg")
    np.testing.assert_array_equal(striped.bfs(0), plain.bfs(0))


def test_a_generator_repeats_itself(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        tg.generate("rmat", tmp_path / f"{name}.tg", scale=10, edge_factor=8, seed=seed)
    a, b, c = (tg.open(tmp_path / f"{name}.tg").degrees().tolist() for name in "abc")
    assert a == b != c
    assert tg.open(tmp_path / "a.tg").vertices == 1024


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "edges"), ("# only a comment\n", "edges"), ("0 1\n1 two\n", "line 2"), ("0\n", "line 1")],
)
def test_text_that_cannot_be_used_is_refused(tmp_path, content, message):
    path = tmp_path / "edges.txt"
    path.write_text(content)
    with pytest.raises(tg.Error, match=message) as caught:
        tg.build(path, tmp_path / "g.tg")
    assert "edges.txt" in str(caught.value)
    assert not (tmp_path / "g.tg").exists()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(tg.Error, match=r"none\.txt"):
        tg.build(tmp_path / "none.txt", tmp_path / "g.tg")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_no_permission_is_said(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("0 1\n")
    path.chmod(0)
    with pytest.raises(tg.IoError, match="ermission denied"):
        tg.build(path, tmp_path / "g.tg")


def test_several_files_of_one_kind_are_one_graph(tmp_path):
    for name, text in [("a.txt", "0 1\n"), ("b.txt", "1 2\n2 3\n"), ("c.wel", "1 2 0.5\n")]:
        (tmp_path / name).write_text(text)
    stats = tg.build([tmp_path / "a.txt", tmp_path / "b.txt"], tmp_path / "g.tg")
    assert stats["edges"] == 3
    with pytest.raises(tg.InputError, match=r"c\.wel`: expected no weights, as `.*a\.txt`"):
        tg.build([tmp_path / "a.txt", tmp_path / "c.wel"], tmp_path / "h.tg")


def test_columns_of_a_file_without_any_are_refused(tmp_path):
    (tmp_path / "a.u32").write_bytes(bytes(8))
    with pytest.raises(tg.InputError, match="expected a table or text, for `columns`"):
        tg.build(tmp_path / "a.u32", tmp_path / "g.tg", columns=("u", "v"))


def test_an_unknown_option_is_refused(tmp_path, edges):
    with pytest.raises(TypeError, match="`colour`: expected one of its arguments\n\nhint: it has "):
        tg.build(edges, tmp_path / "g.tg", colour="red")


def test_edges_in_both_directions_are_noticed_in_an_undirected_build(tmp_path):
    src, dst = np.arange(100), (np.arange(100) + 1) % 100
    both = np.concatenate([src, dst]), np.concatenate([dst, src])
    with pytest.warns(tg.InputWarning, match="50 % of the edges are there once more.*dedup=True"):
        stats = tg.build(both, tmp_path / "twice.tg", undirected=True)
    assert len(stats["notes"]) == 1
    assert tg.build(both, tmp_path / "g.tg", undirected=True, dedup=True)["notes"] == []
    assert tg.build((src, dst), tmp_path / "h.tg", undirected=True)["notes"] == []
    assert tg.build(both, tmp_path / "i.tg")["notes"] == []
    # Where edges are random, some are there twice by chance, and nobody can do anything about it.
    crowded = {"vertices": 20, "edges": 1000, "undirected": True}
    assert tg.generate("uniform", tmp_path / "j.tg", **crowded)["notes"] == []
