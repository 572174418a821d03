"""Trained models as files: their values, the options they were made by, their graph's shape."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import pyg
from ..errors import FormatError, InputError
from ..graph import Graph, open
from ..hetero import HeteroGraph, open_hetero
from ..inputs import seeds_of
from . import checkpoint
from .data import check_features, shape_of
from .evaluate import Evaluator, Logits
from .models import build_model
from .options import TrainOptions
from .shares import Part, share
from .typed.evaluate import TypedEvaluator
from .typed.models import TypedShape, build_typed_model

KIND = "model"


@dataclass(frozen=True)
class SavedModel:
    """A model that `tiergraph train --save` wrote, ready to evaluate."""

    model: Any
    """The `torch.nn.Module`, in evaluation mode, on the CPU."""
    options: TrainOptions
    """What it was trained with, the batch size included."""
    features: int
    """Columns of the features that it takes."""
    outputs: int
    """What it gives for a vertex: classes, or for links the width of its vector."""
    graph: dict[str, Any]
    """The graph that it was trained on: `vertices`, `edges`, `directed`, `source`."""
    score: float | None
    """Of the validation split, as it was chosen by; None where there was none."""
    types: TypedShape | None = None
    """The types of the heterogeneous graphs that it takes; None of a model of ordinary ones."""

    def logits(
        self,
        graph: Graph | HeteroGraph | str | os.PathLike[str],
        vertices: ArrayLike | str | None = None,
        *,
        memory: int | None = None,
    ) -> Logits:
        """What the model gives for vertices of a graph, of which all neighbours count.

        Of a heterogeneous graph, for nodes of the type that is classified, of whose neighbours as
        many count as were trained with. `vertices` are ids, a mask, a split's name, or None for all
        in the order of `graph.ids`. float32 of shape (n, outputs). The graph may be another than
        the model's. Raises `InputError` if its types or widths of features are others,
        `BudgetError` where `memory` is too small.
        """
        io = graph.io if isinstance(graph, Graph) else "auto"
        options = replace(self.options, memory=memory, device="cpu", io=io)
        opened, evaluator = self._opened(graph, options)
        ids = np.asarray(opened.ids)
        wanted = seeds_of(opened, vertices)
        positions = np.searchsorted(ids, wanted)
        if (ids.take(positions, mode="clip") != wanted).any():
            raise InputError.of("evaluate the model on", "vertices", expected="ids of the graph")
        held = 8 * self.outputs * len(positions)
        nothing = Part(lambda _memory: 0)
        share(memory, held, nothing, evaluator.ways([positions]))
        return evaluator.logits(self.model, positions)

    def _opened(self, graph: Any, options: TrainOptions) -> tuple[Graph, Evaluator]:
        """The graph of the vertices that are evaluated, and what does it."""
        if self.types is not None:
            typed = graph if isinstance(graph, HeteroGraph) else open_hetero(graph)
            shape = shape_of(typed, self.types.target, options.features)
            if shape != self.types:
                raise InputError.of(
                    "evaluate the model on",
                    typed.path,
                    expected=f"types and features as {self.types}",
                    got=shape,
                )
            evaluator = TypedEvaluator(typed, shape.target, options, self.outputs)
            return typed[shape.target], evaluator
        opened = graph if isinstance(graph, Graph) else open(graph, threads=1)
        width = check_features(opened, options.features)
        if width != self.features:
            raise InputError.of(
                "evaluate the model on",
                opened.path,
                expected=f"{self.features} features",
                got=width,
            )
        return opened, Evaluator(opened, options, self.outputs)


def save(path: Path, state: dict[str, Any], options: TrainOptions, shape: dict[str, Any]) -> None:
    """Writes a model's values (`state`) for `load`; `shape` has the fields of `SavedModel`."""
    checkpoint.save(path, {"kind": KIND, "model": state, "options": asdict(options)} | shape)


def load(path: str | os.PathLike[str]) -> SavedModel:
    """The model that `tiergraph train --save` or `Trainer.save` wrote to `path`.

    Nothing in the file is run: it holds tensors, numbers and names. Raises `IoError` for what
    cannot be read, `FormatError` for what is no saved model.
    """
    state = checkpoint.read(Path(path), "read the model")
    if state.get("kind") != KIND:
        raise FormatError.of(
            "read the model",
            path,
            expected="a model that `Trainer.save` wrote",
            got="a checkpoint of a run" if "history" in state else "something else",
        )
    known = {field.name for field in fields(TrainOptions)}
    given = {name: value for name, value in state["options"].items() if name in known}
    options = TrainOptions(**given)
    types = TypedShape(**state["types"]) if "types" in state else None
    if types is None:
        model = build_model(options, state["features"], state["outputs"])
    else:
        model = build_typed_model(options, types, state["outputs"])
    try:
        model.load_state_dict(state["model"])
    except RuntimeError as error:
        raise FormatError.of("read the model", path, got=error) from error
    names = ("features", "outputs", "graph", "score")
    return SavedModel(model.eval(), options, **{name: state[name] for name in names}, types=types)


def classified(parts: Iterator[Logits], rows: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The likeliest class of each row of logits, int64, and its chance, float32: (rows,) both."""
    torch = pyg.torch()
    classes, confidence = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.float32)
    at = 0
    for logits in parts:
        chances = torch.from_numpy(logits).softmax(dim=1)
        best, number = chances.max(dim=1)
        classes[at : at + len(logits)] = number.numpy()
        confidence[at : at + len(logits)] = best.numpy()
        at += len(logits)
    return classes, confidence
