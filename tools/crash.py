"""`python -m tools.crash`: kills jobs at random moments, and looks at what they leave behind.

Each round starts a job in a child process, ends it by SIGKILL or SIGINT at a random moment, and
checks that the graph (or checkpoint) at the place is the one from before or the new one, whole.
Then it does the job undisturbed and checks that nothing else is left. Rounds follow from the seed,
but for where the moment falls in the job.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import tiergraph as tg
from tiergraph import _native

VERTICES = 1 << 12
EDGES = 1 << 16
DIM = 64
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Job:
    """Something that is done at a place, in one of two versions, and how to tell which is there."""

    name: str
    prepare: Callable[[Path], object]
    """Makes what the job needs, undisturbed."""
    do: Callable[[Path, int], object]
    """Does the job in version 1 or 2."""
    version: Callable[[Path], int]
    """The version that is there; 0: none. Raises for anything that is neither."""


class LeftoverError(AssertionError):
    """Something is there that should not be, or the other way round."""


def main() -> int:
    """Runs rounds, and prints how many interrupted jobs left the old state and the new one."""
    parser = argparse.ArgumentParser(prog="python -m tools.crash", description=__doc__)
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--job", choices=[job.name for job in JOBS])
    given = parser.parse_args()
    jobs = [job for job in JOBS if given.job in (None, job.name)]
    random = np.random.default_rng(given.seed)
    for number, job in enumerate(jobs):
        rounds = len(range(number, given.rounds, len(jobs)))
        with tempfile.TemporaryDirectory(prefix="tiergraph-crash-") as folder:
            counts = run(job, Path(folder), rounds, random)
        told = ", ".join(f"{count} {what}" for what, count in counts.items())
        print(f"crash: {job.name}: {rounds} rounds: {told}")
    return 0


def run(job: Job, folder: Path, rounds: int, random: np.random.Generator) -> dict[str, int]:
    """Interrupts the job `rounds` times at one place; how often it ended in which state."""
    place = folder / "place"
    place.mkdir()
    job.prepare(place)
    seconds, clean = 0.0, {}
    for version in (1, 2):
        seconds = max(seconds, _undisturbed(job, place, version))
        clean[version] = _names(place)
    counts = {"old": 0, "new": 0, "undisturbed": 0}
    now = 2
    for _ in range(rounds):
        wanted = 3 - now
        how = signal.SIGKILL if random.random() < 0.5 else signal.SIGINT
        ended = _interrupt(job, place, wanted, how, random.random() * seconds * 1.1)
        found = job.version(place)
        if found not in (now, wanted) or (ended and found != wanted):
            raise LeftoverError(f"{job.name}: version {found}, not {now} or {wanted} ({how.name})")
        counts["undisturbed" if ended else "new" if found == wanted else "old"] += 1
        _undisturbed(job, place, wanted)
        if job.version(place) != wanted:
            raise LeftoverError(f"{job.name}: done again, and version {wanted} is not there")
        if _names(place) != clean[wanted]:
            left = sorted(_names(place) ^ clean[wanted])
            raise LeftoverError(f"{job.name}: left behind after {how.name}: {left}")
        now = wanted
    return counts


def _undisturbed(job: Job, place: Path, version: int) -> float:
    """Does the job in a child process, and returns how long it took there."""
    began = time.monotonic()
    child = _start(job, place, version)
    if not _ends(child, PATIENCE_SECONDS):
        raise LeftoverError(f"{job.name}: version {version} does not end")
    return time.monotonic() - began


def _interrupt(job: Job, place: Path, version: int, how: signal.Signals, after: float) -> bool:
    """Sends the signal after so many seconds; whether the job had ended before."""
    child = _start(job, place, version)
    if _ends(child, after):
        return True
    os.kill(child, how)
    if not _ends(child, PATIENCE_SECONDS, ended_well=False):
        os.kill(child, signal.SIGKILL)
        raise LeftoverError(f"{job.name}: {how.name} does not end it")
    return False


def _start(job: Job, place: Path, version: int) -> int:
    """A forked child that does the job: no interpreter to start, no module to import."""
    with _interrupts_held():
        child = os.fork()
        if child == 0:
            # The child must not return to the caller's frames: it would delete their temporary
            # folder. The outer `finally` is for an interrupt that comes in the inner one.
            try:
                try:
                    os._exit(_child(job, place, version))
                finally:
                    os._exit(1)
            finally:
                os._exit(1)
    return child


def _child(job: Job, place: Path, version: int) -> int:
    """Does the job where an interrupt raises `KeyboardInterrupt`; the exit status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        job.do(place, version)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Lets an interrupt wait until the block ends."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ends(child: int, seconds: float, *, ended_well: bool = True) -> bool:
    """Waits for the child so long; whether it ended."""
    until = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            if ended_well and status != 0:
                raise LeftoverError(f"the job failed with status {status}")
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(0.0005)


def _names(place: Path) -> set[str]:
    """Everything below the place, but for what differs from build to build: a stripe's number."""
    return {_name(place, path) for path in place.rglob("*")}


def _name(place: Path, path: Path) -> str:
    parts = path.relative_to(place).parts
    return "/".join(part.partition("-")[0] if ".stripe" in part else part for part in parts)


def _edges(version: int) -> tuple[Any, Any]:
    random = np.random.default_rng(version)
    return random.integers(0, VERTICES, EDGES), random.integers(0, VERTICES, EDGES)


def _rows(version: int) -> Any:
    return np.full((VERTICES, DIM), version, dtype=np.float32)


def _build(place: Path, version: int, **options: Any) -> None:
    src, dst = _edges(version)
    tg.build((src, dst), place / "g.tg", vertices=VERTICES, overwrite=True, **options)


def _build_striped(place: Path, version: int) -> None:
    stripes = [place / "a", place / "b"]
    for stripe in stripes:
        stripe.mkdir(exist_ok=True)
    _build(place, version, stripe=[str(stripe) for stripe in stripes], block_bytes=4096)


def _build_hetero(place: Path, version: int) -> None:
    nodes = {"a": {"vertices": VERTICES, "features": _rows(version)}}
    tg.build_hetero(
        place / "g.tg", nodes=nodes, edges={("a", "to", "a"): _edges(version)}, overwrite=True
    )


def _whole(path: Path) -> None:
    damage = _native.verify(os.fspath(path), None)
    if '"damage":[]' not in damage.replace(" ", ""):
        raise LeftoverError(f"damaged: {damage}")


def _built_version(place: Path) -> int:
    _whole(place / "g.tg")
    degrees = tg.open(place / "g.tg").degrees()
    for version in (1, 2):
        if np.array_equal(degrees, np.bincount(_edges(version)[0], minlength=VERTICES)):
            return version
    raise LeftoverError("a graph that is neither")


def _hetero_version(place: Path) -> int:
    nodes = tg.open_hetero(place / "g.tg")["a"]
    return _version_of(nodes.features["x"].read(np.arange(VERTICES)))


def _add_features(place: Path, version: int) -> None:
    labels = np.full(VERTICES, version)
    tg.add_features(place / "g.tg", features=_rows(version), labels=labels, overwrite=True)


def _features_version(place: Path) -> int:
    _whole(place / "g.tg")
    graph = tg.open(place / "g.tg")
    rows = _version_of(graph.features["x"].read(np.arange(VERTICES)))
    labels = _version_of(np.asarray(graph.labels["y"]))
    if rows != labels:
        raise LeftoverError(f"features of version {rows}, labels of version {labels}")
    return rows


def _add_edges(place: Path, version: int) -> None:
    values = {"w": np.full(EDGES, version, dtype=np.float32)}
    features = np.full((EDGES, 8), version, dtype=np.float32)
    tg.add_edge_values(place / "g.tg", _edges(1), values=values, features=features, overwrite=True)


def _edges_version(place: Path) -> int:
    _whole(place / "g.tg")
    columns = sorted((place / "g.tg" / "edges").glob("*.w.f32"))
    return _version_of(np.fromfile(columns[0], dtype=np.float32)[:EDGES])


def _order(place: Path, version: int) -> None:
    tg.order_features(place / "g.tg", by="degree" if version == 1 else "none")


def _order_version(place: Path) -> int:
    _whole(place / "g.tg")
    rows = tg.open(place / "g.tg").features["x"].read(np.arange(VERTICES))
    if not np.array_equal(rows[:, 0], np.arange(VERTICES)):
        raise LeftoverError("rows in another order")
    return 1 if (place / "g.tg" / "features" / "x.ids").exists() else 2


def _number_rows(place: Path) -> None:
    _build(place, 1, layouts="both")
    rows = np.repeat(np.arange(VERTICES, dtype=np.float32)[:, None], DIM, axis=1)
    tg.add_features(place / "g.tg", features=rows)


def _version_of(values: Any) -> int:
    versions = np.unique(values)
    if len(versions) != 1:
        raise LeftoverError(f"values of versions {versions}")
    return int(versions[0])


def _prepare_training(place: Path) -> None:
    _build(place, 1, layouts="both")
    random = np.random.default_rng(0)
    labels = random.integers(0, 4, VERTICES)
    masks = {name: random.random(VERTICES) < 0.1 for name in ("train", "val", "test")}
    tg.add_features(place / "g.tg", features=_rows(1), labels=labels, splits=masks)


def _train(place: Path, version: int) -> None:
    """Trains with a checkpoint, going on from the one that is there, if it is of this run."""
    from tiergraph.train import Trainer, TrainOptions

    options = TrainOptions(fanout=(5, 5), hidden=16, epochs=3, seed=version, threads=1)
    path = place / "checkpoint"
    resume = path.exists() and _seed_of(path) == version
    trainer = Trainer(str(place / "g.tg"), options, checkpoint=path, resume=resume)
    trainer.train()


def _seed_of(path: Path) -> int:
    import torch

    return int(torch.load(path, weights_only=True)["run"]["seed"])


def _checkpoint_version(place: Path) -> int:
    return _seed_of(place / "checkpoint")


def _nothing(_: Path) -> None:
    """What jobs need that begin with nothing."""


def _jobs() -> Iterator[Job]:
    yield Job("build", _nothing, _build, _built_version)
    yield Job("build striped", _nothing, _build_striped, _built_version)
    yield Job("build hetero", _nothing, _build_hetero, _hetero_version)
    yield Job("features", lambda p: _build(p, 1, layouts="both"), _add_features, _features_version)
    yield Job("edges", lambda p: _build(p, 1, layouts="both"), _add_edges, _edges_version)
    yield Job("order", _number_rows, _order, _order_version)
    if find_spec("torch_geometric"):
        yield Job("train", _prepare_training, _train, _checkpoint_version)


JOBS = list(_jobs())

if __name__ == "__main__":
    sys.exit(main())
