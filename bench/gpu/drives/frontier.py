"""Searches on a GPU of graphs on drives: what small levels read, and who starts those reads.

`python bench/gpu/drives/frontier.py [--before DIR] [--scale 24] [--side 2000] [--out FILE]`

Breadth-first search of a road-like grid in the order of its rows, of the same shuffled, and of an
RMAT graph, none of whose blocks stay in memory (`device_residency=False`), by four threads in
little memory. Ways:

- `blocks`: the build in `--before`, which reads blocks for every level.
- `host`: pages of a small level's lists, by reads that the host starts.
- `gpu`: the same pages, by reads that kernels start.

Drives are modelled (`--drives` of the kind P5510), or, with 0, the folder's file system reads. Each
way runs in a process of its own; figures are medians of `--repetitions` runs of three sources, and
all ways must give the same depths.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import tiergraph as tg

sys.path[1:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]
import _arguments
import long_diameter

KIND = "p5510"
SOURCES = 3
THREADS = 4
MEMORY = {"road": "128MiB", "shuffled": "128MiB", "rmat": "1GiB"}
"""By graph: too little for lists of all arcs, along which the CPU would go on."""
ENGINES = {
    "blocks": ("auto", "modelled:{}*{}"),
    "host": ("auto", "modelled:{}*{}"),
    "gpu": ("gpu", "gpu:modelled:{}*{}"),
}
"""By way, the engine over files and the one over modelled drives."""


def main() -> None:
    """Prints a row for each graph, number of drives and way."""
    if sys.argv[1] == "--child":
        print(json.dumps(searched(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
        return
    args = parser().parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for name in args.graphs:
            path = built(Path(folder) / f"{name}.tg", name, args)
            for drives in args.drives:
                of_drives = [row for way in ENGINES if (row := measured(path, drives, way, args))]
                sums = {json.dumps(row["sums"]) for row in of_drives}
                assert len(sums) == 1, f"{name}: depths differ"
                for row in of_drives:
                    rows.append({"graph": name, "drives": drives} | row)
                    print(line(rows[-1]), flush=True)
    if args.out:
        args.out.write_text("".join(json.dumps(row) + "\n" for row in rows))


def parser() -> argparse.ArgumentParser:
    """The script's arguments."""
    parser = _arguments.arguments(__doc__)
    parser.add_argument("--before", type=Path, help="a folder with a build that reads blocks")
    parser.add_argument("--side", type=int, default=2000, help="of the grid, in vertices")
    parser.add_argument("--drives", type=int, nargs="+", default=[0, 1, 4], help="0: files")
    parser.add_argument(
        "--graphs", nargs="+", default=["road", "shuffled", "rmat"], help="some of the graphs"
    )
    parser.add_argument("--repetitions", type=int, default=3)
    return parser


def built(path: Path, name: str, args: argparse.Namespace) -> Path:
    """The graph of this name."""
    if name == "rmat":
        tg.generate("rmat", path, scale=args.scale, undirected=True)
    else:
        tg.build(long_diameter.road(args.side, shuffled=name == "shuffled"), path, undirected=True)
    return path


def measured(path: Path, drives: int, way: str, args: argparse.Namespace) -> dict[str, Any] | None:
    """What a process measured with one build; none without that build."""
    if way == "blocks" and not args.before:
        return None
    paths = [str(args.before)] if way == "blocks" else []
    paths += [p for p in [os.environ.get("PYTHONPATH")] if p and not paths]
    engine = ENGINES[way][drives > 0].format(KIND, drives)
    command = [sys.executable, __file__, "--child", str(path), engine, str(args.repetitions)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return {"way": way, "engine": engine} | json.loads(done.stdout)


def searched(path: str, engine: str, repetitions: int) -> dict[str, Any]:
    """Seconds and bytes of searches from the same sources, and checksums of their depths."""
    how = {"memory": MEMORY[Path(path).stem], "threads": THREADS, "device_residency": False}
    graph = tg.open(path, device="cuda", io=engine, **how)
    degrees = np.flatnonzero(graph.degrees("in") > 0)
    sources = np.random.default_rng(1).choice(degrees, SOURCES, replace=False)
    runs, sums = [], []
    for turn in range(repetitions + 1):
        for source in sources:
            depths = graph.bfs(int(source))
            run = graph.last_run
            if turn == 0:
                sums.append(zlib.crc32(depths.tobytes()))
                continue
            small = [level for level in run["details"] if level["how"] == "push"]
            runs.append(
                {
                    "seconds": run["seconds"],
                    "levels": run["iterations"],
                    "gigabytes": run["bytes_read"] / 1e9,
                    "small_levels": sum(level["iterations"] for level in small),
                    "small_seconds": sum(level["seconds"] for level in small),
                    "pages": run.get("frontier_pages", 0),
                }
            )
    row = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    return row | {"reads_by": graph.last_run.get("frontier_reads_by"), "sums": sums}


def line(row: dict[str, Any]) -> str:
    """A row as it is printed."""
    where = f"{row['drives']} modelled" if row["drives"] else "files"
    small = row["small_levels"]
    each = f"{row['small_seconds'] / small * 1e6:7.0f} us each" if small else ""
    return (
        f"{row['graph']:9} {where:11} {row['way']:7} {row['seconds']:8.3f} s "
        f"{row['levels']:6.0f} levels {row['gigabytes']:8.3f} GB  "
        f"{small:6.0f} small {each}"
    )


if __name__ == "__main__":
    main()
