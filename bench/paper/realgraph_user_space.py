"""User-space against kernel I/O, synchronous against asynchronous, on the same modelled drive.

`python bench/paper/realgraph_user_space.py [--directory /dev/shm] [--scale 22] [--threads 4]`

RealGraphGPU++ (its figure 3) replaces synchronous reads through the kernel by asynchronous ones from user
space, on a drive of 7 GB/s: 42 % more bandwidth on average, and 23 % less time for PageRank and WCC. Here
the same passes read the same graph by three engines, all held back to one modelled Samsung 980 PRO
(7 GB/s), which no machine of ours has: `posix` (one blocking `pread` a thread), `uring`, and queue pairs
whose drive is threads (a software controller). The graph lies in memory (tmpfs), so that the model is
the limit, and in codec `raw`, with nothing resident. CPU seconds are the process's, less those of the
controller's threads, which are the drive; the kernel's are in them. Bare reads are of blocks of 1 MiB at
random, eight in flight a thread (one by `posix`), with no work on them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import tiergraph as tg
from tiergraph import _native
from common import reporting
from common.reporting import Record, median, say

DRIVE = "980pro*1"
ENGINES = {
    "posix": f"modelled:{DRIVE}:posix",
    "uring": f"modelled:{DRIVE}:uring",
    "queue pairs": f"modelled:{DRIVE}",
}
READS = "bare reads"
"""The job of reading blocks at random with no work on them."""
READ_SECONDS = 0.5
JOBS = {"pagerank": {"iterations": 5, "tolerance": 0.0}, "wcc": {}}
CONTROLLER = "nvme-"
"""How the threads that are drives are called."""


def main() -> None:
    """Measures every engine in turn, prints medians, and saves all runs."""
    options = _options()
    with _directory(options.directory) as directory:
        graph = directory / "raw.tg"
        say(f"generating RMAT-{options.scale}, codec raw")
        built = tg.generate("rmat", graph, scale=options.scale, codec="raw", layouts="analytics")
        memory = {threads: _least_memory(graph, threads) for threads in options.threads}
        records = []
        for _, threads, job, engine in itertools.product(
            range(options.repetitions), options.threads, (READS, *JOBS), ENGINES
        ):
            if job == READS:
                records.append(_bare(graph, engine, threads))
            else:
                records.append(_run(graph, engine, threads, job, memory[threads]))
    rows = [
        _row(threads, job, engine, records)
        for threads, job, engine in itertools.product(options.threads, (READS, *JOBS), ENGINES)
    ]
    header = ("threads", "job", "engine", "s", "of posix", "GB/s", "of posix", "CPU s/GB")
    reporting.table(f"RMAT-{options.scale}, one modelled drive {DRIVE}", header, rows)
    reporting.save(
        options,
        "realgraph_user_space",
        "the graph lies in tmpfs; the drive is modelled",
        {"build": built, "runs": records},
    )


def _options() -> argparse.Namespace:
    shared = reporting.arguments(__doc__ or "", scale=22)
    parser = argparse.ArgumentParser(
        parents=[shared], conflict_handler="resolve", description=shared.description
    )
    parser.add_argument(
        "--threads", type=int, nargs="+", default=[1, 2, 4], help="of every engine, in turn"
    )
    parser.add_argument("--directory", type=Path, default=Path("/dev/shm"), help="a tmpfs")
    return parser.parse_args()


@contextmanager
def _directory(parent: Path) -> Iterator[Path]:
    """A folder for the graph, which is deleted."""
    path = Path(tempfile.mkdtemp(prefix="realgraph-", dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def _least_memory(graph: Path, threads: int) -> str:
    """The least memory in which every job runs: what the errors of less say."""
    memory = "1MiB"
    for name, arguments in JOBS.items():
        for _ in range(8):
            try:
                with tg.open(graph, memory=memory, threads=threads) as opened:
                    getattr(opened, name)(**arguments)
                break
            except tg.BudgetError as error:
                found = re.search(r'memory="(\d+MiB)"', str(error))
                if found is None:
                    raise
                memory = found[1]
    return memory


def _run(graph: Path, engine: str, threads: int, job: str, memory: str) -> Record:
    """One run of a job by an engine."""
    with tg.open(graph, memory=memory, threads=threads, io=ENGINES[engine]) as opened:
        cpu = _cpu_seconds()
        getattr(opened, job)(**JOBS[job])
        cpu, run = _cpu_seconds() - cpu, opened.last_run
    return {
        "engine": engine,
        "threads": threads,
        "job": job,
        "memory": memory,
        "seconds": run["seconds"],
        "bytes": run["bytes_read"],
        "bandwidth": run["bytes_read"] / run["seconds"],
        "cpu_seconds_per_gb": cpu / (run["bytes_read"] / 1e9),
    }


def _bare(graph: Path, engine: str, threads: int) -> Record:
    """Bare reads by an engine."""
    cpu = time.process_time()
    found = json.loads(
        _native.bench_io(str(graph), ENGINES[engine], 1 << 20, 8, threads, READ_SECONDS)
    )
    cpu = time.process_time() - cpu
    return {
        "engine": engine,
        "threads": threads,
        "job": READS,
        "seconds": 1e9 / found["bandwidth"],
        "bytes": found["bytes"],
        "bandwidth": found["bandwidth"],
        # Of queue pairs with the drive's own threads, which have ended.
        "cpu_seconds_per_gb": cpu / (found["bytes"] / 1e9),
    }


def _cpu_seconds() -> float:
    """Of this process, user's and kernel's, without the threads that are drives."""
    drives = 0.0
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text().startswith(CONTROLLER):
            fields = (task / "stat").read_text().rpartition(")")[2].split()
            drives += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return time.process_time() - drives


def _row(threads: int, job: str, engine: str, records: list[Record]) -> tuple[object, ...]:
    """The medians of an engine, and what they are of those of `posix`."""

    def of(name: str, what: str) -> float:
        chosen = [
            record[what]
            for record in records
            if (record["engine"], record["threads"], record["job"]) == (name, threads, job)
        ]
        return median(chosen)

    seconds, bandwidth = of(engine, "seconds"), of(engine, "bandwidth")
    return (
        threads,
        job,
        engine,
        f"{seconds:.3f}",
        f"{seconds / of('posix', 'seconds'):.2f}",
        f"{bandwidth / 1e9:.2f}",
        f"{bandwidth / of('posix', 'bandwidth'):.2f}",
        f"{of(engine, 'cpu_seconds_per_gb'):.3f}",
    )


if __name__ == "__main__":
    main()
