"""Reads that a GPU starts, in two kernels or coupled, by drives (Hyperion, figures 4 and 12).

`python bench/paper/hyperion_io.py [--out DIR] [--drives 1 4 12] [--seconds 1]`

The paper extracts 256 K rows from 1 to 12 Intel P5510 (750 K reads a second each), and rows of 512
B to 4 KiB from 12: by one block that submits and few that complete, or by warps that each wait for
their own row on all multiprocessors (GIDS). Here drives are modelled: threads of this process that
hold a table in memory and answer no sooner than such drives. `share` is that of the multiprocessors
which blocks of the kernels can occupy; a coupled kernel's blocks are as many as run at once.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator

import _hyperion
from _hyperion import GPU, Row
from matplotlib.figure import Figure

sys.path[:0] = [str(GPU / "drives"), str(GPU)]

SPLIT_BLOCKS = (4, 16)
COUPLED_BLOCKS = (16, 1 << 16)
ROW_BYTES = (512, 1024, 2048, 4096)
IOPS = {"p5510": 750e3, "980pro": 1e6}
MULTIPROCESSORS = 132
"""The number that an H100 has: shares of the GPU are of these."""


def main() -> None:
    """Measures, or draws saved rows."""
    args = parser().parse_args()
    _hyperion.run("hyperion_io", args, lambda: measure(args), line, draw)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parsed = _hyperion.parser(__doc__)
    parsed.add_argument("--drives", type=int, nargs="+", default=[1, 2, 4, 6, 8, 12])
    parsed.add_argument("--kind", choices=list(IOPS), default="p5510")
    parsed.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parsed.add_argument("--table", type=int, default=8192, help="MiB of the table")
    parsed.add_argument("--threads", type=int, default=15, help="threads that are drives, at most")
    return parsed


def measure(args: argparse.Namespace) -> Iterator[Row]:
    """A row for each manner, number of drives and size of a row."""
    import drive_reads

    from tiergraph import _native, devices

    devices.find_libraries()
    bench = _native.GpuReadBench(args.table << 20, 0)
    base = {"rows": 1 << 18, "entries": 1024, "batches": 2, "submit_threads": 1024}
    base |= {"threads_per_block": 512, "copies": True, "seconds": args.seconds}
    most = max(args.drives)
    points = [(drives, 4096) for drives in args.drives]
    points += [(most, row_bytes) for row_bytes in ROW_BYTES[:-1]]
    manners = [("split", blocks) for blocks in SPLIT_BLOCKS]
    manners += [("coupled", blocks) for blocks in COUPLED_BLOCKS]
    for (drives, row_bytes), (manner, blocks) in itertools.product(points, manners):
        threads = max(1, args.threads // drives)
        # A coupled kernel has as many queue pairs as the batches of the other in all.
        pairs = max(2, threads) * (1 if manner == "split" else 2)
        load = base | {"manner": manner, "blocks": blocks, "drives": drives}
        load |= {"row_bytes": row_bytes, "threads": threads * drives, "pairs_per_drive": pairs}
        load |= {"iops": IOPS[args.kind]}
        # A thread's block of 256 threads for coupled kernels: eight fit a multiprocessor.
        taken = blocks + 1 if manner == "split" else blocks / 8
        what = {"kind": args.kind, "gpu_share": min(1.0, taken / MULTIPROCESSORS)}
        yield load | what | drive_reads.measured(bench, load)


def name(row: Row) -> str:
    """The manner of a row, as the paper writes it."""
    blocks = "all" if row["blocks"] > 1000 else row["blocks"]
    return f"split [1, {blocks}]" if row["manner"] == "split" else f"coupled {blocks}"


def line(row: Row) -> str:
    """A row as a line of the table."""
    text = f"{name(row):14} {row['drives']:2} x {row['kind']:6} {row['row_bytes']:5} B  "
    if "error" in row:
        return text + row["error"]
    rate, limit = row["reads_per_second"], row["drives"] * row["iops"]
    gb = row["bytes_per_second"] / 1e9
    return f"{text}{rate / 1e6:6.2f} M/s {gb:5.1f} GB/s {rate / limit:5.0%} of the model"


def draw(rows: list[Row]) -> Figure:
    """Rates by drives, rates by bytes a row, and rate beside the share of the GPU."""
    rows = [row for row in rows if "error" not in row]
    most = max(row["drives"] for row in rows)
    figure, (by_drives, by_bytes, by_share) = _hyperion.panels(3)
    names = list(dict.fromkeys(map(name, rows)))

    def points(x: str, wanted: dict[str, int]) -> dict[str, list[tuple[float, float]]]:
        found = {
            key: [
                (row[x], row["reads_per_second"] / 1e6)
                for row in rows
                if name(row) == key and all(row[k] == v for k, v in wanted.items())
            ]
            for key in names
        }
        return {key: at for key, at in found.items() if at}

    _hyperion.curves(by_drives, points("drives", {"row_bytes": 4096}), "drives", "M reads/s, 4 KiB")
    _hyperion.curves(by_bytes, points("row_bytes", {"drives": most}), "bytes a row", "M reads/s")
    for key in names:
        one = next((r for r in rows if name(r) == key and r["drives"] == most), None)
        if one:
            at = (100 * one["gpu_share"], one["reads_per_second"] / 1e6)
            by_share.plot(*at, "o", color="0.2")
            by_share.annotate(key, at, fontsize=7, xytext=(3, 4), textcoords="offset points")
    by_share.set(xlabel="share of the GPU, %", ylabel="M reads/s", xlim=(0, 115))
    by_share.set_ylim(bottom=0)
    return figure


if __name__ == "__main__":
    main()
