"""Connected components of a Parquet file of pairs: `python -m engines.on_pairs ENGINE FILE`.

Prints the seconds from the file to a label for each id, and what was found, as JSON.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from typing import Any

THREADS = 2


def tiergraph(path: str) -> tuple[int, int]:
    """One pass, memory for the distinct ids."""
    import tiergraph as tg

    found = tg.components(path, threads=THREADS)
    return len(found), found.components


def _factorized(path: str) -> tuple[Any, Any, int]:
    """Both ends as numbers from 0 on, by pandas."""
    import numpy as np
    import pandas as pd

    frame = pd.read_parquet(path, dtype_backend="pyarrow")
    codes, ids = pd.factorize(pd.concat([frame["src"], frame["dst"]], ignore_index=True))
    src, dst = np.split(np.asarray(codes), 2)
    return src, dst, len(ids)


def scipy(path: str) -> tuple[int, int]:
    """Pandas numbers the ids, SciPy finds the components."""
    import numpy as np
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    src, dst, count = _factorized(path)
    ones = np.ones(len(src), np.int8)
    matrix = coo_array((ones, (src, dst)), shape=(count, count))
    return count, int(connected_components(matrix, directed=False)[0])


def igraph(path: str) -> tuple[int, int]:
    """Pandas numbers the ids, igraph finds the components."""
    import igraph as ig
    import numpy as np

    src, dst, count = _factorized(path)
    graph = ig.Graph(n=count, edges=np.column_stack((src, dst)))
    return count, len(graph.connected_components(mode="weak"))


IMPORTS = {
    "tiergraph": ("tiergraph", "pyarrow.dataset", "pyarrow.parquet"),
    "scipy": ("pandas", "pyarrow.parquet", "scipy.sparse.csgraph"),
    "igraph": ("pandas", "pyarrow.parquet", "igraph"),
}
"""The modules of each engine, imported before its time is taken."""
ENGINES = {"tiergraph": tiergraph, "scipy": scipy, "igraph": igraph}


def main() -> None:
    """Runs one engine once."""
    engine, path = sys.argv[1:]
    for module in IMPORTS[engine]:
        importlib.import_module(module)
    began = time.perf_counter()
    ids, components = ENGINES[engine](path)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found = {"seconds": seconds, "ids": ids, "components": components, "peak_rss_bytes": peak}
    print(json.dumps(found), file=sys.__stdout__)


if __name__ == "__main__":
    main()
