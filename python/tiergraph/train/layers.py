"""Inference over the whole graph, layer by layer, out of core: no sampling, no repeated work.

Each layer is one linear map a vertex and one pass over the edges (`Graph.propagate`) for every
`COLUMNS` columns. Two values a vertex and hidden unit are in memory; features are streamed. GCN and
GraphSAGE with means are sums over neighbours of a linear map, so the map goes first; attention is
not, so GAT is evaluated on batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import pyg
from ..graph import Graph
from .models import prepare
from .options import TrainOptions

Floats = NDArray[np.floating[Any]]

ROWS = 1 << 13
"""Vertices whose values are mapped at a time."""
COLUMNS = 16
"""Columns that go over the edges at a time."""
READING_BYTES = 16 << 20
"""Pages of features while they are read."""


def supports(graph: Graph, options: TrainOptions) -> bool:
    """Whether this model can be evaluated so, on this graph."""
    return options.model in ("sage", "gcn") and "tiles" in graph.info()["layouts"]


def array_bytes(vertices: int, options: TrainOptions, classes: int, features: int) -> int:
    """Memory of `infer`'s own: matrices of a layer and the last, what goes over edges, and rows."""
    units = max(options.hidden, classes)
    mapped = min(ROWS, vertices) * (2 * max(features, units) + 2 * units)
    return 4 * (vertices * (3 * units + 2 * COLUMNS) + mapped)


def graph_bytes(graph: Graph, options: TrainOptions) -> int:
    """Memory that `infer` has the graph hold, which keeps the checksums of features from now on."""
    graph.features[options.features].read(graph.ids[:1])
    return int(graph.info()["reserved_bytes"]) + READING_BYTES + graph.propagate_bytes(COLUMNS)


def infer(graph: Graph, model: Any, options: TrainOptions) -> Floats:
    """The logits of all vertices, float32 of shape (|V|, C), in the order of `graph.ids`."""
    torch = pyg.torch()
    degrees = graph.degrees("in").astype(np.float32)
    device = next(model.parameters()).device
    model.eval()
    values: Floats | None = None
    with torch.no_grad():
        for number, conv in enumerate(model.convs):
            gcn = options.model == "gcn"
            layer = _Gcn(conv, degrees) if gcn else _Sage(conv, degrees)
            sums = layer.apply(graph, _blocks(graph, values, options, device))
            if options.residual:
                for rows, entering in _blocks(graph, values, options, device):
                    sums[rows] += model.skips[number](entering).cpu().numpy()
            values = sums
            if number + 1 < len(model.convs):
                for rows in _slices(len(values)):
                    part = torch.from_numpy(values[rows]).to(device)
                    values[rows] = model.act(model.norms[number](part)).cpu().numpy()
    assert values is not None, "a model has layers"
    return values


class _Gcn:
    """D^-1/2 (A + I) D^-1/2 H W + b (Kipf and Welling, 2017)."""

    def __init__(self, conv: Any, degrees: Floats) -> None:
        self.conv = conv
        self.scale = 1 / np.sqrt(degrees + 1)[:, None]

    def apply(self, graph: Graph, blocks: Iterator[tuple[slice, Any]]) -> Floats:
        mapped = np.empty((graph.vertices, self.conv.out_channels), dtype=np.float32)
        for rows, h in blocks:
            mapped[rows] = self.conv.lin(h).cpu().numpy() * self.scale[rows]
        _add_neighbours(graph, mapped, mapped)
        mapped *= self.scale
        mapped += self.conv.bias.cpu().numpy()
        return mapped


class _Sage:
    """W_l mean(H of neighbours) + b + W_r H (Hamilton, Ying, Leskovec, 2017)."""

    def __init__(self, conv: Any, degrees: Floats) -> None:
        self.conv = conv
        self.share = 1 / np.maximum(degrees, 1)[:, None]

    def apply(self, graph: Graph, blocks: Iterator[tuple[slice, Any]]) -> Floats:
        mapped = np.empty((graph.vertices, self.conv.out_channels), dtype=np.float32)
        own = np.empty_like(mapped)
        for rows, h in blocks:
            mapped[rows] = (h @ self.conv.lin_l.weight.T).cpu().numpy()
            own[rows] = self.conv.lin_r(h).cpu().numpy()
        _add_neighbours(graph, mapped, own, self.share)
        own += self.conv.lin_l.bias.cpu().numpy()
        return own


def _add_neighbours(graph: Graph, values: Floats, to: Floats, share: Floats | None = None) -> None:
    """Adds to each vertex's row of `to` the sum of `values` over its in-neighbours, scaled."""
    for first in range(0, values.shape[1], COLUMNS):
        columns = slice(first, first + COLUMNS)
        sums = graph.propagate(np.ascontiguousarray(values[:, columns]))
        to[:, columns] += sums if share is None else sums * share


def _blocks(
    graph: Graph, values: Floats | None, options: TrainOptions, device: Any
) -> Iterator[tuple[slice, Any]]:
    """The last layer's values, or the features, as tensors of some rows each on `device`."""
    torch = pyg.torch()
    for rows in _slices(graph.vertices):
        if values is not None:
            yield rows, torch.from_numpy(values[rows]).to(device)
        else:
            read = graph.features[options.features].read(graph.ids[rows])
            yield rows, prepare(torch.from_numpy(read), options).to(device)


def _slices(rows: int) -> Iterator[slice]:
    for first in range(0, rows, ROWS):
        yield slice(first, min(rows, first + ROWS))
