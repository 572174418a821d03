"""What the planner predicts of an algorithm's iterations, beside what they take.

One run of PageRank in enough memory for the whole graph, which reads every block once, says what
computing and comparing checksums take, and bare reads beside it what the drive gives. From that
alone seconds an iteration are predicted for less memory, and then measured: blocks that do not fit
are read from the drive, past the page cache. Also how long a report of 100,000 spans takes to
write, and its size.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import tiergraph as tg
from common import reporting
from common.reporting import Record, median, say
from tiergraph import report

SHARES = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)
ITERATIONS = 8
SPANS = 100_000


def main() -> None:
    """Measures, prints and saves."""
    options = reporting.arguments(__doc__ or "", scale=23, repetitions=3).parse_args()
    with reporting.data_directory("plans", options.keep) as directory:
        records = iterations(directory, options)
        records.append(of_report(directory))
    planned = [record for record in records if "share" in record]
    rows = [
        (
            f"{record['share']:.0%}",
            f"{record['measured'] * 1e3:.0f}",
            f"{record['predicted'] * 1e3:.0f}",
            f"{record['measured'] / record['predicted'] - 1:+.1%}",
            record["bottleneck"],
        )
        for record in planned
    ]
    reporting.table(
        f"PageRank, {options.threads} threads, ms an iteration, medians",
        ("in memory", "measured", "predicted", "off", "limit"),
        rows,
    )
    written = records[-1]
    say(f"report of {SPANS:,} spans: {written['seconds']:.2f} s, {written['bytes'] / 1e6:.1f} MB")
    reporting.save(options, "plans", "reads past the page cache", records)


def iterations(directory: Path, options: argparse.Namespace) -> list[Record]:
    """An iteration with each share of the graph in memory, predicted and measured in turns."""
    path = directory / "plans.tg"
    if not path.exists():
        tg.generate("rmat", path, scale=options.scale)
    with tg.open(path, threads=options.threads) as graph:
        info = graph.info()
        base = int(info["reserved_bytes"]) + graph.propagate_bytes(2)
        whole = measured(path, base + 2 * int(info["bytes"]), options, again=False)
    records: list[Record] = []
    for share in SHARES:
        memory = base + int(share * whole["pass_bytes"])
        runs = [measured(path, memory, options) for _ in range(options.repetitions)]
        resident = median([run["resident_bytes"] for run in runs]) / whole["pass_bytes"]
        # The drive gives more in some minutes than in others.
        ceiling = median([run["read_ceiling"] for run in runs])
        now = whole | {"read_ceiling": ceiling}
        (estimate,) = tg.plan_passes(now, drives=[1], shares=[min(resident, 1.0)])
        record: Record = {"share": resident, "predicted": estimate.seconds}
        record |= {"measured": median([run["seconds_per_iteration"] for run in runs])}
        records.append(record | {"bottleneck": estimate.bottleneck, "whole": whole, "runs": runs})
        say(f"{resident:.0%} in memory")
    return records


def measured(
    path: Path, memory: int, options: argparse.Namespace, again: bool = True
) -> dict[str, Any]:
    """What a run in so much memory says, with bare reads beside it."""
    with tg.open(path, memory=memory, threads=options.threads) as graph:
        graph.ceiling = True
        graph.pagerank(iterations=ITERATIONS)
        if again:
            # The first run fills the memory.
            graph.pagerank(iterations=ITERATIONS)
        return graph.last_run


def of_report(directory: Path) -> Record:
    """Seconds of writing a report of many spans, and its bytes."""
    random = np.random.default_rng(1)
    events = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "storage to host"}}]
    ends = np.zeros(40)
    for number, took in enumerate(random.exponential(100, SPANS)):
        lane = number % 40
        span = {"name": "read", "cat": "read", "ph": "X", "pid": 1, "tid": lane, "ts": ends[lane]}
        events.append(span | {"dur": took, "args": {"bytes": 1 << 20}})
        ends[lane] += took + 10
    with tempfile.TemporaryDirectory() as folder:
        trace, page = Path(folder) / "trace.json", Path(folder) / "report.html"
        trace.write_text(json.dumps({"traceEvents": events}))
        since = time.perf_counter()
        run = {"algorithm": "pagerank", "graph": str(directory / "plans.tg")}
        report.write([report.of(run, report.spans_of(trace))], page)
        return {"seconds": time.perf_counter() - since, "bytes": page.stat().st_size}


if __name__ == "__main__":
    main()
