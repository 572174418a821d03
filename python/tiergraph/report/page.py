"""A report's page: figures, tables and the words between them, in one file."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import Error, InputError, IoError
from ..results import check_folder
from ..units import readable
from .runs import Run, check_number

NOT_SHOWN = {"top", "largest", "component_sizes", "notes", "kept", "options", "memory", "runs"}
"""Fields that are no figures of a table's cell."""


@dataclass(frozen=True)
class Part:
    """A section of the page: a heading, what is to be seen, and a figure."""

    title: str
    says: str
    figure: Any | None
    zooms: str | None = None
    """The name of the figure whose time has buttons, if it has."""


def write(runs: Sequence[Run], path: str | os.PathLike[str]) -> None:
    """Writes the report of one or several runs, side by side: one HTML file that needs no network.

    Raises `InputError` where Bokeh, which draws it, is not installed, or there are no runs or too
    many; `IoError` where the file cannot be written.
    """
    check_number(len(runs))
    check(path)
    text = _page(runs, _parts(runs))
    target = Path(path)
    whole = target.with_name(f".{target.name}.part")
    try:
        whole.write_text(text, encoding="utf-8")
        whole.replace(target)
    except OSError as error:
        whole.unlink(missing_ok=True)
        raise IoError.of("write the report", path, got=error.strerror or str(error)) from None


def check(path: str | os.PathLike[str]) -> None:
    """Complains now, and not after the run, where a report cannot be written to `path`."""
    try:
        import bokeh  # noqa: F401
    except ImportError as error:
        raise InputError.of(
            "write a report", got="bokeh is not installed", hint="pip install 'tiergraph[report]'"
        ) from error
    check_folder(Path(path))


def _parts(runs: Sequence[Run]) -> list[Part]:
    """The sections of which there is something to see."""
    from . import figures

    parts: list[Part] = []
    kinds = [kind for run in runs if run.spans is not None for kind in run.spans.what]
    kinds = list(dict.fromkeys(kinds))
    for number, run in enumerate(runs):
        name = f"timeline-{number}"
        says = (
            "What each part of the machine did, and when. Drag to move, use the buttons to zoom, "
            "hover for a span's times; a name above the figure hides what it names."
        )
        drawn = figures.timeline(run, name, kinds)
        parts.append(Part(f"Timeline: {run.title}", says, drawn, name))
    parts += [
        Part(
            "Bandwidth over time",
            "What storage gave while the run went on. Dashed: what bare reads reached (--ceiling).",
            figures.bandwidth(runs),
        ),
        Part(
            "Where bytes were",
            "What stayed in memory from pass to pass, and what was read from storage.",
            figures.tiers(runs),
        ),
        Part(
            "Residency",
            "Which parts of the file that passes read were in memory at the end: the darker, the "
            "more of a part.",
            figures.residency(runs),
        ),
        Part(
            "Convergence",
            "By what an algorithm goes on: how much ranks changed in all (PageRank), or vertices "
            "that were reached or changed (BFS, SSSP, WCC).",
            figures.convergence(runs),
        ),
        Part("Iterations", "Seconds that each took.", figures.iterations(runs)),
        Part("Loss", "The mean of an epoch's batches.", figures.epochs(runs, "loss", "loss")),
        Part(
            "Accuracy",
            "On the validation split, after an epoch.",
            figures.epochs(runs, "accuracy", "accuracy"),
        ),
    ]
    for number, run in enumerate(runs):
        says = "Waiting for batches, training, and evaluating."
        stages = figures.by_epoch(run, f"stages-{number}", figures.STAGES, "seconds")
        parts.append(Part(f"Epochs: {run.title}", says, stages))
        says = "What batches were made of: bytes that memory had, and that were read from storage."
        sources = figures.by_epoch(run, f"bytes-{number}", figures.SOURCES, "MiB", figures.MIB)
        parts.append(Part(f"Bytes of batches: {run.title}", says, sources))
    sizes = [(run.title, run.fields.get("component_sizes", [])) for run in runs]
    parts += [
        Part(
            "Sizes of components",
            "How many components have about so many vertices: from each power of two on.",
            figures.by_powers(
                [(title, [0, *own]) for title, own in sizes], "components", "vertices", "components"
            ),
        ),
        Part(
            "Degrees",
            "How many vertices have about so many edges that leave them.",
            figures.by_powers(_degrees(runs), "degrees", "edges that leave", "vertices"),
        ),
    ]
    return [part for part in parts if part.figure is not None]


def _degrees(runs: Sequence[Run]) -> list[tuple[str, list[int]]]:
    """The degrees of the runs' graphs, of those that are still there."""
    from .. import graph as tg

    found: dict[str, list[int]] = {}
    for run in runs:
        path = str(run.fields.get("graph", ""))
        if path in found or not Path(path).is_dir():
            continue
        try:
            with tg.open(path, threads=1) as graph:
                found[path] = graph.degree_histogram("out")
        except Error:
            # What was run over once, and is no graph of vertices and edges now.
            continue
    return [(Path(path).name, counts) for path, counts in found.items()]


def _page(runs: Sequence[Run], parts: Sequence[Part]) -> str:
    """The page's text."""
    from bokeh.embed import components
    from bokeh.resources import Resources

    script, boxes = components({str(i): part.figure for i, part in enumerate(parts)})
    library = Resources(mode="inline", components=["bokeh"]).render_js()
    sections = "".join(_section(i, part, boxes[str(i)]) for i, part in enumerate(parts))
    links = "".join(
        f'<li><a href="#part-{i}">{html.escape(part.title)}</a></li>'
        for i, part in enumerate(parts)
    )
    notes = [note for run in runs for note in run.fields.get("notes", [])]
    told = "".join(f"<li>{html.escape(str(note))}</li>" for note in notes)
    title = runs[0].title if len(runs) == 1 else f"{len(runs)} runs"
    filled = {
        "title": html.escape(title),
        "version": html.escape(__version__),
        "links": links,
        "summary": "".join(f"<li>{html.escape(_summary(run))}</li>" for run in runs),
        "table": _table(runs),
        "notes": f"<h2>Notes</h2><ul>{told}</ul>" if told else "",
        "sections": sections,
        "library": library,
        "script": script,
    }
    frame = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: filled[match[1]], frame)


def _summary(run: Run) -> str:
    """A run in a sentence."""
    fields = run.fields
    if run.epochs:
        last = run.epochs[-1]
        told = [f"{len(run.epochs)} epochs", f"a loss of {last['loss']:.4g} in the last"]
        if fields.get("test"):
            scores = (f"{name} {value:.4g}" for name, value in fields["test"].items() if value)
            told.append("on the test split " + ", ".join(scores))
        return f"{run.title}: {'; '.join(told)}."
    shown = {
        "iterations": "{} iterations",
        "seconds": "{}",
        "edges_per_second": "{} edges a second",
        "bytes_read": "{} read",
        "peak_rss_bytes": "at most {} of memory",
    }
    told = [
        text.format(readable(name, fields[name]).replace(" M/s", " M"))
        for name, text in shown.items()
        if fields.get(name) is not None
    ]
    return f"{run.title}: {', '.join(told)}.".replace(" 1 iterations", " 1 iteration")


def _section(number: int, part: Part, box: str) -> str:
    buttons = ""
    if part.zooms is not None:
        name = html.escape(part.zooms)
        buttons = '<p class="buttons">' + "".join(
            f'<button type="button" data-figure="{name}" data-zoom="{how}">{label}</button>'
            for how, label in (("in", "Zoom in"), ("out", "Zoom out"), ("all", "Whole run"))
        )
        buttons += "</p>"
    title, says = html.escape(part.title), html.escape(part.says)
    return (
        f'<section id="part-{number}" aria-labelledby="head-{number}">'
        f'<h2 id="head-{number}">{title}</h2><p>{says}</p>{buttons}'
        f'<div class="figure" role="img" aria-label="{title}">{box}</div></section>'
    )


def _table(runs: Sequence[Run]) -> str:
    """Every figure that runs said of themselves: a row a name, a column a run."""
    names = list(dict.fromkeys(name for run in runs for name in run.fields))
    heads = "".join(f'<th scope="col">{html.escape(run.title)}</th>' for run in runs)
    rows = []
    for name in names:
        values = [run.fields.get(name) for run in runs]
        if name in NOT_SHOWN or all(isinstance(v, dict | list | None) for v in values):
            continue
        cells = "".join(f"<td>{html.escape(_cell(name, value))}</td>" for value in values)
        rows.append(f'<tr><th scope="row">{html.escape(name.replace("_", " "))}</th>{cells}</tr>')
    return f"<table><thead><tr><td></td>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cell(name: str, value: Any) -> str:
    return "-" if isinstance(value, dict | list) else str(readable(name, value))
