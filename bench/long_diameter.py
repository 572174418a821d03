"""Searches of graphs with long diameters: seconds, levels and bytes read of BFS and SSSP.

Roads (a grid that lost three edges in ten, in the order of its rows and shuffled), paths, a
caterpillar, and R-MAT as the control. Each build of tiergraph runs in processes of its own, in turn
with the other where `--before` names one. Resident: the second and later runs of an opened graph.
Out of core: the first run with the least memory that the graph accepts, so that neither its blocks
nor a copy of its arcs fit.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import tiergraph as tg
from common import other_build, reporting
from common.reporting import Record, median, say

Edges = tuple[NDArray[np.int64], NDArray[np.int64]]

SHARE_REMOVED = 0.3
LARGEST_WEIGHT = 10_000
PAGE_BYTES = 4096
SEED = 7


def main() -> None:
    """Builds the graphs, measures each, prints and saves; or does one of these for the former."""
    if other_build.serve({"build": _built, "measure": _measured}):
        return
    options = _options()
    with reporting.data_directory("long_diameter", options.keep) as directory:
        records = [
            record
            for name in options.graphs or _graphs(options.scale)
            for record in _records(directory, name, options)
        ]
    rows = [row for record in records for row in _rows(record)]
    reporting.table(
        f"BFS and SSSP, {options.threads} threads, medians",
        ("graph", "codec", "algorithm", "where", "s", "s before", "levels", "pages read", "of"),
        rows,
    )
    reporting.save(options, "long_diameter", "page cache as it was; see `memory`", records)


def _options() -> argparse.Namespace:
    parser = reporting.arguments(__doc__ or "", scale=20, repetitions=3)
    parser.add_argument("--before", type=Path, help="a folder with another build's `tiergraph`")
    parser.add_argument("--graphs", nargs="+", help="some of the graphs, by name")
    parser.add_argument("--codecs", nargs="+", default=["packed", "raw"], help="of the graphs")
    parser.add_argument("--limit", type=float, default=300, help="seconds a measurement may take")
    parser.add_argument("--memory", help="for the run out of core; left out if not given")
    parser.add_argument("--device", default="cpu", help="`cuda` for a GPU")
    return parser.parse_args()


def _graphs(scale: int) -> dict[str, Callable[[], Edges | None]]:
    """By name, what gives a graph's edges; None of R-MAT, which is generated."""
    return {
        "road": lambda: road(1034, shuffled=False),
        "road, shuffled": lambda: road(1034, shuffled=True),
        "path 1M": lambda: path(1_000_000, shuffled=False),
        "path 1M, shuffled": lambda: path(1_000_000, shuffled=True),
        "path 5M": lambda: path(5_000_000, shuffled=False),
        "path 5M, shuffled": lambda: path(5_000_000, shuffled=True),
        "caterpillar": lambda: caterpillar(200_000, legs=4),
        f"RMAT-{scale}": lambda: None,
    }


def road(side: int, *, shuffled: bool) -> Edges:
    """A square grid without three edges in ten; most of it is one component."""
    random = np.random.default_rng(SEED)
    ids = np.arange(side * side).reshape(side, side)
    right = np.stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()])
    down = np.stack([ids[:-1].ravel(), ids[1:].ravel()])
    edges = np.concatenate([right, down], axis=1)
    edges = edges[:, random.random(edges.shape[1]) >= SHARE_REMOVED]
    return _named(edges, side * side, shuffled)


def path(vertices: int, *, shuffled: bool) -> Edges:
    """Each vertex joined to the next."""
    ids = np.arange(vertices)
    return _named(np.stack([ids[:-1], ids[1:]]), vertices, shuffled)


def caterpillar(spine: int, legs: int) -> Edges:
    """A path of `spine` vertices, each with so many leaves beside."""
    ids = np.arange(spine)
    leaves = np.stack([np.repeat(ids, legs), spine + np.arange(spine * legs)])
    edges = np.concatenate([np.stack([ids[:-1], ids[1:]]), leaves], axis=1)
    return _named(edges, spine * (1 + legs), shuffled=False)


def _named(edges: NDArray[np.int64], vertices: int, shuffled: bool) -> Edges:
    if shuffled:
        edges = np.random.default_rng(SEED).permutation(vertices)[edges]
    return edges[0], edges[1]


def _records(directory: Path, name: str, options: argparse.Namespace) -> list[Record]:
    records = []
    for codec in options.codecs:
        say(f"building {name}, {codec}")
        graph = str(directory / "graph.tg")
        # The build before may not read what this one writes.
        what = {"graph": graph, "name": name, "codec": codec, "scale": options.scale}
        other_build.answer(__file__, "build", what, options.before)
        for algorithm in ("bfs", "sssp"):
            runs = _compared(graph, algorithm, options)
            records.append({"name": name, "codec": codec, "algorithm": algorithm, "runs": runs})
    return records


def _built(graph: str, name: str, codec: Literal["packed", "raw"], scale: int) -> str:
    edges = _graphs(scale)[name]()
    if edges is None:
        tg.generate(
            "rmat",
            graph,
            scale=scale,
            weights="byte",
            undirected=True,
            codec=codec,
            overwrite=True,
        )
        return graph
    weights = np.random.default_rng(SEED).integers(1, LARGEST_WEIGHT + 1, edges[0].size)
    arcs = (*edges, weights.astype(np.float32))
    tg.build(arcs, graph, undirected=True, codec=codec, overwrite=True)
    return graph


def _compared(graph: str, algorithm: str, options: argparse.Namespace) -> Record:
    """The runs of both builds, in turn; None where one took too long, and no more of that build."""
    builds = other_build.builds(options.before)
    runs: Record = {}
    for place, memory in (("resident", None), ("out of core", options.memory)):
        if place == "out of core" and memory is None:
            continue
        what = {"graph": graph, "algorithm": algorithm, "memory": memory}
        what |= {"threads": options.threads, "device": options.device}
        runs[place] = {build: [] for build in builds}
        for _ in range(options.repetitions):
            for build, package in builds.items():
                if None not in runs[place][build]:
                    run = other_build.answer(__file__, "measure", what, package, options.limit)
                    runs[place][build].append(run)
        every = [run["sum"] for of in runs[place].values() for run in of if run is not None]
        assert len(set(every)) <= 1, f"results differ: {every}"
    return runs


def _measured(
    graph: str, algorithm: str, threads: int, memory: str | None, device: str
) -> dict[str, Any]:
    """What a run says: the second of an opened graph, or with `memory` the first."""
    opened = tg.open(graph, threads=threads, memory=memory, device=device)
    for _ in range(1 if memory else 2):
        result = getattr(opened, algorithm)(0)
    run = dict(opened.last_run)
    run["ways"] = sorted({level["how"] for level in run.pop("details")})
    run["sum"] = float(np.sum(result[np.isfinite(result)], dtype=np.float64))
    return run


def _rows(record: Record) -> list[tuple[object, ...]]:
    return [
        (
            record["name"],
            record["codec"],
            record["algorithm"],
            place,
            _seconds(builds["now"]),
            _seconds(builds.get("before", [])),
            *_counts(builds["now"][0]),
        )
        for place, builds in record["runs"].items()
    ]


def _seconds(runs: list[Record | None]) -> float | None:
    known = [run["seconds"] for run in runs if run is not None]
    return median(known) if len(known) == len(runs) else None


def _counts(run: Record | None) -> tuple[object, ...]:
    if run is None:
        return None, None, None
    pages = (run["bytes_read"] // PAGE_BYTES, run["pass_bytes"] // PAGE_BYTES)
    return (run["iterations"], *pages)


if __name__ == "__main__":
    main()
