"""Random commands, run in this process; their JSON and files have the methods' results."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

import tiergraph as tg
from tiergraph.cli import main

from .calls import WrongValueError
from .graphs import Expected, Random, pick


def check_command(random: Random, graph: tg.Graph, wanted: Expected) -> str:
    """One algorithm as a command that writes a file; its values are those of the method."""
    name = pick(random, ["pagerank", "wcc", "bfs", "sssp"])
    if name in ("bfs", "sssp") and len(wanted.ids) == 0:
        return "nothing"
    source = int(random.choice(wanted.ids)) if name in ("bfs", "sssp") else None
    suffix = pick(random, [".csv", ".npy", ".parquet"])
    output = Path(graph.path).parent / f"result{suffix}"
    arguments = [name, graph.path, "--json", "-o", str(output)]
    if source is not None:
        arguments += ["--source", str(source)]
    if name == "pagerank":
        arguments += ["--iterations", "7"]
    printed = io.StringIO()
    call = " ".join(["tiergraph", *arguments])
    with contextlib.redirect_stdout(printed):
        code = main(arguments)
    if code != 0:
        raise WrongValueError(f"{call}: exit code {code}")
    run = json.loads(printed.getvalue())
    given: dict[str, Any] = {"source": source} if source is not None else {}
    if name == "pagerank":
        given = {"iterations": 7}
    values = getattr(graph, name)(**given)
    vertices, written = _read(output)
    if not np.array_equal(vertices, wanted.ids):
        raise WrongValueError(f"{call}: other ids in the file")
    if not np.allclose(written, values.astype(np.float64), rtol=1e-5):
        raise WrongValueError(f"{call}:\n  file   {written}\n  method {values}")
    _check_summary(call, name, run, values)
    return call


def _read(path: Path) -> tuple[Any, Any]:
    """The ids and the values of a result file."""
    if path.suffix == ".npy":
        table = np.load(path)
        _, name = table.dtype.names
        return table["vertex"], table[name].astype(np.float64)
    if path.suffix == ".parquet":
        import pyarrow.parquet

        vertices, values = pyarrow.parquet.read_table(path).columns
        return vertices.to_numpy(), values.to_numpy().astype(np.float64)
    lines = [line.split(",") for line in path.read_text().splitlines()[1:]]
    return (
        np.array([int(vertex) for vertex, _ in lines], dtype=np.uint64),
        np.array([float(value) for _, value in lines]),
    )


def _check_summary(call: str, name: str, run: dict[str, Any], values: Any) -> None:
    """What the JSON says of the values as a whole."""
    summary: dict[str, Any] = {}
    if name == "wcc":
        names, sizes = np.unique(values, return_counts=True)
        summary = {"components": len(names), "largest_component": int(sizes.max(initial=0))}
    elif name == "bfs":
        summary = {"reached": int((values >= 0).sum()), "depth": int(values.max())}
    elif name == "sssp":
        reached = values[np.isfinite(values)]
        summary = {"reached": len(reached), "distance": float(reached.max())}
    for key, value in summary.items():
        if run[key] != value:
            raise WrongValueError(f"{call}: {key} is {run[key]}, wanted {value}")
