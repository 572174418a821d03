"""What a report shows of runs, drawn by Bokeh: a figure each, or None where nothing is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, CustomJSTickFormatter, HoverTool, Range1d, Span
from bokeh.plotting import figure
from numpy.typing import NDArray

from .runs import Run, Spans

COLORS = ("#3b82c4", "#d9772b", "#3f9b5b", "#c2504f", "#8a63b8", "#97753f", "#c85fa0", "#7f8a99")
"""Of runs, and of what a timeline shows: apart for those who see no red or no green, too."""
GREY = "#7d7d7d"
"""Of axes, on light and dark."""
HEIGHT = 300
BINS = 240
"""Of time, in which bandwidth is counted."""
MIB = 1 << 20


def axes(title: str, x: str, y: str, **options: Any) -> Any:
    """An empty figure that lies on light and dark pages, as wide as the page."""
    drawn = figure(
        **{"tools": ""} | options,
        x_axis_label=x,
        y_axis_label=y,
        height=HEIGHT,
        sizing_mode="stretch_width",
        toolbar_location=None,
        background_fill_alpha=0,
        border_fill_alpha=0,
        outline_line_color=None,
        name=title,
    )
    drawn.grid.grid_line_color = GREY
    drawn.grid.grid_line_alpha = 0.25
    drawn.axis.axis_line_color = drawn.axis.major_tick_line_color = GREY
    drawn.axis.minor_tick_line_color = None
    drawn.axis.axis_label_text_color = drawn.axis.major_label_text_color = GREY
    return drawn


def timeline(run: Run, name: str, kinds: Sequence[str]) -> Any | None:
    """The spans of a run: a row a worker, and one for each read that was in flight with others.

    `kinds` of all runs have a colour each.
    """
    spans = run.spans
    if spans is None or len(spans) == 0:
        return None
    drawn = axes(name, "seconds", "", tools="xpan", active_drag="xpan")
    end = float((spans.begin + spans.seconds).max())
    drawn.x_range = Range1d(0, end, bounds=(0, end))
    lanes = len(spans.lanes)
    drawn.y_range = Range1d(lanes - 0.5, -0.5)
    drawn.height = min(max(HEIGHT, 14 * lanes), 2 * HEIGHT)
    what = np.array(spans.what)
    for kind in dict.fromkeys(spans.what):
        number = kinds.index(kind)
        of_kind = what == kind
        begin, seconds = spans.begin[of_kind], spans.seconds[of_kind]
        source = ColumnDataSource(
            {
                "left": begin.astype(np.float32),
                "right": (begin + seconds).astype(np.float32),
                "y": spans.lane[of_kind].astype(np.float32),
            }
        )
        color = COLORS[number % len(COLORS)]
        bars = drawn.hbar(
            "y",
            left="left",
            right="right",
            height=0.8,
            source=source,
            color=color,
            line_width=0.5,
            legend_label=kind,
        )
        tip = f"{kind}, from @left{{0.000000}} to @right{{0.000000}} s"
        drawn.add_tools(HoverTool(renderers=[bars], tooltips=tip))
    drawn.yaxis.ticker = _middles(spans.lanes)
    drawn.yaxis.major_label_overrides = {
        tick: spans.lanes[round(tick)] for tick in drawn.yaxis.ticker.ticks
    }
    drawn.ygrid.grid_line_color = None
    _legend(drawn)
    return drawn


def _middles(lanes: Sequence[str]) -> list[float]:
    """The row in the middle of those of each part of the machine."""
    rows = {
        part: [i for i, lane in enumerate(lanes) if lane == part] for part in dict.fromkeys(lanes)
    }
    return [float(own[len(own) // 2]) for own in rows.values()]


def bandwidth(runs: Sequence[Run]) -> Any | None:
    """What was read over time, beside what bare reads reach."""
    rates_of = {number: _rates(run.spans) for number, run in enumerate(runs)}
    if not any(rates_of.values()):
        return None
    drawn = axes("bandwidth", "seconds", "MiB read a second")
    for number, run in enumerate(runs):
        rates = rates_of[number]
        if rates is None:
            continue
        color = COLORS[number % len(COLORS)]
        drawn.line(*rates, color=color, line_width=2, legend_label=run.title)
        ceiling = run.fields.get("read_ceiling")
        if ceiling:
            drawn.add_layout(
                Span(
                    location=ceiling / MIB, dimension="width", line_color=color, line_dash="dashed"
                )
            )
            drawn.line([], [], color=color, line_dash="dashed", legend_label="bare reads")
    _legend(drawn)
    return drawn


def _rates(spans: Spans | None) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """The middles of equal parts of a run's time, and MiB a second that were read in each."""
    if spans is None or spans.size.sum() == 0:
        return None
    ends = spans.begin + spans.seconds
    edges = np.linspace(0, float(ends.max()), BINS + 1)
    # What had come at a time: a read comes evenly while it is under way.
    steps = np.concatenate([spans.begin, ends])
    slope = spans.size / np.maximum(spans.seconds, 1e-9)
    change = np.concatenate([slope, -slope])
    by_time = np.argsort(steps, kind="stable")
    times, slopes = steps[by_time], np.cumsum(change[by_time])
    come = np.concatenate([[0.0], np.cumsum(np.diff(times) * slopes[:-1])])
    at = np.interp(edges, times, come)
    return (edges[1:] + edges[:-1]) / 2, np.diff(at) / np.diff(edges) / MIB


def convergence(runs: Sequence[Run]) -> Any | None:
    """What an algorithm goes on by, iteration by iteration."""
    shown = _numbered(runs, lambda run: any(d.get("measure", 0) > 0 for d in run.details))
    if not shown:
        return None
    drawn = axes("convergence", "iteration", "measure", y_axis_type="log")
    for number, run in shown:
        ends = np.cumsum([d["iterations"] for d in run.details])
        measure = np.array([float(d.get("measure", 0)) for d in run.details])
        seen = measure > 0
        _curve(drawn, ends[seen], measure[seen], number, run.title)
    _legend(drawn)
    return drawn


def iterations(runs: Sequence[Run]) -> Any | None:
    """Seconds an iteration."""
    shown = _numbered(runs, lambda run: bool(run.details))
    if not shown:
        return None
    drawn = axes("iterations", "iteration", "seconds")
    for number, run in shown:
        counts = np.array([d["iterations"] for d in run.details])
        seconds = np.array([d["seconds"] for d in run.details]) / np.maximum(counts, 1)
        _curve(drawn, np.cumsum(counts), seconds, number, run.title)
    drawn.y_range.start = 0
    _legend(drawn)
    return drawn


TIERS = {
    "in GPU memory": "device_resident_bytes",
    "in host memory": "resident_bytes",
    "read from storage": "bytes_read",
}
"""Where bytes of blocks stayed from pass to pass, and what was read of the others."""


def tiers(runs: Sequence[Run]) -> Any | None:
    """Bytes that stayed in each memory, and that were read from storage, of an algorithm's runs."""
    shown = _numbered(runs, lambda run: bool(run.fields.get("bytes_read") is not None))
    if not shown:
        return None
    names = [f"{number + 1}. {run.title}" for number, run in shown]
    parts = {
        name: [(run.fields.get(key) or 0) / MIB for _, run in shown] for name, key in TIERS.items()
    }
    parts = {name: sizes for name, sizes in parts.items() if any(sizes)}
    drawn = axes("tiers", "MiB", "", y_range=names[::-1])
    source = ColumnDataSource(parts | {"run": names})
    _stack(drawn.hbar_stack, parts, source, y="run", height=0.6)
    drawn.height = 90 + 40 * len(names)
    drawn.x_range.start = 0
    if parts:
        _legend(drawn)
    return drawn


def residency(runs: Sequence[Run]) -> Any | None:
    """Where in their files blocks lay in which memory: the darker, the more of a part did."""
    rows = [
        (f"{number + 1}. {run.title}, {memory}", shares, number)
        for number, run in enumerate(runs)
        for memory, shares in _shares(run)
    ]
    if not rows:
        return None
    names = [name for name, _, _ in rows]
    drawn = axes("residency", "place in the file of blocks, %", "", y_range=names[::-1])
    for name, shares, number in rows:
        edges = np.linspace(0, 100, len(shares) + 1)
        source = ColumnDataSource(
            {"left": edges[:-1], "right": edges[1:], "share": shares, "run": [name] * len(shares)}
        )
        bars = drawn.hbar(
            "run",
            left="left",
            right="right",
            height=0.6,
            fill_alpha="share",
            line_alpha=0,
            fill_color=COLORS[number % len(COLORS)],
            source=source,
        )
        tip = "@left{0}% to @right{0}%: @share{0%} in memory"
        drawn.add_tools(HoverTool(renderers=[bars], tooltips=tip))
        drawn.hbar([name], left=0, right=100, height=0.6, fill_alpha=0, line_color=GREY)
    drawn.height = 90 + 40 * len(rows)
    drawn.x_range = Range1d(0, 100)
    return drawn


def _shares(run: Run) -> list[tuple[str, list[float]]]:
    """The memories in which a run's blocks could be, and the share of each part that was."""
    known = run.fields.get("residency") or {}
    memories = (("GPU memory", known.get("device")), ("host memory", known.get("host")))
    return [(name, shares) for name, shares in memories if shares]


def epochs(runs: Sequence[Run], key: str, label: str) -> Any | None:
    """A figure of training, epoch by epoch."""
    shown = _numbered(runs, lambda run: any(e.get(key) is not None for e in run.epochs))
    if not shown:
        return None
    drawn = axes(key, "epoch", label)
    for number, run in shown:
        seen = [epoch for epoch in run.epochs if epoch.get(key) is not None]
        _curve(drawn, [e["epoch"] for e in seen], [e[key] for e in seen], number, run.title)
    _legend(drawn)
    return drawn


STAGES = {"wait": "seconds_wait", "train": "seconds_train", "evaluate": "seconds_evaluate"}
SOURCES = {"from memory": "bytes_host", "from storage": "bytes_ssd"}


def by_epoch(run: Run, name: str, parts: dict[str, str], label: str, unit: float = 1) -> Any | None:
    """What an epoch of training is made of: `parts` by their names in its record."""
    if not run.epochs:
        return None
    drawn = axes(name, "epoch", label)
    columns = {part: [e.get(key, 0) / unit for e in run.epochs] for part, key in parts.items()}
    source = ColumnDataSource(columns | {"epoch": [e["epoch"] for e in run.epochs]})
    _stack(drawn.vbar_stack, columns, source, x="epoch", width=0.8)
    drawn.y_range.start = 0
    _legend(drawn)
    return drawn


def by_powers(counts: Sequence[tuple[str, Sequence[int]]], name: str, x: str, y: str) -> Any | None:
    """Histograms whose place 0 counts 0, and place i from 2^(i - 1) to 2^i - 1, on two log axes."""
    if not any(any(own) for _, own in counts):
        return None
    drawn = axes(name, x, y, y_axis_type="log")
    for number, (title, own) in enumerate(counts):
        places = [place for place, count in enumerate(own) if count]
        if not places:
            continue
        _curve(drawn, places, [own[place] for place in places], number, title)
    drawn.xaxis.formatter = CustomJSTickFormatter(
        code="return tick < 1 ? '0' : Number.isInteger(tick) ? String(2 ** (tick - 1)) : ''"
    )
    _legend(drawn)
    return drawn


def _stack(draw: Callable[..., Any], parts: Iterable[str], source: Any, **placed: Any) -> None:
    """Bars of parts, one on the other, each with its colour and its name above the figure."""
    names = list(parts)
    draw(names, source=source, color=COLORS[: len(names)], legend_label=names, **placed)


def _numbered(runs: Sequence[Run], has: Callable[[Run], bool]) -> list[tuple[int, Run]]:
    """The runs that have something to show, with their places: a run has one colour everywhere."""
    return [(number, run) for number, run in enumerate(runs) if has(run)]


def _curve(drawn: Any, x: Any, y: Any, number: int, title: str) -> None:
    color = COLORS[number % len(COLORS)]
    line: Callable[..., Any] = drawn.line
    line(x, y, color=color, line_width=2, legend_label=title)
    drawn.scatter(x, y, color=color, size=6, legend_label=title)


def _legend(drawn: Any) -> None:
    """Above the figure, where a click hides what it names."""
    legend = drawn.legend[0]
    drawn.add_layout(legend, "above")
    legend.orientation = "horizontal"
    legend.click_policy = "hide"
    legend.label_text_color = GREY
    legend.background_fill_alpha = 0
    legend.border_line_color = None
    legend.ncols = 2
