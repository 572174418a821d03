"""The same edges in every form that a build takes: arrays, batches, text, binary files, tables."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .graphs import EdgeList, Random, pick


@dataclass(frozen=True)
class Input:
    """What `build` is given: a source, the options that it needs, and what it loses or decides."""

    form: str
    source: Callable[[], Any]
    options: dict[str, Any]
    weighted: bool
    """Whether the weights come along."""


def random_input(random: Random, edges: EdgeList, folder: Path) -> Input:
    """`edges` in one of the forms that can hold them."""
    forms = [_arrays, _batches, _text, _table]
    if len(edges.src):
        forms += [_npy, _binary]
    return pick(random, forms)(random, edges, folder)


def _columns(edges: EdgeList) -> tuple[Any, ...]:
    columns = (edges.src, edges.dst)
    return columns if edges.weights is None else (*columns, edges.weights)


def _arrays(random: Random, edges: EdgeList, _: Path) -> Input:
    src, dst, *weights = _columns(edges)
    kinds: list[type[np.integer[Any]]] = [
        k for k in (np.uint32, np.int32, np.int64) if edges.least_vertices <= np.iinfo(k).max
    ]
    kind = pick(random, [*kinds, np.uint64])
    columns = (src.astype(kind), dst.astype(kind), *weights)
    if len(src) and random.random() < 0.2:
        columns = (*(column.tolist() for column in columns),)
    return Input("arrays", lambda: columns, {}, edges.weights is not None)


def _batches(random: Random, edges: EdgeList, _: Path) -> Input:
    columns, step = _columns(edges), int(random.integers(1, 700))

    def batches() -> Iterator[Any]:
        for start in range(0, len(edges.src), step):
            yield tuple(column[start : start + step] for column in columns)

    weighted = edges.weights is not None and len(edges.src) > 0
    return Input("batches", batches, {}, weighted)


def _text(random: Random, edges: EdgeList, folder: Path) -> Input:
    if not len(edges.src):
        return _arrays(random, edges, folder)
    delimiter = pick(random, [" ", "\t", ",", ";", "|", ", "])
    end = pick(random, ["\n", "\r\n"])
    header = random.random() < 0.4
    lines = []
    if random.random() < 0.4:
        lines.append("# a comment")
    if header:
        names = ("source", "target", "weight")[: len(_columns(edges))]
        lines.append(delimiter.join(names))
    rows = zip(*(column.tolist() for column in _columns(edges)), strict=True)
    lines += [delimiter.join(map(repr, row)) for row in rows]
    text = end.join(lines) + (end if random.random() < 0.8 else "")
    weighted = edges.weights is not None
    options: dict[str, Any] = {"format": "text"} if random.random() < 0.3 else {}
    if weighted:
        options["weights"] = "weight" if header else "3"
    if random.random() < 0.3:
        path = folder / "edges.csv.gz"
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path = folder / "edges.csv"
        path.write_bytes(text.encode())
    return Input(f"text ({delimiter!r})", lambda: path, options, weighted)


def _npy(random: Random, edges: EdgeList, folder: Path) -> Input:
    pairs = np.stack([edges.src, edges.dst], axis=1)
    if pairs.shape != (2, 2) and random.random() < 0.5:
        pairs = np.ascontiguousarray(pairs.T)
    path = folder / "edges.npy"
    np.save(path, pairs)
    return Input(f".npy {pairs.shape}", lambda: path, {}, False)


def _binary(random: Random, edges: EdgeList, folder: Path) -> Input:
    narrow = edges.least_vertices <= 2**32 and random.random() < 0.5
    path = folder / ("edges.u32" if narrow else "edges.u64")
    kind = np.uint32 if narrow else np.uint64
    np.stack([edges.src, edges.dst], axis=1).astype(kind).tofile(path)
    return Input(path.suffix, lambda: path, {}, False)


def _table(random: Random, edges: EdgeList, folder: Path) -> Input:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    names = [("src", "dst", "weight"), ("source", "target", "weight"), ("from", "to", "cost")]
    chosen = pick(random, names)[: len(_columns(edges))]
    table = pa.table(dict(zip(chosen, _columns(edges), strict=True)))
    options = {"columns": list(chosen)}
    if random.random() < 0.5:
        path = folder / "edges.parquet"
        pyarrow.parquet.write_table(table, path, row_group_size=int(random.integers(1, 3000)))
    else:
        path = folder / "edges.arrow"
        pyarrow.feather.write_feather(table, path)
    return Input(path.suffix, lambda: path, options, edges.weights is not None)
