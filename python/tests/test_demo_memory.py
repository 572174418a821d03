"""The demo's memory holds each of its stages at its default scale, which other tests do not run."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import tiergraph as tg
from tiergraph import pyg
from tiergraph.cli import demo
from tiergraph.cli.demo import training
from tiergraph.cli.progress import Bars
from tiergraph.train import Trainer

TRAINING_GRAPH_BYTES = 5 << 28


@pytest.fixture
def path(tmp_path):
    """Where a large graph may be, until the test is over."""
    yield tmp_path / "g.tg"
    shutil.rmtree(tmp_path / "g.tg", ignore_errors=True)


def test_make_has_the_scale_of_the_command():
    makefile = Path(__file__).resolve().parents[2] / "Makefile"
    assert f"SCALE ?= {demo.SCALE}\n" in makefile.read_text()


def test_the_algorithms_fit(path):
    """Every vertex has an edge to a hub: the fewer the edges, the less memory beside the state."""
    ids, random = np.arange(1 << demo.SCALE), np.random.default_rng(0)
    weights = random.integers(1, 256, len(ids)).astype(np.float64)
    tg.build((ids, random.integers(1024, size=len(ids)), weights), path, undirected=True)
    memory = demo.quarter(tg.open(path))
    with Bars() as bars:
        _, runs = demo.run_all(tg.open(path, memory=memory), bars)
    assert [run["algorithm"] for run in runs] == ["pagerank", "wcc", "bfs", "sssp"]


def test_training_and_evaluation_fit(path):
    """All loaders of the run, and the first of their batches: what they reserve, and no epoch."""
    try:
        pyg.geometric("nn")
    except tg.InputError as error:
        pytest.skip(str(error))
    if shutil.disk_usage(path.parent).free < TRAINING_GRAPH_BYTES:
        pytest.skip(f"the demo's graph fills 1.1 GiB, which `{path.parent}` does not have")
    training.make(demo.SCALE, path)
    trainer = Trainer(str(path), training.options_of(demo.SCALE))
    assert len(list(islice(trainer.loader, 8))) == 8
    assert trainer.test()["accuracy"] >= 0
