"""A graph's edges in other forms: files, SciPy's matrices, NetworkX's graphs, graphs of a part.

Files are written in steps. What comes from a graph on
disk by batches holds a batch; what other software needs as a whole (`.npz`, METIS, SciPy, NetworkX)
is in memory, and says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _native
from .arguments.calls import warn
from .errors import InputError, InputWarning
from .results import check_folder, whole_file
from .sources.edges import Batch

if TYPE_CHECKING:
    from .graph import Graph

Columns = tuple[NDArray[Any], ...]
Write = Callable[["Graph", Path], None]


def export(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Writes all edges to `path`, in the format that its suffix says."""
    target = Path(os.fspath(path))
    write = WRITERS.get(target.suffix.lower())
    if write is None:
        suffixes = ", ".join(WRITERS)
        raise InputError.of(
            "export to", target, expected=f"a file name in {suffixes}", got=target.suffix or "none"
        )
    check_folder(target)
    with whole_file(target) as part:
        write(graph, part)


def _by_names(graph: Graph) -> Iterator[tuple[Any, ...]]:
    """Batches with names in place of ids, where the graph has names: arrays of pyarrow then."""
    if graph.names is None:
        yield from graph.edge_batches()
        return
    names = graph.names.to_arrow()
    for src, dst, *weights in graph.edge_batches():
        yield (names.take(src), names.take(dst), *weights)


def _names(graph: Graph) -> tuple[str, ...]:
    return ("src", "dst", "weight") if graph.weighted else ("src", "dst")


def _write_parquet(graph: Graph, path: Path) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError.of(
            "export to",
            path.name,
            got="pyarrow is not installed",
            hint="pip install 'tiergraph[parquet]'",
        ) from error
    ids = pyarrow.uint64() if graph.names is None else pyarrow.large_string()
    types = [ids, ids, pyarrow.float64()]
    schema = pyarrow.schema(list(zip(_names(graph), types, strict=False)))
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for batch in _by_names(graph):
            writer.write_table(pyarrow.table(list(batch), schema=schema))


def _write_csv(graph: Graph, path: Path) -> None:
    with path.open("wb") as file:
        file.write((",".join(_names(graph)) + "\n").encode())
        if graph.names is None:
            file.writelines(_native.lines(batch, ",") for batch in graph.edge_batches())
        else:
            _write_names(graph, file, path.name)


def _write_names(graph: Graph, file: IO[bytes], where: str) -> None:
    """Rows of names in quotes, which keep their blanks and commas, and of weights."""
    import pyarrow
    from pyarrow import compute, csv

    how = csv.WriteOptions(include_header=False)
    for batch in _by_names(graph):
        if any(compute.any(compute.match_substring_regex(c, r"[\r\n]")).as_py() for c in batch[:2]):
            raise InputError.of(
                "export to", where, expected="names of one line, for CSV", got="longer ones"
            )
        rows = pyarrow.table(list(batch), names=_names(graph))
        csv.write_csv(rows, file, write_options=how)


def _write_text(graph: Graph, path: Path) -> None:
    if graph.names is not None:
        raise InputError.of(
            "export to", path.name, expected="`.csv` or `.parquet`, for names", got=".txt"
        )
    with path.open("wb") as file:
        file.writelines(_native.lines(batch, " ") for batch in graph.edge_batches())


def _positions(graph: Graph) -> Iterator[Columns]:
    """Batches by positions in `ids`."""
    ids = graph.ids if graph.has_own_ids else None
    for src, dst, *weights in graph.edge_batches():
        if ids is not None:
            src, dst = np.searchsorted(ids, src), np.searchsorted(ids, dst)
        yield (src, dst, *weights)


def _write_matrix_market(graph: Graph, path: Path) -> None:
    field = "real" if graph.weighted else "pattern"
    symmetry = "general" if graph.directed else "symmetric"
    head = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n"
    with path.open("wb") as file:
        file.write(f"{head}{graph.vertices} {graph.vertices} {graph.edges}\n".encode())
        for src, dst, *weights in _positions(graph):
            row, column = src.astype(np.int64) + 1, dst.astype(np.int64) + 1
            if not graph.directed:
                # Of a symmetric matrix, the lower half is written.
                row, column = np.maximum(row, column), np.minimum(row, column)
            file.write(_native.lines((row, column, *weights), " "))


def _write_npz(graph: Graph, path: Path) -> None:
    from scipy import sparse

    entries = _entries(graph)
    rows = entries.tocsr()
    # Rows have a repeated edge once.
    with path.open("wb") as file:
        sparse.save_npz(file, rows if rows.nnz == entries.nnz else entries)


def _write_metis(graph: Graph, path: Path) -> None:
    if graph.directed:
        raise InputError.of(
            "export to",
            path.name,
            expected="a graph whose edges have no direction, for METIS",
            got="a directed graph",
        )
    matrix = to_scipy(graph)
    loops = int(np.count_nonzero(matrix.diagonal()))
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    if lost := graph.edges - loops - matrix.nnz // 2:
        raise InputError.of(
            "export to",
            path.name,
            expected="a graph without repeated edges and weights of 0, for METIS",
            got=f"{lost:,} of them",
            hint="`.parquet`, `.csv` and `.mtx` hold them",
        )
    if loops:
        warn(f"{loops:,} self-loops are not in `{path.name}`: METIS has none", InputWarning)
    whole = matrix.data.astype(np.int64)
    if graph.weighted and (whole != matrix.data).any():
        raise InputError.of(
            "export to", path.name, expected="whole numbers as weights, for METIS", got="others"
        )
    with path.open("w") as file:
        file.write(f"{graph.vertices} {matrix.nnz // 2}{' 1' if graph.weighted else ''}\n")
        for v in range(graph.vertices):
            own = slice(matrix.indptr[v], matrix.indptr[v + 1])
            columns = [matrix.indices[own] + 1] + ([whole[own]] if graph.weighted else [])
            file.write(" ".join(map(str, np.column_stack(columns).ravel().tolist())) + "\n")


WRITERS: dict[str, Write] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".txt": _write_text,
    ".mtx": _write_matrix_market,
    ".npz": _write_npz,
    ".graph": _write_metis,
}
"""How files are written, by their suffixes."""


def to_scipy(graph: Graph) -> Any:
    """The edges as a SciPy CSR array of shape (|V|, |V|), repeated ones summed."""
    entries = _entries(graph).tocsr()
    entries.sum_duplicates()
    return entries


def _entries(graph: Graph) -> Any:
    """The edges as a SciPy COO array, an undirected edge both ways; repeated ones are repeated."""
    try:
        from scipy import sparse
    except ImportError as error:
        raise InputError.of(
            "make a matrix of",
            graph.path,
            got="SciPy is not installed",
            hint="pip install scipy",
        ) from error
    batches = list(_positions(graph))
    if not batches:
        return sparse.coo_array((graph.vertices, graph.vertices), dtype=np.float64)
    src, dst, *weights = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    data = weights[0] if weights else np.ones(len(src))
    if not graph.directed:
        other = src != dst
        src, dst = np.concatenate([src, dst[other]]), np.concatenate([dst, src[other]])
        data = np.concatenate([data, data[other]])
    places = (src.astype(np.int64), dst.astype(np.int64))
    return sparse.coo_array((data, places), shape=(graph.vertices, graph.vertices))


def to_networkx(graph: Graph, limit: int) -> Any:
    """The graph in NetworkX, if it has at most `limit` edges."""
    try:
        import networkx as nx
    except ImportError as error:
        raise InputError.of(
            "convert", graph.path, got="NetworkX is not installed", hint="pip install networkx"
        ) from error
    if graph.edges > limit:
        raise InputError.of(
            "convert",
            graph.path,
            expected=f"at most {limit:,} edges, which NetworkX holds in some GB of memory",
            got=f"{graph.edges:,}",
            hint="`limit` takes more; or call NetworkX's functions on the graph as it is",
        )
    made = _filled(graph, nx.DiGraph() if graph.directed else nx.Graph())
    if made.number_of_edges() < graph.edges:
        return _filled(graph, nx.MultiDiGraph() if graph.directed else nx.MultiGraph())
    return made


def _filled(graph: Graph, made: Any) -> Any:
    """The empty graph `made` of NetworkX with all vertices and edges."""
    made.add_nodes_from(graph.ids.tolist() if graph.names is None else graph.names)
    for src, dst, *weights in _by_names(graph):
        if weights:
            made.add_weighted_edges_from(
                zip(_list(src), _list(dst), weights[0].tolist(), strict=True)
            )
        else:
            made.add_edges_from(zip(_list(src), _list(dst), strict=True))
    return made


def _list(column: Any) -> list[Any]:
    values: list[Any] = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    return values


def inside(graph: Graph, vertices: NDArray[np.uint64]) -> Iterator[Batch]:
    """The edges whose ends are both among `vertices`, which ascend; by names if there are any."""
    names = None if graph.names is None else graph.names.to_arrow()
    for batch in graph.edge_batches():
        kept = _among(batch[0], vertices) & _among(batch[1], vertices)
        if kept.any():
            src, dst, *weights = (column[kept] for column in batch)
            if names is not None:
                src, dst = (names.take(ids).to_numpy(zero_copy_only=False) for ids in (src, dst))
            yield (src, dst, weights[0]) if weights else (src, dst)


def _among(ids: NDArray[Any], sorted_ids: NDArray[np.uint64]) -> NDArray[np.bool_]:
    at = np.searchsorted(sorted_ids, ids)
    found: NDArray[np.bool_] = sorted_ids[np.minimum(at, len(sorted_ids) - 1)] == ids
    return found
