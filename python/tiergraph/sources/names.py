"""Ids that are texts: columns of them, and the numbers that a build gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from ..errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from .edges import Array, Batch

TEXT_KINDS = "USOT"
"""The kinds of NumPy's types that texts have: fixed widths, objects, and strings of any length."""


def are_texts(column: Any) -> bool:
    """Whether a column of ids has texts: in an array of NumPy, by its type or its first value."""
    array = np.asarray(column)
    if array.dtype.kind != "O":
        return array.dtype.kind in TEXT_KINDS
    return bool(array.size) and isinstance(array.flat[0], str | bytes)


def is_text(kind: pa.DataType) -> bool:
    """Whether columns of a type of pyarrow have texts."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    is_view = getattr(pa.types, "is_string_view", lambda _: False)
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or is_view(kind)


def numbered(names: _native.Names, batch: Batch) -> Batch:
    """The same edges with numbers in place of their ends' names."""
    src, dst, *weights = batch
    ends = names.number([_packed(src, "src"), _packed(dst, "dst")])
    return (ends[0], ends[1], *weights)  # type: ignore[return-value]


def numbers(names: _native.Names, column: Any, name: str) -> Array:
    """The numbers of texts in an array or list, uint32."""
    return names.number([_packed(column, name)])[0]


def of_arrow(names: _native.Names, columns: Sequence[pa.Array]) -> list[Array]:
    """The numbers of columns of pyarrow, uint32: a name is numbered in the first row that has it.

    Values of dictionaries are looked up once.
    """
    import pyarrow as pa

    if not any(pa.types.is_dictionary(column.type) for column in columns):
        return names.number([_buffers(column.cast(pa.large_string())) for column in columns])
    texts, first, rows = [], [], []
    for number, column in enumerate(columns):
        values, of_row = _values(column)
        # What no row has is no vertex.
        used, place, at = np.unique(of_row, return_index=True, return_inverse=True)
        texts.append(values.take(pa.array(used)))
        first.append(place * len(columns) + number)
        rows.append(at)
    order = np.argsort(np.concatenate(first), kind="stable")
    found = np.empty(len(order), np.uint32)
    found[order] = names.number([_buffers(pa.concat_arrays(texts).take(pa.array(order)))])[0]
    parts = np.split(found, np.cumsum([len(own) for own in texts])[:-1])
    return [part[at] for part, at in zip(parts, rows, strict=True)]


def _values(column: pa.Array) -> tuple[pa.Array, Array]:
    """Texts, and which of them is in each row."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.large_string()).dictionary_encode()
    return column.dictionary.cast(pa.large_string()), column.indices.to_numpy()


def _buffers(texts: pa.Array) -> tuple[Array, Array]:
    """Where texts of the type `large_string` begin, and the last ends, and their bytes."""
    _, offsets, text = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return ends, np.frombuffer(text, np.uint8) if text is not None else np.empty(0, np.uint8)


def _packed(column: Any, name: str) -> tuple[Array, Array]:
    """The same of texts in an array or list."""
    values = np.asarray(column).tolist()
    try:
        texts = [
            value.encode() if isinstance(value, str) else memoryview(value) for value in values
        ]
    except (TypeError, UnicodeEncodeError) as error:
        odd = next(v for v in values if not isinstance(v, str | bytes) or not _is_utf8(v))
        raise InputError.of(
            "use the id",
            repr(odd),
            expected=f"text, as the ids before it in `{name}`",
            got=type(odd).__name__,
            hint="ids are all texts, or all integers",
        ) from error
    ends = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=ends[1:])
    return ends, np.frombuffer(b"".join(texts), np.uint8)


def _is_utf8(text: str | bytes) -> bool:
    try:
        return isinstance(text, bytes) or bool(text.encode() is not None)
    except UnicodeEncodeError:
        return False
