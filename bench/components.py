"""How fast what belongs together is found by pairs of ids: beside igraph and SciPy.

Pairs are of ids near each other, as entity resolution has them. Ids are 64-bit
integers spread over all of them, or texts. Each engine reads the same Parquet file, in a process of
its own, to a label for each id; numbers of components must be equal. Repetitions interleave.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from common import machine, reporting
from common.reporting import BENCH, Record, median, say

ENGINES = ("tiergraph", "scipy", "igraph")
KINDS = ("integers", "texts")
SPREAD = 0x9E3779B97F4A7C15


def main() -> None:
    """Measures, prints and saves."""
    parser = reporting.arguments(__doc__ or "", scale=0, repetitions=3)
    parser.add_argument("--pairs", type=int, default=50_000_000)
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES)
    parser.add_argument("--limit", type=float, default=900, help="seconds an engine may take")
    python = BENCH / ".venv-peers/bin/python"
    parser.add_argument("--peers-python", type=Path, default=python, help="peers_env.sh makes it")
    options = parser.parse_args()
    results: Record = {"pairs": options.pairs, "kinds": {}}
    with reporting.data_directory("components", options.keep) as directory:
        for kind in KINDS:
            path = directory / f"{kind}.parquet"
            _write(path, kind, options.pairs)
            runs: dict[str, list[Record]] = {engine: [] for engine in options.engines}
            for _ in range(options.repetitions):
                for engine, of_engine in runs.items():
                    if not (of_engine and "failure" in of_engine[-1]):
                        say(f"{kind}: {engine}")
                        of_engine.append(_run(engine, path, options))
            results["kinds"][kind] = {"file_bytes": path.stat().st_size, "runs": runs}
            path.unlink()
    reporting.save(options, "components", "the file is in the page cache", results)
    _print(results, options)


def _write(path: Path, kind: str, pairs: int) -> None:
    """A file of pairs of 3/5 as many ids."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    rng, ids = np.random.default_rng(1), pairs * 3 // 5

    def column(numbers: Any) -> Any:
        if kind == "integers":
            return pa.array((numbers.astype(np.uint64) * np.uint64(SPREAD)) >> np.uint64(1))
        return pc.binary_join_element_wise("customer-", pc.cast(pa.array(numbers), pa.string()), "")

    step = 1 << 22
    with pq.ParquetWriter(
        path, pa.table({"src": column(np.arange(1)), "dst": column(np.arange(1))}).schema
    ) as file:
        for start in range(0, pairs, step):
            count = min(step, pairs - start)
            src = rng.integers(0, ids, count)
            near = np.minimum(ids - 1, src // 4 * 4 + rng.integers(0, 5, count))
            file.write_table(pa.table({"src": column(src), "dst": column(near)}))


def _run(engine: str, path: Path, options: Any) -> Record:
    python = Path(sys.executable) if engine == "tiergraph" else options.peers_python.absolute()
    command = [str(python), "-m", "engines.on_pairs", engine, str(path)]
    try:
        done = subprocess.run(
            command, cwd=BENCH, capture_output=True, text=True, timeout=options.limit, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failure": f"over {options.limit:g} s"}
    if done.returncode != 0:
        return {"failure": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    found: Record = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _print(results: Record, options: Any) -> None:
    rows = []
    for kind, found in results["kinds"].items():
        for engine, runs in found["runs"].items():
            good = [run for run in runs if "failure" not in run]
            seconds = median([run["seconds"] for run in good]) if good else None
            peak = max(run["peak_rss_bytes"] for run in good) / 2**20 if good else None
            last = good[-1]["components"] if good else runs[-1]["failure"]
            rows.append([kind, engine, seconds, peak, last])
    title = f"{results['pairs']:,} pairs, {options.threads} threads: seconds from file to labels"
    reporting.table(title, ("ids", "engine", "seconds", "peak MiB", "components"), rows)
    say(f"on {machine.device()}")


if __name__ == "__main__":
    main()
