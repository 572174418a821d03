"""WCC, BFS and SSSP with the graph in GPU memory, for `resident.py`."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

from _answers import TOLERANCE, difference

import tiergraph as tg

ROUNDS = 5
SOURCE = 77
RUNS = (
    ("directed", "wcc"),
    ("directed", "bfs"),
    ("undirected", "wcc"),
    ("undirected", "bfs"),
    ("undirected, raw", "bfs"),
    ("undirected, weighted", "sssp"),
)
Row = dict[str, Any]


def measure(graphs: dict[str, Path], peers: dict[str, Any]) -> list[Row]:
    """Prints and gives a row for each run and engine; `peers` is cuGraph, by graph.

    A whole call of tiergraph ends with the results in host memory, in the user's order; one of
    cuGraph with its vertices and their results in GPU memory.
    """
    if peers:
        print("cuGraph has no WCC of directed graphs")
    print(f"{'algorithm':10} {'graph':22} {'':10} {'ms':>9} {'G arcs/s':>9} {'whole call':>11}")
    rows = []
    for name, algorithm in RUNS:
        possible = (name, algorithm) != ("directed", "wcc")
        peer = peers.get(name) if possible else None
        for row in _turns(algorithm, graphs[name], peer):
            row = {"algorithm": algorithm, "graph": name} | row
            _print(row)
            rows.append(row)
    return rows


def _turns(algorithm: str, path: Path, peer: Any) -> list[Row]:
    """What the engines take in turn, once they agree."""
    arguments = () if algorithm == "wcc" else (SOURCE,)
    graph = tg.open(path, device="cuda")
    reference = getattr(graph, algorithm)(*arguments)
    arcs = graph.last_run["arcs"]
    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    checked = (
        {} if peer is None else check(algorithm, getattr(peer, algorithm)(*arguments), reference)
    )
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        getattr(graph, algorithm)(*arguments)
        call = time.perf_counter() - begin
        ours.append((sum(i["seconds"] for i in graph.last_run["details"]), call))
        if peer is not None:
            theirs.append(peer.seconds(algorithm, *arguments))
    rows = [_row("tiergraph", ours, arcs) | {"passes": graph.last_run["iterations"]}]
    if peer is not None:
        rows.append(_row("cuGraph", theirs, arcs) | checked)
    return rows


def check(algorithm: str, values: Any, reference: Any) -> Row:
    """How far a peer's answer is from tiergraph's, and whether that passes; printed if not."""
    found = difference(algorithm, values, reference)
    agrees = found <= TOLERANCE[algorithm]
    if not agrees:
        print(f"cuGraph's {algorithm} DIFFERS from tiergraph's by {found:.3g}")
    return {"agrees": agrees, "difference": found}


def _row(who: str, times: list[tuple[float, float]], arcs: int) -> Row:
    seconds = [seconds for seconds, _ in times]
    median = statistics.median(seconds)
    return {
        "who": who,
        "seconds": median,
        "all_seconds": seconds,
        "call_seconds": statistics.median(call for _, call in times),
        "arcs": arcs,
        "arcs_per_second": arcs / median,
    }


def _print(row: Row) -> None:
    print(
        f"{row['algorithm']:10} {row['graph']:22} {row['who']:10} {row['seconds'] * 1e3:9.2f} "
        f"{row['arcs_per_second'] / 1e9:9.1f} {row['call_seconds'] * 1e3:11.2f}"
    )
