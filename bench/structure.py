"""Triangles, cores, components, communities and betweenness: beside libraries, and out of core.

In memory, every engine has the same simple Graph500 graph, in a process of its own that loads once;
repetitions interleave. Numbers that do not depend on the engine must be equal; modularity is shown.
Out of core, each algorithm runs once inside a memory cgroup, from a graph of `--large-scale`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from common import machine, reporting, rmat
from common.child import Child, UnavailableError
from common.reporting import Record, median, say
from out_of_core import Limit

ENGINES = ("tiergraph", "networkit", "igraph")
COMMANDS: dict[str, tuple[str, Record]] = {
    "triangles": ("plain", {}),
    "clustering": ("plain", {}),
    "kcore": ("plain", {}),
    "betweenness": ("plain", {"samples": 16}),
    "louvain": ("plain", {}),
    "leiden": ("plain", {}),
    "coloring": ("plain", {}),
    "independent_set": ("plain", {}),
    "cdlp": ("plain", {}),
    "harmonic": ("plain", {}),
    "jaccard": ("plain", {"pairs": 1_000_000}),
    "scc": ("directed", {}),
}
"""Algorithms, the graph that each runs on, and its arguments."""
ABOUT = ("louvain", "leiden", "coloring", "independent_set", "harmonic", "betweenness")
"""Those whose number is a measure of quality: every engine has its own."""
IN_MEMORY = ("jaccard",)
"""Commands that are no algorithm by name, and are not run out of core."""
LONG = 8.0
"""Seconds from which a run is not repeated."""


def main() -> None:
    """Measures, prints and saves."""
    options = _options()
    with reporting.data_directory("structure", options.keep) as directory:
        results: Record = {"in_memory": _in_memory(directory, options) if options.scale else {}}
        results["out_of_core"] = _out_of_core(directory, options)
        state = "in memory: resident; out of core: direct reads past the page cache"
        reporting.save(options, "structure", state, results)
    _print(results, options)


def _options() -> argparse.Namespace:
    parser = reporting.arguments(__doc__ or "", scale=20, repetitions=3)
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES, help="which")
    parser.add_argument("--algorithms", nargs="+", default=list(COMMANDS), choices=COMMANDS)
    parser.add_argument("--memory", default="4GiB", help="tiergraph's budget in memory")
    parser.add_argument("--large-scale", type=int, default=24, help="out of core; 0: not at all")
    parser.add_argument("--large-memory", default="960MiB", help="tiergraph's budget out of core")
    parser.add_argument("--limit-mib", type=int, default=1024, help="the cgroup's limit")
    parser.add_argument("--limit", type=float, default=600, help="seconds a command may take")
    parser.add_argument(
        "--peers-python",
        type=Path,
        default=reporting.BENCH / ".venv-peers/bin/python",
        help="the peers' environment: peers_env.sh makes it",
    )
    options = parser.parse_args()
    options.peers_python = options.peers_python.absolute()
    return options


def _in_memory(directory: Path, options: argparse.Namespace) -> Record:
    import tiergraph as tg

    say(f"making the edges of scale {options.scale}")
    edges = rmat.write_undirected(directory, options.scale)
    data = rmat.read(directory)
    for kind in ("plain", "directed"):
        path = directory / f"{kind}.tg"
        tg.build((data.src, data.dst), path, vertices=data.vertices, undirected=kind == "plain")
    found: Record = {"vertices": data.vertices, "edges": edges, "engines": {}}
    for kind in ("plain", "directed"):
        commands = [name for name in options.algorithms if COMMANDS[name][0] == kind]
        children = {name: _child(name, kind, directory, options) for name in options.engines}
        for _ in range(options.repetitions):
            for command in commands:
                for engine, child in children.items():
                    runs = found["engines"].setdefault(engine, {}).setdefault(command, [])
                    if runs and runs[-1].get("seconds", LONG) >= LONG:
                        continue
                    say(f"{engine}: {command}")
                    runs.append(_call(child, command, options))
        for child in children.values():
            child.close()
    return found


def _child(engine: str, kind: str, directory: Path, options: argparse.Namespace) -> Child:
    is_own = engine == "tiergraph"
    python = Path(sys.executable) if is_own else options.peers_python
    own = (options.memory, str(options.threads)) if is_own else ()
    return Child(python, f"on_{engine}", str(directory), kind, *own, threads=options.threads)


def _call(child: Child, command: str, options: argparse.Namespace) -> Record:
    try:
        return child.call(command, options.limit, **COMMANDS[command][1])
    except UnavailableError as error:
        return {"failure": str(error)}


def _out_of_core(directory: Path, options: argparse.Namespace) -> Record:
    if options.large_scale == 0:
        return {}
    limit = Limit(options.limit_mib << 20, wanted=True)
    found: Record = {"limit": limit.how, "runs": {}}
    for kind in ("plain", "directed"):
        commands = [name for name in options.algorithms if COMMANDS[name][0] == kind]
        commands = [name for name in commands if name not in IN_MEMORY]
        if not commands:
            continue
        path = directory / f"large-{kind}.tg"
        with limit.child(options) as inside:
            found[f"build_{kind}"] = inside.call(
                "generate",
                path=str(path),
                scale=options.large_scale,
                undirected=kind == "plain",
                dedup=True,
                drop_self_loops=True,
                memory="768MiB",
                threads=options.threads,
            )
        for command in commands:
            say(f"out of core: {command}")
            with limit.child(options) as inside:
                memory, threads = options.large_memory, options.threads
                inside.call("open", path=str(path), memory=memory, io="auto", threads=threads)
                arguments = COMMANDS[command][1] | _LARGE.get(command, {})
                run = inside.call("run", name=command, options=arguments)
                found["runs"][command] = run.pop("value", {}) | run
    return found


_LARGE: dict[str, Record] = {"harmonic": {"registers": 16}, "betweenness": {"samples": 2}}
"""What differs out of core: counters that fit, and fewer samples."""


def _print(results: Record, options: argparse.Namespace) -> None:
    if results["in_memory"]:
        _print_in_memory(results["in_memory"], options)
    _print_out_of_core(results["out_of_core"], options)


def _print_in_memory(results: Record, options: argparse.Namespace) -> None:
    engines = results["engines"]
    rows: list[list[Any]] = []
    for command in options.algorithms:
        row: list[Any] = [command]
        values = []
        for engine in options.engines:
            runs = [run for run in engines[engine].get(command, []) if "failure" not in run]
            row.append(median([run["seconds"] for run in runs]))
            values.append(runs[-1]["value"] if runs else None)
        same = {value for value in values if value is not None}
        if command in ABOUT:
            row.append(" ".join("-" if v is None else f"{v:.4g}" for v in values))
        else:
            row.append("equal" if len(same) == 1 else f"differ: {sorted(same)}")
        rows.append(row)
    edges = results["edges"]
    title = f"RMAT-{options.scale}, {edges:,} edges, {options.threads} threads, in memory: seconds"
    reporting.table(title, ("algorithm", *options.engines, "values"), rows)


def _print_out_of_core(results: Record, options: argparse.Namespace) -> None:
    large = results.get("runs", {})
    if not large:
        return
    rows = [
        [
            command,
            run.get("seconds"),
            run.get("iterations"),
            run.get("passes"),
            None if "bytes_read" not in run else run["bytes_read"] / 1e9,
            None if run["cgroup_peak_bytes"] is None else run["cgroup_peak_bytes"] / 2**20,
            run.get("failure", ""),
        ]
        for command, run in large.items()
    ]
    title = f"RMAT-{options.large_scale} out of core, {results['limit']}"
    header = ("algorithm", "seconds", "steps", "passes", "GB read", "peak MiB", "")
    reporting.table(title, header, rows)
    say(f"on {machine.device()}")


if __name__ == "__main__":
    main()
