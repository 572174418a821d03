"""Is this build of tiergraph slower on a GPU than another? The same scripts by both, in turn.

`python bench/gpu/two_builds.py --before DIR [--after DIR] [--repetitions 3] [--out FILE]`

Each script runs in a process of its own with `tiergraph` from either folder; what it measures is
matched row by row. Prints the ratio of medians of every time (above 1: slower now) and throughput
(below 1: slower now); one JSON object a measurement goes to FILE.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import _arguments

HERE = Path(__file__).parent
SCRIPTS: dict[str, list[str]] = {
    "resident": ["--scale", "22"],
    "host_tier": ["--scale", "23"],
    "streaming": ["--scale", "23", "--tables", "memory"],
    "sampling": ["--scale", "21"],
    "training": ["--scale", "20", "--batches", "16"],
}
STAGES = ("prepare", "train", "apart", "together")
MARKS = ("seconds", "per_second", "ms", "arcs_s", "gb_s", "bandwidth", *STAGES)
"""What the names of measured numbers have in them."""


def main() -> None:
    """Prints a row a measurement."""
    parser = _arguments.arguments(__doc__)
    parser.add_argument("--before", type=Path, required=True, help="a folder with another build")
    parser.add_argument("--after", type=Path, help="a folder with this build; what Python imports")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument(
        "--seconds",
        type=float,
        default=float("inf"),
        help="begin no further repetition after so many",
    )
    parser.add_argument("--scripts", nargs="+", default=list(SCRIPTS), choices=list(SCRIPTS))
    args = parser.parse_args()
    builds = {"before": args.before, "now": args.after}
    compared = []
    for script in args.scripts:
        runs: dict[str, list[list[dict[str, Any]]]] = {build: [] for build in builds}
        begin = time.monotonic()
        for repetition in range(args.repetitions):
            if time.monotonic() - begin > args.seconds:
                print(f"{script}: {repetition} repetitions", flush=True)
                break
            for build in list(builds) if repetition % 2 else reversed(builds):
                rows = measured(script, builds[build], args.folder)
                if rows is not None:
                    runs[build].append(rows)
        for row in matched(script, runs):
            compared.append(row)
            print(
                f"{script:10} {row['what'][:60]:60} {row['key']:24} "
                f"{row['now']:.4g} against {row['before']:.4g}: {row['ratio']:.3f}",
                flush=True,
            )
    if args.out:
        args.out.write_text("".join(json.dumps(row) + "\n" for row in compared))


def measured(script: str, package: Path | None, folder: Path) -> list[dict[str, Any]] | None:
    """The rows that a script writes with one build; none if it failed, which is said."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as out:
        command = [sys.executable, str(HERE / f"{script}.py"), *SCRIPTS[script]]
        command += ["--folder", str(folder), "--out", out.name]
        paths = [str(package)] if package else []
        paths += [p for p in [os.environ.get("PYTHONPATH")] if p and not package]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            print(f"{script} with {package} failed: {done.stderr.strip()[-300:]}", flush=True)
            return None
        return [json.loads(line) for line in Path(out.name).read_text().splitlines()]


def matched(script: str, runs: dict[str, list[list[dict[str, Any]]]]) -> list[dict[str, Any]]:
    """Each measured number of each row, with the medians of both builds."""
    if not all(runs.values()):
        return []
    rows = []
    for number, row in enumerate(runs["now"][0]):
        words = " ".join(str(value) for value in row.values() if isinstance(value, str))
        for key, value in row.items():
            if not isinstance(value, float) or not any(mark in key for mark in MARKS):
                continue
            medians = {
                build: statistics.median(run[number][key] for run in of_build)
                for build, of_build in runs.items()
            }
            if medians["before"]:
                ratio = medians["now"] / medians["before"]
                rows.append({"script": script, "what": words, "key": key, "ratio": ratio} | medians)
    return rows


if __name__ == "__main__":
    main()
