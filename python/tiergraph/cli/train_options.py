"""The flags of `tiergraph train` that say what is trained, and how: all of `TrainOptions`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import typer

from ..arguments.sizes import to_bytes
from ..errors import InputError
from ..train import TrainOptions
from .options import Io, Memory

DEFAULTS = TrainOptions()

Chosen: TypeAlias = dict[str, Any]


def model_flags(
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
    residual: Annotated[
        bool, typer.Option("--residual", help="Add what enters a layer to its result.")
    ] = False,
    dropout: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Of what hidden layers give.")
    ] = DEFAULTS.dropout,
    input_dropout: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Of the features themselves.")
    ] = DEFAULTS.input_dropout,
    normalize: Annotated[
        bool, typer.Option("--normalize", help="Scale rows of features to sum to 1.")
    ] = False,
    fanout: Annotated[
        str, typer.Option(metavar="K,K", help="Neighbours a hop, nearest first; -1: all.")
    ] = "25,10",
) -> Chosen:
    """The model."""
    return {
        "model": model,
        "hidden": hidden,
        "heads": heads,
        "norm": norm,
        "residual": residual,
        "dropout": dropout,
        "input_dropout": input_dropout,
        "normalize": normalize,
        "fanout": _fanouts(fanout, layers),
    }


def data_flags(
    splits: Annotated[
        str,
        typer.Option(
            metavar="A,B,C", help="Splits to train on, validate, test; B, C may be empty."
        ),
    ] = ",".join(DEFAULTS.splits),
    node_type: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="Of a graph of several types: which is classified."),
    ] = None,
    class_weights: Annotated[
        str | None,
        typer.Option(metavar="W,W", help="What classes count for in the loss, or `balanced`."),
    ] = None,
    draw_links: Annotated[
        int, typer.Option(min=3, help="link: how many are drawn from the graph.")
    ] = DEFAULTS.links,
    negatives: Annotated[
        float, typer.Option(min=0.0, help="link: pairs that are none, for each link.")
    ] = DEFAULTS.negatives,
) -> Chosen:
    """What is trained on."""
    names = tuple(part.strip() for part in splits.split(","))
    if len(names) > 3 or not names[0]:
        raise InputError.of("use the splits", splits, expected="up to three names: train,val,test")
    return {
        "splits": (*names, "", "")[:3],
        "node_type": node_type,
        "class_weights": _weights(class_weights),
        "links": draw_links,
        "negatives": negatives,
    }


def descent_flags(
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Seeds a batch; default: by how many there are.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs at most.")] = DEFAULTS.epochs,
    evaluate_every: Annotated[
        int, typer.Option(min=1, metavar="N", help="Validate after every N epochs, and the last.")
    ] = DEFAULTS.evaluate_every,
    patience: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many without a better score.")
    ] = None,
    lr: Annotated[float, typer.Option(min=0.0, help="Adam's step size.")] = DEFAULTS.lr,
    schedule: Annotated[
        Literal["none", "cosine", "step"], typer.Option(help="How the step size falls.")
    ] = DEFAULTS.schedule,
    step_epochs: Annotated[
        int | None, typer.Option(min=1, help="step: epochs a step; default: a third of all.")
    ] = None,
    step_factor: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="step: what each multiplies by.")
    ] = DEFAULTS.step_factor,
    warmup: Annotated[
        int, typer.Option(min=0, help="Epochs in which the step size grows.")
    ] = DEFAULTS.warmup,
    weight_decay: Annotated[
        float, typer.Option(min=0.0, help="Adam's L2 penalty.")
    ] = DEFAULTS.weight_decay,
) -> Chosen:
    """How it is trained."""
    return {
        "batch_size": batch_size,
        "epochs": epochs,
        "evaluate_every": evaluate_every,
        "patience": patience,
        "lr": lr,
        "schedule": schedule,
        "step_epochs": step_epochs,
        "step_factor": step_factor,
        "warmup": warmup,
        "weight_decay": weight_decay,
    }


def machine_flags(
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
    io: Io = DEFAULTS.io,
) -> Chosen:
    """What it is trained with."""
    machine = {"memory": to_bytes(memory), "threads": threads, "window": window}
    return machine | {"device": device, "io": io}


def seeds_flags(
    seed: Annotated[
        list[int] | None,
        typer.Option(help="What everything random follows from; several: a run each. Default: 0."),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Runs, with N seeds from --seed on.")
    ] = 1,
) -> list[int]:
    """The seeds of all runs."""
    first = seed or [0]
    if len(first) > 1 and seeds > 1:
        raise InputError.of("train with", "--seeds", expected="one `--seed`", got=len(first))
    if len(set(first)) < len(first):
        raise InputError.of("train with", "--seed", expected="different seeds", got=first)
    return first if len(first) > 1 else list(range(first[0], first[0] + seeds))


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


def _weights(text: str | None) -> Any:
    """`balanced`, or `1,2,0.5`."""
    if text is None or text == "balanced":
        return text
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise InputError.of(
            "weigh the classes by", text, expected="`balanced`, or numbers such as 1,2,0.5"
        ) from error
