"""A graph as CSR, read back from its raw blocks, so that peers get its order of vertices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Adjacency(NamedTuple):
    """CSR by rows that pull: an arc leads from its index to its row."""

    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]
    weights: NDArray[np.float32] | None


def adjacency(path: Path) -> Adjacency:
    """The graph of `path`, codec `raw`, at most 2^31 arcs: docs/format.md, "Raw blocks"."""
    info = json.loads((path / "manifest.json").read_text())
    size, vertices, weighted = info["block_bytes"], info["vertices"], info["weighted"]
    if weighted == "f64":
        raise ValueError(f'{path} has weights of f64; expected f32, as `weights="byte"` gives')
    # An undirected graph is its own transpose, and stored once.
    name = "in.blocks" if "in.blocks" in info["files"] else "out.blocks"
    blocks = np.memmap(path / name, dtype=np.uint8, mode="r")
    counts = np.zeros(vertices, dtype=np.int64)
    ids, weights = [], []
    for begin in range(0, len(blocks), size):
        words = np.asarray(blocks[begin : begin + size]).view(np.uint32)
        first, arcs, entries = int(words[4]), int(words[6]), int(words[8])
        table = words[16 : 16 + 2 * (entries + 1)].reshape(-1, 2)
        np.add.at(counts, first + table[:-1, 0].astype(np.int64), np.diff(table[:, 1]))
        rest = words[16 + 2 * (entries + 1) :]
        ids.append(rest[:arcs].astype(np.int32))
        if weighted == "f32":
            weights.append(rest[arcs + arcs % 2 :][:arcs].view(np.float32))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return Adjacency(
        indptr, np.concatenate(ids), np.concatenate(weights) if weighted == "f32" else None
    )


def order(path: Path) -> NDArray[np.uint32]:
    """The user's id of each vertex of the graph's own order; the graph was re-ordered."""
    return np.fromfile(path / "order.ids", dtype=np.uint32)
