"""The same figures of every machine side by side, and why they differ."""

from __future__ import annotations

import analytics
import gpu
from runs import Machine, Run
from tables import Table, middle, percent

GB = 1e9
MB = 1e6
MS = 1e3

WHY_CPU = """\
- *Other processors.* Caches, clocks and memory differ, and engines use them differently:
  GraphBLAS is further behind on one machine than on another. Why was not taken apart.
- *The same kind of machine on another day.* These are virtual machines whose hosts have other
  guests: one kind's speed differs from day to day by up to half, the older Xeon's by a factor of
  two. A run marked `again` is one more such day, with a later build. What is compared in one
  table was measured in turn in one run; seconds of different tables are not compared.
- *Streamed as fast as resident.* A pass over packed tiles is bound by computing and hides its
  reads; `out_of_core` has one repetition of each setting here, so that either may come out ahead.
- *Checksums* read every byte once more, which weighs most over raw blocks, where a pass does
  little for each byte; how much depends on how the processor's CRC-32C compares with its pass.
- *Builds* write and read a spool and buckets through drives of different speed (`raw_disk` has
  their bare reads).
"""

WHY_GPU = """\
- *Builds.* The runs of the H200 with 16 cores are older. Between them and the later ones hubs got
  a sum a lane, which is PageRank of undirected graphs; a pass's first reads began before the last
  one's end, and what all lanes copy from came to fit the processor's cache, which is streaming;
  WCC's blocks stayed on the device.
- *Hosts.* What streams is copied to by host threads: a host with a faster single thread makes the
  papers' synchronous mode faster, and so the asynchronous one's gain smaller. One machine's bare
  reads of files in memory are a third slower than another's (`slow-host`).
- *Neighbours.* On the host with two GPUs something ran on the other one, and on half of the
  cores, during all timings but those of streaming: sampling and gathering are a little slower
  there.
- `propagate` was told by a run's own seconds, with nothing resident, on the older machine, and
  from NumPy to NumPy on the later one: the two tables have little in common.
- `transfers="direct"` ran in cuFile's compatibility mode only, as no machine has nvidia-fs: no
  figure here is a measure of a direct way.
"""


def tables(machines: list[Machine]) -> list[Table]:
    """One table of CPUs and one of GPUs, with the reasons below."""
    cpu_rows = [row for machine in machines if any((row := _cpu(machine))[1:])]
    gpu_rows = [row for machine in machines if any((row := _gpu(machine))[1:])]
    return [
        Table("Two cores, RMAT-22 (out of core: RMAT-24)", CPU_HEADER, cpu_rows, WHY_CPU),
        Table("One GPU, RMAT-24 (packed `propagate`: RMAT-22)", GPU_HEADER, gpu_rows, WHY_GPU),
    ]


CPU_HEADER = [
    "machine",
    "PageRank s/iteration",
    "GraphBLAS",
    "G arcs/s resident, undirected",
    "directed",
    "`again`",
    "PageRank out of core, streamed",
    "resident",
    "checksums, packed",
    "raw",
    "build M edges/s",
]


def _cpu(machine: Machine) -> list[object]:
    peers, resident = machine.one("peers", 22), machine.one("in_memory", 22)
    engines = {e["engine"]: e for e in peers.results["engines"]} if peers else {}
    per = [
        engines.get(name, {}).get("pagerank_seconds_per_iteration")
        for name in ("tiergraph", "graphblas")
    ]
    first = [run for run in machine.tabled if run.script == "in_memory"]
    speeds = [_arcs(run) for run in first]
    plain = speeds[0] if speeds else {}
    again = speeds[1] if len(speeds) > 1 else {}
    assert resident or not speeds
    return [
        machine.label,
        *per,
        *(plain.get(name) for name in ("undirected, packed", "directed, packed")),
        "; ".join(f"{again[n]:.1f}" for n in ("undirected, packed", "directed, packed") if again),
        *_out_of_core(machine.one("out_of_core")),
        *_checksums(machine.one("checksums")),
        _build(machine.one("build_speed")),
    ]


def _arcs(run: Run) -> dict[str, float]:
    return {
        record["name"]: record["arcs"] / middle(record["repetitions"], "seconds_per_iteration") / GB
        for record in run.results
    }


def _out_of_core(run: Run | None) -> list[float | None]:
    if run is None:
        return [None, None]
    calls = [analytics.algorithm_calls(run, s, "pagerank") for s in ("streamed", "resident")]
    return [analytics.out_of_core_times(of)[1] for of in calls]


def _checksums(run: Run | None) -> list[object]:
    if run is None:
        return [None, None]
    rows = {row[0]: row[3] for row in analytics.checksums(run)[0].rows}
    return [rows.get("packed"), rows.get("raw")]


def _build(run: Run | None) -> object:
    return analytics.build_speed(run)[0].rows[0][3] if run else None


GPU_HEADER = [
    "machine",
    "PageRank ms, raw",
    "packed",
    "undirected, packed",
    "streamed GB/s, raw",
    "packed",
    "copy GB/s",
    "asynchronous slots save",
    "sampling ms",
    "`propagate` ms",
]


def _gpu(machine: Machine) -> list[object]:
    resident, streaming = machine.one("gpu_resident"), _named(machine, "gpu_streaming")
    layouts = {r.get("layout"): r for r in resident.results} if resident else {}
    ms = [layouts.get(n, {}).get("seconds") for n in ("raw", "packed", "packed, undirected")]
    sampling, width = _named(machine, "gpu_sampling"), _named(machine, "gpu_propagate")
    return [
        machine.label,
        *(None if seconds is None else seconds * MS for seconds in ms),
        *_streamed(streaming),
        sampling and sampling.results[0]["seconds"] * MS,
        width and width.results[0]["packed"] * MS,
    ]


def _named(machine: Machine, stem: str) -> Run | None:
    found = [run for run in machine.tabled if run.path.stem == stem]
    return found[-1] if found else None


def _streamed(run: Run | None) -> list[object]:
    if run is None:
        return [None] * 4
    rows = run.results
    speeds = {}
    for row in rows:
        if row["what"] == "memory-backed" and row["checksums"] and row["threads"] == 12:
            speeds.setdefault(row["codec"], row)
    copy = [row["bandwidth"] for row in rows if row["what"] == "copy"]
    copy += [row["copy_ceiling"] for row in speeds.values() if "copy_ceiling" in row]
    modelled = [t for t in gpu.streaming(run) if t.title == "Modelled drives"]
    saved = modelled[0].rows[0][-1] if modelled else percent(None)
    of = [speeds[codec]["bandwidth"] / GB for codec in ("raw", "packed")]
    return [*of, copy[0] / GB, saved]
