"""The algorithms with the graph in GPU memory, beside cuSPARSE and cuGraph on the same graph.

`python bench/gpu/resident.py [--scale 24] [--folder /dev/shm] [--out FILE]`

Needs a GPU, CuPy, and tiergraph from a wheel; `pylibcugraph-cu13` for the comparison with cuGraph,
without which its rows are left out and the reason is printed. Generates RMAT graphs (Graph500
parameters, edge factor 16) and runs PageRank resident in GPU memory in each layout; times y = A x
(float32, CSR, the matrix read back from the raw graph, so in its order of vertices) by cuSPARSE
through CuPy; and gives cuGraph the same arcs. Then WCC, BFS and SSSP. cuGraph's answers are checked
first. Prints tables of medians, interleaved; one JSON object a row goes to FILE, and the script
fails after that if answers differ.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import _arguments
import _traversals
import cupy as cp
import numpy as np
from _adjacency import adjacency
from cupyx.scipy.sparse import csr_matrix

import tiergraph as tg

ROUNDS = 3
ITERATIONS = 12
CHECK_ITERATIONS = 60
PACKED = {"codec": "packed", "layouts": "analytics"}
RAW = {"codec": "raw", "order": "degree"}
WEIGHTED = {"undirected": True, "weights": "byte"}
UNDIRECTED = "packed, undirected"
RAW_UNDIRECTED = "raw, undirected"


def main() -> None:
    """Prints a row for each layout, and the other algorithms."""
    args = _arguments.arguments(__doc__).parse_args()
    graphs = {
        "raw": build(args, "raw", RAW),
        "packed": build(args, "packed", PACKED),
        UNDIRECTED: build(args, "undirected", PACKED | {"undirected": True}),
    }
    weighted = build(args, "weighted", PACKED | WEIGHTED)
    raw_weighted = build(args, "raw-weighted", RAW | WEIGHTED)
    peers = cugraph(graphs["raw"], raw_weighted)
    rows = pageranks(graphs | {RAW_UNDIRECTED: raw_weighted}, peers)
    rows += _traversals.measure(
        {
            "directed": graphs["packed"],
            "undirected": graphs[UNDIRECTED],
            "undirected, raw": raw_weighted,
            "undirected, weighted": weighted,
        },
        peers,
    )
    if args.out:
        args.out.write_text("".join(json.dumps(r) + "\n" for r in rows))
    if not all(row.get("agrees", True) for row in rows):
        sys.exit("answers differ: see `difference` in the rows")


def pageranks(graphs: dict[str, Path], peers: dict[str, Any]) -> list[dict[str, Any]]:
    """Prints and gives a row for cuSPARSE, each layout, and cuGraph."""
    csr = adjacency(graphs["raw"])
    beside = {
        f"cuGraph, {name}": (peers[name], graphs[twin])
        for name, twin in (("directed", "packed"), ("undirected", UNDIRECTED))
        if name in peers
    }
    checks = {}
    for name, (peer, twin) in beside.items():
        reference = tg.open(twin, device="cuda").pagerank(iterations=CHECK_ITERATIONS)
        values = peer.pagerank(CHECK_ITERATIONS)
        checks[name] = _traversals.check("pagerank", values, reference)
    seconds: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        seconds.setdefault("cusparse", []).extend(cusparse(csr.indptr, csr.indices))
        for name, (peer, _) in beside.items():
            seconds.setdefault(name, []).append(peer.iteration_seconds())
        for name, path in graphs.items():
            seconds.setdefault(name, []).extend(pagerank(path))
    stored = {name: size(path) for name, path in graphs.items()}
    stored |= {name: (peer.arcs, peer.pagerank_bytes) for name, (peer, _) in beside.items()}
    stored["cusparse"] = len(csr.indices), 8 * len(csr.indices)
    rows = [row(n, times, *stored[n]) | checks.get(n, {}) for n, times in seconds.items()]
    base = rows[0]["arcs_per_second"]
    print(f"{'layout':22} {'ms':>8} {'G arcs/s':>9} {'of cuSPARSE':>12} {'bytes/arc':>10}")
    for r in rows:
        share = r["arcs_per_second"] / base
        print(
            f"{r['layout']:22} {r['seconds'] * 1e3:8.3f} {r['arcs_per_second'] / 1e9:9.1f} "
            f"{share:12.2f} {r['bytes_per_arc']:10.2f}"
        )
    return rows


def cugraph(directed: Path, weighted: Path) -> dict[str, Any]:
    """The peer of each graph; none, with the reason printed, where cuGraph is not installed."""
    try:
        import cugraph_peer
    except ImportError as error:
        print(f"cuGraph is left out: {error}")
        return {}
    print(f"cuGraph is {cugraph_peer.VERSION}")
    undirected = cugraph_peer.Peer(weighted)
    return {
        "directed": cugraph_peer.Peer(directed),
        "undirected": undirected,
        "undirected, raw": undirected,
        "undirected, weighted": undirected,
    }


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


def size(path: Path) -> tuple[int, int]:
    """Arcs, and bytes of the file that a pass reads."""
    manifest = json.loads((path / "manifest.json").read_text())
    raw = "in.blocks" if manifest["directed"] else "out.blocks"
    file = raw if manifest["codec"] == "raw" else "tiles.blocks"
    return manifest["arcs"], manifest["files"][file]["bytes"]


def row(name: str, times: list[float], arcs: int, stored: int) -> dict[str, Any]:
    """What is written of one contender."""
    seconds = statistics.median(times)
    return {
        "layout": name,
        "seconds": seconds,
        "least_seconds": min(times),
        "arcs": arcs,
        "arcs_per_second": arcs / seconds,
        "bytes_per_arc": stored / arcs,
    }


if __name__ == "__main__":
    main()
