"""What a graph has for training: checked before the first batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..graph import Graph
from ..inputs import positions_of

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


def split_positions(graph: Graph, name: str, labels: Labels) -> NDArray[np.int64]:
    """The labelled vertices of a split, as positions in `graph.ids`; none if it is not there."""
    if name not in graph.splits:
        return np.empty(0, dtype=np.int64)
    positions = positions_of(graph.splits[name])
    return positions.compress(labels[positions] != UNLABELLED)


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
