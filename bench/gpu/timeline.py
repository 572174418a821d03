"""How much of reading, copying and computing on a GPU goes on at once, in the papers' two modes.

`python bench/gpu/timeline.py [--scale 22] [--folder DIR] [--traces DIR] [--out FILE]`

PageRank and WCC with nothing resident, one worker: a stage after the other by blocking reads (RG-no
of RealGraphGPU) and asynchronous slots (RG-opt). Of each stage the share of the run in which it was
busy: they add up to about one where stages wait for each other, and to more where they overlap. A
trace costs a few events a block, so runs are also timed without.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import _arguments

import tiergraph as tg

MODES = {
    "RG-no": {"io": "posix", "transfers": "sync"},
    "RG-opt": {"io": "auto", "transfers": "async"},
}
STAGES = ("storage_to_host_seconds", "host_to_device_seconds", "device_seconds")


def main() -> None:
    """Prints a row a mode and algorithm, and writes each trace."""
    parsed = _arguments.arguments(__doc__, scale=22)
    parsed.add_argument("--traces", type=Path, default=Path("."), help="timelines go here")
    parsed.add_argument("--threads", type=int, default=1)
    args = parsed.parse_args()
    path = args.folder / f"raw-{args.scale}.tg"
    if not path.exists():
        tg.generate("rmat", path, scale=args.scale, codec="raw", order="degree")
    rows = [
        measure(path, mode, algorithm, args.threads, args.traces)
        for algorithm in ("pagerank", "wcc")
        for mode in MODES
    ]
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
    shares = [traced[stage] / traced["seconds"] for stage in STAGES]
    print(
        f"{algorithm:8} {mode:6}: {plain:6.3f} s ({traced['seconds'] / plain - 1:+.1%} traced); "
        "busy: storage to host {:4.0%}, host to device {:4.0%}, device {:4.0%}".format(*shares)
    )
    kept = {stage: traced[stage] for stage in STAGES}
    return {
        "mode": mode,
        "algorithm": algorithm,
        "seconds": plain,
        "traced": traced["seconds"],
    } | kept


if __name__ == "__main__":
    main()
