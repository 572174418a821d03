"""`python -m tools.fuzz`: cases until the time is over; exit 1 and the case's seed at a failure.

A case follows from (seed, number) alone: `--seed 7 --case 123` runs it again. Each builds a random
graph from a random form of its edges with random options, opens it with random ones, and makes
random calls. A failure is a value that differs from the twin's, an exception that is not
tiergraph's, a hint that does not help, or a case that takes longer than a minute.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import tiergraph as tg

from .calls import WrongValueError, check_call
from .command_line import check_command
from .graphs import EdgeList, Expected, Random, expected, pick, random_edges
from .inputs import Input, random_input
from .loaders import check_loader
from .misuse import check_misuse

CASE_SECONDS = 60
CALLS = 6
CHECKS = (check_call, check_loader, check_command, check_misuse)
SHARES = (0.7, 0.1, 0.1, 0.1)
"""How often each kind of call is made."""

MIB = 1 << 20


def main() -> int:
    """Runs cases, and prints how many, or the one that failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--case", type=int, help="run this one alone")
    given = parser.parse_args()
    signal.signal(signal.SIGALRM, _too_long)
    began, number, done = time.monotonic(), given.case or 0, 0
    while given.case is not None or time.monotonic() - began < given.seconds:
        signal.alarm(CASE_SECONDS)
        # Where the alarm does not end it, this does.
        faulthandler.dump_traceback_later(2 * CASE_SECONDS, exit=True)
        if not run(given.seed, number):
            return 1
        number, done = number + 1, done + 1
        if given.case is not None:
            break
    signal.alarm(0)
    faulthandler.cancel_dump_traceback_later()
    print(f"fuzz: {done} cases of seed {given.seed} passed in {time.monotonic() - began:.0f} s")
    return 0


def _too_long(*_: object) -> None:
    raise TimeoutError(f"a case took more than {CASE_SECONDS} s")


def run(seed: int, number: int) -> bool:
    """One case; prints what it did where it fails."""
    story: list[str] = []
    with tempfile.TemporaryDirectory(prefix="tiergraph-fuzz-") as folder:
        try:
            # A file that a call names by mistake is written there, too.
            with warnings.catch_warnings(), contextlib.chdir(folder):
                warnings.simplefilter("ignore")
                _case(np.random.default_rng([seed, number]), Path(folder), story)
        except Exception as error:
            what = "wrong value" if isinstance(error, WrongValueError) else "exception"
            print(f"fuzz: case {number} of seed {seed} failed ({what}):", *story, sep="\n  ")
            traceback.print_exc(file=sys.stdout)
            print(f"\nagain: python -m tools.fuzz --seed {seed} --case {number}")
            return False
    return True


def _case(random: Random, folder: Path, story: list[str]) -> None:
    edges = random_edges(random)
    given = random_input(random, edges, folder)
    story.append(f"{len(edges.src)} edges ({edges.shape}) as {given.form}")
    options = _build_options(random, edges)
    path = folder / "g.tg"
    _build(given, path, options, story)
    opening = _open_options(random)
    graph = _open(path, opening, story)
    wanted = _expected(edges, given, options, graph)
    if graph.edges != len(wanted.src):
        raise WrongValueError(f"{graph.edges} edges, wanted {len(wanted.src)}")
    for check in random.choice(np.array(CHECKS), CALLS, p=SHARES):
        seed = random.integers(0, 2**63)
        try:
            story.append(check(np.random.default_rng(seed), graph, wanted))
        except tg.BudgetError as error:
            graph = tg.open(path, **opening | {"memory": _hinted(error, story)})
            story.append(check(np.random.default_rng(seed), graph, wanted))


def _build_options(random: Random, edges: EdgeList) -> dict[str, Any]:
    options: dict[str, Any] = {
        "undirected": bool(random.random() < 0.5),
        "dedup": bool(random.random() < 0.4),
        "drop_self_loops": bool(random.random() < 0.2),
        "order": pick(random, ["none", "degree", "auto"]),
        "codec": pick(random, ["packed", "raw"]),
        "layouts": pick(random, ["analytics", "both"]),
        "block_bytes": pick(random, [4096, 8192, 1 << 16, 1 << 20]),
        "threads": int(random.integers(1, 4)),
        "memory": pick(random, [None, "64MiB", "256MiB"]),
    }
    options = {k: v for k, v in options.items() if v is not None and random.random() < 0.7}
    if edges.least_vertices > 4 * len(edges.src) + 1000 or random.random() < 0.4:
        options["ids"] = "map"
    return options


def _build(given: Input, path: Path, options: dict[str, Any], story: list[str]) -> None:
    """Builds; where the memory is said to be too little, once more with what the hint says."""
    story.append(f"build(**{options | given.options})")
    try:
        tg.build(given.source(), path, **options, **given.options)
    except tg.BudgetError as error:
        options = options | {"memory": _hinted(error, story)}
        tg.build(given.source(), path, **options, **given.options)


def _open_options(random: Random) -> dict[str, Any]:
    options: dict[str, Any] = {
        "threads": int(random.integers(1, 4)),
        "io": pick(random, ["auto", "uring", "posix"]),
        "checksums": bool(random.random() < 0.8),
    }
    if random.random() < 0.3:
        options["memory"] = int(random.integers(25, 120)) * MIB
    return options


def _open(path: Path, options: dict[str, Any], story: list[str]) -> tg.Graph:
    """Opens; where the memory is said to be too little, once more with what the hint says."""
    story.append(f"open(**{options})")
    try:
        return tg.open(path, **options)
    except tg.BudgetError as error:
        return tg.open(path, **options | {"memory": _hinted(error, story)})


def _hinted(error: tg.BudgetError, story: list[str]) -> int:
    """The memory that the error's hint names, in bytes: enough is said in whole MiB."""
    if error.enough_bytes is None:
        raise error
    story.append(f"hint: {error.enough_bytes:,} bytes")
    return -(-error.enough_bytes // MIB) * MIB


def _expected(edges: EdgeList, given: Input, options: dict[str, Any], graph: tg.Graph) -> Expected:
    """The graph that should be there, after a look at the ids that the build chose."""
    named = np.unique(np.concatenate([edges.src, edges.dst]))
    allowed = [named]
    if options.get("ids") != "map":
        allowed.append(np.arange(edges.least_vertices if len(edges.src) else 0, dtype=np.uint64))
    ids = graph.ids
    if not any(np.array_equal(ids, one) for one in allowed):
        raise WrongValueError(f"ids {ids}, wanted {' or '.join(map(str, allowed))}")
    if given.weighted != graph.weighted:
        raise WrongValueError(f"weighted is {graph.weighted}, wanted {given.weighted}")
    weights = edges.weights if given.weighted else None
    return expected(
        EdgeList(edges.shape, edges.src, edges.dst, weights),
        ids,
        undirected=bool(options.get("undirected")),
        dedup=bool(options.get("dedup")),
        drop_self_loops=bool(options.get("drop_self_loops")),
    )


if __name__ == "__main__":
    sys.exit(main())
