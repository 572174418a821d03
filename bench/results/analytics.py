"""Tables of what the scripts measure that run algorithms and builds on a CPU."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import growth
from runs import Run
from tables import Record, Table, median, middle, percent

GB = 1e9
MB = 1e6
PAGE_BYTES = 4096
FEW, MANY = 5, 15
"""Iterations of `peers.py`, whose difference is PageRank's time."""


def peers(run: Run) -> list[Table]:
    """Engines beside each other, the graph in memory."""
    rows = []
    for engine in run.results["engines"]:
        seconds, whole = engine["median_seconds"], engine.get("pagerank_seconds_in_all")
        whole = whole or engine.get("pagerank_seconds_to_convergence")
        each = engine["pagerank_seconds_per_iteration"]
        pagerank = each if each is not None else whole and f"{whole:.3g} in all"
        times = [pagerank, *(seconds.get(name) for name in ("wcc", "bfs", "sssp"))]
        peak = engine["peak_rss_bytes"]
        rows.append([engine["engine"], *times, engine["load_seconds"], peak and round(peak / MB)])
    header = ["", "PageRank s/iteration", "WCC s", "BFS s", "SSSP s", "load s", "peak MB"]
    edges = run.results["edges"] / MB
    title = f"RMAT-{run.configuration['scale']}, undirected, {edges:.1f} M edges, in memory"
    note = (
        "The first BFS of an opened graph also loads its rows. Peers' times leave out the "
        "conversion of their results to arrays; tiergraph's contain it."
    )
    return [Table(title, header, rows, note)]


QUALITY = ("louvain", "leiden", "coloring", "independent_set")
"""Algorithms of `structure.py` whose number is a measure of how good a result is."""


def structure(run: Run) -> list[Table]:
    """Algorithms by name beside other libraries in memory, and out of core."""
    inside, large = run.results["in_memory"], run.results["out_of_core"]
    return [
        *([_beside_libraries(run, inside)] if inside else []),
        *([_beyond_memory(run, large)] if large else []),
    ]


def _beside_libraries(run: Run, found: Record) -> Table:
    engines, rows = found["engines"], []
    for command in run.configuration["algorithms"]:
        runs = {name: engines[name].get(command, []) for name in run.configuration["engines"]}
        good = {name: [r for r in of if "failure" not in r] for name, of in runs.items()}
        seconds = {name: middle(of, "seconds") if of else None for name, of in good.items()}
        others = [s for name, s in seconds.items() if name != "tiergraph" and s is not None]
        own = seconds["tiergraph"]
        ratio = f"{min(others) / own:.2f}" if others and own else "-"
        values = [f"{of[-1]['value']:.4g}" if of else "-" for of in good.values()]
        result = ", ".join(values) if command in QUALITY else ""
        rows.append([command, *seconds.values(), ratio, result])
    header = ["", *(f"{name} s" for name in run.configuration["engines"]), "faster", "result"]
    title = f"Structure of RMAT-{run.configuration['scale']}, {found['edges'] / MB:.1f} M edges"
    note = (
        "In memory, two threads. `faster`: times the best of the others. tiergraph's seconds contain "
        "reading the graph from its file, in every call. Numbers that do not depend on the engine "
        "are equal; the results shown are modularity, colours and sizes. Runs of 8 s and more are "
        "not repeated. `scc` is of the same edges with a direction. NetworKit's `harmonic` is the "
        "effective diameter alone."
    )
    return Table(title, header, rows, note)


def _beyond_memory(run: Run, found: Record) -> Table:
    rows = [
        [
            name,
            *(r.get(key) for key in ("seconds", "iterations")),
            f"{r['passes']:.1f}" if "passes" in r else r["failure"].partition(":")[0],
            None if "bytes_read" not in r else r["bytes_read"] / GB,
            r["cgroup_peak_bytes"] and round(r["cgroup_peak_bytes"] / 2**20),
        ]
        for name, r in found["runs"].items()
    ]
    header = ["", "seconds", "steps", "passes", "GB read", "peak MiB"]
    memory = run.configuration["large_memory"]
    title = f"Structure of RMAT-{run.configuration['large_scale']} in 1 GiB, `memory={memory}`"
    note = f"Limit: {found['limit']}. `harmonic` has 16 registers, `betweenness` 2 samples."
    return Table(title, header, rows, note)


def components(run: Run) -> list[Table]:
    """What pairs of ids connect, beside libraries that number the ids first."""
    rows = []
    for kind, found in run.results["kinds"].items():
        good = {
            name: [r for r in runs if "failure" not in r] for name, runs in found["runs"].items()
        }
        seconds = {name: middle(of, "seconds") for name, of in good.items() if of}
        own = seconds["tiergraph"]
        for name, of in good.items():
            peak = max(r["peak_rss_bytes"] for r in of) / MB
            speed = run.results["pairs"] / seconds[name] / MB
            rows.append([kind, name, seconds[name], speed, f"{seconds[name] / own:.2f}", peak])
    pairs = run.results["pairs"] / MB
    title = f"Components of {pairs:.0f} M pairs of ids, from a Parquet file to labels"
    header = ["ids", "", "seconds", "M pairs/s", "of tiergraph's", "peak MB"]
    note = "pandas numbers the ids for igraph and SciPy, which takes most of SciPy's time. Two threads."
    return [Table(title, header, rows, note)]


def in_memory(run: Run) -> list[Table]:
    """PageRank's speed over a resident graph."""
    rows = []
    for record in run.results:
        seconds = middle(record["repetitions"], "seconds_per_iteration")
        used = middle(record["repetitions"], "processor_seconds_per_iteration")
        arcs = record["arcs"]
        rows.append(
            [record["name"], seconds, used, arcs / seconds / GB, record["pass_bytes"] / arcs]
        )
    header = ["graph", "s/iteration", "processor s", "G arcs/s", "bytes an arc"]
    return [Table(f"PageRank of RMAT-{run.configuration['scale']}, resident", header, rows)]


def propagate(run: Run) -> list[Table]:
    """`propagate` beside SciPy's product."""
    rows = []
    for record in run.results:
        ours = middle([r["tiergraph"] for r in record["repetitions"]], "seconds")
        theirs = median([r["scipy"]["seconds"] for r in record["repetitions"] if r["scipy"]])
        times = theirs and theirs / ours
        what = f"{record['name']}, {record['reduce']}"
        rows.append([what, record["columns"], ours, record["arcs"] / ours / GB, theirs, times])
    header = ["graph and reduction", "columns", "s", "G arcs/s", "SciPy s", "times faster"]
    note = (
        "SciPy's CSR product has one thread, and the matrix and the values in the graph's order; "
        "a call of `propagate` brings them from the order of the ids and back."
    )
    title = f"`propagate` of float32 values, RMAT-{run.configuration['scale']}, in memory"
    return [Table(title, header, rows, note)]


def out_of_core(run: Run) -> list[Table]:
    """Algorithms in a cgroup, by how much memory they were given."""
    return [
        Table(
            f"RMAT-{run.configuration['scale']}, {kind}, in a cgroup of "
            f"{run.configuration['limit_mib']} MiB (`resident` without one)",
            ["memory", "algorithm", "s", "s/iteration", "MB read", "passes", "peak MB"],
            list(_settings(record)),
            "Each algorithm runs once after opening: what it keeps it reads first, `resident` too.",
        )
        for kind, record in run.results["kinds"].items()
    ]


def _settings(record: Record) -> Iterator[list[object]]:
    for name, setting in record["settings"].items():
        for algorithm in ("pagerank", "wcc", "bfs", "sssp"):
            calls = [c for c in setting["calls"] if c["command"] == algorithm and "value" in c]
            if calls:
                yield [name, algorithm, *out_of_core_times(calls)]


def bare_seconds(run: Run, setting: str, algorithm: str) -> float:
    """What bare reads of an algorithm's bytes take, at the speed measured beside its runs."""
    calls = run.results["kinds"]["undirected"]["settings"][setting]["calls"]
    at = [i for i, c in enumerate(calls) if c["command"] == algorithm and "value" in c]
    beside = [calls[j] for i in at for j in (i - 1, i + 1) if j < len(calls)]
    speeds = [c["value"] for c in beside if c["command"] == "ceiling" and "value" in c]
    read = middle([calls[i]["value"] for i in at], "bytes_read")
    return read / statistics.median(speeds)


def algorithm_calls(run: Run, setting: str, algorithm: str) -> list[Record]:
    """The undirected graph's finished calls of one algorithm."""
    calls = run.results["kinds"]["undirected"]["settings"][setting]["calls"]
    return [call for call in calls if call["command"] == algorithm and "value" in call]


def out_of_core_times(calls: list[Record]) -> list[float | None]:
    """Seconds, seconds an iteration, MB read, passes and the cgroup's peak of an algorithm."""
    values = [call["value"] for call in calls]
    seconds, iterations = middle(values, "seconds"), middle(values, "iterations")
    peak = max(call["cgroup_peak_bytes"] or 0 for call in calls)
    read, passes = middle(values, "bytes_read") / MB, middle(values, "passes")
    return [seconds, seconds / iterations, read, passes, round(peak / MB) if peak else None]


def rmat24(run: Run) -> list[Table]:
    """Lines of `--json`: a build, and algorithms in a given memory."""
    rows = []
    for line in run.results:
        if "algorithm" not in line:
            rows.append(["build", line["seconds"], None, None, None])
            continue
        each = line["seconds"] / line["iterations"]
        read, passes = line["bytes_read"] / MB, line.get("passes")
        rows.append([line["algorithm"], line["seconds"], each, read, passes])
    header = ["", "s", "s/iteration", "MB read", "passes"]
    return [Table(f"`{run.path.stem}`: the command line's `--json`", header, rows)]


def raw_disk(run: Run) -> list[Table]:
    """Passes over raw blocks beside bare reads of the same file."""
    rows = []
    for engine in run.results["engines"]:
        done = engine["repetitions"]
        if not done:
            rows.append([engine["engine"], "; ".join(engine["failures"]), None, None, None])
            continue
        bare = median([r[side] / GB for r in done for side in ("before", "after")])
        speed = middle([r["run"] for r in done], "read_bandwidth") / GB
        memory = engine["memory_bytes"] / 2**20
        rows.append([engine["engine"], memory, speed, bare, percent(middle(done, "share"))])
    header = ["engine", "memory MiB", "PageRank reads GB/s", "bare reads GB/s", "share"]
    title = f"RMAT-{run.configuration['scale']}, codec `raw`, nothing resident"
    return [Table(title, header, rows)]


def checksums(run: Run) -> list[Table]:
    """A pass with and without checksums."""
    rows = []
    for record in run.results:
        on, off = ([r for r in record["repetitions"] if r["checksums"] is x] for x in (True, False))
        used, without = (middle(some, "processor_seconds") for some in (on, off))
        seconds = [middle(some, "seconds_per_iteration") for some in (on, off)]
        rows.append([record["codec"], *seconds, percent(used / without - 1)])
    header = ["codec", "s/iteration", "s without checksums", "more processor time"]
    title = f"PageRank of RMAT-{run.configuration['scale']} from disk: the price of checksums"
    note = "Over packed tiles PageRank is bound by computing, not by the disk."
    return [Table(title, header, rows, note)]


def sizes(run: Run) -> list[Table]:
    """Bytes an arc on disk."""
    rows = []
    for record in run.results:
        if "skipped" in record:
            continue
        parts, info = record["bytes_per_arc_by_part"], record["info"]
        rows_bytes = parts["rows"] / max(1, record["rows_directions"])
        graph = f"{record['graph_name']}, {info['arcs'] / MB:.1f} M arcs"
        rows.append([graph, parts["tiles"], rows_bytes, record["bytes_per_arc"]])
    header = ["graph", "tiles", "rows, a direction", "all files"]
    return [Table("Bytes an arc on disk", header, rows)]


def acgraph(run: Run) -> list[Table]:
    """Jobs from disk beside ACGraph."""
    rows = []
    for record in run.results:
        own, theirs = (middle(record[who], "seconds") for who in ("tiergraph", "acgraph"))
        read = (middle(record[who], "bytes_read") / MB for who in ("tiergraph", "acgraph"))
        rows.append([record["job"], own, theirs, f"{theirs / own:.1f}", *map(round, read)])
    header = ["", "tiergraph s", "ACGraph s", "faster", "MB read", "MB read by ACGraph"]
    configuration = run.configuration
    note = (
        f"A cgroup of {configuration['limit'] >> 20} MiB, {configuration['threads']} threads, nothing "
        "in the page cache. Seconds are those that each reports of itself, of tiergraph with opening."
    )
    title = f"Beside ACGraph (SIGMOD 2026), RMAT-{configuration['scale']}, undirected, from disk"
    return [Table(title, header, rows, note)]


def _reading(report: Record) -> float:
    """Millions of edges a second of the stage that reads the input."""
    stages = {stage["name"]: stage["seconds"] for stage in report["stages"]}
    return float(report["edges_read"]) / MB / stages["scan"]


def build_speed(run: Run) -> list[Table]:
    """Builds by format of the input."""
    rows = []
    for record in run.results:
        done = record["repetitions"]
        speed = median([a["value"]["edges_read"] / MB / a["seconds"] for a in done])
        peak = max(answer["peak_rss_bytes"] for answer in done) / MB
        seconds = middle(done, "seconds")
        reading = median([_reading(a["value"]) for a in done])
        rows.append([record["format"], record["scale"], seconds, speed, reading, round(peak)])
    header = ["input", "scale", "s", "M edges/s", "of these, reading: M edges/s", "peak MB"]
    title = f"Builds, directed, both directions, `--memory {run.configuration['memory']}`"
    return [Table(title, header, rows)]


def long_diameter(run: Run) -> list[Table]:
    """Searches over graphs whose levels are many and small."""
    rows = []
    for record in run.results:
        for place, builds in record["runs"].items():
            done = builds["now"]
            what = [record["name"], record["codec"], record["algorithm"], place]
            if None in done:
                rows.append([*what, f"more than {run.configuration['limit']}", None])
            else:
                rows.append([*what, middle(done, "seconds"), done[0]["iterations"]])
    header = ["graph", "codec", "algorithm", "memory", "s", "levels or passes"]
    title = f"Long diameters, device `{run.configuration['device']}`"
    return [Table(title, header, rows)]


def scaling(run: Run) -> list[Table]:
    """Builds and passes of graphs of several scales in the same memory."""
    rows = []
    for record in run.results["scales"]:
        build = record["build"].get("value")
        if build is None:
            rows.append([record["scale"], record["build"]["failure"], *[None] * 9])
            continue
        read = build["edges_read"]
        calls = [call for call in record["calls"] if "value" in call]
        passes = [call["value"] for call in calls if call["command"] == "pagerank"]
        rows.append(
            [
                record["scale"],
                round(build["edges"] / MB),
                build["edges_per_second"] / MB,
                f"{build['scratch_bytes'] / read:.1f}",
                round((record["build"]["cgroup_peak_bytes"] or 0) / MB),
                *(growth.nanoseconds(record, name) for name in ("pagerank", "wcc", "bfs")),
                middle(passes, "read_bandwidth") / 1e9 if passes else None,
                record.get("ceiling", {}).get("value", 0) / 1e9 or None,
            ]
        )
    title = f"Growth with the graph, {run.configuration['memory']}"
    header = ["scale", "M edges", "build M edges/s", "scratch B an edge", "build peak MB"]
    times = ["PageRank iteration", "WCC", "BFS"]
    disk = ["PageRank reads GB/s", "bare reads GB/s"]
    note = (
        "Edges of the finished graph; what is built a second are edges read. Times are nanoseconds "
        "an arc of a whole call. Small graphs stay in memory from pass to pass, large ones are "
        "read: not faster than the disk gives."
    )
    header += [*(f"{name} ns an arc" for name in times), *disk]
    if run != growth.RUN:
        return [Table(title, header, rows, note)]
    note += f"\n\n![Nanoseconds an arc by scale]({growth.FILE})"
    beside = ["", "G arcs", "here s", "GAP s", "GAP's, of the time here"]
    published = (
        f"Here: R-MAT {growth.GAP_SCALE} in {run.configuration['memory']}, "
        f"{run.configuration['threads']} threads, from disk. GAP: GAP-kron, of the same scale and "
        "parameters, in memory, 40 threads on 20 cores (Xeon E5-2698 v4), BFS from 64 sources, as LAGraph published it "
        "(`src/benchmark/GAP_2022.txt` of github.com/GraphBLAS/LAGraph). Its whole PageRank took 20.3 s; the 7 "
        "iterations are those of LAGraph's version there."
    )
    title_beside = "Beside GAP's published figures on 20 cores"
    return [
        Table(title, header, rows, note),
        Table(title_beside, beside, growth.beside_gap(), published),
    ]


def two_builds(run: Run) -> list[Table]:
    """Two builds of tiergraph, job by job in turn."""
    rows = []
    for record in run.results:
        now, before = (median(record["seconds"][build]) for build in ("now", "before"))
        rows.append([record["job"], now, before, now and before and now / before])
    header = ["job", "this build s", "the build before s", "ratio"]
    title = f"Two builds beside each other, scale {run.configuration['scale']}"
    return [Table(title, header, rows)]


def user_space(run: Run) -> list[Table]:
    """User-space against kernel I/O on one modelled drive."""
    found: dict[tuple[int, str, str], list[Record]] = {}
    for record in run.results["runs"]:
        key = (record["threads"], record["job"], record["engine"])
        found.setdefault(key, []).append(record)
    rows = []
    for (threads, job, engine), records in found.items():
        base = found[threads, job, "posix"]
        seconds, bandwidth = middle(records, "seconds"), middle(records, "bandwidth")
        ratios = [seconds / middle(base, "seconds"), bandwidth / middle(base, "bandwidth")]
        rows.append(
            [
                *(threads, job, engine, bandwidth / 1e9),
                *(f"{ratio:.2f}" for ratio in reversed(ratios)),
                middle(records, "cpu_seconds_per_gb"),
            ]
        )
    header = ["threads", "job", "engine", "GB/s", "of posix", "time of posix", "CPU s a GB"]
    note = (
        "The drive is *modelled* (7 GB/s) over a graph in memory. `posix` is a blocking `pread` a "
        "thread. CPU seconds of bare reads by queue pairs have those of the drive's threads in them."
    )
    return [Table("User-space against kernel I/O (RealGraphGPU++, figure 3)", header, rows, note)]


TABLES = {
    "realgraph_user_space": user_space,
    "peers": peers,
    "structure": structure,
    "components": components,
    "in_memory": in_memory,
    "propagate": propagate,
    "out_of_core": out_of_core,
    "rmat24": rmat24,
    "raw_disk": raw_disk,
    "checksums": checksums,
    "sizes": sizes,
    "build_speed": build_speed,
    "acgraph": acgraph,
    "long_diameter": long_diameter,
    "scaling": scaling,
    "two_builds": two_builds,
}
"""The tables of each script, in the order of a machine's section."""
