"""Whole numbers are integers of any type, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import tiergraph as tg
from tiergraph.counts import MOST, fanouts, whole, whole_or_none


def test_integers_of_any_type_are_whole():
    for value in (7, np.int64(7), np.uint8(7), np.array(7)):
        assert whole(value, "n") == 7
        assert type(whole(value, "n")) is int
    assert whole_or_none(None, "n") is None
    assert whole(MOST, "n") == MOST
    assert fanouts(np.array([25, -1, 0])) == [25, -1, 0]


@pytest.mark.parametrize("value", [1.0, "1", True, np.bool_(True), None, [1], np.nan, -1, 2**64])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(tg.InputError, match="cannot use `n`: expected a whole number from 0 on"):
        whole(value, "n")


def test_bounds_are_told():
    assert whole(3, "n", 1, 3) == 3
    with pytest.raises(tg.InputError, match="from 1 to 3, got 4"):
        whole(4, "n", 1, 3)


@pytest.mark.parametrize("given", [5, "25,10", None])
def test_fanouts_are_a_list(given):
    with pytest.raises(tg.InputError, match="a fanout for each hop"):
        fanouts(given)
