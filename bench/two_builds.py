"""Is this build of tiergraph slower than another? The same jobs by both, in turn.

Algorithms with the graph in memory, of both codecs, and out of core; a build; epochs of a loader
whose features are in memory and on disk. Each run has a process of its own. Both builds read the
same graphs, which the other one built, because an older one may not read newer graphs.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import tiergraph as tg
from common import machine, other_build, reporting, rmat
from common.reporting import Record, median, say

ALGORITHMS: dict[str, dict[str, Any]] = {
    "pagerank": {"iterations": 10, "tolerance": 0.0},
    "wcc": {},
    "bfs": {},
    "sssp": {},
}
CODECS = ("packed", "raw")
FEATURES = 128
FANOUTS = (15, 10)
BATCH_SIZE = 1024
SEEDS = 1 << 15


def main() -> None:
    """Prepares, measures, prints and saves; or does a task for the former."""
    if other_build.serve({"prepare": _prepared, "run": _run, "build": _build, "epoch": _epoch}):
        return
    options = _options()
    with reporting.data_directory("two_builds", options.keep) as directory:
        say("preparing")
        where = {"directory": str(directory), "scale": options.scale}
        other_build.answer(__file__, "prepare", where, options.before)
        records = [_compared(job, directory, options) for job in _jobs(directory, options)]
    reporting.table(
        f"RMAT-{options.scale}, {options.threads} threads: medians of {options.repetitions}",
        ("job", "s", "s before", "ratio"),
        [
            (r["job"], *(median(r["seconds"][b]) for b in ("now", "before")), r["ratio"])
            for r in records
        ],
    )
    reporting.save(options, "two_builds", "dropped before each run out of core", records)


def _options() -> argparse.Namespace:
    parser = reporting.arguments(__doc__ or "", scale=22, repetitions=5)
    parser.add_argument(
        "--before", type=Path, required=True, help="a folder with another build's `tiergraph`"
    )
    parser.add_argument("--memory", default="256MiB", help="of what runs out of core")
    parser.add_argument(
        "--jobs", nargs="+", help="some of the jobs, by what their names begin with"
    )
    return parser.parse_args()


Job = tuple[str, str, dict[str, Any], bool]
"""A job's name, its task, what the task is given, and whether the page cache is dropped before."""


def _jobs(directory: Path, options: argparse.Namespace) -> list[Job]:
    threads = {"threads": options.threads}
    jobs: list[Job] = []
    for codec in CODECS:
        graph = {"graph": str(directory / f"{codec}.tg"), **threads}
        for name in ALGORITHMS:
            what = {**graph, "algorithm": name}
            jobs.append((f"{name}, {codec}, in memory", "run", {**what, "memory": None}, False))
            memory = {"memory": options.memory}
            jobs.append((f"{name}, {codec}, out of core", "run", what | memory, True))
    of_build = {"directory": str(directory), **threads}
    jobs.append(("build of arrays", "build", of_build, False))
    features = {"graph": str(directory / "features.tg"), **threads}
    jobs.append(("epoch, in memory", "epoch", features | {"memory": None}, False))
    jobs.append(("epoch, out of core", "epoch", features | {"memory": options.memory}, True))
    wanted = options.jobs
    return [job for job in jobs if not wanted or any(job[0].startswith(name) for name in wanted)]


def _compared(job: Job, directory: Path, options: argparse.Namespace) -> Record:
    """The seconds of both builds, in turn; the ratio of a pair is that of runs side by side."""
    name, task, what, drops = job
    say(name)
    seconds: dict[str, list[float]] = {"now": [], "before": []}
    for repetition in range(options.repetitions):
        both = list(other_build.builds(options.before).items())
        # Who comes first finds other things in caches than who comes second.
        for build, package in both if repetition % 2 else reversed(both):
            if drops:
                machine.drop_page_cache()
            seconds[build].append(other_build.answer(__file__, task, what, package))
    ratios = [now / before for now, before in zip(*seconds.values(), strict=True)]
    return {"job": name, "seconds": seconds, "ratio": median(ratios)}


def _prepared(directory: str, scale: int) -> None:
    folder = Path(directory)
    for codec in CODECS:
        tg.generate("rmat", folder / f"{codec}.tg", scale=scale, weights="byte", codec=codec)
    np.save(folder / "pairs.npy", rmat.pairs(scale - 1))
    communities = {
        "vertices": 1 << (scale - 2),
        "communities": 16,
        "mean_degree": 16.0,
        "inside": 0.9,
    }
    tg.generate("sbm", folder / "features.tg", features=FEATURES, **communities)


def _run(graph: str, algorithm: str, threads: int, memory: str | None) -> float:
    """The seconds of the second and third run of an opened graph; with `memory`, of the first."""
    opened = tg.open(graph, threads=threads, memory=memory)
    arguments = ALGORITHMS[algorithm]
    if algorithm in ("bfs", "sssp"):
        # Most of an R-MAT graph is reached from the vertex with the most edges.
        arguments = {"source": int(np.argmax(opened.degrees()))}
    seconds = []
    for _ in range(1 if memory else 3):
        getattr(opened, algorithm)(**arguments)
        seconds.append(float(opened.last_run["seconds"]))
    return min(seconds[1:] or seconds)


def _build(directory: str, threads: int) -> float:
    edges = np.load(Path(directory) / "pairs.npy")
    src, dst = np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1])
    out = Path(directory) / "built.tg"
    began = time.perf_counter()
    tg.build((src, dst), out, threads=threads, memory="1GiB", ids="dense", overwrite=True)
    return time.perf_counter() - began


def _epoch(graph: str, threads: int, memory: str | None) -> float:
    """The seconds of the second epoch, each batch dropped as soon as it is there."""
    seeds = np.random.default_rng(5).choice(tg.open(graph).vertices, SEEDS, replace=False)
    loader = tg.NeighborLoader(
        graph,
        list(FANOUTS),
        input_nodes=seeds,
        batch_size=BATCH_SIZE,
        threads=threads,
        memory=memory,
    )
    for number in range(2):
        loader.set_epoch(number)
        began = time.perf_counter()
        for batch in loader:
            del batch
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
