"""How fast tiergraph is on a graph larger than the memory it may use.

Builds R-MAT graphs and runs every algorithm inside a memory cgroup, with a budget near the limit
and with one so small that most blocks are read each iteration; then resident, without a limit, for
the ratio. What the disk gives bare is measured on the same file before, between and after.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from common import machine, reporting
from common.cgroup import MemoryGroup
from common.child import Child, UnavailableError
from common.reporting import Record, median, say

BYTES_PER_ARC = 4
"""An arc of the plain form, 32-bit neighbour ids: the ceiling over it is what others can reach."""
FIXED_ARGUMENTS: Record = {"pagerank": {"iterations": 10}, "wcc": {}}
LEAST = "least"
"""The budget that only just holds an algorithm's vertex state."""


class Setting(NamedTuple):
    """How much memory a run may use."""

    name: str
    memory: str
    limited: bool


class Limit:
    """The cgroup that children run in, or why there is none."""

    def __init__(self, limit: int, wanted: bool) -> None:
        self._limit = limit
        made = MemoryGroup.create(limit) if wanted else "switched off by --no-cgroup"
        self.group = made if isinstance(made, MemoryGroup) else None
        if isinstance(made, MemoryGroup):
            made.remove()
            self.how = f"{made.kind} = {limit} bytes, page cache included"
        else:
            self.how = f"`memory=` only, no cgroup: {made}"

    @contextmanager
    def child(
        self, options: argparse.Namespace, limited: bool = True, beside: int = 0
    ) -> Iterator[Inside]:
        """A process of its own group, so that its peak is its own; `beside` the limit, more bytes."""
        group = None
        if limited and self.group is not None:
            made = MemoryGroup.create(self._limit + beside)
            if isinstance(made, str):
                raise SystemExit(f"cannot make the cgroup again: {made}")
            group = made
        child = Child(Path(sys.executable), "on_disk", threads=options.threads, group=group)
        try:
            yield Inside(child, group)
        finally:
            child.close()
            if group is not None:
                group.remove()


class Inside:
    """A child and the group that it is in."""

    def __init__(self, child: Child, group: MemoryGroup | None) -> None:
        self._child = child
        self._group = group

    def call(self, command: str, **arguments: Any) -> Record:
        """The answer with the cgroup's peak so far; a failure is a record too."""
        try:
            answer = self._child.call(command, **arguments)
        except UnavailableError as error:
            say(f"{command}: {error}")
            answer = {"failure": str(error)}
        peak = None if self._group is None else self._group.peak_bytes()
        return {"command": command, "cgroup_peak_bytes": peak} | answer


def main() -> None:
    """Builds, measures, prints and saves, a kind of graph at a time."""
    options = _options()
    limit = Limit(int(options.limit_mib) << 20, options.cgroup)
    say(f"limit: {limit.how}")
    results: Record = {"limit": limit.how, "kinds": {}}
    cache = f"{machine.drop_page_cache()} before each setting"
    with reporting.data_directory("out_of_core", options.keep) as directory:
        for kind in options.kinds:
            results["kinds"][kind] = _kind(kind, directory, limit, options)
            _print(kind, results["kinds"][kind], options)
            state = f"direct reads past the page cache; {cache}; host's cache unknown"
            reporting.save(options, "out_of_core", state, results)
    print(f"\nlimit: {limit.how}")


def _options() -> argparse.Namespace:
    parser = reporting.arguments(__doc__ or "", scale=24, repetitions=3)
    parser.add_argument("--kinds", nargs="+", default=["directed", "undirected"], help="of graph")
    parser.add_argument("--limit-mib", type=int, default=1024, help="the cgroup's limit")
    parser.add_argument("--build-memory", default="768MiB", help="budget of the build")
    parser.add_argument("--memory", default="640MiB", help="budget near the limit")
    parser.add_argument(
        "--small-memory", default=LEAST, help="budget that streams: as small as can be"
    )
    parser.add_argument("--resident-memory", default="8GiB", help="budget without a limit")
    parser.add_argument("--io", default="auto", help="read engine")
    parser.add_argument("--ceiling-seconds", type=float, default=1.0, help="of each bare reading")
    parser.add_argument(
        "--no-cgroup", dest="cgroup", action="store_false", help="limit by `memory=` only"
    )
    return parser.parse_args()


def _kind(kind: str, directory: Path, limit: Limit, options: argparse.Namespace) -> Record:
    """The builds, then each setting, on the graph without weights and the one with them."""
    plain, weighted = (directory / f"{kind}-{name}.tg" for name in ("plain", "weighted"))
    record: Record = {"builds": {}, "settings": {}}
    for path, weights in ((plain, None), (weighted, "unit")):
        say(f"building {path.stem}")
        with limit.child(options) as inside:
            record["builds"][path.stem] = inside.call(
                "generate",
                path=str(path),
                scale=options.scale,
                undirected=kind == "undirected",
                dedup=True,
                drop_self_loops=True,
                weights=weights,
                memory=options.build_memory,
                threads=options.threads,
            )
    with limit.child(options, limited=False) as outside:
        memory, threads = options.resident_memory, options.threads
        outside.call("open", path=str(plain), memory=memory, io=options.io, threads=threads)
        source = record["source"] = outside.call("hub").get("value", 0)
    for setting in (
        Setting("near the limit", options.memory, True),
        Setting("streamed", options.small_memory, True),
        Setting("resident", options.resident_memory, False),
    ):
        machine.drop_page_cache()
        calls: list[Record] = []
        for path, algorithms in ((plain, ("pagerank", "wcc", "bfs")), (weighted, ("sssp",))):
            say(f"{path.stem}, {setting.name}")
            with limit.child(options, setting.limited) as inside:
                calls += _interleaved(inside, path, algorithms, source, setting, options)
        record["settings"][setting.name] = {"memory": setting.memory, "calls": calls}
    return record


def _interleaved(
    inside: Inside,
    path: Path,
    algorithms: tuple[str, ...],
    source: int,
    setting: Setting,
    options: argparse.Namespace,
) -> list[Record]:
    """Repetitions of all algorithms in turn, the ceiling before, between and after each run."""
    least = setting.memory == LEAST

    def ceiling() -> list[Record]:
        if not setting.limited:
            return []
        return [inside.call("ceiling", seconds=options.ceiling_seconds, spare=least)]

    how = {"path": str(path), "io": options.io, "threads": options.threads}
    opened = inside.call("open", memory=options.memory if least else setting.memory, **how)
    if "failure" in opened:
        return [opened]
    calls = [opened]
    arguments = {name: FIXED_ARGUMENTS.get(name, {"source": source}) for name in algorithms}
    budgets = {
        name: inside.call("least_memory", algorithm=name, arguments=given, **how)
        for name, given in (arguments.items() if least else ())
    }
    calls += budgets.values()
    for _ in range(options.repetitions):
        for name, given in arguments.items():
            if least:
                calls.append(inside.call("open", memory=budgets[name].get("value"), **how))
            calls += ceiling()
            calls.append(inside.call(name, **given) | {"arguments": given})
            calls += ceiling()
    return calls


def _rows(kind: Record) -> Iterator[list[object]]:
    resident = dict(_medians(kind["settings"]["resident"]["calls"]))
    for name, setting in kind["settings"].items():
        for algorithm, run in _medians(setting["calls"]):
            ceiling, bandwidth, arcs = run["ceiling"], run["read_bandwidth"], run["arcs_per_second"]
            in_memory = resident.get(algorithm, {}).get("seconds")
            yield [
                f"{name} ({setting['memory']})",
                algorithm,
                run["seconds"],
                run["seconds"] / run["iterations"],
                run["bytes_read"] / 1e6,
                run["passes"],
                bandwidth / 1e9,
                ceiling / 1e9 if ceiling else None,
                bandwidth / ceiling if ceiling else None,
                arcs / 1e6,
                ceiling / BYTES_PER_ARC / 1e6 if ceiling else None,
                run["seconds"] / in_memory if in_memory else None,
                round(run["cgroup_peak_bytes"] / 1e6) if run["cgroup_peak_bytes"] else None,
            ]


def _medians(calls: list[Record]) -> Iterator[tuple[str, Record]]:
    """Each algorithm's medians, the ceiling that of the readings just before and after its runs."""
    for algorithm in ("pagerank", "wcc", "bfs", "sssp"):
        at = [i for i, c in enumerate(calls) if c["command"] == algorithm and "value" in c]
        if not at:
            continue
        runs = [calls[i]["value"] for i in at]
        keys = ("seconds", "iterations", "bytes_read", "passes", "read_bandwidth")
        record: Record = {key: median([run[key] for run in runs]) for key in keys}
        rounds = [run["iterations"] if algorithm == "pagerank" else 1 for run in runs]
        record["arcs_per_second"] = median(
            [run["arcs"] * times / run["seconds"] for run, times in zip(runs, rounds, strict=True)]
        )
        beside = [calls[j] for i in at for j in (i - 1, i + 1) if j < len(calls)]
        record["ceiling"] = median(
            [c["value"] for c in beside if c["command"] == "ceiling" and "value" in c]
        )
        record["cgroup_peak_bytes"] = max(calls[i]["cgroup_peak_bytes"] or 0 for i in at)
        yield algorithm, record


def _print(kind: str, record: Record, options: argparse.Namespace) -> None:
    builds = []
    for name, build in record["builds"].items():
        if "failure" in build:
            builds.append([name, build["failure"], None, None, None])
            continue
        report = build["value"]
        read = report["edges_read"]
        stages = ", ".join(
            f"{s['name']} {read / max(s['seconds'], 1e-9) / 1e6:.1f}" for s in report["stages"]
        )
        peak = build["cgroup_peak_bytes"]
        rate = report["edges_per_second"] / 1e6
        builds.append([name, report["seconds"], rate, peak and round(peak / 1e6), stages])
    reporting.table(
        f"RMAT-{options.scale} {kind}: builds in {options.build_memory}",
        ("graph", "s", "M edges/s", "cgroup peak MB", "M edges/s by stage"),
        builds,
    )
    reporting.table(
        f"RMAT-{options.scale} {kind}: medians of {options.repetitions}",
        (
            "setting",
            "algorithm",
            "s",
            "s/iteration",
            "MB read",
            "passes",
            "GB/s",
            "ceiling GB/s",
            "share",
            "M arcs/s",
            "ceiling/4 B",
            "x resident",
            "cgroup peak MB",
        ),
        list(_rows(record)),
    )
    failures = {
        f"{name}, {call['command']}: {call['failure']}"
        for name, setting in record["settings"].items()
        for call in setting["calls"]
        if "failure" in call
    }
    for failure in sorted(failures):
        print(failure)


if __name__ == "__main__":
    main()
