"""Algorithms over neighbour lists on a GPU, beside the machine's CPU and cuGraph.

Undirected R-MAT graphs. A GPU's first run reads the graph and makes its lists on the device, where
they stay for later runs: `first` and `again`. cuGraph has its graph in the device's memory, made
of edges in the host's, whose seconds are shown apart; without `pylibcugraph-cu13` it is left out,
and the reason is printed. Repetitions interleave; results must be equal.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tiergraph as tg

ALGORITHMS: dict[str, dict[str, Any]] = {
    "triangles": {},
    "clustering": {},
    "kcore": {},
    "cdlp": {},
    "independent_set": {},
    "coloring": {},
    "betweenness": {},
    "harmonic": {},
    "louvain": {},
    "leiden": {},
    "jaccard": {},
}
PAIRS = 1_000_000
"""Pairs whose coefficients of Jaccard are asked for: the ends of edges."""
OF_CUGRAPH = ("triangles", "kcore", "betweenness", "louvain", "leiden", "jaccard")
ONLY_CPU = ("louvain", "leiden")
SOURCES = 32
WAYS = ("cpu", "first", "again", "cugraph")


def main() -> None:
    """Measures, prints a table and writes the rest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scales", type=int, nargs="+", default=[20, 22, 24])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--algorithms", nargs="+", default=list(ALGORITHMS))
    parser.add_argument("--limit", type=float, default=120, help="seconds from which none repeats")
    parser.add_argument("--without", nargs="+", default=[], choices=WAYS, help="ways to leave out")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    device = tg.cuda_devices()[0]
    rows: list[dict[str, Any]] = []
    print("scale       algorithm " + " ".join(f"{way:>8}" for way in WAYS) + "  lists made in")
    with tempfile.TemporaryDirectory() as folder:
        for scale in options.scales:
            found = _measure(Path(folder) / "g.tg", scale, options)
            for name, runs in found.pop("runs").items():
                rows.append(found | {"scale": scale, "gpu": device.name} | {"algorithm": name})
                rows[-1]["runs"] = runs
                print(f"{scale:5} {name:>15} {_columns(runs)}", flush=True)
            print(f"cuGraph's graph: {found['cugraph']}", flush=True)
            options.output.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _columns(runs: dict[str, list[dict[str, Any]]]) -> str:
    times = {way: [run["seconds"] for run in runs[way] if "seconds" in run] for way in WAYS}
    columns = [f"{median(of):8.3f}" if of else " " * 8 for of in times.values()]
    loads = [run["load_seconds"] for run in runs["first"]]
    return " ".join([*columns, f"{median(loads):13.3f}" if loads else ""])


def _measure(path: Path, scale: int, options: argparse.Namespace) -> dict[str, Any]:
    how = {"undirected": True, "dedup": True, "drop_self_loops": True, "overwrite": True}
    built = tg.generate("rmat", path, scale=scale, **how)
    found: dict[str, Any] = {"edges": built["edges"], "runs": {}}
    with tg.open(path) as cpu:
        given, found["cugraph"] = _given(cpu, options)
        for name in options.algorithms:
            found["runs"][name] = _interleaved(name, path, cpu, given, options)
    return found


class _Given(NamedTuple):
    """cuGraph, and the sources and pairs of vertices that algorithms ask for."""

    peer: Any
    """The graph in cuGraph, or None."""
    sources: list[int]
    pairs: NDArray[np.int32]


def _interleaved(
    name: str, path: Path, cpu: Any, given: _Given, options: argparse.Namespace
) -> dict[str, list[dict[str, Any]]]:
    runs: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    peer, sources, pairs = given
    how = ALGORITHMS[name] | ({"sources": sources} if name == "betweenness" else {})

    def run(graph: Any) -> tuple[Any, dict[str, Any]]:
        if name != "jaccard":
            return graph.run(name, **how), _kept(graph.last_run)
        begin = time.perf_counter()
        similar = graph.similarity(pairs)
        # The whole call: pairs and results are more than a vertex's.
        return similar, _kept(graph.last_run) | {"seconds": time.perf_counter() - begin}

    def is_wanted(way: str) -> bool:
        done = runs[way]
        slow = done and done[-1].get("seconds", 0) > options.limit
        return way not in options.without and not slow and not (done and "failed" in done[-1])

    for _ in range(options.repetitions):
        values: dict[str, Any] = {}
        if is_wanted("cpu"):
            values["cpu"], kept = run(cpu)
            runs["cpu"].append(kept)
        if name not in ONLY_CPU:
            with tg.open(path, device="cuda") as gpu:
                for way in filter(is_wanted, ("first", "again")):
                    values[way], kept = run(gpu)
                    runs[way].append(kept)
        if peer is not None and name in OF_CUGRAPH and is_wanted("cugraph"):
            try:
                if name == "jaccard":
                    seconds, values["cugraph"] = peer.jaccard(pairs)
                else:
                    seconds, values["cugraph"] = peer.run(name, sources)
                runs["cugraph"].append({"seconds": seconds})
            except (RuntimeError, MemoryError) as error:
                runs["cugraph"].append({"failed": str(error)[:500]})
        if name in ONLY_CPU:
            if "cugraph" in values:
                runs["cugraph"][-1]["modularity"] = values["cugraph"]
            continue
        first, *others = values.items()
        for way, other in others:
            # Sums of shares of paths are equal up to their last bits, all else is equal.
            close, expected = 1e-9 if name in ("betweenness", "harmonic") else 0, first[1]
            if way == "cugraph" and name == "betweenness":
                # Sums of float32, scaled otherwise, those of sources by a factor of their own.
                rest = np.delete(np.arange(len(other)), sources)
                other, expected = (of[rest] / of[rest].max() for of in (other, expected))
                close = 1e-3
            if way == "cugraph" and name == "jaccard":  # float32.
                close = 1e-6
            np.testing.assert_allclose(
                other, expected, rtol=close, atol=close, err_msg=f"{name}, {first[0]} and {way}"
            )
    return runs


def _kept(report: dict[str, Any]) -> dict[str, Any]:
    kept = ("seconds", "load_seconds", "device", "device_why", "iterations", "threads")
    return {key: report[key] for key in (*kept, "modularity") if key in report}


def _given(graph: Any, options: argparse.Namespace) -> tuple[_Given, dict[str, Any]]:
    """The graph's edges in cuGraph, sources of paths, pairs of ends, and what is said of cuGraph."""
    batches = [(src, dst) for src, dst, *_ in graph.edge_batches()]
    src, dst = (np.concatenate(ids).astype(np.int32) for ids in zip(*batches, strict=True))
    sources = np.unique(src[:: max(1, len(src) // (2 * SOURCES))])[:SOURCES].tolist()
    some = np.random.default_rng(0).integers(0, len(src), PAIRS)
    pairs = np.column_stack((src[some], dst[some]))
    if "cugraph" in options.without:
        return _Given(None, sources, pairs), {"why": "left out"}
    try:
        import cugraph_peer
    except ImportError as error:
        return _Given(None, sources, pairs), {"why": str(error)}
    peer = cugraph_peer.OfLists(src, dst, graph.vertices)
    said = {"version": cugraph_peer.VERSION, "build_seconds": peer.build_seconds}
    return _Given(peer, sources, pairs), said


if __name__ == "__main__":
    main()
