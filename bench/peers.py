"""How fast tiergraph is in memory, beside in-memory libraries.

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

from common import machine, reporting, rmat
from common.child import Child, UnavailableError
from common.compare import Checks
from common.reporting import Record, median, say

GROUPS = (("tiergraph", "graphblas", "networkit", "scikit_network"), ("igraph",))
"""Engines that are in memory, and interleave, together."""
KINDS = {"plain": ("pagerank", "wcc", "bfs"), "weighted": ("sssp",)}
"""What runs on the graph without weights and what on the one with; one is loaded at a time."""
BYTES_PER_EDGE = {
    "tiergraph": 40,
    "graphblas": 80,
    "networkit": 130,
    "scikit_network": 70,
    "igraph": 260,
}
"""The memory that loading and running take at most: without as much, an engine is skipped."""
CHECK_ITERATIONS = 60
FEW, MANY = 5, 15
"""PageRank's seconds an iteration are the difference of these two runs by their iterations, unless
what a call begins with takes so long that the runs cannot be told apart."""
CONVERGES = ("igraph",)
"""Engines whose PageRank cannot be told how many iterations."""


class Engine:
    """An engine's process for one kind; what it could not do is not tried again."""

    def __init__(self, name: str, kind: str, directory: Path, options: argparse.Namespace) -> None:
        self.name = name
        self.failures: dict[str, str] = {}
        self.load: Record = {}
        self.checks: list[Record] = []
        self.times: dict[str, list[Record]] = defaultdict(list)
        self._options = options
        own = (options.memory, str(options.threads)) if name == "tiergraph" else ()
        self._arguments = (f"on_{name}", str(directory), kind, *own)
        self._python = Path(sys.executable) if name == "tiergraph" else options.peers_python
        self._child: Child | None = None

    def time(self, command: str, **arguments: Any) -> None:
        """Runs `command` and keeps its time."""
        answer = self.run(command, **arguments)
        if answer is not None:
            self.times[command].append(arguments | answer)

    def run(self, command: str, **arguments: Any) -> Record | None:
        """The answer to `command`, or None and a reason in `failures`."""
        if command in self.failures or "load" in self.failures:
            return None
        doing = "load"
        try:
            child = self._started()
            doing = command
            return child.call(command, self._options.limit, **arguments)
        except UnavailableError as error:
            say(f"{self.name} {doing}: {error}")
            self.failures[doing] = str(error)
            if doing == "load" or str(error).startswith(("over", "ended")):
                self.close()
            return None

    def close(self) -> None:
        """Ends the process."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def require(self, need: int) -> None:
        """Fails without loading where the machine has not `need` bytes of memory left."""
        left = machine.memory_available()
        if need > left:
            self.failures["load"] = f"needs {need / 1e9:.1f} GB of memory, {left / 1e9:.1f} left"
            say(f"{self.name}: {self.failures['load']}")

    def _started(self) -> Child:
        if self._child is None:
            say(f"loading {self.name}")
            self._child = Child(self._python, *self._arguments, threads=self._options.threads)
            self.load = self._child.call("loaded", self._options.load_limit)
        return self._child


def main() -> None:
    """Measures, checks, prints and saves."""
    options = _options()
    with reporting.data_directory("peers", options.keep) as directory:
        say(f"making the edges of scale {options.scale}")
        edges = rmat.write_undirected(directory, options.scale)
        data = rmat.read(directory)
        if "tiergraph" in options.engines:
            _build(directory, data, options)
        checks = Checks(data)
        summaries = []
        for names in GROUPS:
            chosen = [name for name in names if name in options.engines]
            runs: dict[str, list[Engine]] = {name: [] for name in chosen}
            for kind in KINDS:
                group = [Engine(name, kind, directory, options) for name in chosen]
                commands = [name for name in KINDS[kind] if name in options.algorithms]
                if commands:
                    _measure(group, commands, data, checks, directory, options)
                for engine in group:
                    runs[engine.name].append(engine)
            summaries += [_summary(name, engines) for name, engines in runs.items()]
    _print(summaries, edges, options)
    state = "resident: tiergraph's blocks and the peers' structures stay in memory"
    results = {"vertices": data.vertices, "edges": edges, "sources": data.sources}
    reporting.save(options, "peers", state, results | {"engines": summaries})


def _options() -> argparse.Namespace:
    parser = reporting.arguments(__doc__ or "", scale=22)
    names = [name for group in GROUPS for name in group]
    parser.add_argument("--engines", nargs="+", default=names, choices=names, help="which to run")
    algorithms = [name for commands in KINDS.values() for name in commands]
    parser.add_argument(
        "--algorithms", nargs="+", default=algorithms, choices=algorithms, help="which to time"
    )
    parser.add_argument("--memory", default="4GiB", help="tiergraph's budget: holds the graph")
    parser.add_argument("--limit", type=float, default=300, help="seconds a command may take")
    parser.add_argument("--load-limit", type=float, default=900, help="seconds loading may take")
    parser.add_argument(
        "--peers-python",
        type=Path,
        default=reporting.BENCH / ".venv-peers/bin/python",
        help="the peers' environment: peers_env.sh makes it",
    )
    options = parser.parse_args()
    # Not resolved: a virtual environment's interpreter is a link that must be called by its name.
    options.peers_python = options.peers_python.absolute()
    if set(options.engines) != {"tiergraph"} and not options.peers_python.exists():
        parser.error("there is no environment for the peers: run bench/peers_env.sh")
    return options


def _build(directory: Path, edges: rmat.Edges, options: argparse.Namespace) -> None:
    import tiergraph as tg

    for kind, commands in KINDS.items():
        if not set(commands) & set(options.algorithms):
            continue
        say(f"building tiergraph's {kind} graph")
        weights = (edges.weights,) if kind == "weighted" else ()
        tg.build(
            (edges.src, edges.dst, *weights),
            directory / f"{kind}.tg",
            vertices=edges.vertices,
            undirected=True,
            threads=options.threads,
        )


def _measure(
    group: list[Engine],
    commands: list[str],
    data: rmat.Edges,
    checks: Checks,
    directory: Path,
    options: argparse.Namespace,
) -> None:
    """Checks every engine of `group`, untimed, then times them interleaved."""
    for engine in group:
        engine.require(BYTES_PER_EDGE[engine.name] * len(data.src))
        for command in commands:
            _check(engine, command, data.sources, checks, directory / "result.npy")
    for repetition in range(options.repetitions):
        say(f"repetition {repetition + 1} of {options.repetitions}")
        for command in commands:
            for arguments in _variants(command, data.sources):
                for engine in group:
                    engine.time(command, **arguments)
    for engine in group:
        engine.close()


def _variants(command: str, sources: list[int]) -> list[Record]:
    """The arguments that one repetition of `command` runs with."""
    if command == "pagerank":
        return [{"iterations": FEW}, {"iterations": MANY}]
    return [{}] if command == "wcc" else [{"source": source} for source in sources]


def _check(engine: Engine, command: str, sources: list[int], checks: Checks, file: Path) -> None:
    given = _variants(command, sources)
    if command == "pagerank":
        given = [{"iterations": CHECK_ITERATIONS}]
    for arguments in given:
        if engine.run(command, save_to=str(file), **arguments) is None:
            return
        source = arguments.get("source")
        outcome = checks.compare(engine.name, command, source, np.load(file))
        engine.checks.append({"command": command} | outcome)


def _summary(name: str, engines: list[Engine]) -> Record:
    """One engine's medians and every repetition, of both kinds of graph."""
    times = {command: runs for engine in engines for command, runs in engine.times.items()}
    seconds = {
        command: median([run["seconds"] for run in times.get(command, [])])
        for command in ("wcc", "bfs", "sssp")
    }
    runs = times.get("pagerank", [])
    few = [run["seconds"] for run in runs if run["iterations"] == FEW]
    many = [run["seconds"] for run in runs if run["iterations"] == MANY]
    differences = [(b - a) / (MANY - FEW) for a, b in zip(few, many, strict=False)]
    is_told = bool(many) and name not in CONVERGES and min(many) > max(few)
    peaks = [run["peak_rss_bytes"] for run in runs]
    return {
        "engine": name,
        "load_seconds": engines[0].load.get("seconds"),
        "peak_rss_bytes": max(peaks, default=None),
        "pagerank_seconds_per_iteration": median(differences) if is_told else None,
        "pagerank_seconds_in_all": None if is_told else median(few + many),
        "median_seconds": seconds,
        "checks": [check for engine in engines for check in engine.checks],
        "failures": {kind: e.failures for kind, e in zip(KINDS, engines, strict=True)},
        "repetitions": times,
    }


def _print(summaries: list[Record], edges: int, options: argparse.Namespace) -> None:
    rows = []
    for engine in summaries:
        per_iteration = engine["pagerank_seconds_per_iteration"]
        in_all = engine["pagerank_seconds_in_all"]
        seconds, peak = engine["median_seconds"], engine["peak_rss_bytes"]
        wrong = sorted({check["command"] for check in engine["checks"] if not check["equal"]})
        agrees = "equal" if engine["checks"] else "none"
        rows.append(
            (
                engine["engine"],
                f"{in_all:.3g} in all" if in_all else per_iteration,
                2 * edges / per_iteration / 1e6 if per_iteration else None,
                *(seconds[command] for command in ("wcc", "bfs", "sssp")),
                engine["load_seconds"],
                None if peak is None else round(peak / 1e6),
                "differs: " + ", ".join(wrong) if wrong else agrees,
            )
        )
    header = ("engine", "PageRank s/iteration", "M arcs/s", "WCC s", "BFS s", "SSSP s", "load s")
    reporting.table(
        f"RMAT-{options.scale} undirected, {edges:,} edges, {options.threads} threads, resident",
        (*header, "peak MB", "results"),
        rows,
    )
    for engine in summaries:
        for kind, failures in engine["failures"].items():
            for command, reason in failures.items():
                print(f"{engine['engine']}, {kind} graph, {command}: {reason}")


if __name__ == "__main__":
    main()
