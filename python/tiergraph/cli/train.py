"""`tiergraph train`: a PyG model on a graph, its score and where its time went."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn

from .. import pictures
from ..errors import FallbackWarning, InputError
from ..hetero import is_hetero
from ..results import check_folder, check_suffix
from ..train import LinkTrainer, Trainer, TrainOptions, TypedTrainer, curve, predictions
from ..train.runs import train_seeds
from ..train.trainer import Progress, Watch
from ..units import readable
from .flags import with_flags_of
from .options import GraphPath, Json
from .output import print_fields, print_json, print_notes, print_table
from .progress import Live
from .train_options import (
    DEFAULTS,
    Chosen,
    data_flags,
    descent_flags,
    machine_flags,
    model_flags,
    seeds_flags,
)


@with_flags_of(data_flags, model_flags, descent_flags, machine_flags, seeds_flags)
def train(
    data: Chosen,
    model: Chosen,
    descent: Chosen,
    machine: Chosen,
    seeds: list[int],
    /,
    graph: GraphPath,
    task: Annotated[
        Literal["node", "link"], typer.Option(help="Classify vertices, or predict links.")
    ] = DEFAULTS.task,
    links: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="link: train, val and test in an .npz; default: drawn."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the best model, for tiergraph.train.load."),
    ] = None,
    predict: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write every vertex's class: .parquet, .arrow, .csv, .npy."
        ),
    ] = None,
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
        raise InputError.of("resume", expected="`--checkpoint FILE`", got="none")
    if curve_path is not None:
        pictures.check()
    if links is not None and task != "link":
        raise InputError.of("train on", links, expected="`--task link`")
    if predict is not None:
        check_suffix(predict)
    if save is not None:
        check_folder(save)
    if len(seeds) > 1 and (checkpoint is not None or curve_path is not None):
        raise InputError.of(
            "train with several seeds", expected="neither `--checkpoint` nor a curve"
        )
    options = TrainOptions(task=task, **data, **model, **descent, **machine)

    def make(seed: int) -> Trainer:
        with_seed = replace(options, seed=seed)
        kept: dict[str, Any] = {
            "checkpoint": checkpoint,
            "resume": resume,
            "predicts": predict is not None,
        }
        if task == "link":
            return LinkTrainer(str(graph), with_seed, links=links, **kept)
        kind = TypedTrainer if is_hetero(graph) else Trainer
        return kind(str(graph), with_seed, **kept)

    with Steps(options.epochs, seeds) as steps, warnings.catch_warnings():
        # They are notes of the report.
        warnings.simplefilter("ignore", FallbackWarning)
        trainer, report = train_seeds(make, seeds, str(graph), steps.of_run)
    if curve_path is not None:
        curve.draw(trainer.history, curve_path)
    if save is not None:
        trainer.save(save)
    if predict is not None:
        predictions.write(trainer, predict)
    if len(seeds) == 1:
        report = report["runs"][0]
    if as_json:
        print_json(report)
    elif len(seeds) == 1:
        show(report)
    else:
        show_runs(report)


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
    names = ("evaluation", "memory", "best_epoch", "stopped_early", "test")
    print_fields({name: report[name] for name in names if name in report}, stderr=True)
    print_notes(report["notes"])


def show_runs(report: dict[str, Any]) -> None:
    """A line a seed, and mean and deviation below."""
    names = list(report["summary"])
    rows = []
    for seed, run in zip(report["seeds"], report["runs"], strict=True):
        of_best = next(record for record in run["epochs"] if record["epoch"] == run["best_epoch"])
        found = {f"validation_{name}": of_best.get(name) for name in run["test"]}
        found |= {f"test_{name}": value for name, value in run["test"].items()}
        rows.append((str(seed), str(run["best_epoch"]), *(_score(found[name]) for name in names)))
    spreads = [report["summary"][name] or {"mean": None, "deviation": None} for name in names]
    rows.append(("mean", "", *(_score(spread["mean"]) for spread in spreads)))
    rows.append(("deviation", "", *(_score(spread["deviation"]) for spread in spreads)))
    print_table(("seed", "best epoch", *(name.replace("_", " ") for name in names)), rows)
    print_notes(report["runs"][0]["notes"])


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    stages = ("sample", "gather", "wait", "train")
    return (
        str(record["epoch"]),
        f"{record['loss']:.4f}",
        _score(record["accuracy"]),
        f"{record['samples_per_second']:,.0f}",
        *(readable("seconds", record[f"seconds_{stage}"]) for stage in stages),
        f"{record['row_hit_rate']:.1%}",
        readable("bytes", record["bytes_ssd"]),
    )


class Steps(Live):
    """Progress on stderr: the run, the epoch, its batches or evaluation, and the loss so far."""

    def __init__(self, epochs: int, seeds: list[int]) -> None:
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total} {task.fields[unit]}"),
            TextColumn("loss {task.fields[loss]:.4f}", style="cyan"),
            TimeRemainingColumn(),
        )
        self._epochs, self._seeds = epochs, seeds
        self._run = ""
        self._task: TaskID | None = None

    def of_run(self, number: int) -> Watch:
        """What watches the run of a seed."""
        many = len(self._seeds) > 1
        self._run = f"seed {self._seeds[number]}, " if many else ""
        return self

    def __call__(self, progress: Progress) -> None:
        """Shows batches that were trained on, or steps of an evaluation."""
        total, loss = progress.total, progress.loss
        if self._task is None:
            self._task = self._progress.add_task("", total=total, loss=loss, unit="")
        epoch = f"epoch {min(progress.epoch + 1, self._epochs)} of {self._epochs}"
        is_evaluated = progress.stage == "evaluate"
        stage, unit = (", evaluation", "steps") if is_evaluated else ("", "batches")
        self._progress.update(
            self._task,
            description=f"{self._run}{epoch}{stage}",
            completed=progress.done,
            total=total,
            loss=loss,
            unit=unit,
        )
