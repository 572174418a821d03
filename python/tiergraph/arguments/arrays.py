"""Checks on arrays that users hand over, and their conversion to what the native part takes."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError


def to_ids(array: NDArray[Any], name: str) -> NDArray[np.uint64]:
    """A one-dimensional array of vertex ids as contiguous uint64; copies only where it must."""
    if array.ndim != 1:
        raise InputError.of("use", name, expected="a one-dimensional array", got=f"{array.ndim}-d")
    if array.size == 0:
        return np.empty(0, dtype=np.uint64)
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError.of(
            "use",
            name,
            expected="an array of integers",
            got=array.dtype,
            hint="vertex ids are integers of 0 or more; map other keys with np.unique first",
        )
    if np.issubdtype(array.dtype, np.signedinteger) and int(array.min()) < 0:
        at = int(np.argmin(array))
        raise InputError.of(
            "use", name, expected="vertex ids of 0 or more", got=f"{array[at]} at position {at}"
        )
    return np.ascontiguousarray(array, dtype=np.uint64)


def of_tensor(given: Any, name: str) -> Any:
    """A PyTorch tensor as a NumPy array: without its gradient, and bfloat16 as float32.

    Anything else as it is. Raises `InputError`, with its `name`, for a tensor that is not dense.
    """
    if not (hasattr(given, "detach") and hasattr(given, "layout")):
        return given
    if str(given.layout) != "torch.strided":
        hint = f"`{name}.to_dense()` is one; a SciPy sparse matrix is stored without"
        expected = "a dense tensor"
        raise InputError.of("use", name, expected=expected, got=given.layout, hint=hint)
    tensor = given.detach().cpu()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()


def as_array(given: Any) -> NDArray[Any]:
    """What a caller gives for a column, as an array.

    NumPy makes floats of a list of integers below and above 2^63; these stay integers here.
    """
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise InputError.of("make an array of", type(given).__name__, got=error) from error
    if isinstance(given, np.ndarray) or array.dtype.kind not in "fO" or array.ndim != 1:
        return array
    if not array.size or not all(isinstance(value, Integral) for value in given):
        return array
    least, most = min(given), max(given)
    if least < 0 or most >= 2**64:
        raise InputError.of(
            "use the id",
            least if least < 0 else most,
            expected="vertex ids from 0 to 18446744073709551615",
        )
    return np.array(given, dtype=np.uint64)


def to_endpoints(array: NDArray[Any], name: str) -> NDArray[np.integer[Any]]:
    """A column of vertex ids as the native builder takes it; copies only where it must.

    The builder casts and checks integers of 4 and 8 bytes itself.
    """
    native = array.dtype.kind in "iu" and array.dtype.itemsize in (4, 8) and array.dtype.isnative
    if array.ndim == 1 and native:
        return np.ascontiguousarray(array)
    return to_ids(array, name)


def to_numbers(given: Any, name: str) -> NDArray[Any]:
    """An array of real numbers: integers, floats or truth values."""
    try:
        array = np.asarray(given)
    except (ValueError, TypeError) as error:
        raise InputError.of("use", name, expected="an array of numbers", got=error) from error
    if array.dtype.kind not in "fiub":
        raise InputError.of("use", name, expected="an array of real numbers", got=array.dtype)
    return array


def to_values(given: Any, name: str, count: int) -> NDArray[np.float64]:
    """Finite numbers, one a vertex, as float64 of shape (`count`,)."""
    array = to_numbers(given, name)
    if array.shape != (count,):
        raise InputError.of(
            "use", name, expected=f"one number a vertex, shape ({count},)", got=f"{array.shape}"
        )
    finite = np.isfinite(array)
    if not finite.all():
        at = int(np.argmin(finite))
        raise InputError.of(
            "use", name, expected="finite numbers", got=f"{array[at]} at position {at}"
        )
    return np.ascontiguousarray(array, dtype=np.float64)


def to_weights(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    """A one-dimensional array of edge weights as contiguous float64."""
    if array.ndim != 1 or array.dtype.kind not in "fiu":
        raise InputError.of(
            "use",
            name,
            expected="a one-dimensional array of numbers",
            got=f"{array.ndim}-d {array.dtype}",
        )
    return np.ascontiguousarray(array, dtype=np.float64)
