"""`propagate` of vectors and matrices on a GPU, beside cuSPARSE on the same matrix.

`python bench/gpu/propagate.py [--scale 22] [--folder DIR] [--out FILE]`

y = Aᵀx of float32 by sums, for 1 to 64 values a vertex. The graph is in GPU memory after a first
call; x comes from host memory and y goes back there, in each call. cuSPARSE (through CuPy) has x
there and leaves y there, so it is a floor and not a rival.
"""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Any

import _arguments
import numpy as np
from _adjacency import adjacency
from resident import cusparse

import tiergraph as tg

WIDTHS = (1, 4, 16, 64)


def main() -> None:
    """Prints a row a width."""
    args = _arguments.arguments(__doc__, scale=22).parse_args()
    graphs = {codec: build(args.folder, args.scale, codec) for codec in ("packed", "raw")}
    indptr, indices, _ = adjacency(graphs["raw"])
    rows = []
    for width in WIDTHS:
        x = np.random.default_rng(width).random((len(indptr) - 1, width), dtype=np.float32)
        floor = statistics.median(cusparse(indptr, indices, width))
        row: dict[str, Any] = {"width": width, "cusparse": floor}
        row |= {codec: seconds(path, x) for codec, path in graphs.items()}
        print(
            f"{width:3} values: packed {row['packed'] * 1e3:7.1f} ms, "
            f"raw {row['raw'] * 1e3:7.1f} ms, cuSPARSE, resident {floor * 1e3:7.1f} ms"
        )
        rows.append(row)
    if args.out:
        args.out.write_text("".join(json.dumps(row) + "\n" for row in rows))


def build(folder: Path, scale: int, codec: str) -> Path:
    """The graph, generated if it is not there."""
    path = folder / f"{codec}-{scale}.tg"
    if not path.exists():
        options = {"order": "degree"} if codec == "raw" else {"layouts": "analytics"}
        tg.generate("rmat", path, scale=scale, codec=codec, **options)
    return path


def seconds(path: Path, x: np.ndarray) -> float:
    """The median call after the first."""
    graph = tg.open(path, device="cuda")
    times = []
    for _ in range(4):
        begin = time.perf_counter()
        graph.propagate(x)
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:])


if __name__ == "__main__":
    main()
