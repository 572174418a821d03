"""`tiergraph plan`: which hardware gives a training job most for a dollar."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ... import pictures, planning
from ...errors import InputError, IoError
from ...loaders.node import NeighborLoader
from ...planning import curve
from ...planning.job import job_of
from ...planning.plan import read_text
from ...train import Trainer, TrainOptions
from ...units import readable
from ..flags import with_flags_of
from ..options import Json
from ..output import print_json, print_notes, print_table
from ..train_options import Chosen, data_flags, descent_flags, machine_flags, model_flags

"""What a job says at least."""


@with_flags_of(data_flags, model_flags, descent_flags, machine_flags)
def plan(
    data: Chosen,
    model: Chosen,
    descent: Chosen,
    resources: Chosen,
    /,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="GRAPH.tg|JOB.json|RUN.json",
            help="A graph, of which a few batches are trained on as `tiergraph train` would; or "
            "what --job wrote, or `tg.measure_job(...)._asdict()` as JSON; or what `pagerank "
            "--json` or `wcc --json` printed.",
        ),
    ],
    reads_from: Annotated[
        str | None,
        typer.Option(metavar="DRIVE*N", help="The drives that the graph is on, as in p5510*2."),
    ] = None,
    machine: Annotated[
        str | None, typer.Option(help="A machine of the catalogue of parts; default: a.")
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(help="The GPU on which training was timed; default: a100, or none."),
    ] = None,
    drive: Annotated[
        list[str] | None,
        typer.Option(help="A kind of drive; several to compare. Default: all with a price."),
    ] = None,
    device_cache: Annotated[
        str | None, typer.Option(metavar="SIZE", help="GPU memory for rows of features.")
    ] = None,
    host_cache: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The host's memory for rows of features.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="The most dollars for five years, with electricity.")
    ] = None,
    parts: Annotated[
        Path | None, typer.Option(help="A catalogue of parts (TOML) in place of the program's.")
    ] = None,
    job_path: Annotated[
        Path | None, typer.Option("--job", metavar="FILE", help="Write what was measured.")
    ] = None,
    curve_path: Annotated[
        Path | None, typer.Option("--curve", metavar="FILE", help="Draw it: .png, .svg, .pdf.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say which drives and memory give a training job most for a dollar, and what limits it.

    Of a run of PageRank or WCC: what an iteration takes with other drives and memory.
    """
    if curve_path is not None:
        pictures.check()
    read = None if source.is_dir() else _object(source)
    if read is not None:
        training = (data_flags(), model_flags(), descent_flags(), machine_flags())
        is_told = (data, model, descent, resources) != training or reads_from is not None
        _refuse(source, "none of training's flags: nothing is measured", is_told)
    if read is not None and "algorithm" in read:
        of_jobs = (machine, gpu, device_cache, host_cache, budget, job_path, curve_path)
        is_told = any(flag is not None for flag in of_jobs)
        _refuse(source, "`--drive` and `--parts` alone, of a run", is_told)
        _passes(read, drive or [], parts, as_json)
        return
    if read is None:
        options = TrainOptions(**data, **model, **descent, **resources)
        trainer = Trainer(str(source), options)
        print_notes(trainer.notes)
        if not isinstance(trainer.loader, NeighborLoader):
            raise InputError.of(
                "plan for", source, expected="a graph whose vertices are classified"
            )
        job = planning.measure_job(trainer.loader, trainer.step, drives=reads_from)
    else:
        job = job_of(read or {}, source)
    if job_path is not None:
        _write(job, job_path)
    found = planning.plan(
        job,
        machine=machine or "a",
        gpu=gpu or ("a100" if job.is_on_gpu else "none"),
        drive=drive or None,
        device_cache=device_cache,
        host_cache=host_cache,
        budget=budget,
        parts=parts,
    )
    if curve_path is not None:
        curve.draw(found, curve_path)
    if as_json:
        more = found.more_memory
        print_json(
            {
                "job": job._asdict(),
                "estimates": [estimate._asdict() for estimate in found.estimates],
                "best": found.best._asdict(),
                "kinds": [estimate._asdict() for estimate in found.kinds],
                "one_more": found.one_more,
                "more_memory": None if more is None else more._asdict(),
                "limit": found.limit,
            }
        )
    else:
        _show(found, job.is_on_gpu)


def _show(found: planning.Plan, is_on_gpu: bool) -> None:
    """The numbers of drives as a table, and sentences of what they mean."""
    best = found.best
    rows = [
        (
            f"{estimate.drives}{' *' if estimate == best else ''}",
            f"{estimate.drive_seconds * 1e3:.2f}",
            f"{estimate.link_seconds * 1e3:.2f}",
            f"{estimate.train_seconds * 1e3:.2f}",
            estimate.bottleneck,
            f"{estimate.seeds_per_second:,.0f}",
            f"{estimate.dollars:,.0f}",
            f"{estimate.seeds_per_second_and_dollar:.3f}",
        )
        for estimate in found.estimates
    ]
    headers = (best.drive, "drives, ms", "link, ms", "training, ms", "limit")
    print_table((*headers, "seeds/s", "dollars", "seeds/s and dollar"), rows)
    print(f"* gives most for a dollar. {found.limit}")
    for other in found.kinds[1:]:
        worse = 1 - other.seeds_per_second_and_dollar / best.seeds_per_second_and_dollar
        print(f"{other.drives} x {other.drive}: {worse:.1%} less for a dollar.")
    caches = (best.device_cache_bytes, best.host_cache_bytes)
    if any(caches):
        device, host = (readable("bytes", int(size)) for size in caches)
        on_gpu = f"{device} on the GPU, " if is_on_gpu else ""
        print(f"Rows of features in memory: {on_gpu}{host} in the host's.")
    if found.one_more is not None:
        print(f"One drive more: {found.one_more:+.1%} seeds a second.")
    if found.more_memory is not None:
        device, host = (f"{gain:+.1%}" for gain in found.more_memory)
        on_gpu = f"{device} on the GPU, " if is_on_gpu else ""
        print(f"10 GB more memory for rows: {on_gpu}{host} in the host's.")


def _refuse(source: Path, expected: str, is_told: bool) -> None:
    """Complains of flags that a source has no use for."""
    if is_told:
        raise InputError.of("plan for", source, expected=expected, got="others")


def _write(job: planning.Job, path: Path) -> None:
    try:
        path.write_text(json.dumps(job._asdict()) + "\n")
    except OSError as error:
        raise IoError.of("write the job", path, got=error.strerror or str(error)) from None


def _passes(run: dict[str, Any], kinds: list[str], parts: Path | None, as_json: bool) -> None:
    """An iteration's seconds: a row a number of drives, a column a share of the graph in memory."""
    if len(kinds) > 1:
        raise InputError.of("plan for a run", expected="one `--drive`", got=", ".join(kinds))
    drive = kinds[0] if kinds else None
    found = planning.plan_passes(run, drive=drive, parts=parts)
    if as_json:
        print_json({"run": run, "estimates": [estimate._asdict() for estimate in found]})
        return
    sizes = list(dict.fromkeys(estimate.resident_bytes for estimate in found))
    rows = []
    for count in dict.fromkeys(estimate.drives for estimate in found):
        own = [estimate for estimate in found if estimate.drives == count]
        cells = (f"{e.seconds * 1e3:.1f}{'' if e.bottleneck == 'drives' else ' *'}" for e in own)
        rows.append((str(count), *cells))
    headers = (f"{readable('bytes', int(size))} in memory" for size in sizes)
    print_table((drive or "drives", *headers), rows)
    print("Milliseconds an iteration. * Computing limits it: more drives or memory bring nothing.")


def _object(file: Path) -> dict[str, Any]:
    """What a file says, as JSON."""
    try:
        found = json.loads(read_text(file))
    except ValueError as error:
        raise InputError.of("read the job", file, expected="JSON", got=error) from None
    if not isinstance(found, dict):
        got = type(found).__name__
        raise InputError.of("read the job", file, expected="an object", got=got)
    return found
