"""README's figure, an SVG: in memory beside peers, and out of core beside bare reads."""

from __future__ import annotations

import math
from dataclasses import dataclass

import analytics
from front import OUT_OF_CORE, PEERS
from tables import cell

WIDTH, LEFT, RIGHT, BAR, GAP, TOP = 400, 114, 62, 13, 10, 46
COLORS = {
    "tiergraph": "#1f6feb",
    "graphblas": "#9aa4b2",
    "networkit": "#cfd6de",
    "from the SSD, 1 GiB": "#1f6feb",
    "bare reads": "#cfd6de",
}
NAMES = {"graphblas": "GraphBLAS", "networkit": "NetworKit"}
ALGORITHMS = {
    "pagerank": "PageRank iteration",
    "wcc": "WCC",
    "bfs": "BFS",
    "sssp": "SSSP",
}


@dataclass(frozen=True)
class Panel:
    """A title, and for each algorithm the seconds of each series."""

    title: str
    bars: dict[str, dict[str, float]]


def svg() -> str:
    """The figure's text."""
    panels = [_peers(), _out_of_core()]
    drawn = [_draw(panel, index * WIDTH) for index, panel in enumerate(panels)]
    height = max(end for _, end in drawn) + 12
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDTH}" height="{height}" '
        f'viewBox="0 0 {2 * WIDTH} {height}" font-family="sans-serif" font-size="11">'
    )
    white = f'<rect width="{2 * WIDTH}" height="{height}" fill="#ffffff"/>'
    return (
        "\n".join([head, white, *(line for lines, _ in drawn for line in lines), "</svg>"]) + "\n"
    )


def _peers() -> Panel:
    bars: dict[str, dict[str, float]] = {name: {} for name in ALGORITHMS}
    for engine in PEERS.results["engines"]:
        seconds = engine["median_seconds"] | {"pagerank": engine["pagerank_seconds_per_iteration"]}
        for name in ALGORITHMS:
            bars[name][engine["engine"]] = seconds[name]
    edges = PEERS.results["edges"] / 1e6
    scale = PEERS.configuration["scale"]
    return Panel(f"In memory: RMAT-{scale}, {edges:.0f} M edges", bars)


def _out_of_core() -> Panel:
    record = OUT_OF_CORE.results["kinds"]["undirected"]
    edges = record["builds"]["undirected-plain"]["value"]["edges"] / 1e6
    bars: dict[str, dict[str, float]] = {name: {} for name in ALGORITHMS}
    for name in ALGORITHMS:
        calls = analytics.algorithm_calls(OUT_OF_CORE, "streamed", name)
        seconds, each = analytics.out_of_core_times(calls)[:2]
        bare = analytics.bare_seconds(OUT_OF_CORE, "streamed", name)
        assert seconds
        assert each
        share = each / seconds if name == "pagerank" else 1.0
        bars[name] = {"from the SSD, 1 GiB": seconds * share, "bare reads": bare * share}
    scale = OUT_OF_CORE.configuration["scale"]
    return Panel(f"Out of core: RMAT-{scale}, {edges:.0f} M edges", bars)


def _draw(panel: Panel, x: int) -> tuple[list[str], int]:
    values = [value for group in panel.bars.values() for value in group.values()]
    low, high = math.log10(min(values)) - 0.3, math.log10(max(values))
    lines = [_text(x + 8, 16, panel.title, weight="bold")]
    place = x + 8
    for name in next(iter(panel.bars.values())):
        lines.append(f'<rect x="{place}" y="25" width="10" height="10" fill="{COLORS[name]}"/>')
        label = NAMES.get(name, name)
        lines.append(_text(place + 14, 34, label))
        place += 30 + 6 * len(label)
    y = TOP
    for algorithm, group in panel.bars.items():
        middle = y + BAR * len(group) // 2 + 4
        lines.append(_text(x + LEFT - 6, middle, ALGORITHMS[algorithm], anchor="end"))
        for name, value in group.items():
            span = WIDTH - LEFT - RIGHT
            width = round(span * (math.log10(value) - low) / (high - low), 1)
            lines.append(
                f'<rect x="{x + LEFT}" y="{y}" width="{width}" height="{BAR - 2}" '
                f'fill="{COLORS[name]}"/>'
            )
            lines.append(_text(x + LEFT + width + 4, y + BAR - 4, f"{cell(value)} s"))
            y += BAR
        y += GAP
    return lines, y


def _text(x: float, y: float, text: str, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}" '
        f'fill="#1f2328">{text}</text>'
    )
