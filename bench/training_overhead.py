"""What training out of core costs over training in memory.

Where training is the limit: epochs with a cache for a quarter of the bytes, beside epochs of the
same loader with everything resident. What the loader takes beyond the interpreter and PyTorch, in
a memory cgroup, with features four times `memory`. Where reading is the limit: bytes a second,
beside bare reads of the same file at the same depth.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tiergraph as tg
from common import epochs, machine, reporting, training_data
from common.cgroup import MemoryGroup
from common.child import UnavailableError
from common.reporting import Record, median, say
from tiergraph import _native
from tiergraph.arguments.sizes import to_bytes
from tiergraph.train import TrainOptions
from tiergraph.train.models import build_model

FANOUTS = [25, 10]
BATCH_SIZE = 256
MODEL = TrainOptions(model="gat", hidden=512, heads=8)
"""GAT, 8 heads of 64: the hungriest of the Hyperion paper's models."""
QUARTER = 4
WINDOWS = (2, 4)
DEPTH = 64
"""Reads in flight on an engine, which is what loaders use."""
PAGE_BYTES = 4096


def main() -> None:
    """Builds, measures, prints and saves."""
    options = _options()
    torch.set_num_threads(options.threads)
    with reporting.data_directory("training_overhead", options.keep) as directory:
        path, seeds = directory / "g.tg", directory / "seeds.npy"
        say(f"building RMAT-{options.scale} with {options.dim} features")
        training_data.build(path, options.scale, options.dim, options.threads)
        count = training_data.write_seeds(path, seeds, options.seeds)
        cache = machine.drop_page_cache()
        for name in options.parts:
            say(f"{name}, {count} seeds")
            state = f"direct reads; {cache} before the runs; host's cache unknown"
            reporting.save(options, f"overhead-{name}", state, PARTS[name](path, seeds, options))


def _options() -> argparse.Namespace:
    parser = reporting.arguments(__doc__ or "", scale=21, repetitions=3)
    parser.add_argument("--dim", type=int, default=256, help="float32 features a vertex")
    parser.add_argument("--seeds", type=int, default=4096, help="of an epoch")
    parser.add_argument("--memory", default="512MiB", help="what the cgroup's loader is given")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    return parser.parse_args()


def _training_bound(path: Path, seeds: Path, options: argparse.Namespace) -> Record:
    """Epochs that train, resident and with a quarter of the bytes in turn."""
    resident = _loader(path, seeds, options, memory=8 << 30)
    kept = resident.kept()
    capacity = (kept["rows"] * options.dim * 4 + kept["pages"] * PAGE_BYTES) // QUARTER
    # The part of the memory that is not for the cache is the same at any size.
    memory = 2 * capacity
    memory += capacity - _loader(path, seeds, options, memory=memory).kept()["capacity_bytes"]
    loaders = {"resident": resident, "a quarter": _loader(path, seeds, options, memory=memory)}
    torch.manual_seed(0)
    model = build_model(MODEL, options.dim, training_data.CLASSES)
    optimizer = torch.optim.Adam(model.parameters())
    runs: dict[str, list[Record]] = {name: [] for name in loaders}
    for number in range(1, options.repetitions + 2):
        for name, loader in loaders.items():
            loader.set_epoch(number)
            trained = epochs.train(loader, model, optimizer, MODEL)
            runs[name].append(loader.last_epoch | trained)
    # The first of each warms up.
    timed = {name: done[1:] for name, done in runs.items()}
    base = median([run["seconds"] for run in timed["resident"]]) or 0.0
    rows = []
    for name, done in timed.items():
        keys = ("seconds", "seconds_train", "seconds_wait", "missed_rows", "nodes", "bytes_ssd")
        middle = {key: median([run[key] for run in done]) or 0.0 for key in keys}
        missed = middle["missed_rows"] / middle["nodes"]
        read = middle["bytes_ssd"] / 1e6
        times = [middle[key] for key in keys[:3]]
        rows.append([name, *times, missed, read, middle["seconds"] / base])
    header = ("kept in memory", "s an epoch", "s training", "s waiting", "rows missed", "MB read")
    reporting.table(
        f"{MODEL.model.upper()}, {MODEL.heads} heads of {MODEL.hidden // MODEL.heads}, {FANOUTS}, "
        f"{len(loaders['resident'])} batches of {BATCH_SIZE}, RMAT-{options.scale}",
        (*header, "x resident"),
        rows,
    )
    described = {name: loader.kept() for name, loader in loaders.items()}
    return {"quarter_bytes": capacity, "memory": memory, "kept": described, "runs": runs}


def _loader(
    path: Path, seeds: Path, options: argparse.Namespace, memory: int, **given: Any
) -> tg.NeighborLoader:
    chosen = np.load(seeds)
    how = {"shuffle": True, "threads": options.threads, "memory": memory, "window": 2} | given
    return tg.NeighborLoader(path, FANOUTS, chosen, batch_size=BATCH_SIZE, **how)


def _memory(path: Path, seeds: Path, options: argparse.Namespace) -> Record:
    """The peak of a cgroup that a process enters once PyTorch and PyG are imported."""
    memory = to_bytes(options.memory) or 0
    limit = 2 * memory
    rows_bytes = training_data.rows_file(path).stat().st_size
    records: list[Record] = []
    for window in WINDOWS:
        group = MemoryGroup.create(limit)
        if isinstance(group, str):
            say(f"skipped: {group}")
            return {"skipped": group}
        given: Record = {"num_neighbors": FANOUTS, "batch_size": BATCH_SIZE, "window": window}
        given |= {"shuffle": True, "threads": options.threads, "memory": memory}
        try:
            with training_data.child("on_loader", str(path), threads=options.threads) as child:
                child.call("loaded")
                group.enter(child.pid)
                kept = child.call("open", name="g", seeds=str(seeds), **given)["value"]
                for number in range(options.repetitions):
                    epoch = child.call("epoch", name="g", number=number)["value"]
                record = {"window": window, "peak_bytes": group.peak_bytes(), "kept": kept}
                records.append(record | epoch)
        except UnavailableError as error:
            say(f"window {window}: {error}")
            records.append({"window": window, "failure": str(error)})
        group.remove()
    reporting.table(
        f"beyond interpreter and PyTorch, {rows_bytes >> 20} MiB of features",
        ("window", "memory= MB", "cgroup's peak MB", "share", "MB read an epoch"),
        [
            [
                record["window"],
                memory / 1e6,
                record["peak_bytes"] / 1e6,
                record["peak_bytes"] / memory,
                record["bytes_ssd"] / 1e6,
            ]
            for record in records
            if "peak_bytes" in record
        ],
    )
    return {"memory_bytes": memory, "feature_bytes": rows_bytes, "runs": records}


def _reading_bound(path: Path, seeds: Path, options: argparse.Namespace) -> Record:
    """Epochs that keep nothing in memory and train nothing, between bare readings."""
    memory = training_data.rows_file(path).stat().st_size // 2
    loader = _loader(path, seeds, options, memory=memory, window=4, presample=0)
    runs: list[Record] = []
    for number in range(1, options.repetitions + 1):
        before = _bare(path, options)
        run = epochs.drain(loader, number)
        runs.append({"before": before, "run": run, "after": _bare(path, options)})
    ours = [run["run"]["bytes_ssd"] / run["run"]["seconds"] for run in runs]
    bare = [(run["before"]["bandwidth"] + run["after"]["bandwidth"]) / 2 for run in runs]
    reads = median([run["run"]["bytes_ssd"] / run["run"]["reads"] for run in runs])
    share = median([one / other for one, other in zip(ours, bare, strict=True)])
    reporting.table(
        f"nothing kept, nothing trained, RMAT-{options.scale}",
        ("bytes a read", "loader MB/s", f"bare 4 KiB reads, depth {DEPTH}, MB/s", "share"),
        [[reads, (median(ours) or 0) / 1e6, (median(bare) or 0) / 1e6, share]],
    )
    return {"kept": loader.kept(), "runs": runs}


def _bare(path: Path, options: argparse.Namespace) -> Record:
    file = os.fspath(training_data.rows_file(path))
    measured = _native.bench_io(file, "auto", PAGE_BYTES, DEPTH, options.threads, 1.0)
    record: Record = json.loads(measured)
    return record


PARTS = {
    "training-bound": _training_bound,
    "memory": _memory,
    "reading-bound": _reading_bound,
}


if __name__ == "__main__":
    main()
