"""Rows that a GPU's kernels ask drives for: how many a second, and what limits that.

`python bench/gpu/drives/drive_reads.py [--out FILE] [--parts rows blocks …] [--seconds 1]`

Needs a GPU with NVRTC, tiergraph from a wheel, and memory for the table. Drives are threads of this
process (software controllers) over a table in its memory: what they give is no drive's figure, and
`modelled` ones are held back to a drive's reads a second. Reads are random, and each measurement
compares some rows with the table first. Parts:

- `rows`: bytes a row, as fast as threads copy; and `control`, where drives answer without copying,
  which is what the GPU's side and the link can do.
- `blocks`: threads of the block that submits, by blocks that complete.
- `threads`: threads that are drives.
- `entries`: entries of a queue: how much staging memory is in use, in caches or not.
- `alone`: each kernel by itself, with drives that do not copy and all completions there.
- `coupled`: warps that each wait for their own row, as BaM and GIDS do, beside two kernels: by
  blocks, the last as many as run at once, with one queue pair for each thread that is a drive and
  with four. No page cache: every row is a miss. Its rings lie in the host's memory, as those of the
  two kernels do, not in the GPU's as BaM's.
- `drives`: 1 to 12 modelled drives of 750,000 reads a second, and the share of it that is reached.

`link` is what plain copies from pinned memory reach in the same run. One JSON object a row to FILE.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tiergraph as tg
from tiergraph import _native, devices

Load = dict[str, Any]
PARTS = ("rows", "blocks", "threads", "entries", "alone", "coupled", "drives")
ROW_BYTES = (512, 1024, 2048, 4096)
ENDS = (512, 4096)
"""The smallest and the largest row, where one size would not do."""
MODELLED_IOPS = 750e3
"""Of an Intel P5510, as Hyperion (section III-A) has it."""
DRIVES = (1, 2, 3, 4, 6, 8, 10, 12)
MOST_ENTRIES = 4096


def main() -> None:
    """Prints a row for each measurement."""
    args = parser().parse_args()
    devices.find_libraries()
    begin = time.perf_counter()
    bench = _native.GpuReadBench(args.table << 20, args.ordinal)
    link = bench.link()
    name = tg.cuda_devices()[args.ordinal].name
    print(f"{name}; table of {args.table} MiB; plain copies over the link: {link / 1e9:.1f} GB/s")
    rows: list[Load] = []
    for part in args.parts:
        print(f"\n{part}\n{HEAD}")
        for load in loads(part, args):
            row = {"part": part} | load | {"link": link} | measured(bench, load)
            print(line(row), flush=True)
            rows.append(row)
            if args.out:
                args.out.write_text("".join(json.dumps(r) + "\n" for r in rows))
    print(f"\n{len(rows)} measurements in {time.perf_counter() - begin:.0f} s")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parsed = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parsed.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parsed.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parsed.add_argument("--table", type=int, default=8192, help="MiB of the table")
    parsed.add_argument("--rows", type=int, default=1 << 18, help="asked for at a time")
    cores = max(1, (os.cpu_count() or 2) - 1)
    parsed.add_argument(
        "--threads", type=int, default=min(15, cores), help="threads that are drives, at most"
    )
    parsed.add_argument("--entries", type=int, default=1024, help="entries of a queue")
    parsed.add_argument("--drives", type=int, nargs="+", default=DRIVES, help="how many modelled")
    parsed.add_argument("--ordinal", type=int, default=0, help="the GPU's number")
    parsed.add_argument("--out", type=Path, help="one JSON object a row goes here")
    return parsed


def loads(part: str, args: argparse.Namespace) -> Iterator[Load]:
    """The loads of a part; docs of their fields: `io::gpu_reads::GpuReadLoad`."""
    base = {
        "manner": "split",
        "row_bytes": 4096,
        "rows": args.rows,
        "drives": 1,
        "threads": args.threads,
        "pairs_per_drive": args.threads,
        "entries": args.entries,
        "batches": 2,
        "submit_threads": 1024,
        "blocks": 16,
        "threads_per_block": 512,
        "iops": None,
        "copies": True,
        "seconds": args.seconds,
    }
    if part == "rows":
        for copies, row_bytes in itertools.product((True, False), ROW_BYTES):
            yield base | {"row_bytes": row_bytes, "copies": copies}
    if part == "blocks":
        for row_bytes, threads, blocks in itertools.product(ENDS, (512, 1024), (4, 8, 16)):
            yield base | {"row_bytes": row_bytes, "submit_threads": threads, "blocks": blocks}
    if part == "threads":
        counts = [n for n in (4, 8, 12, 15) if n < args.threads] + [args.threads]
        for row_bytes, threads in itertools.product(ENDS, counts):
            queues = {"threads": threads, "pairs_per_drive": threads}
            yield base | {"row_bytes": row_bytes} | queues
    if part == "entries":
        for row_bytes, entries in itertools.product(ENDS, (128, 256, 512, 1024, MOST_ENTRIES)):
            yield base | {"row_bytes": row_bytes, "entries": entries}
    if part == "alone":
        alone = {"manner": "alone", "copies": False, "entries": MOST_ENTRIES}
        for row_bytes, threads in itertools.product(ENDS, (512, 1024)):
            yield base | alone | {"row_bytes": row_bytes, "submit_threads": threads}
        for row_bytes, blocks in itertools.product(ENDS, (4, 8)):
            yield base | alone | {"row_bytes": row_bytes, "blocks": blocks}
    if part == "coupled":
        for row_bytes in ENDS:
            yield base | {"row_bytes": row_bytes}
            coupled = {"manner": "coupled", "row_bytes": row_bytes}
            for pairs, blocks in itertools.product((1, 4), (16, 64, 256, 1 << 16)):
                queues = {
                    "pairs_per_drive": args.threads * pairs,
                    "entries": args.entries // pairs,
                }
                yield base | coupled | queues | {"blocks": blocks}
    if part == "drives":
        for row_bytes, drives in itertools.product(ENDS, args.drives):
            # Threads for each drive as far as there are cores; a queue pair for each, two at least.
            threads = max(1, args.threads // drives)
            modelled = {
                "row_bytes": row_bytes,
                "drives": drives,
                "threads": threads * drives,
                "pairs_per_drive": max(2, threads),
                "entries": MOST_ENTRIES if drives > 2 else args.entries,
                "iops": MODELLED_IOPS,
            }
            yield base | modelled


def measured(bench: _native.GpuReadBench, load: Load) -> Load:
    """The rate of a load, and its share of what modelled drives allow; or why there is none."""
    try:
        rate: Load = json.loads(bench.measure(json.dumps(load)))
    except tg.Error as error:
        return {"error": str(error)}
    if load["iops"]:
        rate["share"] = rate["reads_per_second"] / (load["drives"] * load["iops"])
    return rate


HEAD = (
    f"{'manner':8} {'B/row':>5} {'drives':>6} {'threads':>7} {'pairs':>5} {'entries':>7} "
    f"{'submit':>6} {'blocks':>6} {'copies':>6} {'M reads/s':>10} {'GB/s':>6} {'of link':>7}"
)


def line(row: Load) -> str:
    """A measurement as a line of the table."""
    blocks = "all" if row["blocks"] > 1000 else row["blocks"]
    text = (
        f"{row['manner']:8} {row['row_bytes']:5} {row['drives']:6} {row['threads']:7} "
        f"{row['pairs_per_drive']:5} {row['entries']:7} {row['submit_threads']:6} {blocks:>6} "
        f"{'yes' if row['copies'] else 'no':>6} "
    )
    if "error" in row:
        return f"{text} {row['error']}"
    gb = row["bytes_per_second"] / 1e9
    text += f"{row['reads_per_second'] / 1e6:10.2f} {gb:6.1f} {gb * 1e9 / row['link']:6.0%}"
    if "share" in row:
        text += f"   {row['share']:.1%} of the modelled drives"
    if row["submit_ns"] is not None:
        submit, complete = row["submit_ns"], row["complete_ns"]
        text += f"   {submit:.2f} ns a submission, {complete:.2f} ns a completion"
    return text


if __name__ == "__main__":
    main()
