"""An ordinary graph as loaders take batches of it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments.checks import one
from ..graph import Graph
from ..handles import without
from ..inputs import (
    edge_features_of,
    features_of,
    graph_of,
    labels_of,
    node_times_of,
    seeds_of,
    times_of,
)
from .collate import NodeCollate
from .options import LoaderOptions, Sampling


class OrdinaryInput:
    """A graph, the seeds of an epoch, and what batches of them have."""

    def __init__(
        self,
        graph: Any,
        input_nodes: Any,
        input_time: Any,
        how: Sampling,
        options: LoaderOptions,
    ) -> None:
        self._how, self._options = how, options
        self._fanouts = one("num_neighbors", how.num_neighbors)
        self._owned = not isinstance(graph, Graph)
        self.graph = graph_of(graph)
        self._input_nodes, self._input_time = input_nodes, input_time
        if not isinstance(input_nodes, str | None):
            self._input_nodes = self.seeds
        # What cannot be loaded is told at once.
        _ = self.seeds, self.collate, self.times

    @property
    def path(self) -> str:
        """Where the graph is."""
        return self.graph.path

    @property
    def not_on_gpu(self) -> str | None:
        """What of this kernels do not sample; None if they do all."""
        features = edge_features_of(self.graph, self._options.edge_features)
        others = {
            "neighbours drawn by weight": self._how.weight_attr,
            "neighbours drawn by time": self._how.time_attr,
            "features of edges": features,
            "disjoint trees": self._how.disjoint,
        }
        asked = [what for what, given in others.items() if given]
        return f"the GPU's sampler has no {asked[0]} yet" if asked else None

    @property
    def gathered_on_gpu(self) -> bool:
        """Whether kernels gather the features of what the CPU samples of this."""
        return features_of(self.graph, self._options.features) is not None

    @cached_property
    def seeds(self) -> NDArray[np.uint64]:
        """The seeds of an epoch, as vertex ids."""
        return seeds_of(self.graph, self._input_nodes)

    @cached_property
    def collate(self) -> NodeCollate:
        """What makes PyG's data of a batch's arrays."""
        how = self._how
        labels = labels_of(self.graph, self._options.labels)
        times = node_times_of(self.graph, how.time_attr)
        return NodeCollate(labels, times, how.weight_attr, how.time_attr)

    @cached_property
    def times(self) -> NDArray[np.int64] | None:
        """The seeds' times."""
        times, of_nodes = self._input_time, self.collate.node_times
        if of_nodes is not None and times is None:
            places = np.searchsorted(np.asarray(self.graph.ids), self.seeds)
            times = of_nodes.take(places, mode="clip")
        return times_of(self._how.time_attr, times, len(self.seeds))

    def native(self) -> dict[str, Any]:
        """What the native part is told."""
        return (
            self._how.native()
            | self._options.native()
            | {
                "num_neighbors": self._fanouts,
                "features": features_of(self.graph, self._options.features),
                "edge_features": edge_features_of(self.graph, self._options.edge_features),
            }
        )

    def close(self) -> None:
        """Lets go of what this opened."""
        if self._owned:
            self.graph.close()

    def __getstate__(self) -> dict[str, Any]:
        return without(self.__dict__, "seeds", "collate", "times")
