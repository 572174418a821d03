"""A graph to train on: four communities that features tell apart."""

from __future__ import annotations

from pathlib import Path

import tiergraph as tg


def build_communities(folder: Path) -> str:
    """The directory of a graph with both layouts, whose vertices are ordered by degree."""
    path = folder / "g.tg"
    tg.generate(
        "sbm",
        path,
        vertices=1200,
        communities=4,
        mean_degree=8,
        inside=0.9,
        features=16,
        layouts="both",
        order="degree",
    )
    return str(path)
