"""PageRank and WCC on a GPU with nothing resident: how fast blocks reach it, and what limits that.

`python bench/gpu/streaming.py [--scale 24] [--folder /dev/shm] [--disk DIR] [--out FILE]
[--tables memory disk modelled ways]`

Four tables, each beside its ceiling in the same run:

1. from memory-backed files (a stand-in for a fast array, not a drive): bytes a second against bare
   reads of the same file and against a copy from pinned host memory to the GPU, medians of rounds;
2. from the real disk under DIR, against bare reads of the same file;
3. the papers' modes (RealGraphGPU++, figures 6 and 7) on a *modelled* drive of 7 and of 14 GB/s
   over the memory-backed files: a thread that reads, copies and computes one block after the other
   by blocking reads (RG-no), against asynchronous slots (RG-opt), whose reader threads stand in for
   the drive's own copying;
4. `transfers="direct"` (cuFile) beside the other two modes over the same file, under DIR and
   memory-backed, in turn. Where nvidia-fs is not loaded cuFile copies through host memory, and the
   row says so: it is then no measure of a direct way.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from pathlib import Path
from typing import Any

import _arguments
import torch

import tiergraph as tg

CODECS = ("raw", "packed")
TABLES = ("memory", "disk", "modelled", "ways")
ITERATIONS = 6
ROUNDS = 5
MEASURED = ("seconds", "bandwidth", "arcs_per_second", "read_ceiling", "copy_ceiling", "share")
GB = 1e9


def main() -> None:
    """Prints the tables."""
    args = parser().parse_args()
    if args.tables is None:
        args.tables = [table for table in TABLES if table != "disk" or args.disk]
    elif "disk" in args.tables and not args.disk:
        parser().error("the table `disk` needs `--disk DIR`")
    rows: list[dict[str, Any]] = []
    if "memory" in args.tables:
        graphs = {codec: build(args.folder, args.scale, codec) for codec in CODECS}
        rows.extend(memory_backed(graphs, args.threads))
    if "disk" in args.tables:
        for codec in CODECS:
            rows.append(real_disk(build(args.disk, args.scale, codec), codec))
    if "modelled" in args.tables:
        raw = build(args.folder, args.scale, "raw")
        for drives, threads in itertools.product((1, 2), args.modelled_threads):
            rows.extend(modelled(raw, drives * 7 * GB, threads))
    if "ways" in args.tables:
        for folder, codec in itertools.product(filter(None, (args.folder, args.disk)), CODECS):
            rows.extend(ways(build(folder, args.scale, codec), codec))
    if args.out:
        args.out.write_text("".join(json.dumps(r) + "\n" for r in rows))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parsed = _arguments.arguments(__doc__)
    parsed.add_argument("--disk", type=Path)
    parsed.add_argument("--tables", nargs="+", choices=TABLES)
    parsed.add_argument("--threads", type=int, nargs="+", default=[12])
    parsed.add_argument("--modelled-threads", type=int, nargs="+", default=[1, 2])
    return parsed


def build(folder: Path, scale: int, codec: str) -> Path:
    """The graph, generated if it is not there."""
    path = folder / f"{codec}-{scale}.tg"
    if not path.exists():
        options = {"order": "degree"} if codec == "raw" else {"layouts": "analytics"}
        tg.generate("rmat", path, scale=scale, codec=codec, **options)
    return path


def copy_ceiling() -> float:
    """Bytes a second from pinned host memory to the GPU, in pieces of a block."""
    host = torch.empty(1 << 30, dtype=torch.uint8, pin_memory=True)
    device = torch.empty_like(host, device="cuda")
    times = []
    for _ in range(5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        device.copy_(host, non_blocking=True)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return len(host) / statistics.median(times)


def passes(path: Path, **options: Any) -> dict[str, Any]:
    """PageRank with nothing resident: the median iteration after the first."""
    graph = tg.open(path, device="cuda", device_residency=False, **options)
    graph.ceiling = True
    graph.pagerank(iterations=ITERATIONS)
    run = graph.last_run
    seconds = statistics.median(i["seconds"] for i in run["details"][1:])
    return {
        "seconds": seconds,
        "bandwidth": run["pass_bytes"] / seconds,
        "arcs_per_second": run["arcs"] / seconds,
        "read_ceiling": run["read_ceiling"],
        "io_engine": run["io_engine"],
        "io_engine_why": run["io_engine_why"],
        "threads": run["threads"],
    }


def memory_backed(graphs: dict[str, Path], threads: list[int]) -> list[dict[str, Any]]:
    """The first table: each configuration in turn, a copy's speed before each round."""
    runs: dict[tuple[str, int, bool], list[dict[str, Any]]] = {
        key: [] for key in itertools.product(graphs, threads, (True, False))
    }
    for _ in range(ROUNDS):
        link = copy_ceiling()
        for (codec, count, checksums), done in runs.items():
            run = passes(graphs[codec], threads=count, checksums=checksums)
            bound = min(link, run["read_ceiling"])
            done.append(run | {"copy_ceiling": link, "share": run["bandwidth"] / bound})
    rows = []
    for (codec, count, checksums), done in runs.items():
        middle = {key: statistics.median(run[key] for run in done) for key in MEASURED}
        on = "on " if checksums else "off"
        print(
            f"memory-backed {codec:7} {count:2} threads, checksums {on}: "
            f"{middle['bandwidth'] / GB:5.1f} GB/s, {middle['share']:4.0%} of the smaller of "
            f"storage ({middle['read_ceiling'] / GB:.1f}) and copy "
            f"({middle['copy_ceiling'] / GB:.1f}); {middle['arcs_per_second'] / GB:5.1f} G arcs/s"
        )
        row = {"what": "memory-backed", "codec": codec, "threads": count, "checksums": checksums}
        rows.append(row | middle | {"io_engine": done[0]["io_engine"], "rounds": done})
    return rows


def real_disk(path: Path, codec: str) -> dict[str, Any]:
    """A row of the second table."""
    row = passes(path)
    print(
        f"real disk {codec:7}: {row['bandwidth'] / GB:5.2f} GB/s, "
        f"{row['bandwidth'] / row['read_ceiling']:4.0%} of bare reads "
        f"({row['read_ceiling'] / GB:.2f}); {row['arcs_per_second'] / GB:5.2f} G arcs/s"
    )
    return {"what": "real disk", "codec": codec, **row}


def ways(path: Path, codec: str) -> list[dict[str, Any]]:
    """The three ways to the device over one file, in turn; the median of three runs of each."""
    runs: dict[str, list[dict[str, Any]]] = {"sync": [], "async": [], "direct": []}
    for _ in range(3):
        for way, done in runs.items():
            try:
                done.append(passes(path, transfers=way))
            except tg.Error as error:
                print(f"{path.parent} {codec:7} {way:6}: {str(error).splitlines()[0]}")
    rows = []
    for way, done in runs.items():
        if done:
            row = sorted(done, key=lambda run: run["seconds"])[len(done) // 2]
            share = row["bandwidth"] / row["read_ceiling"]
            print(
                f"{path.parent} {codec:7} {way:6}: {row['bandwidth'] / GB:5.2f} GB/s, {share:4.0%} "
                f"of bare reads; {row['io_engine']}, {row['io_engine_why']}"
            )
            rows.append(
                {"what": "ways", "folder": str(path.parent), "codec": codec, "way": way, **row}
            )
    return rows


def modelled(path: Path, bandwidth: float, threads: int) -> list[dict[str, Any]]:
    """Both modes at one bandwidth, PageRank and WCC, interleaved."""
    modes = {
        "RG-no": {"io": "posix", "transfers": "sync"},
        "RG-opt": {"io": "posix-pool", "transfers": "async"},
    }
    times: dict[tuple[str, str], list[float]] = {}
    bytes_of: dict[str, int] = {}
    for _ in range(3):
        for mode, options in modes.items():
            graph = tg.open(
                path,
                device="cuda",
                device_residency=False,
                threads=threads,
                modelled_bandwidth=int(bandwidth),
                **options,  # type: ignore[arg-type]
            )
            graph.pagerank(iterations=3)
            run = graph.last_run
            times.setdefault((mode, "pagerank"), []).extend(
                i["seconds"] for i in run["details"][1:]
            )
            bytes_of["pagerank"] = run["pass_bytes"]
            graph.wcc()
            times.setdefault((mode, "wcc"), []).append(graph.last_run["details"][0]["seconds"])
            bytes_of["wcc"] = graph.last_run["bytes_read"]
    rows = []
    for algorithm in ("pagerank", "wcc"):
        seconds = {mode: statistics.median(times[mode, algorithm]) for mode in modes}
        rate = {mode: bytes_of[algorithm] / s for mode, s in seconds.items()}
        print(
            f"modelled {bandwidth / GB:.0f} GB/s, {threads} threads, {algorithm:8}: "
            f"RG-no {rate['RG-no'] / GB:5.2f} GB/s, RG-opt {rate['RG-opt'] / GB:5.2f} GB/s "
            f"({rate['RG-opt'] / bandwidth:4.0%} of the limit): "
            f"time {seconds['RG-opt'] / seconds['RG-no'] - 1:+.0%}, "
            f"bandwidth {rate['RG-opt'] / rate['RG-no']:.2f} x"
        )
        for mode in modes:
            rows.append(
                {
                    "what": "modelled drive",
                    "limit": bandwidth,
                    "threads": threads,
                    "algorithm": algorithm,
                    "mode": mode,
                    "seconds": seconds[mode],
                    "bandwidth": rate[mode],
                }
            )
    return rows


if __name__ == "__main__":
    main()
