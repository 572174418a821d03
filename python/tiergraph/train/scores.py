"""How good predictions are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def score_name(classes: int) -> str:
    """The area under the ROC curve for two classes, accuracy for more."""
    return "roc_auc" if classes == 2 else "accuracy"


def score(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """`score_name` of logits of shape (n, C); from 0 to 1."""
    if logits.shape[1] == 2:
        return roc_auc(logits[:, 1] - logits[:, 0], labels)
    return accuracy(logits, labels)


def accuracy(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """The share of rows whose largest logit is the label's."""
    return float((logits.argmax(axis=1) == labels).mean()) if len(labels) else float("nan")


def roc_auc(values: NDArray[Any], labels: NDArray[np.int64]) -> float:
    """The chance that a positive's value is above a negative's, ties counting half.

    The Mann-Whitney statistic over mid-ranks; not a number where one class is absent.
    """
    positive = labels == 1
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if ones == 0 or zeros == 0:
        return float("nan")
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[inverse]
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))
