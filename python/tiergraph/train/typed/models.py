"""GraphSAGE over graphs with types of nodes and edges, as it is run on mini-batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ... import pyg
from ...errors import InputError
from ...hetero import EdgeType
from ..models import dropped, prepare
from ..options import TrainOptions

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import HeteroData


@dataclass(frozen=True)
class TypedShape:
    """The types of the graphs that a model takes."""

    widths: dict[str, int]
    """Columns of the features of each node type; 0 of one without."""
    edge_types: list[EdgeType]
    target: str
    """The node type that is classified."""


def build_typed_model(options: TrainOptions, shape: TypedShape, classes: int) -> Any:
    """GraphSAGE with means of `len(fanout)` layers, with weights of its own for every edge type.

    A layer maps a node's values and, for each type of edges into it, the mean of its neighbours',
    and sums all of these, as relational convolutions do (Schlichtkrull et al., 2018). Types without
    features begin with one learned vector each, of `hidden` units. The last layer is of the
    target's type alone.
    """
    if options.model != "sage":
        raise InputError.of(
            "train on a heterogeneous graph the model", options.model, expected="`sage`"
        )
    torch, nn = pyg.torch(), pyg.geometric("nn")
    trim = pyg.geometric("utils").trim_to_layer
    last = len(options.fanout) - 1
    types = list(shape.widths)

    class Layer(torch.nn.Module):  # type: ignore[name-defined,misc]
        """Values of nodes from those of the layer before, by type."""

        def __init__(self, widths: dict[str, int], number: int) -> None:
            super().__init__()
            hidden = number < last
            units = options.hidden if hidden else classes
            self.types = types if hidden else [shape.target]
            self.own = torch.nn.ModuleList(torch.nn.Linear(widths[t], units) for t in self.types)
            self.edge_types = [t for t in shape.edge_types if t[2] in self.types]
            self.convs = torch.nn.ModuleList(
                nn.SAGEConv((widths[t[0]], widths[t[2]]), units, root_weight=False, bias=False)
                for t in self.edge_types
            )
            self.norms = torch.nn.ModuleList(_norm(nn, options) for _ in self.types if hidden)

        def forward(self, x: dict[str, Tensor], edges: dict[EdgeType, Tensor]) -> dict[str, Tensor]:
            out = {t: own(x[t]) for t, own in zip(self.types, self.own, strict=True)}
            for edge_type, conv in zip(self.edge_types, self.convs, strict=True):
                source, _, target = edge_type
                out[target] = out[target] + conv((x[source], x[target]), edges[edge_type])
            if options.residual:
                alike = (t for t in self.types if x[t].shape == out[t].shape)
                out |= {t: out[t] + x[t] for t in alike}
            for t, norm in zip(self.types, self.norms, strict=False):
                if len(out[t]):
                    out[t] = norm(out[t])
            return out

    class TypedSage(torch.nn.Module):  # type: ignore[name-defined,misc]
        """The layers, and what types without features begin with."""

        def __init__(self) -> None:
            super().__init__()
            self.bare = [t for t, width in shape.widths.items() if width == 0]
            self.begins = torch.nn.Parameter(torch.empty(len(self.bare), options.hidden))
            torch.nn.init.normal_(self.begins)
            first = {t: width or options.hidden for t, width in shape.widths.items()}
            after = dict.fromkeys(types, options.hidden)
            self.layers = torch.nn.ModuleList(
                Layer(after if number else first, number) for number in range(last + 1)
            )

        def forward(self, batch: HeteroData) -> Tensor:
            x = {t: batch[t].x for t in types if t not in self.bare}
            x = {t: dropped(prepare(of, options), options, self.training) for t, of in x.items()}
            for name, begin in zip(self.bare, self.begins, strict=True):
                x[name] = begin.expand(batch[name].num_nodes, -1)
            edges = {t: batch[t].edge_index for t in shape.edge_types}
            nodes_by_hop = {t: batch[t].num_sampled_nodes for t in types}
            edges_by_hop = {t: batch[t].num_sampled_edges for t in shape.edge_types}
            for number, layer in enumerate(self.layers):
                x, edges, _ = trim(number, nodes_by_hop, edges_by_hop, x, edges)
                x = layer(x, edges)
                if number < last:
                    drop = torch.nn.functional.dropout
                    x = {t: drop(v.relu(), options.dropout, self.training) for t, v in x.items()}
            return x[shape.target][: batch[shape.target].batch_size]

    return TypedSage()


def _norm(nn: Any, options: TrainOptions) -> Any:
    """What follows a layer, of one type of nodes."""
    if options.norm == "batch":
        return nn.BatchNorm(options.hidden, allow_single_element=True)
    if options.norm == "layer":
        return nn.LayerNorm(options.hidden, mode="node")
    return pyg.torch().nn.Identity()
