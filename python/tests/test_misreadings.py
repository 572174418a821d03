"""Input that could be read as something else without a word: heads, headers, quotes, tables."""

from __future__ import annotations

import os

import numpy as np
import pytest

import tiergraph as tg


def built(source, path, **options):
    """The edges of a graph, by ids or names, and the build's notes."""
    notes = tg.build(source, path, overwrite=True, **options)["notes"]
    with tg.open(path) as graph:
        names = None if graph.names is None else graph.names[:]
        rows = [
            row
            for batch in graph.edge_batches()
            for row in zip(*(column.tolist() for column in batch), strict=True)
        ]
    if names is not None:
        rows = [(names[src], names[dst], *weight) for src, dst, *weight in rows]
    return sorted(rows), notes


def refusal(source, path, **options):
    """What the message says."""
    with pytest.raises(tg.InputError) as refused:
        tg.build(source, path, **options)
    assert not path.exists()
    return str(refused.value)


@pytest.mark.parametrize("options", [{}, {"ids": "names"}])
@pytest.mark.parametrize(
    "before", [b"\n" * (1 << 20), b"# " + b"x" * 900_000 + b"\n" + b"#\n" * 100_000]
)
def test_text_whose_head_has_no_edge_is_refused(tmp_path, before, options):
    file = tmp_path / "e.txt"
    file.write_bytes(before + b"0 1\n1 2\n")
    message = refusal(file, tmp_path / "g.tg", **options)
    assert "an edge among its first `1.0 MiB`, got comments and empty lines alone" in message
    if not options:
        with pytest.raises(tg.InputError, match="comments and empty lines alone"):
            tg.components(str(file))


def test_a_head_that_ends_inside_the_first_edge_is_read_by_whole_lines(tmp_path):
    file = tmp_path / "e.csv"
    lines = b"10,20,0.5\n" * 3
    # The head ends behind `10,2`.
    file.write_bytes(b"#" * ((1 << 20) - 5) + b"\n" + lines)
    assert "comments and empty lines alone" in refusal(file, tmp_path / "g.tg")
    file.write_bytes(b"#" * ((1 << 20) - 13) + b"\n1,2,0.5\n" + lines)
    with pytest.warns(tg.InputWarning, match="column 3"):
        edges, _ = built(file, tmp_path / "g.tg", ids="map")
    assert edges == [(1, 2, 0.5), *[(10, 20, 0.5)] * 3]


def test_a_head_after_a_mark_is_not_taken_for_the_whole_file(tmp_path):
    file = tmp_path / "e.txt"
    # With the mark, the last line of the head is cut.
    file.write_bytes(b"\xef\xbb\xbf" + b"123456 234567 345678\n" * 60_000)
    with pytest.warns(tg.InputWarning, match="column 3"):
        edges, _ = built(file, tmp_path / "g.tg", ids="map")
    assert edges == [(123456, 234567, 345678.0)] * 60_000


def test_a_header_alone_is_no_edge_between_names(tmp_path):
    (tmp_path / "h.csv").write_text("src,dst\n")
    (tmp_path / "n.csv").write_text("src,dst\na,b\n")
    message = refusal(tmp_path / "h.csv", tmp_path / "g.tg", ids="names")
    assert "expected lines of edges, got a file without any" in message
    files = [tmp_path / "n.csv", tmp_path / "h.csv"]
    assert "a file without any" in refusal(files, tmp_path / "g.tg", ids="names")


def test_a_first_line_that_may_name_columns_is_told_of(tmp_path):
    file = tmp_path / "p.csv"
    file.write_text("person,friend\nann,bob\nbob,cy\n")
    with pytest.warns(tg.InputWarning, match="columns=") as told:
        edges, _ = built(file, tmp_path / "g.tg", ids="names")
    assert ("person", "friend") in edges
    assert "line 1 of" in str(told[0].message)
    assert "`person` to `friend`, is taken for an edge" in str(told[0].message)
    named, notes = built(file, tmp_path / "g.tg", ids="names", columns=["person", "friend"])
    assert named == [("ann", "bob"), ("bob", "cy")]
    assert notes == []
    file.write_text("ann,bob\nbob,cy\ncy,ann\n")
    assert built(file, tmp_path / "g.tg", ids="names")[1] == []


def test_numbers_in_quotes_are_numbers(tmp_path):
    file = tmp_path / "q.csv"
    file.write_text('"src","dst","weight"\n"0","1","0.5"\n"1","2","7"\n2,0,1\n')
    assert built(file, tmp_path / "g.tg")[0] == [(0, 1, 0.5), (1, 2, 7.0), (2, 0, 1.0)]
    file.write_text('src,dst,weight\n0,1,2\n1,2,"3"\n')
    assert built(file, tmp_path / "g.tg")[0] == [(0, 1, 2.0), (1, 2, 3.0)]
    file.write_text('src,dst,weight\n0,1,"1,000"\n')
    message = refusal(file, tmp_path / "h.tg")
    assert "expected a weight of 0 or more in column 3" in message
    file.write_text('src,dst\n"0","1x"\n')
    assert "expected an unsigned 64-bit integer in column 2" in refusal(file, tmp_path / "h.tg")


def test_a_column_called_weight_that_is_no_number_is_told_of(tmp_path):
    pa = pytest.importorskip("pyarrow")
    (tmp_path / "w.csv").write_text("src,dst,weight\n0,1,NA\n1,2,NA\n")
    table = pa.table({"src": [0, 1], "dst": [1, 2], "weight": ["5", "7"]})
    for source in (tmp_path / "w.csv", table):
        with pytest.warns(tg.InputWarning, match="`weight` of .* is not used, as it is not num"):
            assert built(source, tmp_path / "g.tg")[0] == [(0, 1), (1, 2)]


def test_weights_none_leaves_out_those_of_arrays(tmp_path):
    arrays = (np.array([1]), np.array([2]), np.array([3.0]))
    for source in (arrays, [arrays], [(1, 2, 3.0)]):
        assert built(source, tmp_path / "g.tg", weights="none", ids="map")[0] == [(1, 2)]


def test_missing_values_of_a_dictionary_are_missing(tmp_path):
    pa = pytest.importorskip("pyarrow")
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    table = pa.table({"src": column, "dst": ["b", "c"]})
    assert "expected no missing values" in refusal(table, tmp_path / "g.tg")
    unused = pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array(["a", None]))
    table = pa.table({"src": unused, "dst": ["b", "c"]})
    assert built(table, tmp_path / "g.tg")[0] == [("a", "b"), ("a", "c")]


def test_names_are_numbered_in_the_order_of_rows_whatever_holds_them(tmp_path):
    pa = pytest.importorskip("pyarrow")
    csv = tmp_path / "n.csv"
    csv.write_text("src,dst\nd,b\na,d\nc,e\n")
    src, dst = ["d", "a", "c"], ["b", "d", "e"]
    kinds = pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())
    tables = [
        pa.table({"src": pa.array(src, own), "dst": pa.array(dst, other)})
        for own in kinds
        for other in kinds
    ]
    chunked = pa.table({"src": pa.chunked_array([src[:1], src[1:]]), "dst": dst})
    for source in (csv, *tables, chunked, (np.array(src), np.array(dst))):
        options = {"ids": "names"} if source is csv else {}
        tg.build(source, tmp_path / "g.tg", overwrite=True, **options)
        with tg.open(tmp_path / "g.tg") as graph:
            assert graph.names[:] == ["d", "b", "a", "c", "e"]
        found = tg.components(str(csv) if source is csv else source, **options)
        assert found.names.to_pylist() == ["d", "b", "a", "c", "e"]


def test_files_of_a_directory_have_columns_of_their_own(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "pairs.parquet"
    folder.mkdir()
    parquet.write_table(pa.table({"dst": [1], "src": [0]}), folder / "a.parquet")
    parquet.write_table(pa.table({"src": [1], "dst": [2]}), folder / "b.parquet")
    assert built(folder, tmp_path / "g.tg")[0] == [(0, 1), (1, 2)]
    parquet.write_table(pa.table({"src": [1], "dst": [2], "weight": [0.5]}), folder / "b.parquet")
    refusal(folder, tmp_path / "h.tg")
    parquet.write_table(pa.table({"src": ["x"], "dst": ["y"]}), folder / "b.parquet")
    assert "b.parquet" in refusal(folder, tmp_path / "h.tg")


def test_decimals_are_numbers(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from decimal import Decimal

    ids = pa.array([Decimal(0), Decimal(1)], pa.decimal128(38, 0))
    weights = pa.array([Decimal("0.5"), Decimal("2.25")], pa.decimal128(5, 2))
    table = pa.table({"src": ids, "dst": [1, 2], "weight": weights})
    assert built(table, tmp_path / "g.tg")[0] == [(0, 1, 0.5), (1, 2, 2.25)]


def test_several_tables_follow_one_another(tmp_path):
    pa = pytest.importorskip("pyarrow")
    tables = [pa.table({"src": [i], "dst": [i + 1]}) for i in range(3)]
    assert built(tables, tmp_path / "g.tg")[0] == [(0, 1), (1, 2), (2, 3)]


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_a_weight_that_is_none_is_told_with_its_row(tmp_path, weight):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"src": [0, 1], "dst": [1, 2], "weight": [1.0, weight]})
    assert f"got {weight} in row 2" in refusal(table, tmp_path / "g.tg")


def test_complex_matrices_are_refused(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    sparse.save_npz(tmp_path / "c.npz", sparse.csr_array(np.array([[0, 1j], [1, 0]])))
    assert "expected real numbers, got complex128" in refusal(tmp_path / "c.npz", tmp_path / "g.tg")


def test_a_view_of_edges_has_the_directions_of_its_graph(tmp_path):
    nx = pytest.importorskip("networkx")
    for graph in (nx.path_graph(3), nx.path_graph(3, create_using=nx.DiGraph)):
        for edges in (graph.edges, graph.edges(), graph.edges(data="weight", default=2.0)):
            tg.build(edges, tmp_path / "g.tg", overwrite=True)
            with tg.open(tmp_path / "g.tg") as found:
                assert found.directed == graph.is_directed()
                assert found.edges == 2
    found = tg.components(nx.path_graph(["a", "b", "c"]))
    assert found.names.to_pylist() == ["a", "b", "c"]


def test_names_are_texts_of_one_character_or_more(tmp_path):
    assert "expected text, got ``" in refusal([("", "a")], tmp_path / "g.tg")
    igraph = pytest.importorskip("igraph")
    graph = igraph.Graph([(0, 1)])
    graph.vs["name"] = ["a", None]
    assert "expected a text as the `name` of every vertex" in refusal(graph, tmp_path / "g.tg")


def test_a_table_of_texts_may_have_no_row(tmp_path):
    pa = pytest.importorskip("pyarrow")
    empty = pa.table({"src": pa.array([], pa.string()), "dst": pa.array([], pa.string())})
    assert built(empty, tmp_path / "g.tg") == ([], [])
    tg.build([("a", "b"), ("c", "c")], tmp_path / "n.tg")
    with tg.open(tmp_path / "n.tg") as graph:
        assert graph.subgraph(["a"], tmp_path / "none.tg")["edges"] == 0


def test_repeated_edges_survive_what_can_hold_them(tmp_path):
    pytest.importorskip("scipy")
    nx = pytest.importorskip("networkx")
    for undirected in (False, True):
        edges = ([0, 0, 1, 2], [1, 1, 2, 2], [5.0, 3.0, 1.0, 1.0])
        tg.build(edges, tmp_path / "g.tg", undirected=undirected, overwrite=True)
        with tg.open(tmp_path / "g.tg") as graph:
            made = graph.to_networkx()
            assert made.is_multigraph()
            assert sorted(w for *_, w in made.edges(0, data="weight")) == [3.0, 5.0]
            assert nx.shortest_path_length(made, 0, 1, weight="weight") == graph.sssp(0)[1]
            graph.export(tmp_path / "g.npz")
            if undirected:
                with pytest.raises(tg.InputError, match="without repeated edges"):
                    graph.export(tmp_path / "g.graph")
                continue
            expected = sorted(zip(*edges, strict=True))
            assert built(tmp_path / "g.npz", tmp_path / "b.tg")[0] == expected


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".parquet"])
def test_what_stood_there_stays_until_the_result_is_whole(tmp_path, monkeypatch, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    from tiergraph import results

    out = tmp_path / f"r{suffix}"
    out.write_text("as before")

    def ids(start, stop):
        if start:
            raise OSError(28, "No space left on device")
        return np.arange(start, stop, dtype=np.uint64)

    monkeypatch.setattr(results, "STEP_VALUES", 4)
    monkeypatch.setattr(results, "CSV_ROWS", 4)
    with pytest.raises(tg.IoError, match="No space left"):
        results.write(str(out), ids, "x", np.arange(10))
    assert out.read_text() == "as before"
    assert os.listdir(tmp_path) == [out.name]
