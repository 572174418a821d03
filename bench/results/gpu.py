"""Tables of what the scripts of `bench/gpu` measure."""

from __future__ import annotations

from itertools import pairwise

from runs import Run
from tables import Record, Table, middle, percent

GB = 1e9
MB = 1e6
MS = 1e3
GATHERED = 500_000
"""Rows that `bench/gpu/sampling.py` gathers."""
NAMES = {"cusparse": "cuSPARSE's SpMV, float32, same matrix and order"}
SEARCHES = {"wcc": "WCC", "bfs": "BFS", "sssp": "SSSP"}


def resident(run: Run) -> list[Table]:
    """Algorithms with the graph in GPU memory, beside cuSPARSE and cuGraph."""
    rows = [
        [
            NAMES.get(record["layout"], record["layout"]),
            record["seconds"] * MS,
            record["arcs_per_second"] / GB,
            record["bytes_per_arc"],
        ]
        for record in run.results
        if "layout" in record
    ]
    header = ["PageRank, an iteration", "ms", "G arcs/s", "bytes an arc"]
    note = (
        "Packed tiles are decoded in each iteration; every time has the update of the vertices in "
        "it but cuSPARSE's. cuGraph's graphs take 4 bytes an arc or more, as tiergraph's raw ones."
    )
    tables = [Table("The graph in GPU memory: PageRank", header, rows, note)]
    found = searches(run)
    rows = [
        [f"{SEARCHES[algorithm]}, {graph}", *_times(who, "tiergraph"), *_times(who, "cuGraph")]
        for (algorithm, graph), who in found.items()
    ]
    header = ["ms", "tiergraph", "whole call", "cuGraph", "whole call"]
    note = (
        "A whole call of tiergraph is a later one of an opened graph, whose blocks stayed on the "
        "GPU, and ends with NumPy arrays in the user's order; one of cuGraph leaves its results on "
        "the GPU in its own."
    )
    return [*tables, Table("The graph in GPU memory: searches", header, rows, note)]


def searches(run: Run) -> dict[tuple[str, str], dict[str, Record]]:
    """By algorithm and graph, each engine's row."""
    found: dict[tuple[str, str], dict[str, Record]] = {}
    for row in run.results:
        if "algorithm" in row:
            found.setdefault((row["algorithm"], row["graph"]), {})[row["who"]] = row
    return found


def _times(who: dict[str, Record], name: str) -> list[float | None]:
    row = who.get(name, {})
    times = [row.get("seconds"), row.get("call_seconds")]
    return [None if time is None else time * MS for time in times]


def streaming(run: Run) -> list[Table]:
    """PageRank with nothing resident, and the papers' modes on modelled drives."""
    bare = [r["bandwidth"] for r in run.results if r["what"] == "copy"]
    rows = []
    for r in run.results:
        if r["what"] not in ("memory-backed", "real disk"):
            continue
        copy = r.get("copy_ceiling", bare[0] if bare else None)
        bound = min(r["read_ceiling"], copy) if copy else r["read_ceiling"]
        on = {True: "on", False: "off"}.get(r.get("checksums", True))
        what = [r["what"], r["codec"], r["threads"], on]
        speeds = [r["bandwidth"] / GB, r["read_ceiling"] / GB, copy and copy / GB]
        share = percent(r["bandwidth"] / bound)
        rows.append([*what, *speeds, share, r["arcs_per_second"] / GB])
    header = ["files", "codec", "threads", "checksums", "GB/s", "bare reads", "copy to the GPU"]
    header += ["of the smaller", "G arcs/s"]
    tables = [Table("PageRank with nothing resident", header, rows)] if rows else []
    return tables + _modelled(run) + _ways(run)


def _modelled(run: Run) -> list[Table]:
    found = [r for r in run.results if r["what"] == "modelled drive"]
    rows = []
    for slow, fast in pairwise(found):
        same = all(slow[key] == fast[key] for key in ("limit", "threads", "algorithm"))
        if same and (slow["mode"], fast["mode"]) == ("RG-no", "RG-opt"):
            what = [fast["algorithm"], fast["limit"] / GB, fast["threads"]]
            speeds = [slow["bandwidth"] / GB, fast["bandwidth"] / GB]
            share = percent(fast["bandwidth"] / fast["limit"])
            rows.append([*what, *speeds, share, percent(1 - fast["seconds"] / slow["seconds"])])
    header = ["algorithm", "drive's limit GB/s", "threads", "one after the other GB/s"]
    header += ["asynchronous slots GB/s", "of the limit", "time saved"]
    note = (
        "The drives are *modelled*: readers of memory-backed files are held to the limit. One "
        "after the other is the papers' RG-no, a thread that reads, copies and computes a block at "
        "a time; asynchronous slots are RG-opt (RealGraphGPU++, figures 6 and 7)."
    )
    return [Table("Modelled drives", header, rows, note)] if rows else []


def _ways(run: Run) -> list[Table]:
    rows = [
        [r["codec"], r["way"], r["bandwidth"] / GB, r["io_engine_why"]]
        for r in run.results
        if r["what"] == "ways"
    ]
    header = ["codec", "transfers", "GB/s", "engine"]
    return [Table("Ways to the device", header, rows)] if rows else []


def host_tier(run: Run) -> list[Table]:
    """Iterations with blocks in no memory, in pinned host memory, and on the device."""
    rows = [
        [
            r["codec"],
            r["place"],
            r["seconds"] * MS,
            r["device_resident_bytes"] / MB,
            r["host_resident_bytes"] / MB,
        ]
        for r in run.results
    ]
    header = ["codec", "blocks kept", "ms an iteration", "MB on the GPU", "MB pinned"]
    return [Table("PageRank with blocks in pinned host memory", header, rows)]


def propagate(run: Run) -> list[Table]:
    """`propagate` by width."""
    rows = [[r["width"], r["packed"] * MS, r["raw"] * MS, r["cusparse"] * MS] for r in run.results]
    header = ["float32 values a vertex", "packed ms", "raw ms", "cuSPARSE, resident, ms"]
    return [Table("`propagate` on a GPU", header, rows)]


def counters(run: Run) -> list[Table]:
    """Which limits kernels are against."""
    header = list(run.results[0])
    rows = [[r.get(column) for column in header] for r in run.results]
    return [Table("Nsight Compute's counters of the longest launch", header, rows)]


def sampling(run: Run) -> list[Table]:
    """Sampling and gathering, beside WholeGraph where it ran."""
    tables = []
    rows = [
        [r["who"], r["seconds"] * MS, r["edges"] / r["seconds"] / MB]
        for r in run.results
        if r["what"] == "sample"
    ]
    note = "WholeGraph's second hop expands the seeds once more than PyG's definition."
    header = ["sampling 8,000 seeds at [25, 10]", "ms", "M edges/s"]
    others = any("WholeGraph" in r["who"] for r in run.results)
    tables.append(Table("Sampling on the GPU", header, rows, note if others else ""))
    rows = [
        [r["who"], r["row_bytes"], r["seconds"] * MS, GATHERED * r["row_bytes"] / r["seconds"] / GB]
        for r in run.results
        if r["what"] == "gather"
    ]
    note = (
        "A few of tiergraph's rows in pinned memory lay in GPU memory in that run, about as much "
        "as it is ahead there: call it even."
    )
    header = ["gathering rows", "bytes a row", "ms", "GB/s"]
    tables.append(Table("Gathering on the GPU", header, rows, note if others else ""))
    return tables


def timeline(run: Run) -> list[Table]:
    """Seconds in which storage, link and device were busy, beside those of the run."""
    rows = [
        [r["algorithm"], r["mode"], r["seconds"], percent(r["traced"] / r["seconds"] - 1)]
        + [
            percent(r[stage] / r["traced"])
            for stage in ("storage_to_host_seconds", "host_to_device_seconds", "device_seconds")
        ]
        for r in run.results
    ]
    header = ["algorithm", "mode", "s", "a trace costs", "reading", "copying", "computing"]
    return [Table("Stages' share of a run", header, rows)]


def training(run: Run) -> list[Table]:
    """Preparing and training, apart and together."""
    rows = [
        [
            r["rows"],
            r["model"],
            r["nodes"] / 1e3,
            *(r[key] * MS for key in ("prepare", "train", "apart", "together")),
            r.get("missed_rows", 0.0) / 1e3,
            r.get("bytes_ssd", 0.0) / MB,
        ]
        for r in run.results
    ]
    header = ["rows on the GPU", "model", "K nodes", "prepare", "train", "apart", "together"]
    header += ["K rows read", "MB read"]
    note = (
        "Milliseconds a batch of 8,000 seeds at [25, 10], hidden 256, GAT 8 heads of 64. "
        "`storage`: other rows in files, otherwise in pinned memory. In both, memory keeps as many "
        "of the next hottest rows as it has room for."
    )
    return [Table(f"Training: `{run.path.stem}`", header, rows, note)]


def drive_reads(run: Run) -> list[Table]:
    """Rows that kernels ask drives for: from threads as fast as they are, and from modelled drives."""
    fast = [r for r in run.results if r["part"] in ("rows", "blocks", "threads")]
    rows = [
        [
            r["row_bytes"],
            "yes" if r["copies"] else "no",
            r["threads"],
            r["blocks"],
            r["reads_per_second"] / 1e6,
            r["bytes_per_second"] / GB,
            r["link"] / GB,
        ]
        for r in fast
    ]
    header = ["bytes a row", "drives copy", "threads that are drives", "blocks that complete"]
    header += ["M reads/s", "GB/s", "plain copies GB/s"]
    table = run.path.stem.partition("-")[2]
    note = (
        f"Rows of a table of {table}, at random; drives are threads of a CPU. Where they do not copy, "
        "what is left is the GPU's side, the link and the drives' control path."
    )
    tables = [Table("Reads that a GPU starts", header, rows, note)]
    alone = [
        [r["row_bytes"], r["submit_threads"], r["blocks"], r["submit_ns"], r["complete_ns"]]
        for r in run.results
        if r["part"] == "alone"
    ]
    header = ["bytes a row", "threads that submit", "blocks that complete"]
    header += ["ns a submission", "ns a completion"]
    note = "Each kernel by itself, all completions there when the second starts."
    if alone:
        tables.append(Table("Reads that a GPU starts: the kernels alone", header, alone, note))
    modelled = [
        [r["row_bytes"], r["drives"], r["reads_per_second"] / 1e6, percent(r["share"])]
        for r in run.results
        if r["part"] == "drives"
    ]
    header = ["bytes a row", "drives", "M reads/s", "of the models' limit"]
    note = "Drives are *modelled*: threads that are held back to 750,000 reads a second each."
    return [*tables, Table("Reads that a GPU starts: modelled drives", header, modelled, note)]


def drive_epochs(run: Run) -> list[Table]:
    """Epochs whose rows a GPU reads from modelled drives, beside those whose rows are in its memory."""
    bases = {"host_memory": "of rows in host memory", "memory": "of all rows in GPU memory"}
    in_memory = {
        (r["way"], r["row_bytes"], r["drives"]): r["together"]
        for r in run.results
        if r["way"] in bases
    }
    bases = {way: share for way, share in bases.items() if way in {key[0] for key in in_memory}}
    rows = []
    for r in (r for r in run.results if r["way"] not in bases):
        rate = r["missed_rows"] / r["prepare"]
        rows.append(
            [
                r["row_bytes"],
                r["drives"],
                r["way"],
                r["nodes"] / 1e3,
                r["missed_rows"] / 1e3,
                rate / 1e6,
                percent(rate / (P5510_READS * r["drives"])),
                1e3 * r["prepare"],
                1e3 * r["train"],
                1e3 * r["together"],
                *(
                    percent(in_memory[way, r["row_bytes"], r["drives"]] / r["together"])
                    for way in bases
                ),
            ]
        )
    header = ["bytes a row", "drives", "who reads", "K nodes", "K rows read", "M rows/s"]
    header += ["of the models' limit"]
    header += ["prepare", "train", "together", *bases.values()]
    note = (
        "Milliseconds a batch of 8,000 seeds at [25, 10], GraphSAGE of 256 values. Rows that lie in "
        "no memory the GPU's kernels ask for, or the host's threads, or (`auto`) the faster of both "
        "in a trial. Drives are *modelled*: threads over files in memory, held back to 750,000 "
        "reads a second each. Shares are of the speed of loaders of the same process: one whose rows "
        "are all in GPU memory, and one that has in host memory what as much GPU memory leaves."
    )
    return [Table("Epochs by reads that a GPU starts", header, rows, note)]


P5510_READS = 750e3
"""A second, of one modelled drive."""


def lists(run: Run) -> list[Table]:
    """Algorithms over neighbour lists, beside the machine's CPU and cuGraph."""
    rows, threads = [], 0
    for found in run.results:
        runs = {way: [r for r in of if "seconds" in r] for way, of in found["runs"].items() if of}
        seconds = {way: middle(of, "seconds") for way, of in runs.items() if of}
        threads = runs["cpu"][0]["threads"] if "cpu" in runs else threads
        first, again = seconds.get("first"), seconds.get("again")
        made = middle(runs["first"], "load_seconds") if first else None
        others = [seconds.get(way) for way in ("cpu", "cugraph")]
        row = [f"RMAT-{found['scale']}, {found['algorithm']}", first, made, again]
        for other in others:
            row += [other, f"{other / again:.1f}" if other and again else None]
        rows.append(row)
    cpu = f"CPU s, {threads} threads" if threads else "CPU s"
    header = ["", "first run s", "of it lists", "again s", cpu, "slower", "cuGraph s", "slower"]
    note = (
        "Undirected graphs on a GPU. The first run reads the graph and makes its lists there, where "
        "they stay for later ones. cuGraph's graph is in its memory before. The CPU reads the graph "
        "in each run. `slower`: times a later run. Results are equal; Louvain and Leiden have "
        "no version for GPUs here."
    )
    return [Table("Algorithms over neighbour lists", header, rows, note)]


def frontier(run: Run) -> list[Table]:
    """Searches by what small levels read, and who starts those reads."""
    before = {
        (found["graph"], found["drives"]): found["seconds"]
        for found in run.results
        if found["way"] == "blocks"
    }
    rows = []
    for found in run.results:
        small, blocks = found["small_levels"], before.get((found["graph"], found["drives"]))
        rows.append(
            [
                f"{found['graph']}, {found['drives']} drives, {found['way']}",
                found["seconds"],
                f"{found['seconds'] / blocks:.2f}" if blocks else None,
                int(found["levels"]),
                found["gigabytes"],
                int(small),
                f"{found['small_seconds'] / small * 1e6:.0f}" if small else None,
            ]
        )
    header = ["", "s", "of blocks", "levels", "GB read", "by pages", "us each"]
    note = (
        "No block stays in memory, and drives are modelled (Intel P5510). `blocks`: a build that reads "
        "blocks in every level; `host`, `gpu`: pages of small levels, by reads that the host starts or "
        "kernels. `of blocks`: the time over that of `blocks`. All ways give the same depths."
    )
    return [Table("Breadth-first search: who reads small levels", header, rows, note)]


TABLES = {
    "gpu_frontier": frontier,
    "gpu_lists": lists,
    "gpu_drive_reads": drive_reads,
    "gpu_epochs": drive_epochs,
    "gpu_resident": resident,
    "gpu_streaming": streaming,
    "gpu_host_tier": host_tier,
    "gpu_propagate": propagate,
    "gpu_sampling": sampling,
    "gpu_training": training,
    "gpu_counters": counters,
    "gpu_timeline": timeline,
}
"""The tables of each script, in the order of a machine's section."""
