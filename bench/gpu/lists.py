"""Algorithms over neighbour lists on a GPU, beside the machine's CPU.

Undirected R-MAT graphs. The seconds of a GPU's run contain reading the graph, making its lists on
the host and copying them, which is shown apart. Repetitions interleave; results must be equal.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import tiergraph as tg

ALGORITHMS: dict[str, dict[str, Any]] = {
    "triangles": {},
    "clustering": {},
    "kcore": {},
    "cdlp": {},
    "independent_set": {},
    "coloring": {},
    "betweenness": {"samples": 32},
    "harmonic": {},
}


def main() -> None:
    """Measures, prints a table and writes the rest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scales", type=int, nargs="+", default=[20, 22, 24])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--algorithms", nargs="+", default=list(ALGORITHMS))
    parser.add_argument("--limit", type=float, default=120, help="seconds from which none repeats")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    device = tg.cuda_devices()[0]
    rows: list[dict[str, Any]] = []
    print("scale    algorithm    cpu s    gpu s  of it loading  ratio")
    with tempfile.TemporaryDirectory() as folder:
        for scale in options.scales:
            found = _measure(Path(folder) / "g.tg", scale, options)
            for name, runs in found["runs"].items():
                of = {"scale": scale, "edges": found["edges"], "gpu": device.name}
                rows.append(of | {"algorithm": name, "runs": runs})
                cpu, gpu = (median(run["seconds"] for run in runs[d]) for d in ("cpu", "cuda"))
                load = median(run["load_seconds"] for run in runs["cuda"])
                print(f"{scale:5} {name:>12} {cpu:8.3f} {gpu:8.3f} {load:14.3f} {cpu / gpu:6.2f}")
            options.output.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _measure(path: Path, scale: int, options: argparse.Namespace) -> dict[str, Any]:
    how = {"undirected": True, "dedup": True, "drop_self_loops": True, "overwrite": True}
    built = tg.generate("rmat", path, scale=scale, **how)
    found: dict[str, Any] = {"edges": built["edges"], "runs": {}}
    graphs = {device: tg.open(path, device=device) for device in ("cpu", "cuda")}
    for name in options.algorithms:
        runs: dict[str, list[dict[str, Any]]] = {device: [] for device in graphs}
        for _ in range(options.repetitions):
            values = {}
            for device, graph in graphs.items():
                if runs[device] and runs[device][-1]["seconds"] > options.limit:
                    continue
                values[device] = graph.run(name, **ALGORITHMS[name])
                kept = ("seconds", "load_seconds", "device", "device_why", "iterations", "threads")
                runs[device].append({k: graph.last_run[k] for k in kept if k in graph.last_run})
            if len(values) == 2:
                # Sums of shares of paths are equal up to their last bits, all else is equal.
                close = 1e-9 if name in ("betweenness", "harmonic") else 0
                np.testing.assert_allclose(values["cuda"], values["cpu"], rtol=close, err_msg=name)
        found["runs"][name] = runs
    for graph in graphs.values():
        graph.close()
    return found


if __name__ == "__main__":
    main()
