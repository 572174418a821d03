"""tiergraph on graphs on disk: builds them, opens them under budgets, and reports each run."""

from __future__ import annotations

from typing import Any

import tiergraph as tg

FIRST_MEBIBYTES = 16
PRECISION_MEBIBYTES = 2
SPARE_BYTES = 64 << 20


def load() -> OnDisk:
    """Nothing is open yet."""
    return OnDisk()


class OnDisk:
    """The commands; each returns the report of what it did."""

    def __init__(self) -> None:
        self._graph: tg.Graph | None = None
        self._how: dict[str, Any] = {}

    def generate(self, path: str, **options: Any) -> dict[str, Any]:
        """Builds an R-MAT graph at `path`."""
        return tg.generate("rmat", path, overwrite=True, **options)

    def build(self, source: str, path: str, **options: Any) -> dict[str, Any]:
        """Builds from a file."""
        return tg.build(source, path, overwrite=True, **options)

    def open(self, path: str, memory: str | int, io: str, threads: int) -> dict[str, Any]:
        """Opens `path` in place of what was open."""
        self._how = {"path": path, "memory": memory, "io": io, "threads": threads}
        self._graph = None
        self._graph = tg.open(path, memory=memory, io=io, threads=threads)
        return self._graph.info()

    def least_memory(
        self, path: str, io: str, threads: int, algorithm: str, arguments: dict[str, Any]
    ) -> int:
        """The smallest budget, to 2 MiB, in which `algorithm` runs: few blocks stay in it."""

        def fits(mebibytes: int) -> bool:
            try:
                self.open(path, mebibytes << 20, io, threads)
                getattr(self, algorithm)(**arguments)
            except tg.BudgetError:
                return False
            return True

        too_small, enough = 0, FIRST_MEBIBYTES
        while not fits(enough):
            too_small, enough = enough, 2 * enough
        while enough - too_small > PRECISION_MEBIBYTES:
            middle = (too_small + enough) // 2
            too_small, enough = (too_small, middle) if fits(middle) else (middle, enough)
        return enough << 20

    def ceiling(self, seconds: float, spare: bool = False) -> float:
        """Bytes a second that the graph's own file gives when only read.

        With `spare`, in a budget with room for the reading's buffers; afterwards in the old one.
        """
        how = self._how
        if spare:
            self.open(**how | {"memory": how["memory"] + SPARE_BYTES})
        bandwidth = self._opened()._opened.measure_ceiling(seconds)
        if spare:
            self.open(**how)
        return bandwidth

    def pagerank(self, iterations: int) -> dict[str, Any]:
        """Exactly `iterations`."""
        graph = self._opened()
        graph.pagerank(iterations=iterations)
        return graph.last_run

    def wcc(self) -> dict[str, Any]:
        """Components."""
        graph = self._opened()
        graph.wcc()
        return graph.last_run

    def bfs(self, source: int) -> dict[str, Any]:
        """Hops from `source`."""
        graph = self._opened()
        graph.bfs(source)
        return graph.last_run

    def sssp(self, source: int) -> dict[str, Any]:
        """Least weights from `source`."""
        graph = self._opened()
        graph.sssp(source)
        return graph.last_run

    def hub(self) -> int:
        """The vertex with the most edges out: a source that reaches nearly everything."""
        return int(self._opened().degrees("out").argmax())

    def _opened(self) -> tg.Graph:
        if self._graph is None:
            raise RuntimeError("no graph is open")
        return self._graph

    def run(self, name: str, options: dict[str, Any]) -> dict[str, Any]:
        """An algorithm by its name."""
        assert self._graph is not None
        self._graph.run(name, **options)
        return self._graph.last_run
