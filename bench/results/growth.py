"""RESULTS.md's chart of how times grow with the graph, an SVG."""

from __future__ import annotations

import math

from runs import run
from tables import Record, cell, median

FILE = "results/growth.svg"
"""The chart's place below `bench`."""

RUN = run("2026-11-28-2-core-epyc-24gib/scaling-verified-again.json")

GAP_SCALE, GAP_ARCS = 27, 4_223_264_644
GAP_SECONDS = {"pagerank": 20.256 / 7, "wcc": 0.531, "bfs": 0.309}
"""What GAP takes in memory with 40 threads on 20 cores (Xeon E5-2698 v4) for GAP-kron, an R-MAT graph of scale 27.

Published by LAGraph (github.com/GraphBLAS/LAGraph, src/benchmark/GAP_2022.txt, lines `GAP:2021`; 27 November
2021). The 7 iterations of PageRank are those that LAGraph's version of it takes for the same graph
(o_gap_8Feb22_hypersparse.txt there).
"""

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 660, 300, 50, 34, 34, 112
LINE_HEIGHT = 12
LINES = {
    "build": ("build, an edge", "#8250df"),
    "pagerank": ("PageRank iteration", "#1f6feb"),
    "wcc": ("WCC", "#1a7f37"),
    "bfs": ("BFS", "#bf8700"),
}


def nanoseconds(record: Record, name: str) -> float | None:
    """Of an arc of the graph in a call, or in an iteration of PageRank; of an edge that is built."""
    build = record["build"].get("value")
    if build is None:
        return None
    if name == "build":
        return 1e9 / build["edges_per_second"]
    values = [c["value"] for c in record["calls"] if c["command"] == name and "value" in c]
    times = (v["seconds"] / (v["iterations"] if name == "pagerank" else 1) for v in values)
    seconds = median(times)
    return seconds and seconds / build["arcs"] * 1e9


def beside_gap() -> list[list[object]]:
    """Seconds of each algorithm on the graph of GAP's scale, beside GAP's."""
    (record,) = (r for r in RUN.results["scales"] if r["scale"] == GAP_SCALE)
    arcs = record["build"]["value"]["arcs"]
    own = {name: (nanoseconds(record, name) or math.nan) * arcs / 1e9 for name in GAP_SECONDS}
    return [
        [LINES[name][0], arcs / 1e9, own[name], seconds, f"{seconds / own[name]:.2f}"]
        for name, seconds in GAP_SECONDS.items()
    ]


def svg() -> str:
    """The chart of `bench/scaling.py`: nanoseconds by scale, both axes in powers."""
    records = RUN.results["scales"]
    scales = [record["scale"] for record in records]
    points = {
        name: [(r["scale"], ns) for r in records if (ns := nanoseconds(r, name)) is not None]
        for name in LINES
    }
    gap = {name: 1e9 * seconds / GAP_ARCS for name, seconds in GAP_SECONDS.items()}
    every = [ns for line in points.values() for _, ns in line] + list(gap.values())
    low, high = math.floor(math.log2(min(every))), math.ceil(math.log2(max(every)))
    left, right = min(scales), max(scales)

    def x(scale: float) -> float:
        span = WIDTH - LEFT - RIGHT
        return round(LEFT + span * (scale - left) / max(right - left, 1), 1)

    def y(ns: float) -> float:
        span = HEIGHT - TOP - BOTTOM
        return round(HEIGHT - BOTTOM - span * (math.log2(ns) - low) / (high - low), 1)

    title = f"ns an arc, R-MAT in {RUN.configuration['memory']}"
    drawn = [_text(LEFT, 18, title, weight="bold")]
    for power in range(low, high + 1):
        height = y(2.0**power)
        drawn.append(
            f'<line x1="{LEFT}" y1="{height}" x2="{WIDTH - RIGHT}" y2="{height}" stroke="#d0d7de"/>'
        )
        drawn.append(_text(LEFT - 6, height + 4, cell(2.0**power), anchor="end"))
    for record in records:
        scale, build = record["scale"], record["build"].get("value")
        edges = f" ({build['edges'] / 1e9:.2g} G edges)" if build and scale == right else ""
        drawn.append(_text(x(scale), HEIGHT - 12, f"{scale}{edges}", anchor="middle"))
    heights: list[float] = []
    # From the highest on, so that labels stand in the order of their lines.
    for name, line in sorted(points.items(), key=lambda of: of[1][-1][1], reverse=True):
        label, color = LINES[name]
        path = " ".join(f"{x(scale)},{y(ns)}" for scale, ns in line)
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        for scale, ns in line:
            drawn.append(f'<circle cx="{x(scale)}" cy="{y(ns)}" r="3" fill="{color}"/>')
        scale, ns = line[-1]
        # Below the label before, where they would be one over the other.
        height = y(ns) + 4
        while any(abs(height - other) < LINE_HEIGHT for other in heights):
            height += LINE_HEIGHT
        heights.append(height)
        drawn.append(_text(x(scale) + 6, height, label, color=color))
    for name, ns in gap.items():
        _, color = LINES[name]
        drawn.append(
            f'<circle cx="{x(GAP_SCALE)}" cy="{y(ns)}" r="3" fill="#ffffff" stroke="{color}"/>'
        )
    drawn.append(_text(WIDTH - 4, 18, "○ GAP in memory, 20 cores", anchor="end"))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">'
    )
    white = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    return "\n".join([head, white, *drawn, "</svg>"]) + "\n"


def _text(
    x: float,
    y: float,
    text: str,
    anchor: str = "start",
    weight: str = "normal",
    color: str = "#1f2328",
) -> str:
    return (
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}" '
        f'fill="{color}">{text}</text>'
    )
