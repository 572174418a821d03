"""An ordinary graph as loaders take batches of it: one type of nodes, one of edges."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ..arguments.checks import one
from ..errors import InputError
from ..graph import Graph
from ..inputs import (
    edge_features_of,
    edge_values_in,
    features_of,
    labels_of,
    masks_of,
    node_times_of,
    untyped,
)
from .collate import Collate
from .given import LoaderInput
from .options import Settings

OWN_NAMES = {"x", "y", "n_id", "num_nodes", "num_sampled_nodes", "degree", "batch"}
OWN_NAMES |= {"edge_index", "edge_attr", "e_id", "num_sampled_edges"}
OWN_NAMES |= {"input_id", "batch_size", "seed_time"}
"""Attributes of batches that values of edges cannot be called."""


class OrdinaryInput(LoaderInput):
    """A graph, the seeds of an epoch, and what batches of them have."""

    def __init__(
        self,
        graph: Graph,
        owned: bool,
        chosen: Any,
        input_time: Any,
        how: Settings,
    ) -> None:
        # PyG's `NumNeighbors` has the fanouts as values.
        get = getattr(how.num_neighbors, "get_values", lambda: how.num_neighbors)
        self._fanouts = one("num_neighbors", get())
        self._features = features_of(graph, how.features)
        self._edge_features = edge_features_of(graph, how.edge_features)
        self._edge_values = _edge_values(graph, how)
        _check_times(graph, how.time_attr)
        self.gathered_on_gpu = self._features is not None
        super().__init__(graph, owned, graph, untyped(chosen), input_time, how)

    @property
    def not_on_gpu(self) -> str | None:
        """What of this kernels do not sample; None if they do all."""
        others = {
            "neighbours drawn by weight": self.how.weight_attr,
            "neighbours drawn by time": self.how.time_attr,
            "features of edges": self._edge_features,
            "values of edges": self._edge_values,
            "disjoint trees": self.how.disjoint,
        }
        asked = [what for what, given in others.items() if given]
        return f"the GPU's sampler has no {asked[0]} yet" if asked else None

    @property
    def row_bytes(self) -> int:
        """Bytes from a row of the features to the next, as they are stored; 0 without features."""
        if self._features is None:
            return 0
        return int(self.graph.info()["features"][self._features]["stride"])

    @cached_property
    def collate(self) -> Collate:
        """What makes PyG's data of a batch's arrays."""
        how = self.how
        labels = labels_of(self.graph, self.how.labels)
        times = node_times_of(self.graph, how.time_attr)
        return Collate(
            node_types=[None],
            edge_types=[None],
            input_type=None,
            labels={} if labels is None else {None: labels},
            node_times={} if times is None else {None: times},
            masks={None: masks_of(self.graph)},
            disjoint=how.has_trees,
            **how.values(),
        )

    def _types(self) -> dict[str, Any]:
        used = {"features": self._edge_features, "values": self._edge_values}
        used |= self.how.values()
        edges = [{"fanouts": self._fanouts, **used}]
        return {"edges": edges, "features": [self._features], "inputs": [0]}


def _edge_values(graph: Graph, how: Settings) -> list[str]:
    """The names of the edges' values that batches come with, beside those they are sampled by."""
    info = graph.info()
    [names] = edge_values_in([(info, info["node_times"])], how.edge_values)
    for name in names:
        if name in OWN_NAMES:
            raise InputError.of(
                "load batches with the edges' values",
                name,
                expected="a name that batches do not use for something else",
                hint="`edge_values=[…]` takes those of other names, `edge_values=False` none",
            )
    return [name for name in names if name not in how.values().values()]


def _check_times(graph: Graph, name: str | None) -> None:
    """Refuses times that the graph does not have, before any seeds have some."""
    stored = graph.info()["edge_values"]
    if name is not None and stored.get(name) != "i64":
        known = ", ".join(other for other, kind in stored.items() if kind == "i64")
        raise InputError.of(
            "sample by the times",
            name,
            expected=f"one of {known}" if known else "a graph that stores some",
            hint="`tiergraph edges add` stores them with a graph",
        )
