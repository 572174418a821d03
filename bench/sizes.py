"""How many bytes on disk an arc takes, by file.

R-MAT, directed and undirected, and the web crawl cnr-2000, each with both layouts; beside the
limits that the project sets itself. Sizes are exact: one repetition.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import tiergraph as tg
from common import machine, reporting
from common.reporting import Record, say

CRAWL = Path("cnr-2000/cnr-2000.graph")
TILES_LIMITS = {"directed": 1.8, "undirected": 0.95, "cnr-2000": 1.1}
ROWS_LIMIT = 2.0
TILES, ROWS, INDEX = "tiles", "rows", "index"


def main() -> None:
    """Builds each graph, prints and saves its bytes an arc."""
    options = _options()
    records: list[Record] = []
    with reporting.data_directory("sizes", options.keep) as directory:
        common: dict[str, Any] = {"layouts": "both", "threads": options.threads}
        for kind in ("directed", "undirected"):
            say(f"building RMAT-{options.scale} {kind}")
            path = directory / f"{kind}.tg"
            tg.generate(
                "rmat",
                path,
                scale=options.scale,
                undirected=kind == "undirected",
                dedup=True,
                drop_self_loops=True,
                **common,
            )
            records.append(_measure(f"RMAT-{options.scale} {kind}", kind, path))
        crawl = options.data / CRAWL
        if crawl.exists():
            say("building cnr-2000")
            path = directory / "cnr-2000.tg"
            tg.build(crawl, path, **common)
            records.append(_measure("cnr-2000", "cnr-2000", path))
        else:
            say(f"cnr-2000 skipped: no `{CRAWL}` below --data")
            records.append({"graph_name": "cnr-2000", "skipped": f"no {CRAWL} below --data"})
    _print(records)
    reporting.save(options, "sizes", "not timed", records)


def _options() -> argparse.Namespace:
    parser = reporting.arguments(__doc__ or "", scale=22, repetitions=1)
    parser.add_argument(
        "--data",
        type=Path,
        default=machine.ROOT.parent / "shared/data/graphs",
        help="directory with cnr-2000/",
    )
    return parser.parse_args()


def _measure(name: str, kind: str, path: Path) -> Record:
    """Bytes an arc by file, and by part: tiles, rows, index, the vertices' arrays."""
    info = tg.open(path).info()
    edges, arcs = info["edges"], info["arcs"]
    by_file = {
        file: bytes_an_edge * edges / arcs
        for file, bytes_an_edge in info["bytes_per_edge_by_file"].items()
    }
    parts = {TILES: 0.0, ROWS: 0.0, INDEX: 0.0, "vertices": 0.0}
    for file, size in by_file.items():
        parts[_part(file)] += size
    # Rows may hold one direction or both; the limit is for one arc stored in one of them.
    directions = sum(file.endswith(".rows") for file in by_file)
    return {
        "graph_name": name,
        "tiles_limit": TILES_LIMITS[kind],
        "rows_limit": ROWS_LIMIT,
        "bytes_per_arc_by_file": by_file,
        "bytes_per_arc_by_part": parts,
        "rows_directions": directions,
        "bytes_per_arc": info["bytes"] / arcs,
        "info": info,
    }


def _part(file: str) -> str:
    if file.endswith(".index"):
        return INDEX
    if file.startswith("tiles."):
        return TILES
    return ROWS if file.endswith(".rows") else "vertices"


def _print(records: list[Record]) -> None:
    rows = []
    for record in records:
        if "skipped" in record:
            rows.append([record["graph_name"], *[None] * 9])
            continue
        parts, info = record["bytes_per_arc_by_part"], record["info"]
        rows.append(
            [
                record["graph_name"],
                info["vertices"],
                info["arcs"],
                info["order"],
                parts[TILES],
                record["tiles_limit"],
                parts[ROWS] / max(1, record["rows_directions"]),
                record["rows_limit"],
                parts[INDEX],
                record["bytes_per_arc"],
            ]
        )
    reporting.table(
        "bytes an arc",
        (
            "graph",
            "vertices",
            "arcs",
            "order",
            "tiles",
            "limit",
            "rows, a direction",
            "limit",
            "index",
            "all files",
        ),
        rows,
    )


if __name__ == "__main__":
    main()
