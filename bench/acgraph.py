"""One k-core, components and a search from disk, beside ACGraph (SIGMOD 2026; io_uring, C++).

ACGraph is built from its sources (github.com/CUHK-DBGroup/ACGraph, with its four submodules; on GCC
12 `src/util.hpp` needs `#include <tuple>`): `--build` names the folder that has `kcore`, `wcc_lp`,
`bfs` and `formatter`. Both read the same undirected R-MAT graph, each in its own format, in a
memory cgroup of `--limit`, in turn, after the page cache was dropped. Seconds are those that each
reports of itself: ACGraph's total; tiergraph's run, and opening, which is timed again afterwards.
Sizes of cores are compared.
"""

from __future__ import annotations

import argparse
import json
import re
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import tiergraph as tg
from common import machine, reporting
from common.cgroup import MemoryGroup
from common.reporting import Record, median, say

BUFFER_MEGABYTES = 384
"""ACGraph's buffer pool: with its state of vertices it takes most of a limit of 1 GiB."""


def main() -> None:
    """Prepares both graphs, measures in turn, prints and saves."""
    parser = reporting.arguments(__doc__ or "", scale=24, repetitions=3)
    parser.add_argument("--build", type=Path, required=True, help="ACGraph's folder of programs")
    parser.add_argument("--limit", type=int, default=1 << 30, help="bytes of the cgroup")
    parser.add_argument("--cores", type=int, nargs="+", default=[10, 50], help="k of k-cores")
    parser.add_argument("--prepared", type=Path, help="a folder with both graphs, kept before")
    options = parser.parse_args()
    if options.prepared is not None:
        records = _measure(options.prepared, options)
    else:
        with reporting.data_directory("acgraph", options.keep) as directory:
            say("preparing")
            _prepare(directory, options)
            records = _measure(directory, options)
    reporting.table(
        f"RMAT-{options.scale}, {options.limit >> 20} MiB, {options.threads} threads",
        ("job", "tiergraph s", "ACGraph s", "faster"),
        [
            (
                record["job"],
                median([run["seconds"] for run in record["tiergraph"]]),
                median([run["seconds"] for run in record["acgraph"]]),
                median([run["seconds"] for run in record["acgraph"]])
                / median([run["seconds"] for run in record["tiergraph"]]),
            )
            for record in records
        ],
    )
    reporting.save(options, "acgraph", "dropped before each run", records)


def _prepare(directory: Path, options: argparse.Namespace) -> None:
    graph = directory / "g.tg"
    how: dict[str, Any] = {"undirected": True, "dedup": True, "drop_self_loops": True}
    tg.generate("rmat", graph, scale=options.scale, ids="dense", memory="4GiB", **how)
    _write_csr(graph, directory / "csr")
    formatter = [options.build / "formatter", directory / "csr", directory / "acg"]
    subprocess.run(formatter, check=True, capture_output=True)


def _write_csr(path: Path, folder: Path) -> None:
    """The graph as ACGraph's tools take it: offsets, neighbours, and their counts."""
    folder.mkdir()
    with tg.open(path, memory="4GiB") as graph:
        offsets = np.zeros(graph.vertices + 1, np.uint64)
        np.cumsum(graph.degrees(), out=offsets[1:])
        place = offsets[:-1].astype(np.int64)
        neighbors = np.zeros(int(offsets[-1]), np.uint32)
        for batch in graph.edge_batches():
            ends = [end.astype(np.int64) for end in batch[:2]]
            for source, target in (ends, ends[::-1]):
                order = np.argsort(source, kind="stable")
                source, target = source[order], target[order]
                first = np.flatnonzero(np.r_[True, source[1:] != source[:-1]])
                counts = np.diff(np.r_[first, len(source)])
                start = place[source[first]] - first
                neighbors[np.repeat(start, counts) + np.arange(len(source))] = target
                place[source[first]] += counts
    offsets.tofile(folder / "offset")
    neighbors.tofile(folder / "data")
    meta = struct.pack("<BBBIQ", 4, 8, 0, len(offsets) - 1, len(neighbors))
    (folder / "meta").write_bytes(meta)


def _measure(directory: Path, options: argparse.Namespace) -> list[Record]:
    source = _source(directory / "g.tg")
    jobs: list[Record] = [
        {"job": f"{k}-core", "acgraph": ["kcore", "-k", k], "own": ["kcore", "--k", k]}
        for k in options.cores
    ]
    jobs.append({"job": "components", "acgraph": ["wcc_lp"], "own": ["wcc"]})
    how = {"acgraph": ["bfs", "-src", source], "own": ["bfs", "--source", source]}
    jobs.append({"job": "search"} | how)
    records: list[Record] = []
    for job in jobs:
        record: Record = {"job": job["job"], "tiergraph": [], "acgraph": []}
        for _ in range(options.repetitions):
            record["tiergraph"].append(_own(directory / "g.tg", job["own"], options))
            record["acgraph"].append(_acgraph(directory / "acg", job["acgraph"], options))
            if "core" in job["job"]:
                answers = [record[who][-1]["answer"] for who in ("tiergraph", "acgraph")]
                assert answers[0] == answers[1], (job["job"], answers)
        records.append(record)
        say(f"{job['job']} done")
    return records


def _source(path: Path) -> int:
    with tg.open(path) as graph:
        return int(np.flatnonzero(graph.degrees())[0])


def _own(path: Path, job: list[Any], options: argparse.Namespace) -> Record:
    # The modules that Python has loaded count in the cgroup, too.
    memory = options.limit - (150 << 20)
    command = [sys.executable, "-m", "tiergraph", job[0], path, *job[1:], "--json", "--top", 0]
    said = _run([*command, "--memory", memory, "--threads", options.threads], options.limit)
    report = json.loads(said)
    began = time.perf_counter()
    tg.open(path, memory=memory, threads=options.threads).close()
    opening = time.perf_counter() - began
    kept = ("seconds", "bytes_read", "iterations", "io_engine", "peak_rss_bytes")
    of = {key: report[key] for key in kept} | {"opening_seconds": opening}
    return of | {"seconds": report["seconds"] + opening, "answer": report.get("size")}


def _acgraph(path: Path, job: list[Any], options: argparse.Namespace) -> Record:
    command = [options.build / job[0], path, *job[1:], "-tn", options.threads]
    said = _run([*command, "-cmb", BUFFER_MEGABYTES], options.limit)
    total = re.search(r"total_time: ([\d.]+)ms", said)
    read = re.search(r"IO_read: (\d+)B", said)
    answer = re.search(r"ans: (\d+)", said)
    assert total is not None, said
    return {
        "seconds": float(total[1]) / 1e3,
        "bytes_read": int(read[1]) if read else None,
        "answer": int(answer[1]) if answer else None,
    }


def _run(command: list[Any], limit: int) -> str:
    """What a command says, in a cgroup of so many bytes, with nothing of its files in memory."""
    machine.drop_page_cache()
    group = MemoryGroup.create(limit)
    if isinstance(group, str):
        raise SystemExit(group)
    try:
        words = [str(word) for word in command]
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, preexec_fn=group.enter
        )
    finally:
        group.remove()
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + ("" if command[0] == sys.executable else done.stderr)


if __name__ == "__main__":
    main()
