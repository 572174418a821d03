import numpy as np
import pytest

import tiergraph as tg
from tiergraph.arguments.arrays import to_endpoints, to_ids, to_weights


def test_ids_of_64_bits_are_taken_without_a_copy():
    ids = np.array([1, 2**64 - 1], dtype=np.uint64)
    assert np.shares_memory(to_ids(ids, "src"), ids)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint16])
def test_ids_of_any_integer_type_are_widened(dtype):
    assert to_ids(np.array([3, 0, 7], dtype=dtype), "src").tolist() == [3, 0, 7]


def test_a_strided_column_becomes_contiguous():
    table = np.arange(10).reshape(5, 2)
    assert to_ids(table[:, 1], "dst").flags.c_contiguous


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([1.0]), "expected an array of integers, got float64"),
        (np.array([5, -2, 1]), "expected vertex ids of 0 or more, got -2 at position 1"),
        (np.zeros((2, 2), dtype=int), "expected a one-dimensional array, got 2-d"),
    ],
)
def test_ids_that_cannot_be_used_are_named(array, message):
    with pytest.raises(tg.InputError, match=message):
        to_ids(array, "src")


def test_weights_become_float64():
    assert to_weights(np.array([1, 2], dtype=np.int32), "w").dtype == np.float64
    with pytest.raises(tg.InputError, match="array of numbers, got 1-d <U1"):
        to_weights(np.array(["a"]), "w")


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_endpoints_of_4_and_8_bytes_are_taken_as_they_are(dtype):
    ids = np.array([3, 0, 7], dtype=dtype)
    assert np.shares_memory(to_endpoints(ids, "src"), ids)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, ">i4"])
def test_other_endpoints_are_widened(dtype):
    assert to_endpoints(np.array([3, 0, 7], dtype=dtype), "src").dtype == np.uint64
