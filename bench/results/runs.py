"""The raw runs below `bench/runs`, as files that know their machine and what they are."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent.parent
RUNS = BENCH / "runs"
ROOT = BENCH.parent

DATED = re.compile(r"(\d{4}-\d{2}-\d{2})-(.+)")
"""A folder's name: the date, and the machine."""

ASIDE = re.compile(r"[-_](before|busy|driver-copies|earlier|late|read-ahead|rounds|slow-host)$")
"""Endings of runs that are linked, not tabled: another build, or another state of the machine."""


@dataclass(frozen=True)
class Run:
    """One file of a folder, read when asked."""

    path: Path

    @property
    def name(self) -> str:
        """The path below `bench`, which RESULTS.md links to."""
        return self.path.relative_to(BENCH).as_posix()

    @property
    def date(self) -> str:
        """The folder's."""
        return _dated(self.path.parent)[0]

    @property
    def is_data(self) -> bool:
        """Whether the run's script has tables that can be computed from this file."""
        return self.path.suffix in (".json", ".jsonl")

    @cached_property
    def content(self) -> Any:
        """The JSON object, or the list of a file with an object a line."""
        text = self.path.read_text()
        if self.path.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines()]
        return json.loads(text)

    @property
    def results(self) -> Any:
        """The measured records, one a row of the script."""
        return self.content["results"] if isinstance(self.content, dict) else self.content

    @property
    def configuration(self) -> dict[str, Any]:
        """The script's options; none of a file with an object a line."""
        return self.content["configuration"] if isinstance(self.content, dict) else {}

    @property
    def script(self) -> str:
        """The script that wrote it, as tables are chosen by it."""
        if isinstance(self.content, dict):
            return str(self.content["script"])
        return self.path.stem.partition("-")[0]

    @property
    def key(self) -> tuple[str, str]:
        """Of two runs with the same key, the later one counts; one made `again` is another."""
        if isinstance(self.content, dict):
            again = "again" if self.path.stem.endswith("again") else ""
            return self.script, f"{self.configuration['scale']}{again}"
        return self.script, self.path.stem

    @property
    def is_aside(self) -> bool:
        """Whether its name says that it is not the run to quote."""
        return bool(ASIDE.search(self.path.stem))


@dataclass
class Machine:
    """All runs on one machine, of however many days."""

    label: str
    folders: list[Path] = field(default_factory=list)

    @cached_property
    def runs(self) -> list[Run]:
        """Every file but the folders' README.md."""
        files = [file for folder in self.folders for file in sorted(folder.iterdir())]
        return [Run(file) for file in files if file.name != "README.md"]

    @cached_property
    def tabled(self) -> list[Run]:
        """The runs to quote: the latest of each script and scale."""
        latest = {run.key: run for run in self.runs if run.is_data and not run.is_aside}
        return list(latest.values())

    @cached_property
    def introductions(self) -> list[str]:
        """The text before the table of files in each folder's README.md."""
        return [text for folder in self.folders if (text := _readme(folder)[0])]

    @cached_property
    def described(self) -> dict[Path, str]:
        """The line on each file in its folder's README.md."""
        return {f / name: text for f in self.folders for name, text in _readme(f)[1].items()}

    def one(self, script: str, scale: int | None = None) -> Run | None:
        """The run to quote of a script, and if it has scales, of that one."""
        found = [
            run
            for run in self.tabled
            if run.script == script and scale in (None, _scale(run.configuration.get("scale")))
        ]
        return found[-1] if found else None


def _scale(value: object) -> object:
    return value[0] if isinstance(value, list) else value


def machines() -> list[Machine]:
    """Every machine of `bench/runs`, its folders by date."""
    found: dict[str, Machine] = {}
    for folder in sorted(path for path in RUNS.iterdir() if path.is_dir()):
        label = _dated(folder)[1]
        found.setdefault(label, Machine(label)).folders.append(folder)
    return sorted(found.values(), key=lambda machine: ("h" in machine.label[:3], machine.label))


def run(name: str) -> Run:
    """The run `FOLDER/FILE` below `bench/runs`."""
    return Run(RUNS / name)


def _dated(folder: Path) -> tuple[str, str]:
    found = DATED.fullmatch(folder.name)
    if not found:
        raise SystemExit(f"error: {folder}: expected a folder called DATE-MACHINE")
    return found[1], found[2]


def _readme(folder: Path) -> tuple[str, dict[str, str]]:
    """The text before the table, and the table: what each file is."""
    file = folder / "README.md"
    if not file.exists():
        return "", {}
    text, _, table = file.read_text().partition("\n| file |")
    described = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ", 1)]
        names = re.findall(r"`([^`]+)`", cells[0])
        if len(cells) == 2 and names:
            stem, suffix = Path(names[0]).stem, Path(names[0]).suffix
            full = [f"{stem}{name}{suffix}" if name.startswith("-") else name for name in names]
            described |= dict.fromkeys(full, cells[1])
    return text.strip(), described
