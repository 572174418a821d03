"""What `build` and `generate` have in common: where a graph is written, how, and what is told."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..errors import InputError, InputWarning
from ..hetero.build import build_hetero
from .build_options import FeatureDtype
from .options import Json, Memory, OutPath, Threads
from .output import print_fields, print_json, print_notes
from .progress import Bars

TYPED = ("dedup", "stripe", "scratch", "block_bytes", "overwrite", "memory", "threads")
"""Options that heterogeneous graphs have, too."""


def _typed(source: Any, out: Path, **options: Any) -> dict[str, Any]:
    """Writes a heterogeneous graph, with its types as texts in what is returned."""
    built = build_hetero(out, source, **options)
    return built | {"edges": {" ".join(of): count for of, count in built["edges"].items()}}


class NewGraph:
    """A graph to be written, as the flags say."""

    def __init__(
        self,
        out: OutPath,
        feature_dtype: FeatureDtype = None,
        undirected: Annotated[
            bool | None,
            typer.Option("--undirected/--directed", help="Whether each edge goes both ways."),
        ] = None,
        dedup: Annotated[
            bool | None,
            typer.Option(
                "--dedup/--keep-duplicates", help="Keep one of several equal edges, the lightest."
            ),
        ] = None,
        drop_self_loops: Annotated[
            bool | None,
            typer.Option("--drop-self-loops/--keep-self-loops", help="Drop edges v to v."),
        ] = None,
        order: Annotated[
            Literal["none", "degree", "auto"] | None,
            typer.Option(help="Arrangement of vertices on disk; default: auto."),
        ] = None,
        codec: Annotated[
            Literal["packed", "raw"] | None,
            typer.Option(help="Bit-packed gaps, or plain ids; default: packed."),
        ] = None,
        layouts: Annotated[
            Literal["analytics", "training", "both", "sampling"] | None,
            typer.Option(
                "--for",
                help="What the graph is for; default: analytics, both with features or values.",
            ),
        ] = None,
        stripe: Annotated[
            str | None,
            typer.Option(metavar="DIR,DIR", help="Deal blocks over directories, one a drive."),
        ] = None,
        scratch: Annotated[
            Path | None,
            typer.Option(
                metavar="DIR", help="Where temporary files go; default: beside the graph."
            ),
        ] = None,
        block_bytes: Annotated[
            str | None,
            typer.Option(
                "--block-size",
                metavar="SIZE",
                help="Bytes a block, a multiple of 4096; default: 1MiB.",
            ),
        ] = None,
        overwrite: Annotated[
            bool | None, typer.Option("--overwrite", help="Replace OUT.tg.")
        ] = None,
        memory: Memory = None,
        threads: Threads = None,
        as_json: Json = False,
    ) -> None:
        self.out = out
        self.as_json = as_json
        self.options: dict[str, Any] = {
            "feature_dtype": feature_dtype,
            "undirected": undirected,
            "dedup": dedup,
            "drop_self_loops": drop_self_loops,
            "order": order,
            "codec": codec,
            "layouts": layouts,
            "stripe": None if stripe is None else stripe.split(","),
            "scratch": scratch,
            "block_bytes": block_bytes,
            "overwrite": overwrite,
            "memory": memory,
            "threads": threads,
        }

    def write_typed(self, source: Any, others: dict[str, Any]) -> None:
        """Writes a heterogeneous graph of a dataset with several types; it takes no `others`."""
        taken = {name: self.options[name] for name in TYPED}
        others |= {
            f"--{name.replace('_', '-')}": value
            for name, value in self.options.items()
            if name not in TYPED
        }
        given = [name for name, value in others.items() if value is not None]
        if given:
            raise InputError.of(
                "build a heterogeneous graph from",
                source,
                expected=f"no {', '.join(given)}, which graphs of one type take",
            )
        self.options = taken
        self.write(_typed, source)

    def write(self, how: Callable[..., dict[str, Any]], what: Any, **given: Any) -> None:
        """Writes it with progress on stderr, and prints what was written."""
        with Bars() as bars, warnings.catch_warnings():
            # They are among the statistics, in the words of the command line.
            warnings.simplefilter("ignore", InputWarning)
            stats = how(what, self.out, progress=bars, **given, **self.options)
        print_notes(stats["notes"])
        if self.as_json:
            print_json(stats)
        else:
            print_fields({name: value for name, value in stats.items() if name != "notes"})
