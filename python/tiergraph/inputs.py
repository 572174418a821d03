"""What loaders are told of a graph: its seeds, features, labels and times."""

from __future__ import annotations

import os
from collections.abc import Collection, Container, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arguments.arrays import to_ids
from .errors import InputError
from .graph import Graph, open

PathLike = str | os.PathLike[str]

Placement: TypeAlias = (
    Literal["unified", "topology", "features", "topology/features", "features/topology"] | float
)

Chosen: TypeAlias = str | bool | None
"""Features by name; True for those of the usual name, if there are such; False or None for none."""

ChosenSome: TypeAlias = str | Sequence[str] | bool | None
"""Values by one name or several; True for all that there are; False or None for none."""


def graph_of(given: Any) -> Graph:
    """An opened graph, or that at a path, which is then opened."""
    if isinstance(given, Graph):
        return given
    if not isinstance(given, str | os.PathLike):
        raise InputError.of(
            "load batches of",
            type(given).__name__,
            expected="an opened graph or its path",
            hint='`tiergraph.build(data, "g.tg")` stores PyG\'s `Data` as a graph',
        )
    return open(given)


def seeds_of(graph: Graph, chosen: ArrayLike | str | None) -> NDArray[np.uint64]:
    """Vertex ids from ids, a mask, a split's name, or None for all."""
    if chosen is None:
        return graph.ids
    if isinstance(chosen, str):
        if chosen not in graph.splits:
            names = ", ".join(graph.splits) or "no split"
            raise InputError.of("use the split", chosen, expected=f"one of {names}")
        return _ids_at(graph, positions_of(graph.splits[chosen]))
    seeds = np.asarray(chosen)
    if seeds.ndim == 0:
        raise not_a_batch_size("input_nodes", "vertex ids, a mask or the name of a split", chosen)
    if seeds.dtype != np.bool_:
        return to_ids(seeds, "input_nodes")
    if seeds.shape != (graph.vertices,):
        raise InputError.of(
            "use", "input_nodes", expected=f"a mask of shape ({graph.vertices},)", got=seeds.shape
        )
    return _ids_at(graph, positions_of(seeds))


def _ids_at(graph: Graph, positions: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The ids at positions in the graph's order; ids that are positions need no array of all."""
    return graph.ids.take(positions) if graph.has_own_ids else positions.view(np.uint64)


def places_in(graph: Graph, ids: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The positions of ids in the graph's order, for ids that it has."""
    return np.searchsorted(graph.ids, ids) if graph.has_own_ids else ids.astype(np.int64)


def positions_of(split: NDArray[Any]) -> NDArray[np.int64]:
    """The positions that a mask or a list of positions means."""
    return np.flatnonzero(split) if split.dtype == np.bool_ else split.astype(np.int64)


def not_a_batch_size(name: str, expected: str, got: Any) -> InputError:
    """For a number in the place of something else by position."""
    hint = "the batch size goes by its name, as in PyG: `batch_size=…`"
    return InputError.of("use", name, expected=expected, got=got, hint=hint)


def features_of(graph: Graph, chosen: Chosen) -> str | None:
    """Which features batches come with: those asked for, which must be there, or `x`."""
    return _chosen(chosen, "x", graph.features)


def edge_features_of(graph: Graph, chosen: Chosen) -> str | None:
    """Which features of edges batches come with: those asked for, or `edge_attr`."""
    return _chosen(chosen, "edge_attr", graph.info()["edge_features"])


def edge_features_in(info: Mapping[str, Any], chosen: Chosen) -> str | None:
    """As `edge_features_of`, of an edge type, which may lack those asked for."""
    name = _chosen(chosen, "edge_attr", info["edge_features"])
    return name if name in info["edge_features"] else None


def edge_values_in(
    infos: Sequence[tuple[Mapping[str, Any], Collection[str]]], chosen: ChosenSome
) -> list[list[str]]:
    """The names of the edges' values that batches come with, for each type of edges.

    `infos` has what is stored with the edges of each type, and the names of the times of nodes that
    they lead from, which are stored as edges' too, but are no values of edges. Raises `InputError`
    for a name that no type has.
    """
    has = [[name for name in info["edge_values"] if name not in times] for info, times in infos]
    if chosen is None or isinstance(chosen, bool):
        return has if chosen else [[] for _ in has]
    wanted = [chosen] if isinstance(chosen, str) else list(dict.fromkeys(chosen))
    known = sorted({name for names in has for name in names})
    for name in wanted:
        if name not in known:
            expected = f"one of {', '.join(known)}" if known else "a graph that stores some"
            raise InputError.of("use the values of edges", name, expected=expected)
    return [[name for name in names if name in wanted] for names in has]


def _chosen(chosen: Chosen, usual: str, there: Container[str]) -> str | None:
    if isinstance(chosen, str):
        return chosen
    return usual if chosen and usual in there else None


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


def labels_of(graph: Graph, name: Chosen) -> NDArray[Any] | None:
    """One value a vertex, in the user's order, mapped from its file.

    Those of a name; `y`, where there are such, for None or True; none for False.
    """
    if name is False or (not isinstance(name, str) and "y" not in graph.labels):
        return None
    name = name if isinstance(name, str) else "y"
    if name not in graph.labels:
        names = ", ".join(graph.labels) or "no labels"
        raise InputError.of("use the labels", name, expected=f"one of {names}")
    return np.asarray(graph.labels[name])


def masks_of(graph: Graph) -> dict[str, NDArray[Any]]:
    """The splits that are stored as masks, mapped from their files, by PyG's names for them."""
    splits = {name: np.asarray(graph.splits[name]) for name in graph.splits}
    return {f"{name}_mask": split for name, split in splits.items() if split.dtype == np.bool_}


def for_losses(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels as losses want them: integers as int64."""
    return labels.astype(np.int64) if labels.dtype.kind in "iub" else labels


def untyped(chosen: Any) -> Any:
    """Seeds of a graph without types as PyG takes them too: `(None, ids or a mask)`."""
    pair = isinstance(chosen, tuple) and len(chosen) == 2 and chosen[0] is None
    return chosen[1] if pair else chosen


def check_sampling(replace: bool, subgraph_type: str) -> None:
    """Refuses what is sampled otherwise here than the caller means."""
    if replace:
        raise InputError.of("sample with replacement", expected="replace=False", got="replace=True")
    if subgraph_type != "directional":
        raise InputError.of("sample a subgraph", subgraph_type, expected="`directional`")
