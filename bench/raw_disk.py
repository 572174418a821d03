"""Whether a pass over the plain form, with nothing in memory, reads as fast as the disk gives.

Codec `raw` (4 bytes an arc, what other engines read), the least budget that PageRank runs in, and
bare reading of the same file before and after each run: A B A B, for each engine.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from common import machine, reporting
from common.child import Child, UnavailableError
from common.reporting import Record, median, say

FIRST_RUN = {"iterations": 1}


def main() -> None:
    """Measures each engine in turn, the repetitions interleaved with those of the others."""
    options = _options()
    with reporting.data_directory("raw_disk", options.keep) as directory:
        path = str(directory / "raw.tg")
        child = Child(Path(sys.executable), "on_disk", threads=options.threads)
        say(f"building RMAT-{options.scale} with codec raw")
        build = child.call(
            "generate",
            path=path,
            scale=options.scale,
            codec="raw",
            layouts="analytics",
            undirected=False,
            threads=options.threads,
        )["value"]
        cache = machine.drop_page_cache()
        engines = [Measured(name, child, path, options) for name in options.engines]
        for _ in range(options.repetitions):
            for engine in engines:
                engine.repeat()
        child.close()
    reporting.table(
        f"RMAT-{options.scale} directed, raw, {build['arcs']:,} arcs, nothing resident",
        (
            "engine",
            "budget MiB",
            "PageRank GB/s",
            "bare reads GB/s",
            "share",
            "passes/iteration",
            "M arcs/s",
        ),
        [engine.row() for engine in engines],
    )
    for engine in engines:
        for reason in engine.failures:
            print(f"{engine.name}: {reason}")
    results = {"build": build, "engines": [engine.record() for engine in engines]}
    state = f"direct reads past the page cache; {cache} before the runs; host's cache unknown"
    reporting.save(options, "raw_disk", state, results)


def _options() -> argparse.Namespace:
    parser = reporting.arguments(__doc__ or "", scale=24)
    parser.add_argument("--engines", nargs="+", default=["uring", "posix"], help="to read with")
    parser.add_argument("--iterations", type=int, default=5, help="of PageRank, a repetition")
    parser.add_argument("--ceiling-seconds", type=float, default=2.0, help="of each bare reading")
    return parser.parse_args()


class Measured:
    """One engine's repetitions, each a run between two bare readings."""

    def __init__(self, name: str, child: Child, path: str, options: argparse.Namespace) -> None:
        self.name = name
        self.failures: list[str] = []
        self._child = child
        self._options = options
        self._how = {"path": path, "io": name, "threads": options.threads}
        self._repetitions: list[Record] = []
        try:
            least = child.call(
                "least_memory", algorithm="pagerank", arguments=FIRST_RUN, **self._how
            )
        except UnavailableError as error:
            self.failures.append(str(error))
        else:
            self._memory = least["value"]

    def repeat(self) -> None:
        """Bare, PageRank, bare."""
        if self.failures:
            return
        child, seconds = self._child, self._options.ceiling_seconds
        try:
            child.call("open", memory=self._memory, **self._how)
            before = child.call("ceiling", seconds=seconds, spare=True)["value"]
            run = child.call("pagerank", iterations=self._options.iterations)["value"]
            after = child.call("ceiling", seconds=seconds, spare=True)["value"]
        except UnavailableError as error:
            self.failures.append(str(error))
            return
        share = run["read_bandwidth"] / ((before + after) / 2)
        self._repetitions.append({"before": before, "run": run, "after": after, "share": share})

    def row(self) -> list[object]:
        """Medians."""
        if not self._repetitions:
            return [self.name, *[None] * 6]
        runs = [r["run"] for r in self._repetitions]
        iterations = self._options.iterations
        return [
            self.name,
            self._memory >> 20,
            median([run["read_bandwidth"] / 1e9 for run in runs]),
            median([r[side] / 1e9 for r in self._repetitions for side in ("before", "after")]),
            median([r["share"] for r in self._repetitions]),
            median([run["passes"] / iterations for run in runs]),
            median([run["arcs"] * iterations / run["seconds"] / 1e6 for run in runs]),
        ]

    def record(self) -> Record:
        """Every repetition."""
        return {
            "engine": self.name,
            "memory_bytes": getattr(self, "_memory", None),
            "repetitions": self._repetitions,
            "failures": self.failures,
        }


if __name__ == "__main__":
    main()
