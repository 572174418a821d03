"""The results table of README.md: thirteen rows, losses among them."""

from __future__ import annotations

from analytics import MB, algorithm_calls, bare_seconds, out_of_core_times
from gpu import searches
from runs import Run, run
from tables import cell, middle, table
from training import epoch_seconds, sampling_speed

EPYC = "2-core EPYC"
XEON = "2-core Xeon"
H200 = "one H200"

PEERS = run("2026-11-23-2-core-epyc-24gib/peers-22.json")
OUT_OF_CORE = run("2026-11-22-2-core-epyc-24gib/out_of_core.json")
EPOCH = run("2026-11-22-2-core-xeon-2.50ghz-24gib/side_by_side-out-of-core.json")
SAMPLING = run("2026-11-22-2-core-xeon-2.50ghz-24gib/side_by_side-sampling.json")
RESIDENT = run("2026-11-23-2-h200-32-core-256gib/gpu_resident.jsonl")
LISTS = run("2026-11-27-h200-16-core-128gib/gpu_lists-cugraph.jsonl")

PEER_NAMES = {"graphblas": "GraphBLAS", "networkit": "NetworKit"}
HEADER = ["", "tiergraph", "the best of the others", "on"]


def markdown() -> str:
    """The table."""
    return table(HEADER, [*_in_memory(), *_out_of_core(), *_training(), *_on_gpu()])


def _in_memory() -> list[list[str]]:
    engines = {engine["engine"]: engine for engine in PEERS.results["engines"]}
    edges = PEERS.results["edges"] / MB
    graph = f"RMAT-{PEERS.configuration['scale']}, {edges:.0f} M edges, in memory"
    rows = []
    for name, key in (("PageRank, an iteration", None), ("WCC", "wcc"), ("BFS", "bfs")):
        seconds = {
            name: e["median_seconds"][key] if key else e["pagerank_seconds_per_iteration"]
            for name, e in engines.items()
        }
        ours = seconds.pop("tiergraph")
        peer = min(seconds, key=lambda name: seconds[name])
        rows.append([f"{name}; {graph}", *_pair(ours, seconds[peer], "s", PEER_NAMES[peer]), EPYC])
    return rows


def _out_of_core() -> list[list[str]]:
    calls = algorithm_calls(OUT_OF_CORE, "streamed", "pagerank")
    iterations = middle([call["value"] for call in calls], "iterations")
    streamed = out_of_core_times(calls)[1]
    bare = bare_seconds(OUT_OF_CORE, "streamed", "pagerank") / iterations
    limit = OUT_OF_CORE.configuration["limit_mib"]
    what = (
        f"PageRank, an iteration; RMAT-{OUT_OF_CORE.configuration['scale']}, from the SSD, "
        f"in a cgroup of {limit} MiB"
    )
    return [[what, *_pair(streamed, bare, "s", "bare reads of as many bytes"), EPYC]]


def _training() -> list[list[str]]:
    runs = EPOCH.results["runs"]
    ours, mapped = (
        middle([{"s": epoch_seconds(r)} for r in runs[name]], "s")
        for name in ("tiergraph", "map, no read-ahead")
    )
    features = EPOCH.results["feature_bytes"] / 2**30
    limit = EPOCH.results["limit_bytes"] / 2**20
    epoch = f"An epoch's batches; {features:.0f} GiB of features in a cgroup of {limit:.0f} MiB"
    size = SAMPLING.results["runs"][0]["batch_size"]
    speeds = [sampling_speed(SAMPLING, size, name) for name in ("tiergraph", "graphbolt")]
    sampling = f"Sampling [25, 10], batches of {size}, in memory"
    return [
        [epoch, *_pair(ours, mapped, "s", "memory map, `MADV_RANDOM`"), XEON],
        [sampling, *_pair(*speeds, "M edges/s", "GraphBolt", more=True), XEON],
    ]


def _on_gpu() -> list[list[str]]:
    layouts = {row["layout"]: row for row in RESIDENT.results if "layout" in row}
    found = searches(RESIDENT)

    def rank(name: str, ours: str, theirs: str) -> list[str]:
        pair = [layouts[key]["seconds"] * 1e3 for key in (ours, theirs)]
        return [f"PageRank, an iteration; {name}", *_pair(*pair, "ms", "cuGraph"), H200]

    def search(name: str, algorithm: str, graph: str) -> list[str]:
        who = found[algorithm, graph]
        pair = [who[engine]["seconds"] * 1e3 for engine in ("tiergraph", "cuGraph")]
        return [f"{name}; RMAT-24, {graph}, packed", *_pair(*pair, "ms", "cuGraph"), H200]

    return [
        rank("RMAT-24, directed, packed", "packed", "cuGraph, directed"),
        rank("RMAT-24, undirected, packed", "packed, undirected", "cuGraph, undirected"),
        search("WCC", "wcc", "undirected"),
        search("BFS", "bfs", "undirected"),
        *_over_lists(),
    ]


def _over_lists() -> list[list[str]]:
    names = {
        "triangles": "Triangles",
        "kcore": "Core numbers",
        "betweenness": "Betweenness of 32 sources",
    }
    rows = []
    for found in LISTS.results:
        if found["scale"] == 24 and found["algorithm"] in names:
            pair = [middle(found["runs"][way], "seconds") for way in ("again", "cugraph")]
            name = f"{names[found['algorithm']]}; RMAT-24, undirected"
            rows.append([name, *_pair(*pair, "s", "cuGraph"), H200])
    return rows


def _pair(
    ours: float | None, theirs: float | None, unit: str, name: str, *, more: bool = False
) -> list[str]:
    """Both values, the better one in bold; `more` where more is better."""
    assert ours is not None
    assert theirs is not None
    wins = ours > theirs if more else ours < theirs
    texts = [f"{cell(ours)} {unit}", f"{cell(theirs)} {unit}"]
    texts[not wins] = f"**{texts[not wins]}**"
    return [texts[0], f"{texts[1]}: {name}"]


def quoted() -> list[Run]:
    """The runs that the table is computed from."""
    return [PEERS, OUT_OF_CORE, EPOCH, SAMPLING, RESIDENT, LISTS]
