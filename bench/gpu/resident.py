"""PageRank with the graph in GPU memory, beside cuSPARSE on the same matrix in the same order.

`python bench/gpu/resident.py [--scale 24] [--folder /dev/shm] [--out FILE]`

Needs a GPU, CuPy, and tiergraph from a wheel. Generates RMAT graphs (Graph500 parameters, edge
factor 16), runs iterations resident in GPU memory in each layout, and times y = A x (float32, CSR,
the matrix read back from the raw graph, so in its order of vertices) by cuSPARSE through CuPy.
Prints a table of medians, interleaved; one JSON object a row goes to FILE.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import _arguments
import cupy as cp
import numpy as np
from cupyx.scipy.sparse import csr_matrix

import tiergraph as tg

ROUNDS = 3
ITERATIONS = 12


def main() -> None:
    """Prints a row for each layout, and the other algorithms."""
    args = _arguments.arguments(__doc__).parse_args()
    graphs = {
        "raw": build(args, "raw", {"codec": "raw", "order": "degree"}),
        "packed": build(args, "packed", {"codec": "packed", "layouts": "analytics"}),
    }
    undirected = build(
        args, "undirected", {"codec": "packed", "layouts": "analytics", "undirected": True}
    )
    graphs["packed, undirected"] = undirected
    indptr, indices = adjacency(graphs["raw"])
    seconds: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        seconds.setdefault("cusparse", []).extend(cusparse(indptr, indices))
        for name, path in graphs.items():
            seconds.setdefault(name, []).extend(pagerank(path))
    rows = [row(name, times, graphs.get(name), len(indices)) for name, times in seconds.items()]
    base = next(r for r in rows if r["layout"] == "cusparse")["arcs_per_second"]
    print(f"{'layout':22} {'ms':>8} {'G arcs/s':>9} {'of cuSPARSE':>12} {'bytes/arc':>10}")
    for r in rows:
        share = r["arcs_per_second"] / base
        print(
            f"{r['layout']:22} {r['seconds'] * 1e3:8.3f} {r['arcs_per_second'] / 1e9:9.1f} "
            f"{share:12.2f} {r['bytes_per_arc']:10.2f}"
        )
    others(graphs["packed"], undirected)
    if args.out:
        args.out.write_text("".join(json.dumps(r) + "\n" for r in rows))


def build(args: argparse.Namespace, name: str, options: dict[str, object]) -> Path:
    """The graph, generated if it is not there."""
    path: Path = args.folder / f"{name}-{args.scale}.tg"
    if not path.exists():
        tg.generate("rmat", path, scale=args.scale, **options)
    return path


def pagerank(path: Path) -> list[float]:
    """Seconds of each iteration after the first."""
    graph = tg.open(path, device="cuda")
    graph.pagerank(iterations=ITERATIONS)
    return [i["seconds"] for i in graph.last_run["details"][1:]]


def cusparse(indptr: np.ndarray, indices: np.ndarray, width: int | None = None) -> list[float]:
    """Seconds of each y = A x; x is a vector, or a matrix of `width` columns."""
    n = len(indptr) - 1
    values = cp.ones(len(indices), dtype=cp.float32)
    matrix = csr_matrix((values, cp.asarray(indices), cp.asarray(indptr)), shape=(n, n))
    x = cp.random.random(n if width is None else (n, width), dtype=cp.float32)
    times = []
    for _ in range(ITERATIONS):
        start, end = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        matrix @ x
        end.record()
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(start, end) / 1e3)
    return times[1:]


def adjacency(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """CSR by rows that pull, from the raw blocks: docs/format.md, "Raw blocks"."""
    info = json.loads((path / "manifest.json").read_text())
    size, vertices = info["block_bytes"], info["vertices"]
    blocks = np.memmap(path / "in.blocks", dtype=np.uint8, mode="r")
    counts = np.zeros(vertices, dtype=np.int64)
    ids = []
    for begin in range(0, len(blocks), size):
        words = np.asarray(blocks[begin : begin + size]).view(np.uint32)
        first, arcs, entries = int(words[4]), int(words[6]), int(words[8])
        table = words[16 : 16 + 2 * (entries + 1)].reshape(-1, 2)
        np.add.at(counts, first + table[:-1, 0].astype(np.int64), np.diff(table[:, 1]))
        ids.append(words[16 + 2 * (entries + 1) :][:arcs].astype(np.int32))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return indptr, np.concatenate(ids)


def row(name: str, times: list[float], path: Path | None, arcs: int) -> dict[str, object]:
    """What is written of one contender."""
    seconds = statistics.median(times)
    stored = 8.0 * arcs
    if path is not None:
        manifest = json.loads((path / "manifest.json").read_text())
        arcs = manifest["arcs"]
        file = "in.blocks" if manifest["codec"] == "raw" else "tiles.blocks"
        stored = manifest["files"][file]["bytes"]
    return {
        "layout": name,
        "seconds": seconds,
        "least_seconds": min(times),
        "arcs": arcs,
        "arcs_per_second": arcs / seconds,
        "bytes_per_arc": stored / arcs,
    }


def others(directed: Path, undirected: Path) -> None:
    """The other algorithms, once each, in the same units."""
    for path in (directed, undirected):
        graph = tg.open(path, device="cuda")
        for name, arguments in (("wcc", ()), ("bfs", (77,)), ("sssp", (77,))):
            getattr(graph, name)(*arguments)
            last = graph.last_run
            seconds = [i["seconds"] for i in last["details"]]
            print(
                f"{path.stem:22} {name:5} {sum(seconds) * 1e3:8.2f} ms in {len(seconds)} passes, "
                f"{last['arcs'] / sum(seconds) / 1e9:6.1f} G arcs/s"
            )


if __name__ == "__main__":
    main()
