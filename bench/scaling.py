"""How builds and passes grow with the graph: R-MAT graphs of several scales in the same memory.

Undirected graphs without duplicates, built and read in a memory cgroup. Algorithms interleave; what
fits stays in memory from pass to pass, so that the small graphs are in memory and the large ones
are mostly read. Small graphs are read in several processes, one after the other, because a median
of calls of a twentieth of a second says little. The cgroup of algorithms has room for one result
beside its limit. Bare reading of what passes read, before them, says what the disk gives.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from common import machine, reporting
from common.reporting import Record, median, say
from out_of_core import FIXED_ARGUMENTS, Inside, Limit

ALGORITHMS = ("pagerank", "wcc", "bfs")
RESULT_BYTES = 4
"""A vertex: what an algorithm returns is the caller's, beside the budget."""
LEAST_SECONDS = 10.0
"""Processes are started until the calls have taken so long."""
CEILING_SECONDS = 2.0
"""How long the disk is read bare."""


def main() -> None:
    """Builds, measures, prints and saves, a scale at a time."""
    options = _options()
    limit = Limit(options.limit_mib << 20, wanted=True)
    say(f"limit: {limit.how}")
    records: list[Record] = []
    with reporting.data_directory("scaling", options.keep) as directory:
        for scale in options.scales:
            records.append({"scale": scale} | _measured(scale, directory, limit, options))
            state = f"{machine.drop_page_cache()} before the algorithms; direct reads"
            reporting.save(options, "scaling", state, {"limit": limit.how, "scales": records})
    _print(records, options)


def _options() -> argparse.Namespace:
    parser = reporting.arguments(__doc__ or "", scale=0, repetitions=2)
    parser.add_argument("--scales", type=int, nargs="+", default=[22, 23, 24, 25, 26, 27])
    parser.add_argument("--limit-mib", type=int, default=2048, help="the cgroup's limit")
    parser.add_argument("--build-memory", default="1920MiB", help="budget of the build")
    parser.add_argument("--memory", default="1638MiB", help="budget of the algorithms")
    return parser.parse_args()


def _measured(scale: int, directory: Path, limit: Limit, options: argparse.Namespace) -> Record:
    path = str(directory / "scaling.tg")
    say(f"building scale {scale}")
    with limit.child(options) as inside:
        build = inside.call(
            "generate",
            path=path,
            scale=scale,
            undirected=True,
            dedup=True,
            drop_self_loops=True,
            memory=options.build_memory,
            threads=options.threads,
        )
    if "failure" in build:
        return {"build": build, "calls": []}
    how = {"path": path, "memory": options.memory, "io": "auto", "threads": options.threads}
    with limit.child(options, limited=False) as outside:
        outside.call("open", **how)
        source = outside.call("hub").get("value", 0)
        ceiling = outside.call("ceiling", seconds=CEILING_SECONDS)
    results = build["value"]["vertices"] * RESULT_BYTES
    calls: list[Record] = []
    taken = 0.0
    while taken < LEAST_SECONDS:
        machine.drop_page_cache()
        with limit.child(options, beside=results) as inside:
            inside.call("open", **how)
            fresh = _calls(inside, source, options)
        calls += fresh
        done = [call["value"]["seconds"] for call in fresh if "value" in call]
        if len(done) < len(fresh):
            break
        taken += sum(done)
    return {"build": build, "results_bytes": results, "ceiling": ceiling, "calls": calls}


def _calls(inside: Inside, source: int, options: argparse.Namespace) -> list[Record]:
    say("running")
    given = {name: FIXED_ARGUMENTS.get(name, {"source": source}) for name in ALGORITHMS}
    return [
        inside.call(name, **arguments)
        for _ in range(options.repetitions)
        for name, arguments in given.items()
    ]


def _print(records: list[Record], options: argparse.Namespace) -> None:
    rows = []
    for record in records:
        build = record["build"].get("value")
        if build is None:
            say(f"scale {record['scale']} was not built: {record['build']['failure']}")
            continue
        rows.append(
            [
                record["scale"],
                build["edges_read"] / 1e6,
                build["edges_per_second"] / 1e6,
                build["scratch_bytes"] / build["edges_read"],
                round((record["build"]["cgroup_peak_bytes"] or 0) / 1e6),
                record["ceiling"].get("value", 0) / 1e9,
                *(_ns_an_arc(record, name) for name in ALGORITHMS),
            ]
        )
    header = ["scale", "M edges", "build M edges/s", "scratch B an edge", "peak MB", "disk GB/s"]
    reporting.table(
        f"R-MAT, {options.memory}, {options.threads} threads: medians of all calls",
        [*header, *(f"{name} ns an arc" for name in ALGORITHMS)],
        rows,
    )


def _ns_an_arc(record: Record, name: str) -> float | None:
    """Nanoseconds an arc of the graph: of a PageRank iteration, or of a whole call."""
    done = [c["value"] for c in record["calls"] if c["command"] == name and "value" in c]
    times = [v["seconds"] / (v["iterations"] if name == "pagerank" else 1) for v in done]
    arcs = record["build"]["value"]["arcs"]
    each = median(times)
    return each and each / arcs * 1e9


if __name__ == "__main__":
    main()
