from pathlib import Path

import numpy as np
import pytest

import tiergraph as tg
from tiergraph.sources.edges import as_batches, as_files

A, B = np.array([0, 1]), np.array([1, 2])


def test_paths_are_files():
    assert as_files("a.txt") == ["a.txt"]
    assert as_files(Path("a.txt")) == ["a.txt"]
    assert as_files([Path("a.parquet"), "b.parquet"]) == ["a.parquet", "b.parquet"]
    assert as_files((A, B)) is None
    assert as_files(iter([(A, B)])) is None


def test_arrays_are_one_batch_and_iterables_several():
    assert len(list(as_batches((A, B)))) == 1
    assert len(list(as_batches([(A, B), (A, B)]))) == 2
    assert len(list(as_batches((A, B) for _ in range(3)))) == 3
    ((src, dst),) = as_batches(np.stack([A, B], axis=1))
    assert (src == A).all()
    assert (dst == B).all()
    (batch,) = as_batches(([0, 1], [1, 2], [0.5, 0.25]))
    assert [column.tolist() for column in batch] == [[0, 1], [1, 2], [0.5, 0.25]]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (np.stack([A, B]).reshape(1, -1), r"expected shape \(\|E\|, 2\), a row an edge, got"),
        ((A, B[:1]), r"expected arrays of one length, got lengths \[2, 1\]"),
        ((A, B, A, B), r"expected a tuple \(src, dst\)"),
        ([A], r"expected a tuple \(src, dst\) or \(src, dst, weights\), got ndarray"),
        (7, "cannot build from `int`: expected a path"),
    ],
)
def test_anything_else_is_named(source, message):
    with pytest.raises(tg.InputError, match=message):
        list(as_batches(source))
