"""How many bytes an epoch reads by the order of feature rows, and what sharing pages saves.

A directed R-MAT graph with float32 features; host memory keeps all neighbours and a tenth of the
rows, those that presampling found hottest. Rows lie in the graph's order (`none`) or in that of
`tiergraph features order --by hot`. Without sharing, every row that is not in memory is one aligned
read of a page; with sharing, a page is read once for all rows on it that a window of batches wants.
The epoch that is measured is another than the one that was counted. Bytes are those of the loader's
report, and beside them what the kernel counted for the process (reads bypass the page cache).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import tiergraph as tg
from common import machine, reporting
from common.reporting import Record, say

PAGE = 4096
ROOM = 8 << 30
"""Memory of a first loader, which tells how much the next needs."""
EPOCH = 7


def main() -> None:
    """Generates the graph, measures every order, batch size and window, prints and saves."""
    options = _options()
    records: list[Record] = []
    with reporting.data_directory("page_sharing", options.keep) as directory:
        path = directory / "g.tg"
        say(f"generating 2^{options.scale} vertices")
        tg.generate(
            "rmat",
            path,
            scale=options.scale,
            edge_factor=options.edge_factor,
            features=options.features,
            classes=10,
            layouts="training",
            memory=options.memory,
            seed=1,
        )
        for order in options.order:
            for batch_size in options.batch_size:
                for window in options.window:
                    records.append(_measure(path, order, batch_size, window, options))
    state = "reads bypass the page cache; the host's cache is unknown"
    reporting.save(options, "page_sharing", state, records)
    _print(records, options)


def _options() -> argparse.Namespace:
    parser = reporting.arguments(__doc__ or "", scale=21, repetitions=1)
    parser.add_argument("--edge-factor", type=int, default=32, help="edges a vertex")
    parser.add_argument("--features", type=int, default=128, help="columns of features")
    parser.add_argument("--batch-size", type=int, nargs="+", default=[1024, 8000])
    parser.add_argument("--window", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--fanout", type=int, nargs="+", default=[25, 10])
    parser.add_argument("--order", nargs="+", default=["none", "hot"], choices=["none", "hot"])
    parser.add_argument("--memory", default="3GiB", help="budget of building and of moving rows")
    return parser.parse_args()


def _measure(
    path: Path, order: Any, batch_size: int, window: int, options: argparse.Namespace
) -> Record:
    say(f"order {order}, batches of {batch_size}, windows of {window}")
    how = {"num_neighbors": options.fanout, "batch_size": batch_size, "window": window}
    # A new graph's rows are in its own order.
    hot = order == "hot"
    ordered = tg.order_features(path, by=order, memory=options.memory, **how) if hot else None
    loader = _with_a_tenth(path, how, options)
    loader.set_epoch(EPOCH)
    before = _kernel_bytes()
    for _ in loader:
        pass
    return {
        "order": order,
        **how,
        "vertices": len(loader.graph.ids),
        "arcs": loader.graph.info()["arcs"],
        "seeds": len(loader.seeds),
        "ordered": ordered,
        "kept": loader.kept(),
        "stats": loader.last_epoch,
        "kernel_read_bytes": _kernel_bytes() - before,
    }


def _with_a_tenth(path: Path, how: Record, options: argparse.Namespace) -> tg.NeighborLoader:
    """A loader whose memory has room for all neighbours and a tenth of the rows."""

    def load(memory: int, presample: int | None = None) -> tg.NeighborLoader:
        return tg.NeighborLoader(
            path,
            input_nodes="train",
            shuffle=True,
            placement="topology",
            threads=options.threads,
            prefetch=0,
            memory=memory,
            presample=presample,
            **how,
        )

    probe = load(ROOM, presample=1)
    kept, row_bytes = probe.kept(), 4 * options.features
    wanted = len(probe.graph.ids) // 10
    memory = ROOM + kept["pages"] * PAGE + wanted * row_bytes - kept["capacity_bytes"]
    del probe
    loader = load(memory)
    for _ in range(3):
        missing = wanted - loader.kept()["kept_rows"]
        if abs(missing) * 100 <= wanted:
            break
        # Pages that nobody wanted were not kept, and left room for rows.
        memory += missing * row_bytes
        del loader
        loader = load(memory)
    return loader


def _kernel_bytes() -> int:
    """Bytes that the kernel says it fetched from storage for this process."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("read_bytes:"):
            return int(line.split()[1])
    return 0


def _print(records: list[Record], options: argparse.Namespace) -> None:
    rows = []
    # Each batch size and window: without the order, then with it.
    for record in sorted(records, key=lambda r: (r["batch_size"], r["window"])):
        stats = record["stats"]
        if stats["bytes_ssd"] != stats["distinct_pages"] * PAGE:
            raise SystemExit(f"bytes are not distinct pages: {stats}")
        alone = stats["missed_rows"] * PAGE
        shared = stats["bytes_ssd"] - stats["bytes_ssd_topology"]
        rows.append(
            [
                record["order"],
                record["batch_size"],
                record["window"],
                f"{record['kept']['kept_rows'] / record['vertices']:.1%}",
                stats["missed_rows"],
                alone / 1e6,
                shared / 1e6,
                f"{shared / alone:.1%}",
                stats["bytes_ssd"],
                record["kernel_read_bytes"],
                record["ordered"]["hot"]["by"] if record["ordered"] else "-",
            ]
        )
    first = records[0]
    reporting.table(
        f"an epoch of {first['seeds']:,} seeds, fanout {options.fanout}, on {first['vertices']:,} "
        f"vertices, {first['arcs']:,} arcs, {options.features} float32 features",
        (
            "rows",
            "batch",
            "window",
            "cached",
            "missed rows",
            "a read a row MB",
            "shared MB",
            "ratio",
            "bytes read",
            "kernel",
            "arranged by",
        ),
        rows,
    )
    print(
        f"(machine: {machine.label()}; bytes read = distinct pages x {PAGE}, neighbours' included)"
    )


if __name__ == "__main__":
    main()
