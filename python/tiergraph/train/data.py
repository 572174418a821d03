"""What a graph has for training: checked before the first batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..graph import Graph
from ..hetero import HeteroGraph
from ..inputs import positions_of
from .options import ClassWeights, TrainOptions
from .typed.models import TypedShape

UNLABELLED = -1

Labels = NDArray[np.int64]


def class_labels(graph: Graph, name: str) -> tuple[Labels, int]:
    """One class a vertex (-1 for none), in the order of `graph.ids`, and how many classes."""
    if name not in graph.labels:
        raise InputError.of(
            "train on labels",
            name,
            expected=f"one of {', '.join(graph.labels) or 'the labels (none)'}",
            hint="`tiergraph build --labels y.npy` stores them with a graph",
        )
    given = np.asarray(graph.labels[name])
    values = given.reshape(graph.vertices, -1)
    if values.shape[1] != 1:
        raise InputError.of("train on labels", name, expected="one a vertex", got=given.shape)
    values = values[:, 0]
    known = np.isfinite(values) if values.dtype.kind == "f" else np.ones(len(values), dtype=bool)
    labels = np.where(known, values, UNLABELLED).astype(np.int64)
    if (labels[known] != values[known]).any():
        raise InputError.of("train on labels", name, expected="class numbers", got=given.dtype)
    classes = int(labels.max(initial=UNLABELLED)) + 1
    if classes < 2:
        raise InputError.of("train on labels", name, expected="2 classes or more", got=classes)
    return labels, classes


def splits_of(graph: Graph, names: tuple[str, str, str], labels: Labels) -> list[NDArray[np.int64]]:
    """The labelled vertices to train on, validate and test, as positions in `graph.ids`.

    An empty name is no split; nor is the usual one where a graph has none to validate or test.
    """
    usual = ("train", "val", "test")
    found = []
    for purpose, name in zip(usual, names, strict=True):
        absent = name == "" or (name == purpose and name not in graph.splits)
        if purpose == "train" or not absent:
            found.append(_positions(graph, name, labels))
        else:
            found.append(np.empty(0, dtype=np.int64))
    if len(found[0]) == 0:
        raise InputError.of(
            "train on the split", names[0], expected="labelled vertices", got="none"
        )
    return found


def _positions(graph: Graph, name: str, labels: Labels) -> NDArray[np.int64]:
    """The labelled vertices of a split."""
    if name not in graph.splits:
        raise InputError.of(
            "use the split",
            name,
            expected=f"one of {', '.join(graph.splits) or 'the splits (none)'}",
            hint="`--splits train,val,test` says what to train on, validate and test",
        )
    positions = positions_of(graph.splits[name])
    return positions.compress(labels[positions] != UNLABELLED)


def class_weights(
    weights: ClassWeights, labels: Labels, classes: int
) -> NDArray[np.float32] | None:
    """What each class counts for in the loss, float32 of shape (C,); `labels` are trained on.

    `balanced` weighs a class by n / (C n_c) (King and Zeng, 2001): 1 on average over what is
    trained on. A class that is not trained on weighs nothing.
    """
    if weights is None:
        return None
    if weights == "balanced":
        counts = np.bincount(labels, minlength=classes)
        found = len(labels) / (np.count_nonzero(counts) * np.maximum(counts, 1))
        return np.where(counts > 0, found, 0).astype(np.float32)
    given = np.asarray(weights, dtype=np.float32)
    if given.shape != (classes,) or not (np.isfinite(given).all() and given.min() >= 0):
        raise InputError.of(
            "weigh the classes",
            expected=f"`balanced`, or {classes} numbers of 0 or more, one a class",
            got=", ".join(map(str, weights)),
        )
    return given


def check_features(graph: Graph, name: str) -> int:
    """The width of the features `name`."""
    if name not in graph.features:
        raise InputError.of(
            "train on features",
            name,
            expected=f"one of {', '.join(graph.features) or 'the features (none)'}",
            hint="`tiergraph build --features x.npy` stores them with a graph",
        )
    return graph.features[name].shape[1]


def target_of(graph: HeteroGraph, options: TrainOptions) -> str:
    """The type of the nodes that are classified.

    Raises `InputError` where none may be meant, or several.
    """
    if options.node_type is not None:
        return str(graph.node_info(options.node_type)["name"])
    infos = graph.info()["node_types"]
    train = options.splits[0]
    found = [
        info["name"]
        for info in infos
        if options.labels in info["labels"] and train in info["splits"]
    ]
    if len(found) != 1:
        raise InputError.of(
            "train on labels",
            options.labels,
            expected=f"one type of nodes with them and the split `{train}`",
            got=", ".join(found) or "none",
            hint="`--node-type` says which is classified" if found else None,
        )
    return str(found[0])


def shape_of(graph: HeteroGraph, target: str, features: str) -> TypedShape:
    """What a model of this graph takes. Raises `InputError` where no type has the features."""
    infos = {info["name"]: info["features"] for info in graph.info()["node_types"]}
    widths = {
        name: int(has[features]["dim"]) if features in has else 0 for name, has in infos.items()
    }
    if not any(widths.values()):
        known = sorted({name for has in infos.values() for name in has})
        raise InputError.of(
            "train on features", features, expected=f"one of {', '.join(known) or 'none'}"
        )
    return TypedShape(widths, graph.edge_types, target)
