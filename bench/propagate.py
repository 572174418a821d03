"""`propagate` with the whole graph in memory, beside SciPy's product with the same matrix.

y = Aᵀx of float32: sums, minima and maxima, of one value a vertex and of matrices. SciPy (CSR, one
thread, sums only) has matrix and x in the graph's own order of vertices, in which it is faster than
in that of the ids. tiergraph's time is the whole call's, which brings x from the order of the ids
into its own and y back; `pass s` is what the arcs take of it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

import tiergraph as tg
from common import machine, reporting
from common.compare import TOLERANCE, relative_difference
from common.reporting import Record, median, say
from gpu._adjacency import adjacency, order

GRAPHS: dict[str, Record] = {
    "undirected": {"undirected": True},
    "directed": {},
    "directed, weighted": {"weights": "byte"},
}

Reduce = Literal["sum", "min", "max"]
Values = NDArray[np.float32]


class Pair(NamedTuple):
    """A graph and SciPy's matrix of it: row i pulls for the vertex `order[i]`."""

    graph: tg.Graph
    matrix: csr_matrix
    order: NDArray[np.uint32]


def main() -> None:
    """Measures each graph, prints and saves."""
    options = _options()
    records = []
    with reporting.data_directory("propagate", options.keep) as directory:
        for name in GRAPHS:
            pair = _build(directory, name, options)
            records += _measure(name, pair, options)
    reporting.table(
        f"propagate, RMAT-{options.scale}, resident, {options.threads} threads, medians",
        (
            *("graph and reduction", "columns", "s", "processor s", "pass s", "G arcs/s"),
            *("SciPy s", "SciPy G arcs/s", "against SciPy"),
        ),
        [_row(record) for record in records],
    )
    state = f"all blocks and SciPy's matrix in memory; {machine.memory_total()} bytes"
    reporting.save(options, "propagate", state, records)


def _options() -> argparse.Namespace:
    parser = reporting.arguments(__doc__ or "", scale=22)
    parser.add_argument(
        "--columns", type=int, nargs="+", default=[1, 16], help="values a vertex; 1: a vector"
    )
    return parser.parse_args()


def _build(directory: Path, name: str, options: argparse.Namespace) -> Pair:
    """The packed graph, and the matrix from a raw twin in the same order."""
    say(f"building RMAT-{options.scale}, {name}")
    stem = name.replace(", ", "-")
    packed, raw = (directory / f"{stem}-{codec}.tg" for codec in ("packed", "raw"))
    how: Record = {"scale": options.scale, "order": "degree"} | GRAPHS[name]
    tg.generate("rmat", packed, codec="packed", layouts="analytics", **how)
    tg.generate("rmat", raw, codec="raw", **how)
    indptr, indices, weights = adjacency(raw)
    if weights is None:  # SciPy multiplies by ones: it has no matrix without values
        weights = np.ones(len(indices), dtype=np.float32)
    shape = 2 * (len(indptr) - 1,)
    matrix = csr_matrix((weights, indices, indptr), shape=shape)
    return Pair(tg.open(packed, threads=options.threads), matrix, order(packed))


def _measure(name: str, pair: Pair, options: argparse.Namespace) -> list[Record]:
    """A record for each reduction and number of columns, checked and then timed in turn."""
    inputs = {columns: _draw(pair, columns) for columns in options.columns}
    differences = {columns: _check(pair, *given) for columns, given in inputs.items()}
    records: list[Record] = [
        {
            "name": name,
            "arcs": pair.matrix.nnz,
            "reduce": reduce,
            "columns": columns,
            "relative_difference": differences[columns] if reduce == "sum" else None,
            "repetitions": [],
        }
        for reduce in (("sum",) if pair.graph.weighted else ("sum", "min", "max"))
        for columns in inputs
    ]
    for repetition in range(options.repetitions):
        say(f"repetition {repetition + 1} of {options.repetitions}")
        for record in records:
            given = inputs[record["columns"]]
            record["repetitions"].append(_repetition(pair, record["reduce"], *given))
    return records


def _draw(pair: Pair, columns: int) -> tuple[Values, Values]:
    """The same x in the order of the ids, and in that of the matrix."""
    shape = (pair.graph.vertices,) if columns == 1 else (pair.graph.vertices, columns)
    x = np.random.default_rng(columns).random(shape, dtype=np.float32)
    return x, x[pair.order]


def _check(pair: Pair, x: Values, permuted: Values) -> float:
    """How far the two engines' sums are apart; the pass brings the blocks into memory too."""
    sums = pair.graph.propagate(x, weights=pair.graph.weighted)
    difference = relative_difference(sums[pair.order], pair.matrix @ permuted)
    if difference > TOLERANCE["propagate"]:
        raise SystemExit(f"sums of shape {x.shape} differ from SciPy's by {difference:.2g}")
    return difference


def _repetition(pair: Pair, reduce: Reduce, x: Values, permuted: Values) -> Record:
    """Each engine's time in turn; SciPy has no reduction but the sum."""
    graph = pair.graph
    ours = _timed(lambda: graph.propagate(x, reduce=reduce, weights=graph.weighted))
    run = {key: graph.last_run[key] for key in ("bytes_read", "pass_bytes", "resident_bytes")}
    return {
        "tiergraph": ours | {"pass_seconds": graph.last_run["seconds"]} | run,
        "scipy": _timed(lambda: pair.matrix @ permuted) if reduce == "sum" else None,
    }


def _timed(call: Callable[[], object]) -> Record:
    begin, before = time.perf_counter(), machine.processor_seconds()
    call()
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "processor_seconds": machine.processor_seconds() - before}


def _row(record: Record) -> tuple[object, ...]:
    """Medians; an arc counts once, however many columns."""
    ours = [run["tiergraph"] for run in record["repetitions"]]
    seconds, used, passes = (
        median([run[key] for run in ours])
        for key in ("seconds", "processor_seconds", "pass_seconds")
    )
    theirs = median([run["scipy"]["seconds"] for run in record["repetitions"] if run["scipy"]])
    arcs = record["arcs"] / 1e9
    assert seconds is not None
    return (
        f"{record['name']}, {record['reduce']}",
        record["columns"],
        seconds,
        used,
        passes,
        arcs / seconds,
        theirs,
        arcs / theirs if theirs else None,
        theirs / seconds if theirs else None,
    )


if __name__ == "__main__":
    main()
