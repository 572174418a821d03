"""The papers' figures and tables: what they say, what was measured here, and on what.

Every figure of the three papers has a line, those that were not measured with the reason.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from runs import RUNS, Run
from tables import Record, Table, percent

USER_SPACE = "RealGraphGPU, user-space I/O"
PLUS = "RealGraphGPU++"
HYPERION = "Hyperion"
NOT_MEASURED = "not measured: "
EPOCHS = "gpu_hyperion_epochs-20"
STREAMED = "gpu_streaming"
PLACED = "gpu_hyperion_placement-20"
IO = "gpu_hyperion_io-p5510"


@dataclass(frozen=True)
class Claim:
    """A figure of a paper: what it says, and what says it here."""

    paper: str
    figure: str
    question: str
    said: str
    here: Callable[[list[Record]], str] | None = None
    """Words the measured figure from a run's rows; None where nothing was measured."""
    run: str = ""
    """The name of a run's file, without what it ends with: the latest one."""
    command: str = ""
    conditions: str = ""
    """What differs from the paper's; or why it was not measured."""


def table() -> Table:
    """A line for each figure."""
    rows = []
    for claim in CLAIMS:
        here, source = "", ""
        if claim.here is not None:
            run = latest(claim.run)
            here = claim.here(records(run))
            source = f"[{run.date}]({run.name})"
        command = f"`{claim.command}`" if claim.command else ""
        what = f"{claim.paper}, {claim.figure}: {claim.question}"
        rows.append([what, claim.said, here, claim.conditions, command, source])
    header = ["figure", "paper", "here", "conditions here", "command", "run"]
    note = (
        "Drives are *modelled* in all of them: threads over memory that answer no sooner than such "
        "drives would. No one of the papers' systems runs here: where they compare with another "
        "system, `here` compares with its way of reading, written in this library."
    )
    return Table("The papers' figures", header, rows, note)


def latest(stem: str) -> Run:
    """The latest run of that name."""
    found = sorted(path for path in RUNS.glob(f"*/{stem}.json*"))
    if not found:
        raise SystemExit(f"error: {RUNS}: no run is called `{stem}`, of which a paper's figure is")
    return Run(found[-1])


def records(run: Run) -> list[Record]:
    """The rows of a run."""
    results = run.results
    return list(results["runs"] if isinstance(results, dict) else results)


def span(shares: list[float]) -> str:
    """The least and the most of some shares."""
    return f"{min(shares):.0%} to {max(shares):.0%}"


def user_space(rows: list[Record]) -> str:
    """Bandwidth and time of queue pairs beside blocking reads, over threads, by job."""

    def of(engine: str, key: str) -> dict[tuple[int, str], float]:
        found: dict[tuple[int, str], list[float]] = {}
        for row in rows:
            if row["engine"] == engine and row["job"] != "bare reads":
                found.setdefault((row["threads"], row["job"]), []).append(row[key])
        return {at: statistics.median(values) for at, values in found.items()}

    ours = "queue pairs"
    bandwidth, seconds = (
        [value / of("posix", key)[at] - 1 for at, value in of(ours, key).items()]
        for key in ("bandwidth", "seconds")
    )
    return (
        f"bandwidth {statistics.mean(bandwidth):+.0%} on average, at most {max(bandwidth):+.0%}; "
        f"time {statistics.mean(seconds):+.0%}, at most {min(seconds):+.0%}"
    )


def modelled(rows: list[Record]) -> dict[tuple[float, str, str], Record]:
    """The passes from modelled drives, one thread, by the drives' limit, algorithm and manner."""
    own = (r for r in rows if r["what"] == "modelled drive" and r["threads"] == 1)
    return {(r["limit"], r["algorithm"], r["mode"]): r for r in own}


def times(rows: list[Record]) -> str:
    """PageRank's time by asynchronous reads beside synchronous, on one drive and on two."""
    by = modelled(rows)
    saved = [
        by[limit, "pagerank", "RG-opt"]["seconds"] / by[limit, "pagerank", "RG-no"]["seconds"] - 1
        for limit in sorted({at[0] for at in by})
    ]
    return " and ".join(f"{each:+.0%}" for each in saved) + " of an iteration's time"


def bandwidths(rows: list[Record]) -> str:
    """PageRank's bandwidth by asynchronous reads beside synchronous, and beside the drives'."""
    by, parts = modelled(rows), []
    for limit in sorted({at[0] for at in by}):
        best, base = by[limit, "pagerank", "RG-opt"], by[limit, "pagerank", "RG-no"]
        ratio = best["bandwidth"] / base["bandwidth"]
        parts.append(f"{ratio:.1f} × ({best['bandwidth'] / limit:.0%} of the drives)")
    return " and ".join(parts)


def splits(rows: list[Record], manner: str, blocks: int) -> dict[int, float]:
    """Shares of the drives' rate at 4 KiB, by drives."""
    own = (r for r in rows if (r["manner"], r["blocks"], r["row_bytes"]) == (manner, blocks, 4096))
    return {r["drives"]: r["share"] for r in own}


def blocks_needed(rows: list[Record]) -> str:
    """How much of the drives' rate few blocks reach, in two kernels and coupled."""
    split, coupled = splits(rows, "split", 4), splits(rows, "coupled", 16)
    whole = splits(rows, "coupled", 1 << 16)
    share = next(r["gpu_share"] for r in rows if (r["manner"], r["blocks"]) == ("split", 4))
    return (
        f"{span(list(split.values()))} of the drives' rate by {share:.0%} of the GPU; coupled "
        f"{span(list(coupled.values()))} by 1.5%, {span(list(whole.values()))} by all"
    )


def beside(rows: list[Record], way: str, base: str, row_bytes: int = 4096) -> dict[str, float]:
    """How many times as fast one way is as another, by model."""
    own = {(r["model"], r["way"]): r["together"] for r in rows if r["row_bytes"] == row_bytes}
    return {model: own[model, base] / own[model, way] for model in dict.fromkeys(m for m, _ in own)}


def beside_coupled(rows: list[Record]) -> str:
    """How many times as fast the split kernels' epochs are as those of three baselines, by model."""
    cache = "coupled_cache"
    own = {(r["model"], r["way"]): r for r in rows if r["row_bytes"] == 4096}
    gpu = {model: row["together"] for (model, way), row in own.items() if way == "gpu"}
    turns = {m: (own[m, cache]["prepare"] + own[m, cache]["train"]) / s for m, s in gpu.items()}
    return (
        f"one stage after the other: {named(turns)}; while the model trains: "
        f"{named(beside(rows, 'gpu', cache))}; and with rows placed as for the split kernels in "
        f"place of the cache: {named(beside(rows, 'gpu', 'coupled'))}"
    )


def named(ratios: dict[str, float], unit: str = "×") -> str:
    """Ratios with the names of what they are of."""
    shown = (f"{v:.0%}" if unit == "%" else f"{v:.2f} ×" for v in ratios.values())
    return ", ".join(f"{name} {value}" for name, value in zip(ratios, shown, strict=True))


def beside_memory(rows: list[Record]) -> str:
    """What rows on drives leave of the speed without drives, by where rows are then, and by model."""
    bases = {"host_memory": "host memory", "memory": "GPU memory"}
    there = {r["way"] for r in rows}
    shares = {where: beside(rows, "gpu", way) for way, where in bases.items() if way in there}
    return "; ".join(f"rows in {where}: {named(of, '%')}" for where, of in shares.items())


def pipeline(rows: list[Record]) -> str:
    """What preparing while others train brings, by model."""
    own = (r for r in rows if r["row_bytes"] == 4096)
    return named({r["model"]: r["apart"] / r["together"] for r in own})


def placements(rows: list[Record]) -> str:
    """The slowest strategy beside the unified one, by budget."""
    ratios = {}
    for tenths in sorted({r["tenths"] for r in rows}):
        own = [r for r in rows if r["tenths"] == tenths and "left_out" not in r]
        best = next(r["prepare"] for r in own if r["placement"] == "unified")
        ratios[f"{tenths}/10"] = best / max(r["prepare"] for r in own)
    return "the slowest of the six, of the unified one's speed: " + named(ratios, "%")


def caches(rows: list[Record]) -> str:
    """Time and transactions with each cache left out, beside those with all of them."""
    left = {r["left_out"]: r for r in rows if "left_out" in r}
    tenths = next(iter(left.values()))["tenths"]
    whole = next(
        r
        for r in rows
        if (r["tenths"], r["placement"]) == (tenths, "unified") and "left_out" not in r
    )
    names = {"no host cache": "host", "no GPU cache": "GPU", "no topology cache": "topology"}
    ratios = {names[key]: r["prepare"] / whole["prepare"] for key, r in left.items()}
    moved = {names[key]: r["transactions"] / whole["transactions"] for key, r in left.items()}
    return f"{named(ratios)}; transactions: {named(moved)}"


def errors(rows: list[Record], figure: int) -> str:
    """How far predictions are from what was measured."""
    off = [abs(r["measured"] / r["predicted"] - 1) for r in rows if r["figure"] == figure]
    return f"{len(off)} points, off by {statistics.median(off):.1%} in the middle, {max(off):.1%} at most"


def drives(rows: list[Record]) -> str:
    """Predictions by drives, and the recommended number beside the best that was tried."""
    reached = []
    for host in sorted({r["host"] for r in rows if r["figure"] == 14}):
        swept = [r for r in rows if r["figure"] == 14 and r["host"] == host]
        worth = {r["drives"]: 1 / r["measured"] / r["dollars"] for r in swept}
        given = min((d for d in worth if d >= swept[0]["best"]), default=max(worth))
        reached.append(worth[given] / max(worth.values()))
    shares = ", ".join(str(percent(share)) for share in reached)
    return f"{errors(rows, 14)}; recommended: {shares} of the best tried"


CLAIMS = (
    Claim(
        USER_SPACE,
        "figure 3",
        "user-space, asynchronous reads beside synchronous ones through the kernel",
        "bandwidth +42% on average, at most +68%; time -23%, at most -57%",
        user_space,
        "realgraph_user_space",
        "python bench/paper/realgraph_user_space.py",
        "one 980 PRO, graph in tmpfs, PageRank and WCC, 1 to 4 threads",
    ),
    Claim(
        PLUS,
        "figure 6",
        "time of I/O and GPU for PageRank, one drive and two",
        "-40% and -63% of the I/O's time",
        times,
        STREAMED,
        "python bench/gpu/streaming.py",
        "7 and 14 GB/s; RMAT graph in place of Yahoo's; one thread; the whole iteration's time",
    ),
    Claim(
        PLUS,
        "figure 7",
        "bandwidth of PageRank, one drive and two",
        "1.5 × and 3.2 ×, near the drives' limit",
        bandwidths,
        STREAMED,
        "python bench/gpu/streaming.py",
        "as figure 6",
    ),
    Claim(
        HYPERION,
        "figures 1 and 10",
        "throughput for a dollar beside GIDS and eight machines of DistDGL",
        "up to 7.7 × GIDS, 60 × DistDGL",
        conditions=f"{NOT_MEASURED}one machine; on the same hardware, figure 8's ratios are those of money",
    ),
    Claim(
        HYPERION,
        "figures 2, 5 and 6",
        "drawings of systems",
        "no numbers",
    ),
    Claim(
        HYPERION,
        "figure 3",
        "what Ginex, MariusGNN and GIDS leave unused",
        "preparing takes 5 to 184 × training; GIDS reaches down to 60% of the drives' rate",
        conditions=f"{NOT_MEASURED}those systems; coupled reads are in the line below",
    ),
    Claim(
        HYPERION,
        "figures 4 and 12",
        "share of the drives' rate by how much of the GPU, 1 to 12 drives, rows of 4 KiB",
        "near the maximum by 1 block that submits and 32 that complete (30%); GIDS takes all of the GPU",
        blocks_needed,
        IO,
        "python bench/paper/hyperion_io.py",
        "P5510; GPU and drives share the host's memory in place of PCIe peer to peer",
    ),
    Claim(
        HYPERION,
        "figure 7",
        "strategies of placing lists and rows",
        "the worst reaches 52% of the unified one",
        placements,
        PLACED,
        "python bench/paper/hyperion_placement.py",
        "by budget in tenths of all lists and rows; rows of 1 KiB; nobody trains",
    ),
    Claim(
        HYPERION,
        "figure 8",
        "epochs beside GIDS",
        "up to 3.1 ×",
        beside_coupled,
        EPOCHS,
        "python bench/paper/hyperion_epochs.py",
        "beside coupled reads of this library, with a page cache in GPU memory and the rows that are wanted "
        "most in host memory, as GIDS has them; rows of 4 KiB, 12 P5510",
    ),
    Claim(
        HYPERION,
        "figure 9",
        "epochs beside training in memory",
        "88% to 97% of Legion",
        beside_memory,
        EPOCHS,
        "python bench/paper/hyperion_epochs.py",
        "Legion has in host memory what GPU memory leaves; a quarter of the rows cached",
    ),
    Claim(
        HYPERION,
        "figure 11",
        "the pipeline beside one stage after the other",
        "up to 1.74 × (GraphSAGE), 1.39 × (GCN), 1.23 × (GAT)",
        pipeline,
        "gpu_hyperion_pipeline-20",
        "python bench/paper/hyperion_pipeline.py",
        "rows of 4 KiB, 12 P5510",
    ),
    Claim(
        HYPERION,
        "figure 13",
        "host, GPU and topology cache, each left out",
        "up to 1.73 × (host), 1.48 × (GPU), 1.1 × (topology)",
        caches,
        PLACED,
        "python bench/paper/hyperion_placement.py",
        "preparing alone; four tenths of lists and rows in memory; 12 P5510, so that reads are cheap",
    ),
    Claim(
        HYPERION,
        "figure 14",
        "predicted beside measured, 1 to 12 drives, four sizes of the host cache; GraphSAGE",
        "the recommended number of drives gives over 90% of the best",
        drives,
        "gpu_hyperion_planner",
        "python bench/paper/hyperion_planner.py",
        "P5510, Table I's prices, an H100 whose link is PCIe 5.0",
    ),
    Claim(
        HYPERION,
        "figure 15",
        "predicted beside measured, GAT of widths 32 to 256",
        "precise",
        lambda rows: errors(rows, 15),
        "gpu_hyperion_planner",
        "python bench/paper/hyperion_planner.py",
        "one machine",
    ),
    Claim(
        HYPERION,
        "table I",
        "machines and prices",
        "five years' cost of three machines",
        conditions="in `crates/planner/parts.toml`, by which `tiergraph plan` counts",
    ),
    Claim(
        HYPERION,
        "table II",
        "data sets",
        "up to 23 TB",
        conditions=f"{NOT_MEASURED}64 GiB of disk; RMAT graphs with random features take their place",
    ),
)
