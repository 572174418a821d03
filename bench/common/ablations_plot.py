"""The picture of `ablations.py`: four panels of seconds an epoch, conditions above them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from common.reporting import Record, median

PANELS = {
    "placement (paper's Figure 7)": {
        "everything": "unified",
        "topology first": "topology\nfirst",
        "features first": "features\nfirst",
        "half and half": "half and\nhalf",
    },
    "cache (Figure 13)": {
        "everything": "all",
        "no topology cache": "no\ntopology",
        "no cache": "none",
    },
    "reads": {
        "everything": "all",
        "no look-ahead": "no look-\nahead",
        "no look-ahead, same cache": "same\ncache",
        "no page sharing": "no page\nsharing",
    },
}


def draw(results: Record, machine: str, path: Path) -> None:
    """Writes `path`."""
    figure = Figure(figsize=(13, 3.6), layout="constrained")
    axes = figure.subplots(1, len(PANELS) + 1, width_ratios=[4, 3, 4, 4])
    for panel, (title, names) in zip(axes, PANELS.items(), strict=False):
        runs = [[r["seconds"] for r in results["variants"][name]["runs"]] for name in names]
        _bars(panel, list(names.values()), runs)
        panel.set_title(title, fontsize=10)
    _overlap(axes[-1], results["overlap"])
    axes[0].set_ylabel("seconds an epoch")
    figure.suptitle(f"{results['conditions']}; {machine}; bars are medians, dots all runs")
    figure.savefig(path, dpi=120)


def _bars(panel: Any, labels: Sequence[str], runs: Sequence[Sequence[float]], **style: Any) -> None:
    heights = [median(some) or 0.0 for some in runs]
    drawn = panel.bar(labels, heights, color="#4c78a8", **style)
    panel.bar_label(drawn, [f"{height / heights[0]:.2f} x" for height in heights], fontsize=8)
    for place, some in enumerate(runs):
        panel.plot([place] * len(some), some, ".", color="black", markersize=3)
    panel.tick_params(axis="x", labelsize=8)
    panel.margins(y=0.12)


def _overlap(panel: Any, records: dict[str, Record]) -> None:
    """Two bars a model: prepared while the batch before is trained on, and after it."""
    places = np.arange(len(records))
    width = 0.4
    for shift, how, color in ((0, "together", "#4c78a8"), (width, "apart", "#f58518")):
        runs = [[run["seconds"] for run in record[how]] for record in records.values()]
        heights = [median(some) or 0.0 for some in runs]
        drawn = panel.bar(places + shift, heights, width, color=color, label=how)
        if how == "apart":
            first = [
                median([run["seconds"] for run in record["together"]]) or 1.0
                for record in records.values()
            ]
            ratios = [f"{h / f:.2f} x" for h, f in zip(heights, first, strict=True)]
            panel.bar_label(drawn, ratios, fontsize=8)
        for place, some in zip(places + shift, runs, strict=True):
            panel.plot([place] * len(some), some, ".", color="black", markersize=3)
    panel.set_xticks(places + width / 2, list(records))
    panel.set_title("preparing and training (Figure 11)", fontsize=10)
    panel.legend(fontsize=8)
    panel.margins(y=0.12)
