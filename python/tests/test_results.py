import numpy as np
import pytest

import tiergraph as tg
from tiergraph import results

IDS = np.array([3, 7, 2**63 + 1], dtype=np.uint64)
RANKS = np.array([0.25, 0.1, 0.65], dtype=np.float32)


def ids_of(start, stop):
    return IDS[start:stop]


def test_csv_has_the_users_ids_and_shortest_numbers(tmp_path):
    path = str(tmp_path / "ranks.csv")
    results.write(path, ids_of, "rank", RANKS)
    with open(path) as file:
        assert file.read().splitlines() == [
            "vertex,rank",
            "3,0.25",
            "7,0.1",
            "9223372036854775809,0.65",
        ]


def test_npy_has_both_columns(tmp_path):
    path = str(tmp_path / "ranks.npy")
    results.write(path, ids_of, "rank", RANKS)
    table = np.load(path)
    assert table["vertex"].tolist() == IDS.tolist()
    assert table["rank"].dtype == np.float32


def test_parquet_has_both_columns(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = str(tmp_path / "ranks.parquet")
    results.write(path, ids_of, "rank", RANKS)
    table = parquet.read_table(path).to_pydict()
    assert table == {"vertex": IDS.tolist(), "rank": RANKS.tolist()}


def test_arrow_has_both_columns_and_so_has_a_table(tmp_path):
    feather = pytest.importorskip("pyarrow.feather")
    path = str(tmp_path / "ranks.arrow")
    results.write(path, ids_of, "rank", RANKS)
    written = feather.read_table(path)
    assert written.to_pydict() == {"vertex": IDS.tolist(), "rank": RANKS.tolist()}
    assert results.table(IDS, {"rank": RANKS}) == written
    tg.build(([5, 7], [7, 9]), tmp_path / "g.tg", ids="map")
    with tg.open(tmp_path / "g.tg") as graph:
        table = graph.table(rank=graph.bfs(5), component=graph.wcc())
        assert table.to_pydict() == {
            "vertex": [5, 7, 9],
            "rank": [0, 1, 2],
            "component": [5, 5, 5],
        }
        with pytest.raises(tg.InputError, match=r"table of `x`: expected shape \(3,\), got"):
            graph.table(x=[1.0, 2.0])
        with pytest.raises(tg.InputError, match="another name"):
            graph.table(vertex=graph.ids)


def test_an_unknown_suffix_is_refused_before_the_run():
    with pytest.raises(
        tg.InputError, match=r"expected a file name in \.parquet, \.arrow, \.csv, \.npy"
    ):
        results.check_suffix("ranks.txt")
    with pytest.raises(tg.IoError, match="no writable directory"):
        results.check_suffix("no/such/directory/ranks.csv")


def test_top_breaks_ties_by_the_smaller_position():
    values = np.array([1.0, 3.0, 1.0, 1.0])
    assert results.top(values, 3) == [(1, 3.0), (0, 1.0), (2, 1.0)]
    assert len(results.top(values, 10)) == 4
    assert results.top(values, 0) == []
    assert results.top(values[:0], 3) == []
    assert results.top(values, 3, lambda part: part < 2) == [(0, 1.0), (2, 1.0), (3, 1.0)]


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 7, 40, 1000])
def test_steps_give_what_a_sort_gives(monkeypatch, dtype, count):
    monkeypatch.setattr(results, "STEP_VALUES", 16)
    values = np.random.default_rng(count).integers(-1, 12, 500).astype(dtype)
    kept = np.flatnonzero(values >= 0)
    order = kept[np.lexsort((kept, -values[kept].astype(np.float64)))][:count]
    assert results.top(values, count, lambda part: part >= 0) == [(i, values[i]) for i in order]
    assert results.counted(values, lambda part: part >= 0) == (len(kept), values.max())
    assert results.counted(values, lambda part: part > 50) == (0, None)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "npy", "csv"])
def test_a_result_of_several_steps_is_written_whole(tmp_path, suffix):
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.feather")
    values = np.arange(2 * results.STEP_VALUES + 5, dtype=np.float32) / 7
    path = str(tmp_path / f"ranks.{suffix}")
    results.write(path, lambda a, b: np.arange(a, b, dtype=np.uint64) + 3, "rank", values)
    if suffix == "npy":
        table = np.load(path)
    elif suffix == "csv":
        table = np.loadtxt(
            path, delimiter=",", skiprows=1, dtype=[("vertex", "u8"), ("rank", "f4")]
        )
    else:
        table = (pa.parquet if suffix == "parquet" else pa.feather).read_table(path)
    np.testing.assert_array_equal(np.asarray(table["vertex"]), np.arange(len(values)) + 3)
    np.testing.assert_array_equal(np.asarray(table["rank"]), values)
