"""PyG's models, as they are run on mini-batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import pyg
from .options import TrainOptions

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data


def build_model(options: TrainOptions, features: int, classes: int) -> Any:
    """GraphSAGE, GCN or GAT of `len(fanout)` layers, from `torch_geometric.nn.models`."""
    models = pyg.geometric("nn").models
    shape: dict[str, Any] = {
        "in_channels": features,
        "hidden_channels": options.hidden,
        "num_layers": len(options.fanout),
        "out_channels": classes,
        "dropout": options.dropout,
        "norm": None if options.norm == "none" else f"{options.norm}_norm",
    }
    if options.norm == "layer":
        shape["norm_kwargs"] = {"mode": "node"}
    if options.model == "gcn":
        # `gcn_edges` normalises by degrees of the whole graph, which a batch does not show.
        model = models.GCN(**shape, normalize=False)
    elif options.model == "gat":
        model = models.GAT(**shape, heads=options.heads)
    else:
        model = models.GraphSAGE(**shape)
    return residual(model) if options.residual else model


def residual(model: Any) -> Any:
    """`model` with what enters each layer added to the layer's sums, before norm and activation.

    As in He et al., 2016: as it is where widths agree, by a linear map where they do not. The map
    of a layer is `skips[i]`; everything else is the model's.
    """
    torch = pyg.torch()
    trim = pyg.geometric("utils").trim_to_layer
    last = len(model.convs) - 1
    hidden = [model.hidden_channels] * last
    # Hidden layers of attention give their heads side by side, as wide as others in all.
    widths = list(zip([model.in_channels, *hidden], [*hidden, model.out_channels], strict=True))

    class Residual(torch.nn.Module):  # type: ignore[name-defined,misc]
        """A PyG model's layers, with a way past each."""

        def __init__(self) -> None:
            super().__init__()
            self.convs, self.norms, self.act = model.convs, model.norms, model.act
            self.dropout = model.dropout
            self.skips = torch.nn.ModuleList(
                torch.nn.Identity()
                if entering == leaving
                else torch.nn.Linear(entering, leaving, bias=False)
                for entering, leaving in widths
            )

        def forward(
            self,
            x: Tensor,
            edge_index: Tensor,
            num_sampled_nodes_per_hop: list[int],
            num_sampled_edges_per_hop: list[int],
            edge_weight: Tensor | None = None,
        ) -> Tensor:
            weights = {} if edge_weight is None else {"edge_weight": edge_weight}
            nodes, edges = num_sampled_nodes_per_hop, num_sampled_edges_per_hop
            for i, (conv, skip) in enumerate(zip(self.convs, self.skips, strict=True)):
                x, edge_index, weight = trim(
                    i, nodes, edges, x, edge_index, weights.get("edge_weight")
                )
                if weight is not None:
                    weights["edge_weight"] = weight
                x = conv(x, edge_index, **weights) + skip(x)
                if i < last:
                    x = self.norms[i](x)
                    x = self.act(x)
                    x = self.dropout(x)
            return x

    return Residual()


def forward(model: Any, batch: Data, x: Tensor, options: TrainOptions) -> Tensor:
    """The logits of a batch's seeds. Layers leave out what no seed depends on any more."""
    nodes, edges = batch.num_sampled_nodes, batch.num_sampled_edges
    edge_index, weights = batch.edge_index, {}
    if options.model == "gcn":
        edge_index, weight, edges = gcn_edges(batch)
        weights = {"edge_weight": weight}
    out = model(
        x,
        edge_index,
        num_sampled_nodes_per_hop=nodes,
        num_sampled_edges_per_hop=edges,
        **weights,
    )
    return out[: batch.batch_size]


def gcn_edges(batch: Data) -> tuple[Tensor, Tensor, list[int]]:
    """Edges with self-loops, GCN's weight of each, and their counts by hop.

    The weight is 1 / √((d_u + 1)(d_v + 1)) with the graph's degrees (Kipf and Welling, 2017). Where
    k of v's d_v neighbours were sampled, each stands for d_v / k: sums over samples are then right
    on average, and over whole neighbourhoods they are GCN's.
    """
    torch = pyg.torch()
    source, target = batch.edge_index
    degree = batch.degree.to(torch.float32)
    scale = (degree + 1).rsqrt()
    sampled = torch.bincount(target, minlength=len(degree)).clamp(min=1)
    weight = (degree / sampled * scale)[target] * scale[source]
    places, weights, counts = [], [], []
    node = edge = 0
    # A loop goes with the edges that its node was expanded by, and is left out when they are.
    for expanded, count in zip(batch.num_sampled_nodes, batch.num_sampled_edges, strict=False):
        loops = torch.arange(node, node + expanded, device=weight.device)
        places += [batch.edge_index[:, edge : edge + count], loops.expand(2, -1)]
        weights += [weight[edge : edge + count], scale[loops].square()]
        counts.append(count + expanded)
        node, edge = node + expanded, edge + count
    return torch.cat(places, dim=1), torch.cat(weights), counts


def dropped(x: Tensor, options: TrainOptions, training: bool) -> Tensor:
    """Features after the dropout that they have in training."""
    if options.input_dropout == 0:
        return x
    out: Tensor = pyg.torch().nn.functional.dropout(x, options.input_dropout, training)
    return out


def prepare(x: Tensor, options: TrainOptions) -> Tensor:
    """Features as the model takes them."""
    if not options.normalize:
        return x
    return x / x.sum(dim=-1, keepdim=True).clamp(min=1.0)
