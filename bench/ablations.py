"""What each part of the loader is worth: it is taken away, and the epoch is timed again.

Look-ahead, page sharing, the cache, the topology's share of it, its placement, and the overlap of
preparing and training: Figures 7, 11 and 13 of the Hyperion paper, on the machine at hand. All
variants but one have the same memory, a quarter of the features, and give the same batches.

Needs PyTorch, PyG and matplotlib: `pip install 'tiergraph[train]'`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tiergraph as tg
from common import ablations_plot, epochs, machine, reporting, training_data
from common.reporting import Record, median, say
from tiergraph.train import TrainOptions
from tiergraph.train.models import build_model

FANOUTS = [25, 10]
BATCH_SIZE = 128
QUARTER = 4
VARIANTS: dict[str, Record] = {
    "everything": {},
    "no look-ahead": {"window": 1, "prefetch": 0},
    "no look-ahead, same cache": {"window": 1, "prefetch": 0},
    "no page sharing": {"share_pages": False},
    "no cache": {"presample": 0},
    "no topology cache": {"placement": 1.0},
    "topology first": {"placement": "topology"},
    "features first": {"placement": "features"},
    "half and half": {"placement": 0.5},
}
MODELS = {
    "SAGE": TrainOptions(model="sage", hidden=64),
    "GCN": TrainOptions(model="gcn", hidden=64),
    "GAT": TrainOptions(model="gat", hidden=64, heads=2),
}
GLANCE = 0.0005
"""Seconds between two looks whether a batch is ready."""


def main() -> None:
    """Builds, measures, prints, draws and saves."""
    options = _options()
    torch.set_num_threads(options.threads)
    with reporting.data_directory("ablations", options.keep) as directory:
        path, seeds = directory / "g.tg", directory / "seeds.npy"
        say(f"building RMAT-{options.scale} with {options.dim} features")
        training_data.build(path, options.scale, options.dim, options.threads)
        count = training_data.write_seeds(path, seeds, options.seeds)
        memory = training_data.rows_file(path).stat().st_size // QUARTER
        cache = machine.drop_page_cache()
        conditions = (
            f"RMAT-{options.scale}, {options.dim} features, {memory >> 20} MiB, "
            f"{count} seeds at {FANOUTS}, batches of {BATCH_SIZE}"
        )
        results: Record = {"memory": memory, "conditions": conditions}
        results["variants"] = _variants(path, seeds, memory, options)
        _print_variants(conditions, results["variants"])
        results["overlap"] = _overlap(path, seeds, memory, options)
        _print_overlap(conditions, results["overlap"])
    state = f"direct reads past the page cache; {cache} before the runs; host's cache unknown"
    saved = reporting.save(options, "ablations", state, results)
    ablations_plot.draw(results, machine.label(), saved.with_suffix(".png"))
    say(f"picture: {saved.with_suffix('.png').name} beside it")


def _options() -> argparse.Namespace:
    parser = reporting.arguments(__doc__ or "", scale=21, repetitions=3)
    parser.add_argument("--dim", type=int, default=256, help="float32 features a vertex")
    parser.add_argument("--seeds", type=int, default=8192, help="of an epoch")
    return parser.parse_args()


def _open(
    path: Path, seeds: Path, memory: int, options: argparse.Namespace, given: Record
) -> tg.NeighborLoader:
    how: Record = {"shuffle": True, "threads": options.threads, "memory": memory} | given
    return tg.NeighborLoader(path, FANOUTS, np.load(seeds), batch_size=BATCH_SIZE, **how)


def _variants(
    path: Path, seeds: Path, memory: int, options: argparse.Namespace
) -> dict[str, Record]:
    """Epochs of every variant in turn, nothing trained: what the loader itself takes."""
    loaders: dict[str, tg.NeighborLoader] = {}
    for name, given in VARIANTS.items():
        loaders[name] = _open(path, seeds, memory, options, given)
        if name.endswith("same cache"):
            # Batches that are not prepared ahead leave their memory to the cache: take it away.
            capacities = [loaders[n].kept()["capacity_bytes"] for n in ("everything", name)]
            less = memory + capacities[0] - capacities[1]
            loaders[name] = _open(path, seeds, less, options, given)
    records: dict[str, Record] = {
        name: {"options": VARIANTS[name], "kept": loader.kept(), "runs": []}
        for name, loader in loaders.items()
    }
    for number in range(1, options.repetitions + 1):
        for name, loader in loaders.items():
            records[name]["runs"].append(epochs.drain(loader, number))
    return records


def _overlap(
    path: Path, seeds: Path, memory: int, options: argparse.Namespace
) -> dict[str, Record]:
    """Epochs that train each model, with batches prepared meanwhile, and before."""
    records: dict[str, Record] = {}
    together = _open(path, seeds, memory, options, {})
    apart = _open(path, seeds, memory, options, {"window": 1, "prefetch": 0})
    for name, chosen in MODELS.items():
        records[name] = {"together": [], "apart": []}
        shape = replace(chosen, fanout=tuple(FANOUTS))
        model = build_model(shape, options.dim, training_data.CLASSES)
        for number in range(1, options.repetitions + 1):
            for loader, how in ((together, "together"), (apart, "apart")):
                loader.set_epoch(number)
                batches = iter(loader) if how == "together" else _one_after_the_other(loader)
                optimizer = torch.optim.Adam(model.parameters())
                records[name][how].append(epochs.train(batches, model, optimizer, shape))
            say(f"{name}: {records[name]['together'][-1]}, apart {records[name]['apart'][-1]}")
    return records


def _one_after_the_other(loader: tg.NeighborLoader) -> Iterator[Any]:
    """An epoch in which nothing is prepared while a batch is trained on.

    The loader prepares one batch beyond those taken. Each is handed on only when the next one is
    ready, so that the loader has nothing left to do.
    """
    batches = loader.batches()
    taken = 0
    for number, batch in enumerate(batches, 1):
        taken += batch.num_nodes
        while number < len(loader) and batches.stats()["nodes"] == taken:
            time.sleep(GLANCE)
        yield batch


def _print_variants(conditions: str, records: dict[str, Record]) -> None:
    rows = []
    base = _middle(records["everything"]["runs"], "seconds")
    for name, record in records.items():
        runs, kept = record["runs"], record["kept"]
        seconds, read, reads = (_middle(runs, k) for k in ("seconds", "bytes_ssd", "reads"))
        hits = 1 - _middle(runs, "missed_rows") / _middle(runs, "nodes")
        topology = _middle(runs, "bytes_ssd_topology")
        cache = kept["capacity_bytes"] / 1e6
        row = (seconds, seconds / base, read / 1e6, topology / 1e6, reads / 1e3, hits, cache)
        rows.append([name, *row])
    header = ("variant", "s an epoch", "x everything", "MB read", "of topology", "k reads")
    reporting.table(f"nothing trained; {conditions}", (*header, "rows hit", "cache MB"), rows)


def _print_overlap(conditions: str, records: dict[str, Record]) -> None:
    rows = []
    for name, record in records.items():
        together, apart = (_middle(record[how], "seconds") for how in ("together", "apart"))
        training = _middle(record["together"], "seconds_train")
        rows.append([name, together, apart, apart / together, training])
    header = ("model", "s an epoch", "s one after the other", "x", "s training")
    reporting.table(f"overlap; {conditions}", header, rows)


def _middle(runs: list[Record], key: str) -> float:
    return median([run[key] for run in runs]) or 0.0


if __name__ == "__main__":
    main()
