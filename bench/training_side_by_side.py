"""How a loader's epoch compares with what others do: out of core, and with everything in memory.

Out of core: features four times the memory that a cgroup gives, against a `DataLoader` over a
memory map of the same file, with its neighbours in memory. In memory: sampling with
de-duplication against DGL 2.1's GraphBolt (`graphbolt_env.sh`), and gathering 512-byte rows
against PyTorch's indexing.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from common import machine, reporting, training_data
from common.child import UnavailableError
from common.reporting import Record, median, say

FEATURES_OVER_MEMORY = 4
OUT_OF_CORE: Record = {"num_neighbors": [10, 5], "batch_size": 256}
PAPER_FANOUTS = [25, 10]
BATCH_SIZES = (1024, 8000)
ROW_DIM = 128
GATHERED = 200_000
"""Rows that are gathered at a time: 100 MB, more than any cache."""


def main() -> None:
    """Builds, measures, prints and saves."""
    options = _options()
    state = "the page cache emptied before each out-of-core epoch; host's cache unknown"
    with reporting.data_directory("training_side_by_side", options.keep) as directory:
        path = directory / "g.tg"
        if "out-of-core" in options.parts or "sampling" in options.parts:
            say(f"building RMAT-{options.scale} with {options.dim} features")
            training_data.build(path, options.scale, options.dim, options.threads)
            training_data.write_csc(path, directory)
        for name in options.parts:
            reporting.save(options, f"side_by_side-{name}", state, PARTS[name](directory, options))


def _options() -> argparse.Namespace:
    parser = reporting.arguments(__doc__ or "", scale=21, repetitions=3)
    parser.add_argument("--dim", type=int, default=512, help="float32 features a vertex")
    parser.add_argument("--seeds", type=int, default=20_000, help="of an out-of-core epoch")
    parser.add_argument("--memory", default="640MiB", help="tiergraph's share of the cgroup")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds of a map's epoch")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument(
        "--graphbolt", type=Path, default=reporting.BENCH / ".venv-graphbolt/bin/python"
    )
    return parser.parse_args()


def _out_of_core(directory: Path, options: argparse.Namespace) -> Record:
    """Whole epochs in a cgroup, tiergraph and the memory map in turn."""
    path, seeds = directory / "g.tg", directory / "few.npy"
    training_data.write_seeds(path, seeds, options.seeds)
    feature_bytes = training_data.rows_file(path).stat().st_size
    limit = feature_bytes // FEATURES_OVER_MEMORY
    runs: dict[str, list[Record]] = {"tiergraph": [], "map": [], "map, no read-ahead": []}
    for number in range(options.repetitions):
        for name, done in runs.items():
            if name == "map" and number > 0:
                continue  # once is enough: the limit ends it after a few batches
            machine.drop_page_cache()
            if name == "tiergraph":
                done.append(_tiergraph_epoch(path, seeds, limit, options))
            else:
                advice = "random" if "no" in name else "normal"
                done.append(_mapped_epoch(path, seeds, limit, advice, options))
            say(f"{name}: {done[-1]}")
    rows = [
        _epoch_row(name, done, [r for r in runs["map"] if "seconds" in r])
        for name, done in runs.items()
    ]
    fanouts, batch_size = OUT_OF_CORE["num_neighbors"], OUT_OF_CORE["batch_size"]
    reporting.table(
        f"epoch of {options.seeds} seeds, fanouts {fanouts}, batches of {batch_size}; "
        f"{feature_bytes >> 20} MiB of features, cgroup of {limit >> 20} MiB",
        ("loader", "s", "share done", "M nodes/s", "MB read", "s to open", "x the map"),
        rows,
    )
    return {"feature_bytes": feature_bytes, "limit_bytes": limit, "runs": runs}


def _tiergraph_epoch(path: Path, seeds: Path, limit: int, options: argparse.Namespace) -> Record:
    threads = options.threads
    with training_data.child("on_loader", str(path), threads=threads, limit=limit) as child:
        given = OUT_OF_CORE | {"threads": threads, "shuffle": True, "memory": options.memory}
        try:
            opened = child.call("open", name="g", seeds=str(seeds), **given)
            epoch: Record = child.call("epoch", name="g", number=1)["value"]
        except UnavailableError as error:
            return {"failure": str(error)}
        return epoch | {"open_seconds": opened["seconds"], "kept": opened["value"]}


def _mapped_epoch(
    path: Path, seeds: Path, limit: int, advice: str, options: argparse.Namespace
) -> Record:
    threads = options.threads
    with training_data.child("on_mapped", str(path.parent), threads=threads, limit=limit) as child:
        try:
            epoch: Record = child.call(
                "epoch",
                features=str(training_data.rows_file(path)),
                dim=options.dim,
                seeds=str(seeds),
                fanouts=OUT_OF_CORE["num_neighbors"],
                batch_size=OUT_OF_CORE["batch_size"],
                workers=threads,
                advice=advice,
                most_seconds=options.limit,
            )["value"]
        except UnavailableError as error:
            return {"failure": str(error)}
        return epoch


def _epoch_row(name: str, runs: list[Record], base: list[Record]) -> list[object]:
    done = [run for run in runs if "seconds" in run]
    if not done:
        return [name, runs[0]["failure"], None, None, None, None, None]
    seconds, slow = (median([_epoch_seconds(run) for run in some]) for some in (done, base))
    share = median([run.get("share", 1.0) for run in done])
    nodes = median([run["nodes"] / run["seconds"] / 1e6 for run in done])
    read = median([run["bytes_ssd"] / 1e6 for run in done if "bytes_ssd" in run])
    opening = median([run["open_seconds"] for run in done if "open_seconds" in run])
    return [name, seconds, share, nodes, read, opening, slow and seconds and slow / seconds]


def _epoch_seconds(run: Record) -> float:
    """Seconds of the whole epoch, in proportion where the limit ended it."""
    return float(run["seconds"] / run.get("share", 1.0))


def _sampling(directory: Path, options: argparse.Namespace) -> Record:
    """Edges a second with everything in memory, tiergraph and GraphBolt in turn."""
    path, seeds = directory / "g.tg", directory / "seeds.npy"
    training_data.write_seeds(path, seeds)
    threads = options.threads
    runs: list[Record] = []
    with (
        training_data.child("on_loader", str(path), threads=threads) as ours,
        training_data.child(
            "on_graphbolt", str(directory), str(threads), threads=threads, python=options.graphbolt
        ) as theirs,
    ):
        try:
            versions: Any = theirs.call("versions")["value"]
        except UnavailableError as error:
            versions = str(error)
            say(f"GraphBolt skipped: {error}; bench/graphbolt_env.sh makes its environment")
        for size in BATCH_SIZES:
            given: Record = {"num_neighbors": PAPER_FANOUTS, "features": None, "threads": threads}
            given |= {"batch_size": size, "shuffle": True, "memory": "4GiB"}
            ours.call("open", name=str(size), seeds=str(seeds), **given)
        for _ in range(options.repetitions):
            for size in BATCH_SIZES:
                run: Record = {"batch_size": size}
                run["tiergraph"] = ours.call("epoch", name=str(size), number=1)["value"]
                if isinstance(versions, dict):
                    given = {"seeds": str(seeds), "batch_size": size, "fanouts": PAPER_FANOUTS}
                    run["graphbolt"] = theirs.call("sample", **given)["value"]
                runs.append(run)
    reporting.table(
        f"sampling with de-duplication at {PAPER_FANOUTS}, RMAT-{options.scale}, M edges/s",
        ("batch size", "tiergraph", "GraphBolt", "ratio"),
        [_sampling_row(size, runs) for size in BATCH_SIZES],
    )
    return {"graphbolt": versions, "runs": runs}


def _sampling_row(size: int, runs: list[Record]) -> list[object]:
    speeds = []
    for name in ("tiergraph", "graphbolt"):
        done = [run[name] for run in runs if run["batch_size"] == size and name in run]
        speeds.append(median([run["edges"] / run["seconds"] / 1e6 for run in done]))
    ours, theirs = speeds
    return [size, ours, theirs, ours / theirs if ours and theirs else None]


def _gather(directory: Path, options: argparse.Namespace) -> Record:
    """Bytes a second of 512-byte rows in memory, into new memory; tiergraph and PyTorch in turn."""
    path, seeds, threads = directory / "rows.tg", directory / "all.npy", options.threads
    training_data.build(path, options.scale, ROW_DIM, threads)
    vertices = training_data.write_seeds(path, seeds, 1 << options.scale)
    if not (directory / "indptr.npy").exists():
        training_data.write_csc(path, directory)
    wanted = min(GATHERED, vertices)
    given: Record = {"num_neighbors": [0], "batch_size": wanted, "drop_last": True}
    given |= {"shuffle": True, "threads": threads, "memory": "8GiB"}
    ours: list[float] = []
    theirs: list[float] = []
    with (
        training_data.child("on_loader", str(path), threads=threads) as loader,
        training_data.child("on_mapped", str(directory), threads=threads) as mapped,
    ):
        loader.call("open", name="g", seeds=str(seeds), **given)
        for _ in range(options.repetitions):
            epoch = loader.call("epoch", name="g", number=1)["value"]
            ours.append(epoch["nodes"] * ROW_DIM * 4 / epoch["seconds"])
            shape = {"rows": vertices, "dim": ROW_DIM, "wanted": wanted}
            count = vertices // wanted
            theirs.append(
                mapped.call("gather", **shape, repetitions=count, threads=threads)["value"]
            )
    rates = [(median(rates) or 0) / 1e9 for rates in (ours, theirs)]
    reporting.table(
        f"gathering {wanted:,} of {vertices:,} rows of {ROW_DIM * 4} bytes in memory, GB/s",
        ("", "tiergraph's loader", "PyTorch's indexing", "ratio"),
        [["whole batches", *rates, rates[0] / rates[1]]],
    )
    return {"tiergraph": ours, "torch": theirs}


PARTS = {"out-of-core": _out_of_core, "sampling": _sampling, "gather": _gather}


if __name__ == "__main__":
    main()
