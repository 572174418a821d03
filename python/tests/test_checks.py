"""What the checks of arguments take, and what they refuse."""

import math

import numpy as np
import pytest

import tiergraph as tg
from tiergraph.arguments.checks import one

KINDS = [7, np.int64(7), np.uint8(7), np.array(7)]


@pytest.mark.parametrize("value", KINDS)
def test_integers_of_any_type_are_whole(value):
    taken = one("window", value)
    assert taken == 7
    assert type(taken) is int
    assert one("source", 2**64 - 1) == 2**64 - 1
    assert one("num_neighbors", np.array([25, -1, 0])) == [25, -1, 0]


@pytest.mark.parametrize("value", [1.0, "1", True, np.bool_(True), None, [1], np.nan, -1, 2**64])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(tg.InputError, match="expected a whole number from 1 to"):
        one("window", value)


@pytest.mark.parametrize("given", [5, "25,10", None, {"a": 1}, [2.5], [-2]])
def test_fanouts_are_a_list(given):
    with pytest.raises(tg.InputError, match="expected a list of fanouts"):
        one("num_neighbors", given)


@pytest.mark.parametrize("value", [0.5, 1, 0, np.float32(0.25)])
def test_numbers_are_within_their_bounds(value):
    assert one("damping", value) == value


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, "0.5", True, 1j, None])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(tg.InputError, match="expected a finite number from 0 to 1"):
        one("damping", value)


def test_features_are_a_name_or_whether():
    assert [one("features", value) for value in (True, False, "x")] == [True, False, "x"]
    with pytest.raises(tg.InputError, match="a name, True or False"):
        one("features", 3)
