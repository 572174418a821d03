"""`python bench/results [--check]`: RESULTS.md, README's table and its figure, from `bench/runs`.

Every number is computed from the raw files. With `--check` nothing is written: the script names
what is out of date and exits 1. A new file in `bench/runs` has a table if its script has one
(TABLES in `analytics.py`, `training.py`, `gpu.py`); else its folder's README.md must say what it
is.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import analytics
import differences
import figure
import front
import gpu
import growth
import papers
import training
from runs import BENCH, ROOT, Machine, Run, machines
from tables import Table, table

TABLES = analytics.TABLES | training.TABLES | gpu.TABLES
ORDER = {script: place for place, script in enumerate(TABLES)}
RESULTS = BENCH / "RESULTS.md"
README = ROOT / "README.md"
FIGURE = BENCH / "results" / "figure.svg"
GROWTH = BENCH / growth.FILE
BLOCK = re.compile(r"(<!-- results: .*? -->\n).*?(<!-- end of results -->)", re.DOTALL)

HEAD = """\
# Results

Computed from the raw files in [`runs/`](runs) by `python bench/results`; `make check` fails where
this page and those differ. [README.md](README.md) has the scripts, the rules (interleaved,
medians, ceilings in the same run, losses shown) and what to know about each. Runs are of the
build that their `commit` names: figures of different dates are of different builds.
"""


def main() -> int:
    """Writes the files, or says which are out of date."""
    parser = argparse.ArgumentParser(prog="python bench/results", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    stale = [path for path, text in wanted().items() if not _is(path, text)]
    for path in stale:
        if check:
            name = path.relative_to(ROOT)
            print(f"error: {name} is out of date: run `python bench/results`", file=sys.stderr)
        else:
            path.write_text(wanted()[path])
    if check and not stale:
        print("results: all numbers are those of bench/runs")
    return 1 if check and stale else 0


def wanted() -> dict[Path, str]:
    """The files as they should be."""
    block, found = BLOCK.subn(rf"\g<1>{front.markdown()}\n\g<2>", README.read_text())
    if found != 1:
        raise SystemExit(f"error: {README}: expected one block of results, got {found}")
    charts = {FIGURE: figure.svg(), GROWTH: growth.svg()}
    return {RESULTS: results(), README: block, **charts}


def results() -> str:
    """RESULTS.md."""
    every = machines()
    parts = [HEAD, "## Machines\n\n" + _contents(every) + "\n"]
    parts.append("## Where machines differ, and why\n")
    parts += [each.markdown(each.note) for each in differences.tables(every)]
    of_papers = papers.table()
    parts.append(of_papers.markdown(of_papers.note).replace("###", "##", 1))
    parts += [part for machine in every for part in section(machine)]
    return "\n".join(parts)


def section(machine: Machine) -> Iterator[str]:
    """A machine: what it is, its tables, and its other files."""
    yield f"## {machine.label}\n"
    yield "\n\n".join(machine.introductions or [_device(machine)]) + "\n"
    said: set[str] = set()
    for run in sorted(machine.tabled, key=lambda run: ORDER.get(run.script, 0)):
        for each in tables_of(run):
            source = f"[`{run.path.name}`]({run.name}), {run.date}: {_what(machine, run)}."
            note = "" if each.note in said else each.note
            yield each.markdown(f"{source}\n\n{note}")
            said.add(each.note)
    others = [run for run in machine.runs if run not in machine.tabled]
    rows = [[f"[`{r.path.name}`]({r.name})", r.date, _what(machine, r)] for r in others]
    if rows:
        yield "### Other files\n\n" + table(["file", "date", "what it is"], rows) + "\n"


def tables_of(run: Run) -> list[Table]:
    """The run's tables; none of a script that has none."""
    return TABLES[run.script](run) if run.script in TABLES else []


def _what(machine: Machine, run: Run) -> str:
    """The line on a file in its folder's README.md, or else the configuration of its run."""
    described = machine.described.get(run.path)
    if described:
        return described
    if run.path.suffix == ".png":
        return "a figure"
    if run.script not in TABLES:
        raise SystemExit(
            f"error: {run.path}: no table for `{run.script}`, and no line in its folder's README.md"
        )
    if not isinstance(run.content, dict):
        return "`tiergraph … --json`, an object a line"
    given = {k: v for k, v in run.configuration.items() if k in ("scale", "repetitions", "device")}
    options = ", ".join(f"{key} {json.dumps(value)}" for key, value in given.items())
    script, commit = run.script.partition("-")[0], run.content["commit"][:7]
    return f"`bench/{script}.py`, {options}; commit `{commit}`"


def _device(machine: Machine) -> str:
    """The machine, as its last run described it."""
    of = [run.content for run in machine.runs if run.path.suffix == ".json"]
    device = of[-1]["device"]
    memory = round(device["memory_bytes"] / 2**30)
    cpu = device["cpu"].replace("(R)", "")
    caches = f"{device['l2']} of L2, {device['l3']} of L3"
    return f"{device['cores']} cores ({cpu}; {caches}), {memory} GiB, kernel {device['kernel']}."


def _contents(every: list[Machine]) -> str:
    rows = []
    for machine in every:
        dates = ", ".join(folder.name[:10] for folder in machine.folders)
        link = re.sub(r"[^a-z0-9-]", "", machine.label)
        rows.append([f"[{machine.label}](#{link})", dates, len(machine.runs)])
    return table(["machine", "dates", "files"], rows)


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


if __name__ == "__main__":
    sys.exit(main())
