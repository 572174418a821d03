"""What loaders are told: their options, and a graph's seeds, features, labels and times."""

from __future__ import annotations

import os
from typing import Any, Literal, TypeAlias, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import to_ids
from .errors import InputError
from .graph import Graph

PathLike = str | os.PathLike[str]

Placement: TypeAlias = Literal["unified", "topology", "features"] | float


class LoaderOptions(TypedDict, total=False):
    """What loaders may be told beyond what PyG's take; left out or None, the default."""

    seed: int | None
    """What everything random follows from, with the epoch's number; 0."""
    memory: int | str | None
    """Bound of what the loader holds, batches and cache included, `"2GiB"` or bytes; three quarters
    of what the machine has free."""
    threads: int | None
    """Threads that prepare batches; the machine's cores."""
    window: int | None
    """Batches that are prepared together and share reads; 4."""
    prefetch: int | None
    """Batches that may be begun beyond a window and not yet taken; a window for each thread. On a
    GPU: batches that are begun before the last is taken; 1, or 3 where rows are read."""
    placement: Placement | None
    """What is kept in memory where not all fits: what saves most reads (`unified`), neighbours
    first (`topology`), `features` first, or this share of the memory for features."""
    share_pages: bool | None
    """Whether a page is read once for all rows of a window on it; without, once a row."""
    presample: int | None
    """How many batches are sampled to see what is worth keeping; an epoch's."""
    direction: Literal["in", "out"] | None
    """Which neighbours are sampled: `in`, as PyG does, so that messages go along edges."""
    io: str | None
    """The read engine: `uring`, `posix`, or `auto`, which is the default."""
    features: str | None
    """Which of the graph's features become `x`; by default those named `x`, where there are."""
    labels: str | None
    """Which of its labels become `y`; by default those named `y`, where there are."""
    edge_features: str | None
    """Which features of edges become `edge_attr`; by default those named `edge_attr`."""
    device: str | None
    """Where batches are made and handed over: `cpu`, `cuda` or `cuda:N`. On a GPU, hot rows and
    neighbours stay in its memory, others in pinned memory of the host within `memory`; rows that
    fit neither are read from storage."""
    device_memory: int | str | None
    """Bound of GPU memory for neighbours, rows and the sampler; half of what is free."""
    multiprocessors: int | None
    """The most of the GPU's multiprocessors that batches are prepared on, in a green context, so
    that training has the others for itself; all. GPUs set groups apart (of 8 on an H100): `kept()`
    has what it came to. Without green contexts (before CUDA 12.5) batches are prepared on all, and
    a `FallbackWarning` says so."""


def seeds_of(graph: Graph, chosen: ArrayLike | str | None) -> NDArray[np.uint64]:
    """Vertex ids from ids, a mask, a split's name, or None for all."""
    ids = graph.ids
    if chosen is None:
        return ids
    if isinstance(chosen, str):
        if chosen not in graph.splits:
            names = ", ".join(graph.splits) or "no split"
            raise InputError.of("use the split", chosen, expected=f"one of {names}")
        return ids.take(positions_of(graph.splits[chosen]))
    seeds = np.asarray(chosen)
    if seeds.dtype != np.bool_:
        return to_ids(seeds, "input_nodes")
    if seeds.shape != ids.shape:
        raise InputError.of(
            "use", "input_nodes", expected=f"a mask of shape {ids.shape}", got=seeds.shape
        )
    return ids.take(positions_of(seeds))


def positions_of(split: NDArray[Any]) -> NDArray[np.int64]:
    """The positions that a mask or a list of positions means."""
    return np.flatnonzero(split) if split.dtype == np.bool_ else split.astype(np.int64)


def features_of(graph: Graph, options: LoaderOptions) -> str | None:
    """Which features batches come with: those asked for, which must be there, or `x`."""
    if "features" in options:
        return options["features"]
    return "x" if "x" in graph.features else None


def edge_features_of(graph: Graph, options: LoaderOptions) -> str | None:
    """Which features of edges batches come with: those asked for, or `edge_attr`."""
    if "edge_features" in options:
        return options["edge_features"]
    return "edge_attr" if "edge_attr" in graph.info()["edge_features"] else None


def node_times_of(graph: Graph, attribute: str | None) -> NDArray[np.int64] | None:
    """The nodes' times in the order of the ids, where the attribute names such."""
    if attribute is None or attribute not in graph.info()["node_times"]:
        return None
    return np.asarray(graph.labels[attribute])


def times_of(
    attribute: str | None, times: ArrayLike | None, seeds: int
) -> NDArray[np.int64] | None:
    """The seeds' times, which go with times of edges."""
    if attribute is None and times is None:
        return None
    if attribute is None or times is None:
        raise InputError.of(
            "sample by time",
            expected="`time_attr` and `input_time`",
            got="one without the other",
        )
    array = np.asarray(times)
    if array.shape != (seeds,) or array.dtype.kind not in "iu":
        raise InputError.of(
            "use",
            "input_time",
            expected=f"an integer for each of {seeds} seeds",
            got=f"{array.dtype} of shape {array.shape}",
        )
    return np.ascontiguousarray(array, dtype=np.int64)


def labels_of(graph: Graph, name: str | None) -> NDArray[Any] | None:
    """One value a vertex, in the user's order; integers as int64, as losses want them."""
    if name is None and "y" not in graph.labels:
        return None
    name = "y" if name is None else name
    if name not in graph.labels:
        names = ", ".join(graph.labels) or "no labels"
        raise InputError.of("use the labels", name, expected=f"one of {names}")
    labels = graph.labels[name]
    return labels.astype(np.int64) if labels.dtype.kind in "iub" else np.asarray(labels)


def check_sampling(replace: bool, subgraph_type: str) -> None:
    """Refuses what is sampled otherwise here than the caller means."""
    if replace:
        raise InputError.of("sample with replacement", expected="replace=False", got="replace=True")
    if subgraph_type != "directional":
        raise InputError.of("sample a subgraph", subgraph_type, expected="`directional`")
