"""Arguments of public functions, checked by their names before anything is done.

An argument means the same wherever it is taken, so what it may be is said once, in `KNOWN`. What a
name means in one function only is said beside it, by `arguments`. None stands for a default where
the function has one. `calls.checked` has them checked.
"""

from __future__ import annotations

import inspect
import math
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import InputError
from . import words
from .arrays import as_array, to_ids

Function = TypeVar("Function", bound=Callable[..., Any])
Check = Callable[[Any], Any]
"""Gives the value as the package takes it. Raises `MisfitError` for one that cannot be used."""

MOST_THREADS = 1024
MOST_IDS = 2**64
MOST_NEGATIVES = 1 << 20


class MisfitError(Exception):
    """A value is not what it should be; the text says what that is."""


def whole(least: int = 0, most: int = MOST_IDS - 1, what: str = "a whole number") -> Check:
    """Integers of Python and NumPy from `least` to `most`; no floats, and no truth values."""

    def check(value: Any) -> int:
        try:
            number = operator.index(value)
        except TypeError:
            number = None
        if number is None or isinstance(value, bool | np.bool_) or not least <= number <= most:
            raise MisfitError(
                f"{what} from {least} to {'2^64 - 1' if most == MOST_IDS - 1 else most}"
            )
        return number

    return check


def number(least: float = -math.inf, most: float = math.inf, *, open_below: bool = False) -> Check:
    """Finite real numbers from `least` (or above it) to `most`."""

    def check(value: Any) -> float:
        real = isinstance(value, int | float | np.integer | np.floating)
        fits = real and not isinstance(value, bool) and math.isfinite(value)
        if not fits or not least <= value <= most or (open_below and value == least):
            low = f" {'above' if open_below else 'from'} {least:g}" if least > -math.inf else ""
            raise MisfitError(
                f"a finite number{low}" + (f" to {most:g}" if most < math.inf else "")
            )
        return float(value)

    return check


def truth_or_none(value: Any) -> bool:
    """True or False; None is False, as it is for PyTorch's loaders."""
    return False if value is None else truth(value)


def name_of(value: Any) -> str:
    """A string that is not empty, or a member of an enumeration of such."""
    return text(getattr(value, "value", value))


def size(value: Any) -> int:
    """Bytes: `"2GiB"`, `"512M"` or a whole number."""
    if isinstance(value, str):
        return _native.parse_size(value)
    try:
        return int(whole()(value))
    except MisfitError:
        raise MisfitError("a size such as `2GiB`, `512M` or bytes below 2^64") from None


def choice(*names: str) -> Check:
    """One of some names."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in names:
            raise MisfitError("one of " + ", ".join(f"`{name}`" for name in names))
        return value

    return check


def text(value: Any) -> str:
    """A string that is not empty."""
    if not isinstance(value, str) or not value:
        raise MisfitError("a string that is not empty")
    return value


def word(value: Any) -> str:
    """A name that files can have: letters, digits, - and _."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", value):
        raise MisfitError("a name of up to 64 letters, digits, - and _")
    return value


def column(value: Any) -> str:
    """The name of a column or its number from 1, as text."""
    try:
        return text(value) if isinstance(value, str) else str(whole(1)(value))
    except MisfitError:
        raise MisfitError("the name of a column, or its number from 1") from None


def truth(value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise MisfitError("True or False")
    return bool(value)


def path(value: Any) -> Any:
    """A path that the system can have."""
    found = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(found, str) or not found or "\0" in found:
        raise MisfitError("a path")
    return value


def each(check: Check, what: str) -> Check:
    """A list, tuple or array of values, each of which passes `check`."""

    def check_all(values: Any) -> list[Any]:
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise MisfitError(what)
        try:
            return [check(value) for value in values]
        except MisfitError as misfit:
            raise MisfitError(f"{what}, each {misfit}") from None

    return check_all


def mapping(value: Any) -> Any:
    """A dictionary."""
    if not isinstance(value, Mapping):
        raise MisfitError("a dictionary")
    return value


def by_name(value: Any) -> Any:
    """A dictionary whose keys are strings."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise MisfitError("a dictionary by name")
    return value


def called(value: Any) -> Any:
    """Something that can be called."""
    if not callable(value):
        raise MisfitError("a function")
    return value


def device(value: Any) -> str:
    """A device's name; whether it is there is seen when it is opened."""
    kind, colon, ordinal = value.partition(":") if isinstance(value, str) else ("", "", "")
    numbered = kind == "cuda" and ordinal.isascii() and ordinal.isdigit() and int(ordinal) < 2**31
    if not (numbered if colon else kind in ("cpu", "cuda", "auto")):
        raise MisfitError("`cpu`, `cuda`, `cuda:N` or `auto`")
    return str(value)


def engine(value: Any) -> str:
    """A read engine's name; which drives those with a colon are is seen when they are opened."""
    if isinstance(value, str) and (
        value == "gpu" or value.startswith(("nvme:", "passthrough:", "modelled:", "gpu:"))
    ):
        return value
    try:
        return str(ENGINE(value))
    except MisfitError as misfit:
        others = "`nvme:PCI-ADDRESS`, `passthrough:/dev/ng0n1`, `modelled:DRIVE*N`, `gpu`"
        raise MisfitError(f"{misfit}, {others}") from None


_id = whole(what="a vertex id, a whole number")


def vertex(value: Any) -> int | str:
    """A vertex's id, or its name, which is text that is not empty."""
    return value if isinstance(value, str) and value else int(_id(value))


def vertices(values: Any) -> NDArray[np.uint64] | list[str]:
    """An array of vertex ids, at least one, or a list of names; those of a set ascend."""
    expected = "a list, set or array of vertex ids"
    try:
        values = sorted(values) if isinstance(values, set | frozenset) else values
        if _are_names(values):
            return [str(value) for value in values]
        ids = as_array(values)
    except InputError:
        raise
    except (ValueError, TypeError):
        raise MisfitError(expected) from None
    if ids.ndim != 1:
        raise MisfitError(expected)
    if not ids.size:
        raise MisfitError("one vertex id or more")
    return to_ids(ids, "the vertex ids")


def _are_names(values: Any) -> bool:
    """Whether values are a list or array of text, and not empty."""
    listed = isinstance(values, list | tuple) or getattr(values, "dtype", None) is not None
    return listed and len(values) > 0 and all(isinstance(value, str) for value in values)


def pairs(values: Any) -> NDArray[np.uint64] | list[str]:
    """Pairs of vertices, of shape (p, 2): their ids side by side, or a list of their names."""
    shape = "pairs of vertex ids, of shape (p, 2)"
    try:
        ends = as_array(values)
    except (ValueError, TypeError):
        raise MisfitError(shape) from None
    if ends.shape == (0,):
        ends = ends.reshape(0, 2)
    if ends.ndim != 2 or ends.shape[1] != 2:
        raise MisfitError(shape)
    if ends.dtype.kind in "UT":
        return [str(name) for name in ends.ravel()]
    return to_ids(ends.ravel(), "the vertex ids")


def chosen(value: Any) -> str | bool | None:
    """The name of features, or whether there are any; None: none."""
    if value is None:
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    try:
        return text(value)
    except MisfitError:
        raise MisfitError("a name, True or False") from None


def chosen_some(value: Any) -> str | bool | list[str] | None:
    """One name or several, or whether there are any; None: none."""
    if value is None or isinstance(value, str | bool | np.bool_):
        return chosen(value)
    found: list[str] = each(text, "a name, a list of names, True or False")(value)
    return found


def placement(value: Any) -> str | float:
    """A placement's name, or the share of memory that features get."""
    try:
        return number(0, 1)(value) if not isinstance(value, str) else str(PLACEMENT(value))
    except MisfitError as misfit:
        raise MisfitError(f"{PLACEMENTS}, or a share from 0 to 1 for features") from misfit


def every(value: Any) -> Any:
    """How long from one to the next: iterations, or a time."""
    interval(value)
    return value


def interval(value: Any) -> tuple[int | None, float]:
    """Iterations and 0, or None and seconds."""
    written = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    found = EVERY.fullmatch(written) if isinstance(written, str) else None
    if found is None or float(found[1]) == 0:
        raise MisfitError("a number of iterations, or a time such as `90s`, `5min` or `2h`")
    amount, unit = found.groups()
    return (int(amount), 0.0) if unit is None else (None, int(amount) * SECONDS[unit])


SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}
EVERY = re.compile("([0-9]{1,9}) ?(s|min|h)?")
ENGINE = choice("auto", "uring", "posix", "posix-pool", "null")
PLACEMENT_NAMES = ("unified", "topology", "features", "topology/features", "features/topology")
PLACEMENTS = ", ".join(f"`{name}`" for name in PLACEMENT_NAMES)
PLACEMENT = choice(*PLACEMENT_NAMES)
count = whole(1)
fanouts = each(whole(-1, 2**31 - 1, "a whole number"), "a list of fanouts")

KNOWN: dict[str, Check] = {
    "address": text,
    "addresses": each(text, "a list of PCI addresses or devices"),
    "allow_nan": truth,
    "amount": number(0, MOST_NEGATIVES, open_below=True),
    "batch_size": whole(1, 2**32 - 1),
    "block_bytes": size,
    "checkpoint": path,
    "checkpoint_every": every,
    "checksums": truth,
    "codec": choice("packed", "raw"),
    "columns": each(text, "a list of names"),
    "damping": number(0, 1),
    "dedup": truth,
    "depth": whole(1, 2**16),
    "device": device,
    "device_memory": size,
    "device_residency": truth,
    "direction": choice("in", "out"),
    "disjoint": truth,
    "drop_last": truth,
    "drop_self_loops": truth,
    "edge_features": chosen,
    "edge_values": by_name,
    "feature_columns": each(text, "a list of names"),
    "feature_dtype": choice("f32", "f16", "int8"),
    "features": chosen,
    "force": truth,
    "format": text,
    "ids": choice("dense", "map", "names"),
    "io": engine,
    "iterations": whole(1, 2**32 - 1),
    "labels": text,
    "layouts": choice("analytics", "training", "both", "sampling"),
    "memory": size,
    "modelled_bandwidth": size,
    "multiprocessors": whole(1, 2**32 - 1),
    "neg_sampling_ratio": number(0, MOST_NEGATIVES),
    "node_times": by_name,
    "num_neighbors": fanouts,
    "order": choice("none", "degree", "auto"),
    "overwrite": truth,
    "path": path,
    "placement": placement,
    "prefetch": whole(0, 2**32 - 1),
    "presample": whole(),
    "progress": called,
    "rank": whole(0, 2**32 - 1),
    "reduce": choice("sum", "min", "max"),
    "replace": truth,
    "resolution": number(0),
    "resume": truth,
    "seed": whole(),
    "share_pages": truth,
    "shuffle": truth_or_none,
    "source": vertex,
    "scratch": path,
    "sources": vertices,
    "subgraph_type": name_of,
    "stripe": each(lambda value: os.fspath(path(value)), "a list of directories"),
    "temporal_strategy": choice("uniform", "last"),
    "threads": whole(1, MOST_THREADS),
    "time_attr": text,
    "tolerance": number(0),
    "trace": path,
    "transfers": choice("async", "sync", "direct"),
    "transform": called,
    "transpose": truth,
    "undirected": truth,
    "values": by_name,
    "weight_attr": text,
    "weights": column,
    "window": whole(1, 2**32 - 1),
    "world_size": whole(1, 2**32 - 1),
}
"""What arguments of these names may be."""


def arguments(**own: Check | None) -> Callable[[Function], Function]:
    """Says what arguments of one function may be, where `KNOWN` does not; None: anything.

    None for the name of `**keywords` has these be anything, whatever they are called.
    """

    def note(function: Function) -> Function:
        function.__checks__ = own  # type: ignore[attr-defined]
        return function

    return note


def check_values(function: Callable[..., Any], bound: inspect.BoundArguments) -> None:
    """Puts the values of a call in the form that the package takes.

    Raises `InputError` for one that cannot be used, which names it as the caller does.
    """
    own = getattr(function, "__checks__", {})
    known = KNOWN | own
    for name, value in bound.arguments.items():
        parameter = bound.signature.parameters[name]
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            if name in own:
                continue
            given = {n: v if v is None else one(n, v, known) for n, v in value.items()}
            bound.arguments[name] = given
        elif value is not None or parameter.default is not None:
            bound.arguments[name] = one(name, value, known)


def one(name: str, value: Any, known: Mapping[str, Check | None] = KNOWN) -> Any:
    """The argument `name` as the package takes it."""
    check = known.get(name)
    if check is None:
        return value
    try:
        return check(value)
    except MisfitError as misfit:
        plain = value is None or isinstance(value, str | int | float)
        got = None if plain else type(value).__name__
        raise InputError.of(
            "use", words.named(name, value), expected=str(misfit), got=got
        ) from None
