"""Draws what `streaming.py` measured on modelled drives, in the shape of the papers' figures.

`python bench/paper/papers_figure.py RUN.jsonl FIGURE.png`: bars of I/O bandwidth for one drive and
for two, synchronous (RG-no) beside asynchronous (RG-opt), and the drives' limit as a line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

MODES = {"RG-no": "0.75", "RG-opt": "0.25"}


def main() -> None:
    """Reads the rows and writes the figure."""
    source, target = map(Path, sys.argv[1:3])
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    rows = [row for row in rows if row["what"] == "modelled drive" and row["threads"] == 1]
    figure, panels = plt.subplots(1, 2, figsize=(7, 3.2), sharey=True)
    for panel, limit in zip(panels, sorted({row["limit"] for row in rows}), strict=True):
        names = {"pagerank": "PageRank", "wcc": "WCC"}
        for shift, (mode, shade) in enumerate(MODES.items()):
            heights = [
                row["bandwidth"] / 1e9
                for name in names
                for row in rows
                if (row["limit"], row["mode"], row["algorithm"]) == (limit, mode, name)
            ]
            places = [i + 0.4 * shift for i in range(len(names))]
            bars = panel.bar(places, heights, 0.38, color=shade, edgecolor="0", label=mode)
            panel.bar_label(bars, fmt="%.1f", fontsize=8)
        panel.axhline(limit / 1e9, linestyle=":", color="0")
        panel.set_xticks([i + 0.2 for i in range(len(names))], list(names.values()))
        drives = round(limit / 7e9)
        panel.set_title(f"{drives} modelled drive{'s' * (drives > 1)} of 7 GB/s", fontsize=10)
    panels[0].set_ylim(0, 16)
    panels[0].set_ylabel("I/O bandwidth, GB/s")
    panels[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(target, dpi=150)


if __name__ == "__main__":
    main()
