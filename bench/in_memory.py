"""PageRank with the whole graph in memory: arcs a second, blocks decoded in every iteration.

Directed and undirected, both codecs, in turn. Seconds an iteration are the difference of a long
and a short run over the iterations between them; so are processor seconds, which a busy machine
disturbs less.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import tiergraph as tg
from common import machine, reporting
from common.reporting import Record, median, say

GRAPHS = {
    "undirected, packed": {"undirected": True, "codec": "packed"},
    "directed, packed": {"codec": "packed"},
    "directed, raw": {"codec": "raw", "order": "degree"},
}


def main() -> None:
    """Measures each graph, prints and saves."""
    options = _options()
    with reporting.data_directory("in_memory", options.keep) as directory:
        records = [_build(directory, name, options) for name in GRAPHS]
        for repetition in range(options.repetitions):
            say(f"repetition {repetition + 1} of {options.repetitions}")
            for record in records:
                record["repetitions"].append(_measure(record["graph"], options))
    reporting.table(
        f"PageRank, RMAT-{options.scale}, resident, {options.threads} threads, medians",
        ("graph", "s/iteration", "processor s", "G arcs/s", "most", "bytes/arc"),
        [_row(record) for record in records],
    )
    reporting.save(
        options, "in_memory", f"all blocks in memory; {machine.memory_total()} bytes", records
    )


def _options() -> argparse.Namespace:
    parser = reporting.arguments(__doc__ or "", scale=22)
    parser.add_argument("--iterations", type=int, nargs=2, default=[5, 25], help="short and long")
    return parser.parse_args()


def _build(directory: Path, name: str, options: argparse.Namespace) -> Record:
    say(f"building RMAT-{options.scale}, {name}")
    path = directory / f"{name.replace(', ', '-')}.tg"
    tg.generate("rmat", path, scale=options.scale, layouts="analytics", **GRAPHS[name])
    graph = tg.open(path, threads=options.threads)
    graph.pagerank(iterations=1, tolerance=None)
    run = graph.last_run
    return {
        "name": name,
        "graph": path,
        "arcs": run["arcs"],
        "pass_bytes": run["pass_bytes"],
        "repetitions": [],
    }


def _measure(path: Path, options: argparse.Namespace) -> Record:
    graph = tg.open(path, threads=options.threads)
    graph.pagerank(iterations=1, tolerance=None)
    short, long = options.iterations
    (least, least_used), (most, most_used) = (_timed(graph, count) for count in (short, long))
    return {
        "seconds_per_iteration": (most - least) / (long - short),
        "processor_seconds_per_iteration": (most_used - least_used) / (long - short),
        "resident_bytes": graph.last_run["resident_bytes"],
        "bytes_read": graph.last_run["bytes_read"],
    }


def _timed(graph: tg.Graph, iterations: int) -> tuple[float, float]:
    begin, before = time.perf_counter(), machine.processor_seconds()
    graph.pagerank(iterations=iterations, tolerance=None)
    return time.perf_counter() - begin, machine.processor_seconds() - before


def _row(record: Record) -> tuple[object, ...]:
    runs = record["repetitions"]
    seconds = [run["seconds_per_iteration"] for run in runs]
    used = median([run["processor_seconds_per_iteration"] for run in runs])
    middle, arcs = median(seconds), record["arcs"]
    assert middle is not None
    return (
        record["name"],
        middle,
        used,
        arcs / middle / 1e9,
        arcs / min(seconds) / 1e9,
        record["pass_bytes"] / arcs,
    )


if __name__ == "__main__":
    main()
