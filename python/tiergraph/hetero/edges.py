"""The edges of one type as `build_hetero` is given them, and what is stored with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments.arrays import to_endpoints
from ..attached.edges import WEIGHT, EdgeStore, Kind, read_twice
from ..errors import InputError
from ..sources.edges import BATCH_EDGES, as_batches, as_files
from ..sources.tables import TABLE_SUFFIXES, Table, read_batches, reader_bytes, tables_of
from .graph import EdgeType

Array = NDArray[Any]

EDGE_KEYS = ("edges", "edge_values", "edge_features", "feature_dtype")


@dataclass(frozen=True)
class TypeEnds:
    """The nodes that a type's edges lead between."""

    sources: int
    """Nodes of the source's type."""
    destinations: int
    base: int
    """What is added to a source: destinations come first in the graph of the edges."""
    times: Mapping[str, NDArray[np.int64]]
    """Times of the sources by name, which edges have of them."""

    @property
    def vertices(self) -> int:
        """Vertices of the graph of the edges."""
        return self.base + self.sources if self.base else max(self.sources, self.destinations)


class TypeEdges:
    """The edges of one type: a source of pairs, or a dictionary of that and of their values.

    Raises `InputError` for what is neither.
    """

    def __init__(self, edge_type: EdgeType, given: Any, ends: TypeEnds, most: int) -> None:
        spec = given if isinstance(given, Mapping) else {"edges": given}
        self.name, self._ends, self._most = " ".join(edge_type), ends, most
        self._edge_type = edge_type
        for key in spec.keys() - set(EDGE_KEYS):
            raise self._refused(f"a dictionary of {', '.join(EDGE_KEYS)}", key)
        if spec.get("edges") is None:
            raise self._refused("`edges`, and perhaps values of them", "none")
        self._source = spec["edges"]
        self._tables = self._tables_of()
        own: dict[str, Kind] = {WEIGHT: "f32"} if self._is_weighted() else {}
        own |= dict.fromkeys(ends.times, "i64")
        values, features = spec.get("edge_values"), spec.get("edge_features")
        with self.naming():
            self.store = EdgeStore.of(values, features, spec.get("feature_dtype"), own=own)
            if self.has_values:
                read_twice(spec["edges"])

    @property
    def has_values(self) -> bool:
        """Whether anything is stored with the edges, which are read once more for that."""
        features = self.store.features.features
        some = isinstance(features, Mapping) and any(one is not None for one in features.values())
        return bool(self.store.values or self.store.own) or some

    @property
    def held_bytes(self) -> int:
        """What reading them holds, beside batches."""
        return 0 if self._tables is None else reader_bytes(self._tables)

    def pairs(self) -> Iterator[tuple[Array, Array]]:
        """The edges, as vertices of their graph."""
        return ((src, dst) for src, dst, _ in self._parts())

    def with_values(self) -> Iterator[tuple[Array, ...]]:
        """The edges once more, with the columns that are their own: a weight, times of sources."""
        for src, dst, weights in self._parts():
            times = (times[src - self._ends.base] for times in self._ends.times.values())
            yield (src, dst, *weights, *times)

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Has errors say which type they are of."""
        try:
            yield
        except InputError as error:
            if self.name in str(error):
                raise
            raise InputError.of("build the edges", self.name, got=error) from error

    def _tables_of(self) -> list[Table] | None:
        """The tables that have the edges, if any; makes a pair of an array of shape (2, E)."""
        tables = tables_of(self._source)
        if tables is not None:
            return tables
        files = as_files(self._source)
        if files is not None:
            expected = f"arrays (src, dst) or tables ({', '.join(TABLE_SUFFIXES)})"
            raise self._refused(expected, ", ".join(files))
        if getattr(self._source, "ndim", None) == 2:
            index = np.asarray(self._source)
            if index.shape[0] != 2:
                raise self._refused("shape (2, E)", index.shape)
            self._source = (index[0], index[1])
        return None

    def _is_weighted(self) -> bool:
        """Whether the edges have a third column."""
        if self._tables is not None:
            return any(len(table.choose(None, None)[0]) > 2 for table in self._tables)
        batches = as_batches(self._source)
        first = next(batches, None)
        if isinstance(self._source, Iterator):
            self._source = batches if first is None else chain([first], batches)
        return first is not None and len(first) > 2

    def _read(self) -> Iterator[Any]:
        if self._tables is not None:
            return iter(read_batches(self._tables, None, self._most))
        return as_batches(self._source)

    def _parts(self) -> Iterator[tuple[Array, Array, list[Array]]]:
        """The edges some at a time, as vertices of their graph, with their weights."""
        weighted = WEIGHT in self.store.own
        for src, dst, *weights in self._read():
            if bool(weights) != weighted:
                raise self._refused("weights in every batch, or in none", "some")
            for start in range(0, len(src), BATCH_EDGES):
                part = slice(start, start + BATCH_EDGES)
                sources = self._nodes(src[part], "src", self._ends.sources)
                destinations = self._nodes(dst[part], "dst", self._ends.destinations)
                columns = [np.asarray(column[part]) for column in weights]
                yield sources + np.uint32(self._ends.base), destinations, columns

    def _nodes(self, given: Any, column: str, count: int) -> NDArray[np.uint32]:
        """Nodes of a type with so many."""
        nodes = to_endpoints(np.asarray(given), column)
        least, most = (int(nodes.min()), int(nodes.max())) if nodes.size else (0, -1)
        if least < 0 or most >= count:
            of = self._edge_type[0 if column == "src" else 2]
            expected = f"`{column}` from 0 to {count - 1}, the nodes of `{of}`"
            raise self._refused(expected, least if least < 0 else most)
        return nodes.astype(np.uint32)

    def _refused(self, expected: str, got: object) -> InputError:
        return InputError.of("build the edges", self.name, expected=expected, got=got)
