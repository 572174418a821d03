"""What a training run is told."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias

from ..checks import one
from ..errors import InputError

TaskName: TypeAlias = Literal["node", "link"]
ModelName: TypeAlias = Literal["sage", "gcn", "gat"]
NormName: TypeAlias = Literal["none", "batch", "layer"]

MODELS = ("sage", "gcn", "gat")
TASKS = ("node", "link")


@dataclass(frozen=True)
class TrainOptions:
    """One run; everything random in it follows from `seed`."""

    task: TaskName = "node"
    """Which class a vertex has, or which pairs of vertices are linked."""
    model: ModelName = "sage"
    """GraphSAGE, GCN or GAT, from PyG."""
    hidden: int = 128
    """Units of a hidden layer."""
    fanout: tuple[int, ...] = (25, 10)
    """One a layer, nearest hop first; -1 for all neighbours."""
    heads: int = 4
    """GAT's attention heads."""
    norm: NormName = "none"
    """Normalisation after each layer but the last."""
    dropout: float = 0.5
    """Dropout on what hidden layers give."""
    input_dropout: float = 0.0
    """Dropout on the features themselves."""
    normalize: bool = False
    """Rows of features are scaled to sum to 1 (bags of words)."""
    batch_size: int = 1024
    """Seeds a batch, or links."""
    epochs: int = 10
    """Epochs at most."""
    lr: float = 0.003
    """Adam's step size."""
    weight_decay: float = 0.0
    """Adam's L2 penalty."""
    patience: int | None = None
    """Epochs without a better validation score before a run stops."""
    seed: int = 0
    memory: int | None = None
    """Bytes for the loader that trains and what evaluates; None: three quarters of what is free."""
    threads: int | None = None
    """Threads that prepare batches; the machine's cores."""
    window: int | None = None
    """Batches that are prepared together and share reads; 4."""
    links: int = 100_000
    """Links that are drawn from the graph where none are given: for training, validation, test."""
    negatives: float = 1.0
    """Pairs that are no links, for each link that is trained on."""
    features: str = "x"
    """Which of the graph's features the model takes."""
    labels: str = "y"
    """Which of its labels are the classes: one a vertex, -1 for none."""
    splits: tuple[str, str, str] = ("train", "val", "test")
    """The splits that are trained on, validated and tested."""
    device: str = "cpu"
    """Where batches are made and trained on: `cpu`, `cuda` or `cuda:N`."""

    def __post_init__(self) -> None:
        one("device", self.device)
        if self.model not in MODELS:
            raise InputError.of("train the model", self.model, expected=", ".join(MODELS))
        if self.task not in TASKS:
            raise InputError.of("train for the task", self.task, expected=", ".join(TASKS))
        if self.links < 3 or self.negatives <= 0:
            raise InputError.of("train on links", expected="3 or more, and negatives above 0")
        if not self.fanout:
            raise InputError.of("train", expected="a fanout for each layer", got="none")
        counts = {"hidden": self.hidden, "heads": self.heads, "batch_size": self.batch_size}
        for name, count in counts.items():
            if count < 1:
                raise InputError.of("train with", name, expected="1 or more", got=count)

    def run(self) -> dict[str, Any]:
        """What decides the numbers of a run, and so must agree when it is resumed."""
        free = {"epochs", "patience", "memory", "threads", "window", "device"}
        return {f.name: asdict(self)[f.name] for f in fields(self) if f.name not in free}
