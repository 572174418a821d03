"""What checksums cost: PageRank with them and without, every block read in every iteration.

Both codecs, the least budget that PageRank runs in, in turn. Processor seconds say what checking
takes, seconds whether anybody waits for it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import tiergraph as tg
from common import machine, reporting
from common.reporting import Record, median, say
from engines.on_disk import OnDisk


def main() -> None:
    """Measures each codec, prints and saves."""
    options = _options()
    records = []
    with reporting.data_directory("checksums", options.keep) as directory:
        for codec in ("packed", "raw"):
            say(f"building RMAT-{options.scale}, {codec}")
            path = directory / f"{codec}.tg"
            tg.generate("rmat", path, scale=options.scale, codec=codec, layouts="analytics")
            records.append({"codec": codec, "repetitions": _measure(path, options)})
        cache = machine.drop_page_cache()
    reporting.table(
        f"RMAT-{options.scale} directed, nothing resident, an iteration, medians",
        ("codec", "checksums", "s", "processor s", "GB/s read", "processor, against without"),
        [row for record in records for row in _rows(record)],
    )
    reporting.save(options, "checksums", f"direct reads past the page cache; {cache}", records)


def _options() -> argparse.Namespace:
    parser = reporting.arguments(__doc__ or "", scale=22)
    parser.add_argument("--iterations", type=int, default=10, help="of PageRank, a repetition")
    return parser.parse_args()


def _measure(path: Path, options: argparse.Namespace) -> list[Record]:
    how = {"path": str(path), "io": "auto", "threads": options.threads}
    memory = OnDisk().least_memory(**how, algorithm="pagerank", arguments={"iterations": 1})
    repetitions = []
    for repetition in range(options.repetitions):
        say(f"repetition {repetition + 1} of {options.repetitions}")
        for checksums in (True, False):
            graph = tg.open(path, memory=memory, threads=options.threads, checksums=checksums)
            before = machine.processor_seconds()
            graph.pagerank(iterations=options.iterations, tolerance=None)
            used = machine.processor_seconds() - before
            run = {"checksums": checksums, "processor_seconds": used / options.iterations}
            repetitions.append(run | graph.last_run)
    return repetitions


def _rows(record: Record) -> list[tuple[object, ...]]:
    rows = []
    of = {on: [r for r in record["repetitions"] if r["checksums"] == on] for on in (True, False)}
    without = median([run["processor_seconds"] for run in of[False]])
    for on, runs in of.items():
        used = median([run["processor_seconds"] for run in runs])
        seconds = median([run["seconds_per_iteration"] for run in runs])
        speed = median([run["read_bandwidth"] / 1e9 for run in runs])
        codec, ratio = record["codec"], f"{used / without - 1:+.1%}"
        rows.append((codec, "on" if on else "off", seconds, used, speed, ratio))
    return rows


if __name__ == "__main__":
    main()
