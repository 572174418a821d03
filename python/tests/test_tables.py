import numpy as np
import pytest

import tiergraph as tg
from tiergraph.sources.tables import read_batches, reader_bytes

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

COLUMNS = {"note": ["a", "b", "c"], "src": [0, 1, 2], "dst": [1, 2, 0], "weight": [0.5, 1.0, 2.0]}


def columns(batches):
    return [np.concatenate(column).tolist() for column in zip(*batches, strict=True)]


def write_parquet(table, path):
    parquet.write_table(table, path, row_group_size=2)


def write_ipc(table, path):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(
    ("suffix", "write"),
    [
        (".parquet", write_parquet),
        (".feather", lambda table, path: feather.write_feather(table, str(path))),
        (".arrow", write_ipc),
    ],
)
def test_every_kind_of_table_gives_its_columns(tmp_path, suffix, write):
    path = tmp_path / f"edges{suffix}"
    write(pa.table(COLUMNS), path)
    assert columns(read_batches([str(path)], None)) == [[0, 1, 2], [1, 2, 0], [0.5, 1.0, 2.0]]
    assert columns(read_batches([str(path)], ["dst", "src"])) == [[1, 2, 0], [0, 1, 2]]


def test_without_known_names_the_first_two_integer_columns_are_taken(tmp_path):
    path = tmp_path / "edges.parquet"
    parquet.write_table(pa.table({"x": ["a"], "c1": [3], "p": [0.5], "c2": [4]}), path)
    assert columns(read_batches([str(path)], None)) == [[3], [4]]


def test_several_files_follow_one_another(tmp_path):
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for i, path in enumerate(paths):
        parquet.write_table(pa.table({"src": [i], "dst": [i + 1]}), path)
    assert columns(read_batches([str(p) for p in paths], None)) == [[0, 1], [1, 2]]


def test_a_missing_column_lists_the_columns(tmp_path):
    path = tmp_path / "edges.parquet"
    parquet.write_table(pa.table(COLUMNS), path)
    with pytest.raises(tg.InputError) as caught:
        list(read_batches([str(path)], ["src", "target"]))
    assert str(caught.value) == (
        f"cannot find the edges in `{path}`: expected a column `target`, got `note`, `src`, `dst`, "
        '`weight`\n\nhint: `columns=["SRC", "DST"]` names the columns'
    )


def test_a_table_without_integers_is_refused(tmp_path):
    path = tmp_path / "edges.parquet"
    parquet.write_table(pa.table({"a": ["x"], "b": [1]}), path)
    with pytest.raises(tg.InputError, match="or two columns of integers, got `a`"):
        list(read_batches([str(path)], None))


def test_missing_values_are_refused(tmp_path):
    path = tmp_path / "edges.parquet"
    parquet.write_table(pa.table({"src": [0, None], "dst": [1, 2]}), path)
    with pytest.raises(tg.InputError, match="expected no missing values"):
        list(read_batches([str(path)], None))


def test_a_file_that_is_no_table_is_refused(tmp_path):
    path = tmp_path / "edges.parquet"
    path.write_text("0 1\n")
    with pytest.raises(tg.InputError, match="expected a parquet file"):
        list(read_batches([str(path)], None))
    with pytest.raises(tg.IoError, match="cannot open"):
        list(read_batches([str(tmp_path / "none.parquet")], None))


@pytest.mark.parametrize(("suffix", "write"), [(".parquet", write_parquet), (".arrow", write_ipc)])
def test_batches_have_no_more_rows_than_asked_for(tmp_path, suffix, write):
    path = tmp_path / f"edges{suffix}"
    ids = list(range(7))
    write(pa.table({"dst": ids[::-1], "src": ids}), path)
    batches = list(read_batches([str(path)], None, rows=3))
    assert max(len(src) for src, _ in batches) <= 3
    assert columns(batches) == [ids, ids[::-1]]


def test_a_directory_is_read_file_by_file(tmp_path):
    path = tmp_path / "edges.parquet"
    path.mkdir()
    for i in range(2):
        parquet.write_table(pa.table({"src": [i], "dst": [i + 1]}), path / f"part-{i}.parquet")
    assert columns(read_batches([str(path)], None)) == [[0, 1], [1, 2]]


def test_columns_of_ids_are_the_decoded_bytes(tmp_path):
    path = tmp_path / "edges.parquet"
    ids = pa.array([1, 2, 3], pa.uint32())
    parquet.write_table(pa.table({"src": ids, "dst": ids}), path)
    [(src, _)] = read_batches([str(path)], None)
    assert src.dtype == np.uint32
    assert not src.flags.owndata


def test_what_reading_holds_is_known_before(tmp_path):
    path = tmp_path / "edges.parquet"
    parquet.write_table(pa.table(COLUMNS), path)
    one = reader_bytes([str(path)])
    assert 0 < one < 1 << 10
    assert reader_bytes([str(path)] * 2) == 2 * one


@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint32", "int64", "uint64"])
def test_ids_of_every_width_build_the_same_graph(tmp_path, dtype):
    path = tmp_path / "edges.parquet"
    src, dst = np.array([0, 1, 2, 0], dtype), np.array([1, 2, 0, 2], dtype)
    parquet.write_table(pa.table({"src": src, "dst": dst}), path)
    tg.build(path, tmp_path / "g.tg", undirected=False)
    graph = tg.open(tmp_path / "g.tg")
    assert graph.degrees("out").tolist() == [2, 1, 1]
    assert graph.degrees("in").tolist() == [1, 1, 2]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_negative_id_is_named_with_its_place(tmp_path, dtype):
    edges = np.array([0, 1, 2], dtype), np.array([1, -3, 0], dtype)
    message = "cannot use `dst`: expected vertex ids of 0 or more, got -3 at position 1"
    with pytest.raises(tg.InputError, match=message):
        tg.build(edges, tmp_path / "g.tg")
    assert not (tmp_path / "g.tg").exists()


def test_wide_ids_keep_their_bits(tmp_path):
    ids = [5, 2**63 + 7, 2**32]
    edges = np.array(ids, np.uint64), np.array([2**32, 5, 5], np.uint64)
    tg.build(edges, tmp_path / "g.tg", ids="map")
    assert tg.open(tmp_path / "g.tg").ids.tolist() == sorted(ids)
