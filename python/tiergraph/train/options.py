"""What a training run is told."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, TypeAlias

from ..arguments.checks import one
from ..arguments.sizes import to_bytes
from ..errors import InputError

TaskName: TypeAlias = Literal["node", "link"]
ModelName: TypeAlias = Literal["sage", "gcn", "gat"]
NormName: TypeAlias = Literal["none", "batch", "layer"]
ScheduleName: TypeAlias = Literal["none", "cosine", "step"]
ClassWeights: TypeAlias = Literal["balanced"] | tuple[float, ...] | None

MODELS = ("sage", "gcn", "gat")
TASKS = ("node", "link")
NORMS = ("none", "batch", "layer")
SCHEDULES = ("none", "cosine", "step")

HOW_A_GPU_READS = re.compile(r"^gpu(:(auto|coupled|coupled-cache))?(:|$)")
"""What a GPU's way to read begins with, before the drives."""

MOST_SEEDS = 1024
"""Seeds of a batch where nobody says, at most."""
LEAST_SEEDS = 8
"""And at least."""
STEPS = 10
"""Steps that an epoch has where nobody says how large batches are, unless these would be tiny."""


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
    residual: bool = False
    """Whether what enters a layer is added to its result, mapped where widths differ."""
    dropout: float = 0.5
    """Dropout on what hidden layers give."""
    input_dropout: float = 0.0
    """Dropout on the features themselves."""
    normalize: bool = False
    """Rows of features are scaled to sum to 1 (bags of words)."""
    batch_size: int | None = None
    """Seeds a batch, or links; None: up to 1,024, and so few that an epoch has 10 steps."""
    epochs: int = 10
    """Epochs at most."""
    evaluate_every: int = 1
    """Epochs from one validation to the next; the last epoch is always validated."""
    lr: float = 0.003
    """Adam's step size."""
    schedule: ScheduleName = "none"
    """How the step size falls: not at all, to 0 along a cosine over `epochs`, or by steps."""
    step_epochs: int | None = None
    """Epochs from one step to the next; a third of `epochs`."""
    step_factor: float = 0.1
    """What a step multiplies the step size by."""
    warmup: int = 0
    """Epochs in which the step size grows from 0 before anything else."""
    class_weights: ClassWeights = None
    """What a class counts for in the loss: a number a class, or `balanced`, the inverse of how
    often it is trained on."""
    weight_decay: float = 0.0
    """Adam's L2 penalty."""
    patience: int | None = None
    """Epochs without a better validation score before a run stops."""
    seed: int = 0
    memory: int | str | None = None
    """Bytes, or `"4GiB"`, for the loader that trains and what evaluates; None: three quarters of
    what is free."""
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
    node_type: str | None = None
    """Of a heterogeneous graph, the type of the nodes that are classified; None: the only one that
    has the labels and the split that is trained on."""
    device: str = "cpu"
    """Where batches are made and trained on: `cpu`, `cuda` or `cuda:N`."""
    io: str = "auto"
    """The read engine, as `tiergraph.open` and, for what trains on a GPU, `NeighborLoader` take
    it."""

    def __post_init__(self) -> None:
        one("device", self.device)
        one("io", self.io)
        object.__setattr__(self, "memory", to_bytes(self.memory))
        chosen = (
            ("train the model", self.model, MODELS),
            ("train for the task", self.task, TASKS),
            ("train with the norm", self.norm, NORMS),
            ("train with the schedule", self.schedule, SCHEDULES),
        )
        for op, value, values in chosen:
            if value not in values:
                raise InputError.of(op, value, expected=", ".join(values))
        if self.links < 3 or self.negatives <= 0:
            raise InputError.of("train on links", expected="3 or more, and negatives above 0")
        if not self.fanout:
            raise InputError.of("train", expected="a fanout for each layer", got="none")
        self._check_numbers()
        if self.task == "link" and self.class_weights is not None:
            raise InputError.of("train with", "class_weights", expected="the task `node`")

    def _check_numbers(self) -> None:
        counts = ("hidden", "heads", "batch_size", "epochs", "evaluate_every", "step_epochs")
        least = dict.fromkeys(counts, 1) | {"patience": 1, "warmup": 0, "lr": 0}
        for name, smallest in least.items():
            value = getattr(self, name)
            if value is not None and not (value >= smallest and math.isfinite(value)):
                raise InputError.of("train with", name, expected=f"{smallest} or more", got=value)
        if not 0 < self.step_factor <= 1:
            raise InputError.of(
                "train with", "step_factor", expected="above 0, and 1 at most", got=self.step_factor
            )

    def for_seeds(self, seeds: int) -> TrainOptions:
        """These options with a batch size, for so many seeds or links."""
        if self.batch_size is not None:
            return self
        size = 1 << int(math.log2(max(seeds // STEPS, 1)))
        return replace(self, batch_size=min(max(size, LEAST_SEEDS), MOST_SEEDS))

    @property
    def memory_bytes(self) -> int | None:
        """`memory` in bytes."""
        return to_bytes(self.memory)

    @property
    def host_io(self) -> str:
        """The read engine of what the host reads beside a loader whose reads a GPU starts."""
        if self.io.partition(":")[0] != "gpu":
            return self.io
        drives = HOW_A_GPU_READS.sub("", self.io)
        if not drives or drives.startswith("modelled:"):
            return drives or "auto"
        return f"nvme:{drives}"

    @property
    def seeds_a_batch(self) -> int:
        """The batch size, which a run has by now."""
        assert self.batch_size is not None, "`for_seeds` was asked"
        return self.batch_size

    def run(self) -> dict[str, Any]:
        """What decides the numbers of a run, and so must agree when it is resumed."""
        free = {"epochs", "patience", "memory", "threads", "window", "device", "io"}
        if self.schedule != "none":
            free -= {"epochs"}
        return {f.name: asdict(self)[f.name] for f in fields(self) if f.name not in free}
