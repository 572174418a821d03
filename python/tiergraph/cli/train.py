"""`tiergraph train`: a PyG model on a graph, its score and where its time went."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn

from ..errors import InputError
from ..sizes import to_bytes
from ..train import LinkTrainer, Trainer, TrainOptions, curve
from ..train.trainer import Record
from .options import GraphPath, Json, Memory
from .output import print_fields, print_json, print_table, readable
from .progress import Live

DEFAULTS = TrainOptions()


def train(
    graph: GraphPath,
    task: Annotated[
        Literal["node", "link"], typer.Option(help="Classify vertices, or predict links.")
    ] = DEFAULTS.task,
    links: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="link: train, val and test in an .npz; default: drawn."),
    ] = None,
    draw_links: Annotated[
        int, typer.Option(min=3, help="link: how many are drawn from the graph.")
    ] = DEFAULTS.links,
    negatives: Annotated[
        float, typer.Option(min=0.0, help="link: pairs that are none, for each link.")
    ] = DEFAULTS.negatives,
    model: Annotated[
        Literal["sage", "gcn", "gat"], typer.Option(help="GraphSAGE, GCN or GAT, from PyG.")
    ] = DEFAULTS.model,
    layers: Annotated[
        int | None, typer.Option(min=1, help="Default: one for each fanout; the last one goes on.")
    ] = None,
    hidden: Annotated[int, typer.Option(min=1, help="Units of a hidden layer.")] = DEFAULTS.hidden,
    heads: Annotated[int, typer.Option(min=1, help="GAT's attention heads.")] = DEFAULTS.heads,
    norm: Annotated[
        Literal["none", "batch", "layer"], typer.Option(help="After each layer but the last.")
    ] = DEFAULTS.norm,
    fanout: Annotated[
        str, typer.Option(metavar="K,K", help="Neighbours a hop, nearest first; -1: all.")
    ] = "25,10",
    batch_size: Annotated[int, typer.Option(min=1, help="Seeds a batch.")] = DEFAULTS.batch_size,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs at most.")] = DEFAULTS.epochs,
    patience: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many without a better score.")
    ] = None,
    lr: Annotated[float, typer.Option(min=0.0, help="Adam's step size.")] = DEFAULTS.lr,
    dropout: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Of what hidden layers give.")
    ] = DEFAULTS.dropout,
    input_dropout: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Of the features themselves.")
    ] = DEFAULTS.input_dropout,
    weight_decay: Annotated[
        float, typer.Option(min=0.0, help="Adam's L2 penalty.")
    ] = DEFAULTS.weight_decay,
    normalize: Annotated[
        bool, typer.Option("--normalize", help="Scale rows of features to sum to 1.")
    ] = False,
    seed: Annotated[int, typer.Option(help="What everything random follows from.")] = 0,
    memory: Memory = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="That prepare batches; default: all cores.")
    ] = None,
    window: Annotated[
        int | None, typer.Option(min=1, help="Batches that are prepared together; default: 4.")
    ] = None,
    device: Annotated[
        str, typer.Option(help="Where batches are made and trained on: cpu, cuda, cuda:N.")
    ] = "cpu",
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Written after each epoch.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from --checkpoint, bit for bit.")
    ] = False,
    curve_path: Annotated[
        Path | None, typer.Option("--curve", metavar="FILE", help="Draw the run: .png, .svg, .pdf.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a PyG model to classify vertices or predict links, out of core."""
    if resume and checkpoint is None:
        raise InputError.of("resume", expected="--checkpoint FILE", got="none")
    if curve_path is not None:
        curve.check()
    if links is not None and task != "link":
        raise InputError.of("train on", links, expected="--task link")
    options = TrainOptions(
        task=task,
        links=draw_links,
        negatives=negatives,
        model=model,
        hidden=hidden,
        fanout=_fanouts(fanout, layers),
        heads=heads,
        norm=norm,
        dropout=dropout,
        input_dropout=input_dropout,
        normalize=normalize,
        batch_size=batch_size,
        epochs=epochs,
        lr=lr,
        weight_decay=weight_decay,
        patience=patience,
        seed=seed,
        memory=to_bytes(memory),
        threads=threads,
        window=window,
        device=device,
    )
    saved: Record = {"checkpoint": checkpoint, "resume": resume}
    if task == "link":
        trainer: Trainer = LinkTrainer(str(graph), options, links=links, **saved)
    else:
        trainer = Trainer(str(graph), options, **saved)
    with Steps(options.epochs) as steps:
        trainer.train(steps)
    if curve_path is not None:
        curve.draw(trainer.history, curve_path)
    report = trainer.report(str(graph))
    if as_json:
        print_json(report)
    else:
        show(report)


def _fanouts(text: str, layers: int | None) -> tuple[int, ...]:
    """`25,10`; the last one goes on for the layers beyond."""
    try:
        fanouts = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError.of("use the fanout", text, expected="numbers such as 25,10") from error
    wanted = len(fanouts) if layers is None else layers
    if wanted < len(fanouts):
        raise InputError.of("use the fanout", text, expected=f"{wanted}, one a layer")
    return tuple(fanouts + fanouts[-1:] * (wanted - len(fanouts)))


COLUMNS = (
    "epoch",
    "loss",
    "accuracy",
    "samples/s",
    "sample",
    "gather",
    "wait",
    "train",
    "rows kept",
    "read",
)


def show(report: dict[str, Any]) -> None:
    """The epochs as a table on stdout; everything else beside it on stderr."""
    print_table(COLUMNS, [_row(record) for record in report["epochs"]])
    rest = {name: report[name] for name in ("evaluation", "best_epoch", "stopped_early", "test")}
    print_fields(rest, stderr=True)


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    accuracy = record["accuracy"]
    stages = ("sample", "gather", "wait", "train")
    return (
        str(record["epoch"]),
        f"{record['loss']:.4f}",
        "-" if accuracy is None else f"{accuracy:.4f}",
        f"{record['samples_per_second']:,.0f}",
        *(readable("seconds", record[f"seconds_{stage}"]) for stage in stages),
        f"{record['row_hit_rate']:.1%}",
        readable("bytes", record["bytes_ssd"]),
    )


class Steps(Live):
    """Progress on stderr: the epoch, its batches, and the loss so far."""

    def __init__(self, epochs: int) -> None:
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total} batches"),
            TextColumn("loss {task.fields[loss]:.4f}", style="cyan"),
            TimeRemainingColumn(),
        )
        self._epochs = epochs
        self._task: TaskID | None = None

    def __call__(self, epoch: int, done: int, total: int, loss: float) -> None:
        """`done` of an epoch's `total` batches are trained on."""
        if self._task is None:
            self._task = self._progress.add_task("", total=total, loss=loss)
        text = f"epoch {epoch + 1} of {self._epochs}"
        self._progress.update(self._task, description=text, completed=done, total=total, loss=loss)
