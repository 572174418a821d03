"""A progress bar on stderr: stage, share done, rate, time left. Silent where nobody watches."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.filesize import decimal
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class Rate(ProgressColumn):
    """Units a second: `12.3 M edges/s`, `1.1 GB/s`."""

    def render(self, task: Task) -> Text:
        """The rate over the last updates."""
        speed = task.finished_speed or task.speed
        if not speed:
            return Text("")
        unit = task.fields["unit"]
        if unit == "bytes":
            return Text(f"{decimal(int(speed))}/s", style="cyan")
        for power, letter in ((1e9, "G "), (1e6, "M "), (1e3, "k ")):
            if speed >= power:
                return Text(f"{speed / power:.1f} {letter}{unit}/s", style="cyan")
        return Text(f"{speed:.1f} {unit}/s", style="cyan")


class Live:
    """A bar of these columns on stderr while its block runs."""

    def __init__(self, *columns: ProgressColumn) -> None:
        console = Console(stderr=True)
        self._shows = console.is_terminal
        silent = not self._shows
        self._progress = Progress(*columns, console=console, transient=True, disable=silent)

    def __enter__(self) -> Self:
        if self._shows:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Where it shows nothing, old versions of Rich end with an empty line.
        if self._shows:
            self._progress.stop()


class Bars(Live):
    """Shows each stage of a job as one bar; an instance is what `progress=` takes."""

    def __init__(self) -> None:
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            Rate(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int, unit: str) -> None:
        """`done` of `total` units of `stage` are finished; a total of 0 is not known."""
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total or None, unit=unit)
        self._progress.update(self._tasks[stage], completed=done, total=total or None)
