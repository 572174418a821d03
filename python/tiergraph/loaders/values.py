"""Which of the values that a heterogeneous graph's types have batches are made of."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ..errors import InputError
from ..hetero import HeteroGraph
from ..inputs import edge_features_in
from .options import LoaderOptions, Sampling


@dataclass(frozen=True)
class EdgeValuesUsed:
    """What of the values of a type's edges batches are made of, by name."""

    weight_attr: str | None
    time_attr: str | None
    features: str | None

    def native(self) -> dict[str, str | None]:
        """What the native part is told."""
        return asdict(self)


@dataclass(frozen=True)
class ValuesUsed:
    """What of the values of all types batches are made of."""

    of_edges: list[EdgeValuesUsed]
    """By edge type; one without values of a name is sampled as if there were no such name."""
    timed: list[str]
    """The node types with times, where times are those of nodes."""

    @classmethod
    def of(cls, graph: HeteroGraph, how: Sampling, options: LoaderOptions) -> ValuesUsed:
        """Raises `InputError` for names that no type has."""
        infos = [graph.edge_info(edge_type) for edge_type in graph.edge_types]

        def named(what: str, name: str | None, kind: str) -> list[str | None]:
            has = [info["edge_values"].get(name) == kind for info in infos]
            if name is not None and not any(has):
                known = {n for info in infos for n, of in info["edge_values"].items() if of == kind}
                raise _unknown(what, name, known)
            return [name if here else None for here in has]

        weights = named("weights", how.weight_attr, "f32")
        chosen = options.edge_features
        has = [edge_features_in(info, chosen) for info in infos]
        if isinstance(chosen, str) and not any(has):
            raise _unknown(
                "features of edges", chosen, {n for i in infos for n in i["edge_features"]}
            )
        times = named("times", how.time_attr, "i64")
        timed = [t for t in graph.node_types if how.time_attr in graph.node_info(t)["node_times"]]
        return cls([EdgeValuesUsed(*used) for used in zip(weights, times, has, strict=True)], timed)


def _unknown(what: str, name: str, known: set[str]) -> InputError:
    """For a name that no type of edges has."""
    expected = f"one of {', '.join(sorted(known))}" if known else "a graph whose edges have some"
    return InputError.of(f"use the {what}", name, expected=expected)
