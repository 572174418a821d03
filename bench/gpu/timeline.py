"""How much of reading, copying and computing on a GPU goes on at once, in the papers' modes.

`python bench/gpu/timeline.py [--scale 22] [--folder DIR] [--traces DIR] [--out FILE]`

PageRank and WCC with nothing resident, one worker: a stage after the other by blocking reads (RG-no
of RealGraphGPU), asynchronous slots (RG-opt), and cuFile's reads into device memory (RG++; where
nvidia-fs is not loaded, cuFile copies through host memory, and the row says so; where it refuses
the file, its reason is the row). Of each stage the share of the run in which it was busy: they add
up to about one where stages wait for each other, and to more where they overlap. A trace costs a
few events a block, so runs are also timed without.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import _arguments

import tiergraph as tg

MODES = {
    "RG-no": {"io": "posix", "transfers": "sync"},
    "RG-opt": {"io": "auto", "transfers": "async"},
    "RG++": {"transfers": "direct"},
}
STAGES = {
    "storage_to_host_seconds": "storage to host",
    "host_to_device_seconds": "host to device",
    "storage_to_device_seconds": "storage to device",
    "device_seconds": "device",
}


def main() -> None:
    """Prints a row a mode and algorithm, and writes each trace."""
    parsed = _arguments.arguments(__doc__, scale=22)
    parsed.add_argument("--traces", type=Path, default=Path("."), help="timelines go here")
    parsed.add_argument("--threads", type=int, default=1)
    args = parsed.parse_args()
    path = args.folder / f"raw-{args.scale}.tg"
    if not path.exists():
        tg.generate("rmat", path, scale=args.scale, codec="raw", order="degree")
    rows = []
    for algorithm, mode in itertools.product(("pagerank", "wcc"), MODES):
        try:
            rows.append(measure(path, mode, algorithm, args.threads, args.traces))
        except tg.Error as error:
            print(f"{algorithm:8} {mode:6}: {str(error).splitlines()[0]}")
    if args.out:
        args.out.write_text("".join(json.dumps(row) + "\n" for row in rows))


def measure(path: Path, mode: str, algorithm: str, threads: int, traces: Path) -> dict[str, Any]:
    """One run without a trace, one with."""
    graph = tg.open(path, device="cuda", device_residency=False, threads=threads, **MODES[mode])  # type: ignore[arg-type]
    run = {"pagerank": lambda **o: graph.pagerank(iterations=3, **o), "wcc": graph.wcc}[algorithm]
    run()
    run()
    plain = graph.last_run["seconds"]
    run(trace=traces / f"{algorithm}-{mode}.json")
    traced = graph.last_run
    shares = [f"{name} {traced[stage] / traced['seconds']:4.0%}" for stage, name in STAGES.items()]
    print(
        f"{algorithm:8} {mode:6}: {plain:6.3f} s ({traced['seconds'] / plain - 1:+.1%} traced); "
        f"busy: {', '.join(shares)}; {traced['io_engine']}, {traced['io_engine_why']}"
    )
    kept = {stage: traced[stage] for stage in STAGES}
    return {
        "mode": mode,
        "io_engine_why": traced["io_engine_why"],
        "algorithm": algorithm,
        "seconds": plain,
        "traced": traced["seconds"],
    } | kept


if __name__ == "__main__":
    main()
