"""Counts the faults that tests catch: `make mutants`, or `python tools/mutants.py [PART …]`.

cargo-mutants changes one operator, constant or result at a time in a copy of the repository, and
runs the tests of the crate that the change is in. A mutant is caught where a test fails or does not
end. `mutants.toml`, beside this file, names the parts that are mutated, and lists the mutants that
no test catches, each with the reason. Prints, for each part, how many of its viable mutants were
caught and which of the others are not listed; exits 1 where a part is below `LEAST`.

All parts take two hours on two cores, so they are no part of `make test`. `--shard 0/4` takes every
fourth mutant.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CONFIGURATION = Path(__file__).with_suffix(".toml")

LEAST = 0.92
"""Of the viable mutants of a part, those that tests must catch."""

CAUGHT = {"CaughtMutant", "Timeout"}
MISSED = "MissedMutant"

SECONDS = 60
"""A mutant whose tests take longer hangs; those of a crate take a few seconds."""

MEMORY_BYTES = 12 << 30
"""What a mutant that allocates without end may have; a link needs less."""


@dataclass(frozen=True)
class Mutant:
    """A change to one file, without the line that it is at, which moves."""

    file: str
    change: str


@dataclass(frozen=True)
class Part:
    """Files of one crate."""

    name: str
    crate: str
    files: list[str]


def main() -> int:
    """Runs the parts that the command line names, or all."""
    with CONFIGURATION.open("rb") as file:
        configuration = tomllib.load(file)
    parts = [Part(name=name, **part) for name, part in configuration["parts"].items()]
    arguments = parse([part.name for part in parts])
    if shutil.which("cargo-mutants") is None:
        sys.exit("error: cannot run `cargo mutants`\n\nhint: cargo install --locked cargo-mutants")
    reasons = set(explained(configuration["left"]))
    chosen = [part for part in parts if part.name in (arguments.parts or [part.name])]
    shares = [run(part, reasons, arguments) for part in chosen]
    return 1 if min(shares) < LEAST else 0


def parse(names: list[str]) -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(description="Counts the mutants that tests catch.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(names)}")
    parser.add_argument("--shard", metavar="K/N", help="only the Kth of N equal shares")
    parser.add_argument("--in-place", action="store_true", help="mutate here, and not in a copy")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(names):
        parser.error(f"no part is named {', '.join(sorted(unknown))}")
    return arguments


def explained(left: list[dict[str, Any]]) -> Iterator[Mutant]:
    """The mutants that are known to be missed."""
    for entry in left:
        yield from (Mutant(entry["file"], change) for change in entry["mutants"])


def run(part: Part, reasons: set[Mutant], arguments: argparse.Namespace) -> float:
    """Tests the mutants of a part, prints what was found, and returns the share that was caught."""
    output = ROOT / "target" / "mutants" / part.name
    command = ["cargo", "mutants", "--package", part.crate, "--test-package", part.crate]
    command += ["--no-shuffle", "--output", str(output), "--timeout", str(SECONDS)]
    command += [f"--file={pattern}" for pattern in part.files]
    if arguments.shard:
        command += ["--sharding=round-robin", f"--shard={arguments.shard}"]
    command += ["--in-place"] if arguments.in_place else []
    output.mkdir(parents=True, exist_ok=True)
    # Its exit status says only that something was missed; what it found says more.
    subprocess.run(
        [*command, "--", "--tests"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES)),
    )
    outcomes = list(read(output / "mutants.out" / "outcomes.json"))
    caught = sum(summary in CAUGHT for _, summary in outcomes)
    missed = [mutant for mutant, summary in outcomes if summary == MISSED]
    share = caught / max(caught + len(missed), 1)
    print(f"{part.name}: {caught} of {caught + len(missed)} viable mutants caught, {share:.1%}")
    for mutant in missed:
        if mutant not in reasons:
            print(f"  no test, no reason: {mutant.file}: {mutant.change}")
    found = {mutant for mutant, summary in outcomes if summary in CAUGHT}.difference(missed)
    for mutant in sorted(found & reasons, key=str):
        print(f"  caught, and listed all the same: {mutant.file}: {mutant.change}")
    return share


def read(outcomes: Path) -> Iterator[tuple[Mutant, str]]:
    """Each mutant that was tested, and what became of it."""
    if not outcomes.exists():
        sys.exit(f"error: cannot read `{outcomes}`: `cargo mutants` tested nothing")
    for outcome in json.loads(outcomes.read_text())["outcomes"]:
        if outcome["scenario"] != "Baseline":
            mutant = outcome["scenario"]["Mutant"]
            yield Mutant(mutant["file"], change_of(mutant["name"])), outcome["summary"]


def change_of(name: str) -> str:
    """`crates/io/src/read.rs:43:9: replace a with b in c` without the place."""
    return name.split(": ", 1)[1]


if __name__ == "__main__":
    sys.exit(main())
