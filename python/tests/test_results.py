import numpy as np
import pytest

import tiergraph as tg
from tiergraph import results

IDS = np.array([3, 7, 2**63 + 1], dtype=np.uint64)
RANKS = np.array([0.25, 0.1, 0.65], dtype=np.float32)


def test_csv_has_the_users_ids_and_shortest_numbers(tmp_path):
    path = str(tmp_path / "ranks.csv")
    results.write(path, IDS, "rank", RANKS)
    with open(path) as file:
        assert file.read().splitlines() == [
            "vertex,rank",
            "3,0.25",
            "7,0.1",
            "9223372036854775809,0.65",
        ]


def test_npy_has_both_columns(tmp_path):
    path = str(tmp_path / "ranks.npy")
    results.write(path, IDS, "rank", RANKS)
    table = np.load(path)
    assert table["vertex"].tolist() == IDS.tolist()
    assert table["rank"].dtype == np.float32


def test_parquet_has_both_columns(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = str(tmp_path / "ranks.parquet")
    results.write(path, IDS, "rank", RANKS)
    table = parquet.read_table(path).to_pydict()
    assert table == {"vertex": IDS.tolist(), "rank": RANKS.tolist()}


def test_an_unknown_suffix_is_refused_before_the_run():
    with pytest.raises(tg.InputError, match=r"expected a file name in \.parquet, \.csv, \.npy"):
        results.check_suffix("ranks.txt")
    with pytest.raises(tg.IoError, match="no writable directory"):
        results.check_suffix("no/such/directory/ranks.csv")


def test_top_breaks_ties_by_the_smaller_id():
    ids = np.array([5, 6, 7, 8], dtype=np.uint64)
    values = np.array([1.0, 3.0, 1.0, 1.0])
    assert results.top(ids, values, 3) == [(6, 3.0), (5, 1.0), (7, 1.0)]
    assert len(results.top(ids, values, 10)) == 4
    assert results.top(ids, values, 0) == []
    assert results.top(ids[:0], values[:0], 3) == []
