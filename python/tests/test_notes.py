"""Input is never misread in silence: what is noticed or decided is told."""

import json
import warnings

import numpy as np
import pytest

import tiergraph as tg
from tiergraph.cli import main

TABLE = {"Target": [1, 2, 3], "kind": ["a", "b", "c"], "Source": [0, 1, 2], "cost": [0.5, 4.0, 2.0]}


def build(source, path, **options):
    """What was built, and what was told."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        stats = tg.build(source, path, overwrite=True, **options)
    assert [w.category for w in told] == [tg.InputWarning] * len(stats["notes"])
    return tg.open(path), [str(w.message) for w in told]


def write_csv(columns, path):
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("rename", [str, str.upper, lambda name: f"x{name}"])
@pytest.mark.parametrize("options", [{}, {"weights": "none"}, {"weights": 4}])
def test_csv_and_parquet_and_a_frame_of_one_table_give_one_graph(tmp_path, rename, options):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = {rename(name): column for name, column in TABLE.items()}
    parquet.write_table(pa.table(table), tmp_path / "edges.parquet")
    write_csv(table, tmp_path / "edges.csv")
    found = []
    for source in (tmp_path / "edges.csv", tmp_path / "edges.parquet", pa.table(table)):
        graph, notes = build(source, tmp_path / "g.tg", **options)
        name = "Table" if isinstance(source, pa.Table) else str(source)
        told = [note.replace(name, "FILE") for note in notes]
        found.append((graph.degrees().tolist(), graph.weighted, graph.sssp(0).tolist(), told))
    assert found[0] == found[1] == found[2]
    degrees, weighted, distances, told = found[0]
    named = "Source" in map(rename, TABLE) or rename is str.upper
    assert degrees == ([1, 1, 1, 0] if named else [0, 1, 1, 1])
    assert weighted == (options.get("weights") == 4 or (named and not options))
    if named and weighted:
        assert distances == [0, 0.5, 4.5, 6.5]
    assert len(told) == (0 if named or options else 1)


def test_a_note_names_the_argument_in_python_and_the_flag_on_the_command_line(tmp_path, capfd):
    write_csv({"src": [0], "dst": [1], "rating": [5]}, tmp_path / "e.csv")
    graph, (note,) = build(tmp_path / "e.csv", tmp_path / "g.tg")
    assert "`rating`" in note
    assert 'weights="rating"' in note
    assert not graph.weighted
    assert build(tmp_path / "e.csv", tmp_path / "g.tg", weights="rating")[0].weighted
    capfd.readouterr()
    assert main(["build", str(tmp_path / "e.csv"), str(tmp_path / "h.tg"), "--json"]) == 0
    out, err = capfd.readouterr()
    (note,) = json.loads(out)["notes"]
    assert "`--weights rating`" in note
    assert f"note: {note}\n" in err
    assert main(["build", str(tmp_path / "e.csv"), str(tmp_path / "i.tg"), "--weights", "3"]) == 0
    assert tg.open(tmp_path / "i.tg").weighted


def test_a_third_column_without_a_name_is_the_weight(tmp_path):
    for name, text in (("e.csv", "0,1,1.5\n1,2,2.5\n"), ("e.txt", "0 1 5\n1 2 6\n")):
        (tmp_path / name).write_text(text)
        graph, (note,) = build(tmp_path / name, tmp_path / "g.tg")
        assert graph.weighted
        assert 'weights="none"' in note
        assert not build(tmp_path / name, tmp_path / "g.tg", weights="none")[0].weighted


def test_many_unused_ids_are_left_out_and_few_are_named(tmp_path):
    few = np.array([1, 2, 3]), np.array([2, 3, 1])
    graph, (note,) = build(few, tmp_path / "few.tg")
    assert (graph.vertices, note) == (
        4,
        '1 of the ids 0 to 3 has no edge; `ids="map"` leaves out such vertices',
    )
    for ids, vertices in (("dense", 4), ("map", 3)):
        graph, notes = build(few, tmp_path / "few.tg", ids=ids)
        assert (graph.vertices, notes) == (vertices, [])
    many = few[0] * 50, few[1] * 50
    graph, (note,) = build(many, tmp_path / "many.tg")
    assert graph.ids.tolist() == [50, 100, 150]
    assert note == (
        '148 of the ids 0 to 150 have no edge and are no vertices; `ids="dense"` makes them some'
    )
    graph, notes = build(many, tmp_path / "many.tg", ids="dense")
    assert (graph.vertices, notes) == (151, [])
    assert build(few, tmp_path / "few.tg", vertices=4)[1] == []


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("drop_self_loops", [False, True])
@pytest.mark.parametrize("order", ["none", "degree", "auto"])
@pytest.mark.parametrize("kind", ["arrays", "npy", "text", "stream"])
@pytest.mark.parametrize("spread", [1, 5, 2**20, 2**40])
def test_ids_that_are_mapped_unasked_are_mapped_as_if_asked_for(
    tmp_path, undirected, drop_self_loops, order, kind, spread
):
    rng = np.random.default_rng(3)
    src, dst = (rng.integers(0, 700, 3000, dtype=np.uint64) * spread + 100 for _ in range(2))
    # Some ids have nothing but an edge to themselves.
    alone = np.arange(800, 900, dtype=np.uint64) * spread
    src, dst = np.concatenate([src, alone]), np.concatenate([dst, alone])
    weights = rng.random(len(src))
    source = {
        "arrays": (src, dst, weights),
        "npy": tmp_path / "e.npy",
        "text": tmp_path / "e.csv",
        "stream": ((src[i : i + 50], dst[i : i + 50]) for i in range(0, len(src), 50)),
    }[kind]
    np.save(tmp_path / "e.npy", np.stack([src, dst]))
    write_csv({"src": src, "dst": dst, "w": weights}, tmp_path / "e.csv")
    options = {"undirected": undirected, "drop_self_loops": drop_self_loops, "order": order}
    graph, (note,) = build(source, tmp_path / "auto.tg", **options)
    assert "are no vertices" in note
    asked = (src, dst) if kind in ("npy", "stream") else (src, dst, weights)
    expected, notes = build(asked, tmp_path / "map.tg", ids="map", **options)
    assert notes == []
    assert graph.weighted == expected.weighted
    np.testing.assert_array_equal(graph.ids, expected.ids)
    assert graph.edges == expected.edges
    for direction in ("out", "in"):
        np.testing.assert_array_equal(graph.degrees(direction), expected.degrees(direction))
    np.testing.assert_array_equal(graph.wcc(), expected.wcc())
    source = int(src[0])
    np.testing.assert_array_equal(graph.bfs(source), expected.bfs(source))
    np.testing.assert_array_equal(graph.sssp(source), expected.sssp(source))
    assert tg.open(tmp_path / "auto.tg").info()["edges"] == graph.edges


def test_rows_of_features_say_which_ids_are_vertices(tmp_path):
    edges = np.array([0, 200, 100]), np.array([100, 0, 100])
    for rows, vertices in ((201, 201), (3, 3)):
        x = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)
        graph, notes = build(edges, tmp_path / "g.tg", features=x)
        assert graph.vertices == vertices
        assert len(notes) == (rows == 3)
        assert graph.features["x"].read(graph.ids[-1:]).tolist() == [x[-1].tolist()]
    for rows in (7, 202):
        with pytest.raises(tg.InputError, match="expected a row for each of"):
            tg.build(edges, tmp_path / "h.tg", features=np.zeros((rows, 2), np.float32))
    graph, _ = build(edges, tmp_path / "g.tg", node_times={"t": np.arange(201)})
    assert graph.vertices == 201


def test_vertices_are_a_bound_whatever_the_source_is(tmp_path):
    np.save(tmp_path / "e.npy", np.array([[0, 1], [1, 2]]))
    (tmp_path / "e.txt").write_text("0 1\n1 2\n")
    (tmp_path / "e.u64").write_bytes(np.array([0, 1, 1, 2], "<u8").tobytes())
    wide = np.array([0, 1], np.uint64), np.array([1, 2], np.uint64)
    for source in (tmp_path / "e.npy", tmp_path / "e.txt", tmp_path / "e.u64", wide):
        graph, notes = build(source, tmp_path / "g.tg", vertices=5)
        assert (graph.vertices, notes) == (5, [])
        with pytest.raises(
            tg.InputError,
            match=r"cannot use the id `2`: expected ids below 2, as `vertices=2` says",
        ):
            tg.build(source, tmp_path / "h.tg", vertices=2)
        with pytest.raises(tg.InputError, match=r'cannot use the option `vertices=2`.*ids="map"'):
            tg.build(source, tmp_path / "h.tg", vertices=2, ids="map")
    with pytest.raises(tg.InputError, match="cannot use the id `99999999999`"):
        tg.build(([1], [99999999999]), tmp_path / "h.tg", vertices=2)
    assert not (tmp_path / "h.tg").exists()


def test_a_format_that_says_its_vertices_takes_no_others(tmp_path):
    (tmp_path / "g.v").write_text("7\n100\n1000000\n5\n")
    (tmp_path / "g.e").write_text("7 100 0.5\n")
    graph, notes = build(tmp_path / "g.v", tmp_path / "g.tg")
    assert (graph.ids.tolist(), graph.weighted, notes) == ([5, 7, 100, 1000000], True, [])
    with pytest.raises(tg.InputError, match="expected an input that does not say its vertices"):
        tg.build(tmp_path / "g.v", tmp_path / "h.tg", vertices=4)


def test_edges_of_networkx_are_edges(tmp_path):
    nx = pytest.importorskip("networkx")
    made = nx.path_graph(4)
    graph, _ = build(made.edges(), tmp_path / "g.tg", undirected=True)
    assert graph.bfs(0).tolist() == [0, 1, 2, 3]
    nx.set_edge_attributes(made, 2.5, "weight")
    graph, _ = build(made.edges(data="weight"), tmp_path / "g.tg")
    assert graph.sssp(0).tolist() == [0, 2.5, 5, 7.5]
    graph, _ = build(made, tmp_path / "g.tg")
    assert graph.sssp(0).tolist() == [0, 2.5, 5, 7.5]
    with pytest.raises(tg.InputError, match=r"G\.edges\(data='weight'\)"):
        tg.build(made.edges(data=True), tmp_path / "h.tg")
    graph, _ = build(nx.relabel_nodes(made, str).edges(), tmp_path / "g.tg")
    assert graph.names[:] == ["0", "1", "2", "3"]
    nx.write_edgelist(made, tmp_path / "e.txt")
    graph, (note,) = build(tmp_path / "e.txt", tmp_path / "g.tg")
    assert not graph.weighted
    assert "write_weighted_edgelist" in note
    nx.write_weighted_edgelist(made, tmp_path / "e.txt")
    assert build(tmp_path / "e.txt", tmp_path / "g.tg")[0].weighted


@pytest.mark.parametrize(
    "source",
    [
        [(0, 1), (1, 2, 3)],
        [(0, 1), ([1], [2])],
        [(0, "x")],
        {"src": [0], "dst": [1]},
        [[0, 1], [1, 2]],
        np.zeros((3, 3), int),
    ],
)
def test_what_is_no_edges_is_refused(tmp_path, source):
    with pytest.raises(tg.InputError):
        tg.build(source, tmp_path / "g.tg")
    assert not (tmp_path / "g.tg").exists()


def test_an_object_like_an_old_data_frame_is_refused_with_a_hint(tmp_path):
    class DataFrame:
        iloc = None

    with pytest.raises(tg.InputError, match=r"pyarrow\.Table\.from_pandas"):
        tg.build(DataFrame(), tmp_path / "g.tg")


def test_lists_of_large_ids_stay_integers(tmp_path):
    graph, _ = build(([1, 2**63], [2**64 - 1, 1]), tmp_path / "g.tg", ids="map")
    assert graph.ids.tolist() == [1, 2**63, 2**64 - 1]
    ranks = graph.pagerank(sources=[1, 2**63], damping=0.0)
    assert ranks.tolist() == [0.5, 0.5, 0]
    for ids, bad in (([1, 2**64], 2**64), ([-1, 2**63], -1)):
        with pytest.raises(tg.InputError, match=f"cannot use the id `{bad}`"):
            tg.build((ids, [1, 1]), tmp_path / "h.tg", ids="map")


def test_a_graph_without_edges_is_weighted_where_its_edges_would_be(tmp_path):
    none = np.empty(0, np.int64)
    for source, weighted in (((none, none), False), ((none, none, np.empty(0)), True)):
        graph, _ = build(source, tmp_path / "g.tg", vertices=2)
        assert (graph.vertices, graph.edges, graph.weighted) == (2, 0, weighted)
        assert graph.sssp(1).tolist() == [np.inf, 0]
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"src": none, "dst": none, "weight": np.empty(0)})
    parquet.write_table(table, tmp_path / "e.parquet")
    for source in (table, tmp_path / "e.parquet"):
        assert build(source, tmp_path / "g.tg")[0].weighted


def test_the_same_column_twice_is_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"src": [0], "dst": [1]}), tmp_path / "e.parquet")
    write_csv({"src": [0], "dst": [1]}, tmp_path / "e.csv")
    for name in ("e.parquet", "e.csv"):
        with pytest.raises(tg.InputError, match="expected each column once, got `src` twice"):
            tg.build(tmp_path / name, tmp_path / "g.tg", columns=["src", "src"])
    for option in ({"columns": ["a", "b"]}, {"format": "text"}, {"weights": 3}):
        with pytest.raises(tg.InputError, match="expected a file or a table, got arrays"):
            tg.build(([0], [1]), tmp_path / "g.tg", **option)


def test_wiki_vote_has_the_vertices_that_it_has(data, tmp_path):
    graph, (note,) = build(data("graphs/snap/wiki-Vote.txt"), tmp_path / "g.tg")
    assert (graph.vertices, len(np.unique(graph.wcc()))) == (7115, 24)
    assert note.startswith("1183 of the ids 0 to 8297 have no edge")


def test_email_enron_lists_its_edges_both_ways(data, tmp_path):
    source = data("graphs/snap/email-Enron.txt.gz")
    graph, (note,) = build(source, tmp_path / "g.tg", undirected=True)
    assert "`dedup=True` keeps one of each" in note
    once, notes = build(source, tmp_path / "h.tg", undirected=True, dedup=True)
    assert (notes, graph.edges) == ([], 2 * once.edges)


def test_values_of_edges_find_their_edges_among_mapped_ids(tmp_path):
    rng = np.random.default_rng(5)
    src, dst = rng.integers(0, 200, (2, 900)) * 70
    values = {"w": rng.random(900).astype(np.float32)}
    for name, options in (("auto", {}), ("map", {"ids": "map"})):
        build((src, dst), tmp_path / f"{name}.tg", edge_values=values, **options)
    stored = [
        {path.name: path.read_bytes() for path in (tmp_path / f"{name}.tg" / "edges").iterdir()}
        for name in ("auto", "map")
    ]
    assert stored[0] == stored[1]
