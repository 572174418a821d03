"""Files that others wrote: whatever reading one raises is an error that names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments.words import shortened
from ..errors import BudgetError, Error, InputError, IoError


@contextmanager
def reading(path: Path | str, expected: str) -> Iterator[None]:
    """Has what libraries raise about damaged or missing files say which file it is.

    Raises `IoError` for what the system refuses, `BudgetError` for more than there is memory for,
    and `InputError` for a file that is not what is `expected`.
    """
    try:
        yield
    except (Error, GeneratorExit):
        raise
    except EOFError as error:
        raise InputError.of("read", path, expected=expected, got="its end before") from error
    except OSError as error:
        raise IoError.of("read", path, got=error.strerror or shortened(str(error))) from error
    except MemoryError as error:
        raise BudgetError.of("read", path, got="an array that memory does not hold") from error
    except Exception as error:
        # NumPy's and zipfile's readers raise whatever damage leads them to.
        raise InputError.of("read", path, expected=expected, got=shortened(str(error))) from error


def mapped(path: Path) -> NDArray[Any]:
    """The array in a `.npy` file, mapped."""
    with reading(path, "an array of numbers in a `.npy` file"):
        array = np.load(path, mmap_mode="r")
    if not isinstance(array, np.ndarray) or array.dtype.hasobject:
        raise InputError.of("read", path, expected="one array of numbers")
    return array
