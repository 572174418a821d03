"""Inference over the whole graph, layer by layer, out of core: no sampling, no repeated work.

Each layer is one linear map a vertex and one pass over the edges (`Graph.propagate`) for every few
columns. Two values a vertex and hidden unit are in memory; features are streamed. GCN and GraphSAGE
with means are sums over neighbours of a linear map, so the map goes first; attention is not, so GAT
is evaluated on batches.

The values of all vertices lie in host memory, or on the GPU that the model is on: then nothing but
the features of a graph that its memory does not hold passes between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import pyg
from ..graph import Graph
from .models import prepare
from .options import TrainOptions

if TYPE_CHECKING:
    from torch import Tensor

Watch: TypeAlias = Callable[[int, int], object]
"""`(steps done, steps)`."""
Block: TypeAlias = "tuple[slice | Tensor, Tensor]"
"""Positions of some vertices in `Graph.ids`, and their rows."""

READING_BYTES = 16 << 20
"""Pages of features while they are read."""


@dataclass(frozen=True)
class Place:
    """Where the values of all vertices lie, and how much goes over at a time."""

    is_gpu: bool
    rows: int
    """Vertices whose values are mapped at a time."""
    columns: int
    """Columns that go over the edges at a time."""


HOST = Place(is_gpu=False, rows=1 << 13, columns=16)
GPU = Place(is_gpu=True, rows=1 << 16, columns=64)


def supports(graph: Graph, options: TrainOptions) -> bool:
    """Whether this model can be evaluated so, on this graph."""
    return options.model in ("sage", "gcn") and "tiles" in graph.info()["layouts"]


def array_bytes(
    vertices: int, options: TrainOptions, classes: int, features: int, place: Place = HOST
) -> int:
    """Memory of `infer`'s own: matrices of a layer and the last, what goes over edges, and rows."""
    units = max(options.hidden, classes)
    mapped = min(place.rows, vertices) * (2 * max(features, units) + 2 * units)
    return 4 * (vertices * (3 * units + 2 * min(place.columns, units)) + mapped)


def graph_bytes(graph: Graph, options: TrainOptions) -> int:
    """Memory that `infer` has the graph hold, which keeps the checksums of features from now on."""
    graph.features[options.features].read(graph.ids[:1])
    return int(graph.info()["reserved_bytes"]) + READING_BYTES + graph.propagate_bytes(HOST.columns)


@dataclass(frozen=True)
class Inference:
    """What is evaluated, and where the values of all vertices lie meanwhile."""

    graph: Graph
    options: TrainOptions
    place: Place
    kept_rows: Callable[[int], Iterator[Block] | None] = lambda _most: None
    """Features where a loader has them on the GPU, in blocks of so many vertices at most."""

    def logits(self, model: Any, watch: Watch | None = None) -> Tensor:
        """The logits of all vertices, float32 of shape (|V|, C), in the order of `graph.ids`.

        They lie where `place` says. `watch` is told of blocks of vertices that were mapped, and of
        passes over the edges.
        """
        model.eval()
        with pyg.torch().no_grad():
            return _Layers(self, model, watch).logits()


class _Layers:
    """One evaluation: what goes over all vertices and all edges."""

    def __init__(self, over: Inference, model: Any, watch: Watch | None) -> None:
        torch = pyg.torch()
        self.graph, self._over, self._model, self._watch = over.graph, over, model, watch
        self._device = next(model.parameters()).device
        self.place = self._device if over.place.is_gpu else torch.device("cpu")
        degrees = self.graph.degrees("in").astype(np.float32)
        self.degrees = torch.from_numpy(degrees).to(self.place)
        self._done, self._steps = 0, sum(map(self._steps_of, model.convs))

    def logits(self) -> Tensor:
        """As `Inference.logits`."""
        values: Tensor | None = None
        for number, conv in enumerate(self._model.convs):
            layer = _gcn if self._over.options.model == "gcn" else _sage
            sums = layer(self, conv, self._told(self._entering(values)))
            if self._over.options.residual:
                for rows, h in self._entering(values):
                    sums[rows] += self._model.skips[number](h).to(self.place)
            if number + 1 < len(self._model.convs):
                for rows in self._slices():
                    part = self._model.norms[number](sums[rows].to(self._device))
                    sums[rows] = self._model.act(part).to(self.place)
            values = sums
        assert values is not None, "a model has layers"
        return values

    def _slices(self) -> Iterator[slice]:
        """All vertices, so many at a time as are mapped together."""
        vertices, rows = self.graph.vertices, self._over.place.rows
        for first in range(0, vertices, rows):
            yield slice(first, min(vertices, first + rows))

    def _entering(self, values: Tensor | None) -> Iterator[Block]:
        """What enters a layer, on the model's device: the last one's `values`, or the features."""
        torch, options = pyg.torch(), self._over.options
        kept = None
        if values is None and self._over.place.is_gpu:
            kept = self._over.kept_rows(self._over.place.rows)
        if kept is not None:
            yield from ((positions, prepare(x, options)) for positions, x in kept)
            return
        for rows in self._slices():
            if values is not None:
                yield rows, values[rows].to(self._device)
            else:
                read = self.graph.features[options.features].read(self.graph.ids[rows])
                yield rows, prepare(torch.from_numpy(read).to(self._device), options)

    def matrix(self, columns: int) -> Tensor:
        """Room for values of all vertices."""
        shape = (self.graph.vertices, columns)
        room: Tensor = pyg.torch().empty(shape, dtype=pyg.torch().float32, device=self.place)
        return room

    def add_neighbours(self, values: Tensor, to: Tensor, share: Tensor | None = None) -> None:
        """Adds to each vertex's row of `to` the sum of `values` over its in-neighbours, scaled."""
        at_once = self._over.place.columns
        for first in range(0, values.shape[1], at_once):
            columns = slice(first, first + at_once)
            sums = self._propagated(values[:, columns].contiguous())
            to[:, columns] += sums if share is None else sums.mul_(share)
            self._tell()

    def _propagated(self, values: Tensor) -> Tensor:
        if self._over.place.is_gpu:
            sums: Tensor = self.graph.propagate(values)
            return sums
        return pyg.torch().from_numpy(self.graph.propagate(values.numpy()))

    def _steps_of(self, conv: Any) -> int:
        """Blocks of a layer, and passes."""
        place, columns = self._over.place, int(conv.out_channels)
        return -(-self.graph.vertices // place.rows) - (-columns // place.columns)

    def _told(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """The blocks; each is done when the next one is asked for."""
        for block in blocks:
            yield block
            self._tell()

    def _tell(self) -> None:
        # Loaders may give smaller blocks.
        self._done = min(self._done + 1, self._steps)
        if self._watch is not None:
            self._watch(self._done, self._steps)


def _gcn(of: _Layers, conv: Any, blocks: Iterator[Block]) -> Tensor:
    """D^-1/2 (A + I) D^-1/2 H W + b (Kipf and Welling, 2017)."""
    scale = (of.degrees + 1).rsqrt()[:, None]
    mapped = of.matrix(conv.out_channels)
    for rows, h in blocks:
        mapped[rows] = conv.lin(h).to(of.place) * scale[rows]
    of.add_neighbours(mapped, mapped)
    mapped *= scale
    mapped += conv.bias.to(of.place)
    return mapped


def _sage(of: _Layers, conv: Any, blocks: Iterator[Block]) -> Tensor:
    """W_l mean(H of neighbours) + b + W_r H (Hamilton, Ying, Leskovec, 2017)."""
    share = 1 / of.degrees.clamp(min=1)[:, None]
    mapped, own = of.matrix(conv.out_channels), of.matrix(conv.out_channels)
    for rows, h in blocks:
        mapped[rows] = (h @ conv.lin_l.weight.T).to(of.place)
        own[rows] = conv.lin_r(h).to(of.place)
    of.add_neighbours(mapped, own, share)
    own += conv.lin_l.bias.to(of.place)
    return own
