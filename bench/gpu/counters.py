"""Which of a GPU's limits the kernels are against, from its hardware counters.

`python bench/gpu/counters.py [--scale 24] [--folder /dev/shm] [--out FILE]`

Needs a GPU, Nsight Compute (`ncu`) with the right to read counters, and tiergraph from a wheel.
Profiles one iteration of PageRank in each layout, with the graph in GPU memory, and one pass of the
sampler and of the gather; prints, for each kernel, the share of their peaks that memory, the L2 and
L1 caches and the multiprocessors' issue slots reached. One JSON object a kernel goes to FILE.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import textwrap

import _arguments

import tiergraph as tg

METRICS = {
    "gpu__time_duration.sum": "ms",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "memory %",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": "L2 %",
    "l1tex__throughput.avg.pct_of_peak_sustained_elapsed": "L1 %",
    "sm__inst_issued.avg.pct_of_peak_sustained_elapsed": "issue %",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "warps %",
    "dram__bytes_read.sum": "GB read",
    "lts__t_sector_hit_rate.pct": "L2 hits %",
}
UNITS = {"ms": 1e-6, "GB read": 1e-9}
LAYOUTS = {
    "raw": {"codec": "raw", "order": "degree"},
    "packed": {"codec": "packed", "layouts": "both"},
    "undirected": {"codec": "packed", "layouts": "analytics", "undirected": True},
}
PAGERANK = """
    import tiergraph as tg
    tg.open({path!r}, device="cuda").pagerank(iterations=3)
"""
SAMPLING = """
    import numpy as np
    import tiergraph as tg
    seeds = np.arange(0, 1 << 20, 43)
    loader = tg.NeighborLoader(
        {path!r}, [25, 10], seeds, batch_size=8000, shuffle=True, device="cuda"
    )
    list(loader)
"""
# Which kernels, and how many launches of each come before those that count.
RUNS = [(layout, PAGERANK, "edge_map_raw|edge_map_tiles|next_ranks", 1) for layout in LAYOUTS] + [
    ("packed", SAMPLING, "choose|claim|look_up|give|count|mark|name", 0)
]


def main() -> None:
    """Prints a row for each kernel."""
    args = _arguments.arguments(__doc__).parse_args()
    rows: list[dict[str, object]] = []
    for layout, program, kernels, skip in RUNS:
        path = args.folder / f"counters-{layout}-{args.scale}.tg"
        if not path.exists():
            tg.generate("rmat", path, scale=args.scale, **LAYOUTS[layout])
        rows += profile(layout, program.format(path=str(path)), kernels, skip)
    columns = list(METRICS.values())
    print(f"{'layout':12} {'kernel':14} " + " ".join(f"{c:>9}" for c in columns))
    for row in rows:
        values = " ".join(f"{row[c]:9.3f}" for c in columns)
        print(f"{row['layout']!s:12} {row['kernel']!s:14} {values}")
    if args.out:
        args.out.write_text("".join(json.dumps(row) + "\n" for row in rows))


def profile(layout: str, program: str, kernels: str, skip: int) -> list[dict[str, object]]:
    """Counters of the longest launch of each kernel, after the first few of it."""
    command = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base"]
    command += ["--kernel-name", f"regex:^({kernels})$", "--metrics", ",".join(METRICS)]
    command += [sys.executable, "-c", textwrap.dedent(program)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = ended.stdout.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if ended.returncode or begin is None:
        raise SystemExit(f"ncu failed on {layout}:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    seen: dict[str, int] = {}
    longest: dict[str, dict[str, object]] = {}
    for launch in list(csv.DictReader(lines[begin:]))[1:]:  # the first line holds units
        name = launch["Kernel Name"]
        seen[name] = seen.get(name, 0) + 1
        if seen[name] <= skip:
            continue
        row: dict[str, object] = {"layout": layout, "kernel": name}
        for metric, column in METRICS.items():
            row[column] = float(launch[metric].replace(",", "")) * UNITS.get(column, 1)
        if name not in longest or float(row["ms"]) > float(longest[name]["ms"]):  # type: ignore[arg-type]
            longest[name] = row
    return list(longest.values())


if __name__ == "__main__":
    main()
