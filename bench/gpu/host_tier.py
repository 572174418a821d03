"""PageRank on a GPU that has room for a part of the blocks: what host memory brings.

`python bench/gpu/host_tier.py [--scale 23] [--folder DIR] [--device-memory 740MiB] [--out FILE]`

An iteration with nothing kept (every block is read), with blocks in as much device memory as asked
for and the others in pinned host memory, and with all of them on the device. Prints medians of the
iterations after the first, and the seconds of whole calls with few and many iterations on a graph
that was just opened, where what is kept must first be read; one JSON object a row goes to FILE.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import _arguments

import tiergraph as tg

ITERATIONS = 12
CALLS = (1, 2, 4, 12)
"""Iterations of the whole calls."""
KEYS = (
    "device_resident_bytes",
    "host_resident_bytes",
    "host_resident_why",
    "bytes_read",
    "loaded_bytes",
)


def main() -> None:
    """Prints a row for each codec and place."""
    parser = _arguments.arguments(__doc__, scale=23)
    parser.add_argument("--device-memory", default="740MiB", help="for state, buffers and blocks")
    args = parser.parse_args()
    places: dict[str, Any] = {
        "nothing kept": {"device_residency": False},
        "device and host": {"device_memory": args.device_memory},
        "device": {},
    }
    rows = []
    for codec in ("raw", "packed"):
        path = args.folder / f"host-tier-{codec}-{args.scale}.tg"
        if not path.exists():
            options = {"codec": codec, "order": "degree", "layouts": "analytics"}
            tg.generate("rmat", path, scale=args.scale, **options)
        for place, options in places.items():
            graph = tg.open(path, device="cuda", **options)
            graph.pagerank(iterations=ITERATIONS)
            run = graph.last_run
            seconds = statistics.median(i["seconds"] for i in run["details"][1:])
            row = {"codec": codec, "place": place, "seconds": seconds, "arcs": run["arcs"]}
            rows.append(row | {key: run[key] for key in KEYS})
            rows[-1] |= {f"call_{n}_seconds": first_call(path, options, n) for n in CALLS}
            calls = " ".join(f"{n}: {rows[-1][f'call_{n}_seconds'] * 1e3:.0f}" for n in CALLS)
            kept = run["host_resident_bytes"] / 1e6
            print(
                f"{codec:6} {place:16} {seconds * 1e3:7.2f} ms, "
                f"{run['arcs'] / seconds / 1e9:6.1f} G arcs/s; {kept:6.0f} MB in host memory; "
                f"first calls, ms by iterations: {calls}",
                flush=True,
            )
    if args.out:
        args.out.write_text("".join(json.dumps(row) + "\n" for row in rows))


def first_call(path: Path, options: dict[str, Any], iterations: int) -> float:
    """Median seconds of a call of so many iterations, of a graph that was just opened."""
    seconds = []
    for _ in range(3):
        with tg.open(path, device="cuda", **options) as graph:
            graph.pagerank(iterations=iterations)
            seconds.append(graph.last_run["seconds"])
    return statistics.median(seconds)


if __name__ == "__main__":
    main()
