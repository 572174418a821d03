"""Ids that are texts: columns of them, and the numbers that a build gives them."""

from __future__ import annotations

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
    return (numbers(names, src, "src"), numbers(names, dst, "dst"), *weights)  # type: ignore[return-value]


def of_arrow(names: _native.Names, column: pa.Array) -> Array:
    """The numbers of a column of pyarrow, uint32. Values of a dictionary are looked up once."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        # What no row has is no vertex.
        used, places = np.unique(column.indices.to_numpy(), return_inverse=True)
        values = of_arrow(names, column.dictionary.take(pa.array(used)))
        return values[places]
    texts = column.cast(pa.large_string())
    _, offsets, text = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(text, np.uint8) if text is not None else np.empty(0, np.uint8)
    return names.number(ends, data)


def numbers(names: _native.Names, column: Any, name: str) -> Array:
    """The numbers of texts in an array or list, uint32."""
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
    return names.number(ends, np.frombuffer(b"".join(texts), np.uint8))


def _is_utf8(text: str | bytes) -> bool:
    try:
        return isinstance(text, bytes) or bool(text.encode() is not None)
    except UnicodeEncodeError:
        return False
