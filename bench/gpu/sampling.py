"""Sampling and gathering on a GPU, beside WholeGraph in the same run.

`python bench/gpu/sampling.py [--scale 24] [--folder /dev/shm] [--out FILE]`

Needs a GPU, PyTorch, PyG, tiergraph from a wheel; `pylibwholegraph-cu13` for the comparison,
without which its rows are left out and the reason is printed. Samples 8,000 seeds at [25, 10] from
RMAT of that scale, renumbered, with the topology in device and in pinned host memory: seconds
until a batch is handed over, as PyG's data, on the caller's clock. Gathers 500,000 random rows
of 512 bytes and 4 KiB from both: seconds of the kernels that gather, as the profiler has them,
since a loader's batch is also sampled. Medians, interleaved; one JSON object a row goes to FILE.
"""

from __future__ import annotations

import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import _arguments
import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

import tiergraph as tg

SEEDS, FANOUTS = 8000, [25, 10]
ROWS = 500_000
TABLE_ROWS = 2_000_000
REPEATS = 20

Call: TypeAlias = Callable[[], int]
"""Does a piece of work on the GPU; how much."""


def main() -> None:
    """Prints a row for each contender."""
    args = _arguments.arguments(__doc__).parse_args()
    peers = whole_graph()
    rows: list[dict[str, Any]] = []
    path = args.folder / f"sample-{args.scale}.tg"
    if not path.exists():
        tg.generate("rmat", path, scale=args.scale, layouts="training")
    contenders: dict[str, Call] = {}
    for place, memory in (("device", None), ("host", host_only(path))):
        contenders[f"tiergraph {place}"] = sampler(path, memory)
    if peers is not None:
        contenders |= peers.samplers(path)
    for name, (seconds, edges) in timed(contenders).items():
        rows.append({"what": "sample", "who": name, "seconds": seconds, "edges": edges})
        print(
            f"sample {SEEDS} seeds at {FANOUTS}: {name:22} {seconds * 1e3:7.3f} ms, "
            f"{edges / seconds / 1e6:6.0f} M edges/s"
        )
    for dim in (128, 1024):
        contenders = gathers(args.folder, dim)
        if peers is not None:
            contenders |= peers.gathers(dim)
        for name, (seconds, moved) in timed(contenders, seconds_gathering).items():
            rows.append({"what": "gather", "who": name, "row_bytes": 4 * dim, "seconds": seconds})
            print(
                f"gather {ROWS} rows of {4 * dim:4} B: {name:22} {seconds * 1e3:7.3f} ms, "
                f"{moved / seconds / 1e9:7.1f} GB/s"
            )
    if args.out:
        args.out.write_text("".join(json.dumps(r) + "\n" for r in rows))


def timed(
    contenders: dict[str, Call], clock: Callable[[Call], tuple[float, int]] | None = None
) -> dict[str, tuple[float, float]]:
    """Median seconds and median of what was done, of calls that take turns."""
    clock = clock or seconds_waited
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    work: dict[str, list[int]] = {name: [] for name in contenders}
    for turn in range(REPEATS + 2):
        for name, call in contenders.items():
            took, done = clock(call)
            if turn >= 2:
                seconds[name].append(took)
                work[name].append(done)
    return {n: (statistics.median(seconds[n]), statistics.median(work[n])) for n in contenders}


def seconds_waited(call: Call) -> tuple[float, int]:
    """Seconds until the GPU has done what `call` gives it, and what that was."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    done = call()
    torch.cuda.synchronize()
    return time.perf_counter() - start, done


def seconds_gathering(call: Call) -> tuple[float, int]:
    """Mean seconds of the kernels that gather the rows of a batch, in calls until there is one."""
    torch.cuda.synchronize()
    kernels: list[Any] = []
    # Batches are begun ahead, so an epoch's last ones only hand over what was gathered before.
    for _ in range(REPEATS):
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            done = call()
            torch.cuda.synchronize()
        kernels = [event for event in profiler.events() if "gather" in event.name.lower()]
        if kernels:
            break
    assert kernels, sorted({event.name for event in profiler.events()})
    return statistics.mean(kernel.device_time for kernel in kernels) * 1e-6, done


def host_only(path: Path) -> int:
    """Device memory that holds the sampler and too little for the neighbours beside it."""
    info = json.loads((path / "manifest.json").read_text())
    edges = SEEDS * FANOUTS[0] * (1 + FANOUTS[1])
    working = 16 * info["vertices"] + 40 * edges
    return working + info["arcs"]


def sampler(path: Path, memory: int | None) -> Call:
    """Samples a batch without features, with other seeds each time."""
    graph = tg.open(path)
    degrees = graph.degrees("in")
    seeds = np.flatnonzero(degrees > 0)
    loader = tg.NeighborLoader(
        graph,
        FANOUTS,
        batch_size=SEEDS,
        input_nodes=seeds[: 2000 * SEEDS],
        shuffle=True,
        device="cuda",
        device_memory=memory,
        # All that the sampler leaves is for rows, which there are none of.
        placement="unified" if memory is None else 1.0,
        presample=0,
    )
    placed = loader.kept()
    assert (placed["host_list_bytes"] == 0) == (memory is None), placed
    assert (placed["device_list_bytes"] == 0) == (memory is not None), placed
    edges = batches(loader)
    return lambda: next(edges)


def gathers(folder: Path, dim: int) -> dict[str, Call]:
    """Gathers by a loader that samples nothing: its batch is its seeds."""
    path = folder / f"rows-{dim}.tg"
    if not path.exists():
        tg.generate(
            "uniform", path, vertices=TABLE_ROWS, edges=TABLE_ROWS, features=dim, order="none"
        )
    made = {}
    # The sampler's own memory, and none for rows.
    working = 16 * TABLE_ROWS + 13 * ROWS + (1 << 20)
    for place, memory in (("device", 20 << 30), ("host", working)):
        loader = tg.NeighborLoader(
            path,
            [],
            batch_size=ROWS,
            shuffle=True,
            device="cuda",
            device_memory=memory,
            presample=0,
        )
        made[f"tiergraph {place}"] = gather(loader, dim)
    return made


def gather(loader: tg.NeighborLoader, dim: int) -> Call:
    """Makes a batch of seeds alone, others each time."""
    edges = batches(loader)

    def run() -> int:
        next(edges)
        return 4 * dim * ROWS

    return run


def batches(loader: tg.NeighborLoader) -> Iterator[int]:
    """Edges of each full batch of epoch after epoch."""
    for epoch in itertools.count():
        loader.set_epoch(epoch)
        for batch in loader:
            if batch.batch_size == loader.batch_size:
                yield int(batch.edge_index.shape[1])


def whole_graph() -> Any:
    """WholeGraph's calls; None, with the reason printed, where it does not work."""
    try:
        import whole_graph_peer
    except ImportError as error:
        print(f"WholeGraph is left out: {error}")
        return None
    return whole_graph_peer.Peer(SEEDS, FANOUTS, ROWS, TABLE_ROWS)


if __name__ == "__main__":
    main()
