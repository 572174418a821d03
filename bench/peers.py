"""How fast is tiergraph in memory beside in-memory libraries?

PageRank, WCC, BFS and SSSP on one undirected Graph500 graph, the same edges for every engine, each
in a process of its own that loads once. Repetitions interleave: every engine runs a command before
any engine repeats it. igraph, which takes the most memory, runs last and alone.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import _edges
import _machine
import _runs
from _child import Child, Unavailable
from _runs import median, say

TOGETHER = ("tiergraph", "graphblas", "networkit", "scikit_network")
ALONE = ("igraph",)
BYTES_PER_EDGE = {
    "tiergraph": 24,
    "graphblas": 100,
    "networkit": 170,
    "scikit_network": 80,
    "igraph": 280,
}
"""Memory that loading takes at its peak; an engine that the machine has not enough for is skipped."""
CHECK_ITERATIONS = 50
FEW, MANY = 5, 15
"""PageRank's seconds an iteration are the difference of these two runs by their iterations."""
TOLERANCE = {"pagerank": 1e-4, "bfs": 0.0, "sssp": 1e-6}
"""The largest relative difference that a check lets pass."""

Results = dict[str, NDArray[Any]]


class Engine:
    """An engine's process, started when first needed; what it could not do is not tried again."""

    def __init__(self, name: str, directory: Path, options: argparse.Namespace) -> None:
        self.name = name
        self.failures: dict[str, str] = {}
        self.load: dict[str, Any] = {}
        self.times: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._options = options
        own = (options.memory, str(options.threads)) if name == "tiergraph" else ()
        self._arguments = (f"on_{name}", str(directory), *own)
        self._python = Path(sys.executable) if name == "tiergraph" else options.peers_python
        self._child: Child | None = None

    def run(self, command: str, keep: bool = True, **arguments: Any) -> dict[str, Any] | None:
        """The answer to `command`, or None and a reason in `failures`."""
        if command in self.failures or "load" in self.failures:
            return None
        try:
            child = self._started()
            answer = child.call(command, self._options.limit, **arguments)
        except Unavailable as error:
            self._fail(command, error)
            return None
        if keep:
            self.times[command].append(arguments | answer)
        return answer

    def close(self) -> None:
        """Ends the process."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def _started(self) -> Child:
        if self._child is None:
            say(f"loading {self.name}")
            self._child = Child(self._python, *self._arguments, threads=self._options.threads)
            try:
                self.load = self._child.call("loaded", self._options.load_limit)
            except Unavailable:
                self._fail("load", "its process gave no answer")
                raise
        return self._child

    def _fail(self, command: str, error: object) -> None:
        text = str(error)
        say(f"{self.name} {command}: {text}")
        command = "load" if text.startswith("cannot load") else command
        self.failures.setdefault(command, text)
        if text.startswith(("over", "ended")):
            self.close()


def main() -> None:
    """Measures, checks, prints and saves."""
    options = _options()
    with _runs.data_directory("peers", options.keep) as directory:
        say(f"making the edges of scale {options.scale}")
        edges = _edges.write_undirected(directory, options.scale)
        data = _edges.read(directory)
        if "tiergraph" in options.engines:
            _build(directory, data, options)
        references: Results = {}
        engines = []
        for names in (TOGETHER, ALONE):
            group = [
                Engine(name, directory, options) for name in names if name in options.engines
            ]
            checks = _measure(group, data, references, directory, options)
            engines += [_summary(engine, checks[engine.name]) for engine in group]
    _print(engines, edges, options)
    state = "resident: tiergraph's blocks and the peers' structures stay in memory"
    results = {"vertices": data.vertices, "edges": edges, "sources": data.sources}
    _runs.save(options, "peers", state, results | {"engines": engines})


def _options() -> argparse.Namespace:
    parser = _runs.arguments(__doc__ or "", scale=22)
    parser.add_argument("--engines", nargs="+", default=[*TOGETHER, *ALONE], help="which to run")
    parser.add_argument("--memory", default="4GiB", help="tiergraph's budget: holds the graph")
    parser.add_argument("--limit", type=float, default=120, help="seconds a command may take")
    parser.add_argument("--load-limit", type=float, default=900, help="seconds loading may take")
    parser.add_argument(
        "--peers-python",
        type=Path,
        default=_runs.BENCH / ".venv-peers/bin/python",
        help="the peers' environment: peers_env.sh makes it",
    )
    options = parser.parse_args()
    # Not resolved: a virtual environment's interpreter is a link that must be called by its name.
    options.peers_python = options.peers_python.absolute()
    return options


def _build(directory: Path, edges: _edges.Edges, options: argparse.Namespace) -> None:
    import tiergraph as tg

    for name, weights in (("plain", ()), ("weighted", (edges.weights,))):
        say(f"building tiergraph's {name} graph")
        tg.build(
            (edges.src, edges.dst, *weights),
            directory / f"{name}.tg",
            vertices=edges.vertices,
            undirected=True,
            threads=options.threads,
        )


def _measure(
    group: list[Engine],
    data: _edges.Edges,
    references: Results,
    directory: Path,
    options: argparse.Namespace,
) -> dict[str, dict[str, Any]]:
    """Checks every engine of `group`, then times them interleaved."""
    checks = {}
    for engine in group:
        need, left = BYTES_PER_EDGE[engine.name] * len(data.src), _machine.memory_available()
        if need > left:
            engine.failures["load"] = f"needs {need / 1e9:.1f} GB of memory, {left / 1e9:.1f} left"
            say(f"{engine.name}: {engine.failures['load']}")
        checks[engine.name] = _check(engine, data, references, directory)
    for repetition in range(options.repetitions):
        say(f"repetition {repetition + 1} of {options.repetitions}")
        for iterations in (FEW, MANY):
            for engine in group:
                engine.run("pagerank", iterations=iterations)
        for engine in group:
            engine.run("wcc")
        for source in data.sources:
            for command in ("bfs", "sssp"):
                for engine in group:
                    engine.run(command, source=source)
    for engine in group:
        engine.close()
    return checks


def _check(
    engine: Engine, data: _edges.Edges, references: Results, directory: Path
) -> dict[str, Any]:
    """Runs everything once, untimed, and compares with the first engine that gave a result."""
    arguments = {
        "pagerank": {"iterations": CHECK_ITERATIONS},
        "wcc": {},
        "bfs": {"source": data.sources[0]},
        "sssp": {"source": data.sources[0]},
    }
    connected = np.zeros(data.vertices, dtype=bool)
    connected[data.src] = connected[data.dst] = True
    checks: dict[str, Any] = {}
    file = directory / "result.npy"
    for command, given in arguments.items():
        if engine.run(command, keep=False, save_to=str(file), **given) is None:
            continue
        values = np.load(file)
        values = _smallest_members(values) if command == "wcc" else values.astype(np.float64)
        reference = references.setdefault(command, values)
        if command == "wcc":
            equal = bool(np.array_equal(values, reference))
            checks[command] = {"equal": equal, "components": len(np.unique(values))}
            continue
        if engine.name == "scikit_network" and command == "pagerank":
            values, reference = (_within(ranks, connected) for ranks in (values, reference))
        difference = _relative_difference(values, reference)
        equal = difference <= TOLERANCE[command]
        checks[command] = {"equal": equal, "relative_difference": difference}
    return checks


def _within(ranks: NDArray[Any], connected: NDArray[np.bool_]) -> NDArray[Any]:
    """The ranks of vertices with edges, scaled to a sum of 1.

    scikit-network gives vertices without edges another share; the others' proportions are the same.
    """
    return ranks[connected] / ranks[connected].sum()


def _smallest_members(labels: NDArray[Any]) -> NDArray[np.int64]:
    """A partition with each part named by its smallest member, whatever it was named by."""
    _, first, part = np.unique(labels, return_index=True, return_inverse=True)
    return first[part]


def _relative_difference(values: NDArray[Any], reference: NDArray[Any]) -> float:
    if np.any(np.isfinite(values) != np.isfinite(reference)):
        return float("inf")
    known = np.isfinite(reference)
    scale = np.maximum(np.abs(reference[known]), np.finfo(np.float64).tiny)
    return float(np.max(np.abs(values[known] - reference[known]) / scale, initial=0.0))


def _summary(engine: Engine, checks: dict[str, Any]) -> dict[str, Any]:
    seconds = {
        command: median([run["seconds"] for run in engine.times[command]])
        for command in ("wcc", "bfs", "sssp")
    }
    runs = engine.times["pagerank"]
    few = [run["seconds"] for run in runs if run["iterations"] == FEW]
    many = [run["seconds"] for run in runs if run["iterations"] == MANY]
    converges = engine.name == "igraph"
    differences = [(b - a) / (MANY - FEW) for a, b in zip(few, many, strict=False)]
    peaks = [run["peak_rss_bytes"] for times in engine.times.values() for run in times]
    return {
        "engine": engine.name,
        "load_seconds": engine.load.get("seconds"),
        "peak_rss_bytes": max(peaks, default=None),
        "pagerank_seconds_per_iteration": None if converges else median(differences),
        "pagerank_seconds_to_convergence": median(few + many) if converges else None,
        "median_seconds": seconds,
        "checks": checks,
        "failures": engine.failures,
        "repetitions": engine.times,
    }


def _print(engines: list[dict[str, Any]], edges: int, options: argparse.Namespace) -> None:
    rows = []
    for engine in engines:
        per_iteration = engine["pagerank_seconds_per_iteration"]
        converged = engine["pagerank_seconds_to_convergence"]
        seconds = engine["median_seconds"]
        wrong = [name for name, check in engine["checks"].items() if not check["equal"]]
        peak = engine["peak_rss_bytes"]
        rows.append(
            (
                engine["engine"],
                f"{converged:.2f} in all" if converged else per_iteration,
                2 * edges / per_iteration / 1e6 if per_iteration else None,
                *(seconds[command] for command in ("wcc", "bfs", "sssp")),
                engine["load_seconds"],
                None if peak is None else round(peak / 1e6),
                "equal" if engine["checks"] and not wrong else "differs: " + ", ".join(wrong),
            )
        )
    _runs.table(
        f"RMAT-{options.scale} undirected, {edges:,} edges, {options.threads} threads, resident",
        ("engine", "PageRank s/iteration", "M arcs/s", "WCC s", "BFS s", "SSSP s", "load s",
         "peak MB", "results"),
        rows,
    )
    for engine in engines:
        for command, reason in engine["failures"].items():
            print(f"{engine['engine']} {command}: {reason}")


if __name__ == "__main__":
    main()
