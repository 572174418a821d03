"""A run shares its memory: what a part needs is named as what the run needs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import tiergraph as tg
from tiergraph import pyg
from tiergraph.train import LinkTrainer, Trainer, TrainOptions
from tiergraph.train.shares import Shares, quarter

try:
    pyg.geometric("nn")
except tg.InputError as error:
    pytest.skip(str(error), allow_module_level=True)

MIB = 1 << 20
SMALL = TrainOptions(hidden=8, fanout=(4, 3), batch_size=40, epochs=1, heads=2, threads=2)
ON_BATCHES = {
    "node": (Trainer, replace(SMALL, model="gat")),
    "link": (LinkTrainer, replace(SMALL, task="link", links=500)),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("shares") / "g.tg"
    tg.generate("sbm", path, vertices=1200, communities=4, mean_degree=8, inside=0.9, features=16)
    return str(path)


def hinted(error):
    """The memory that a message tells to run with, in bytes."""
    found = re.search(r'hint: run with `memory="(\d+)MiB"` or more$', str(error))
    assert found is not None, error
    return int(found[1]) * MIB


@pytest.mark.parametrize("task", ON_BATCHES)
def test_what_evaluation_needs_is_said_of_the_run_before_it_begins(path, task):
    make, options = ON_BATCHES[task]
    options = replace(options, memory=140 * MIB)
    with pytest.raises(tg.BudgetError, match="cannot evaluate in a quarter of the run's") as caught:
        make(path, options)
    with pytest.raises(tg.BudgetError) as of_part:
        tg.NeighborLoader(path, [-1, -1], batch_size=40, memory=options.memory // 4, threads=2)
    assert of_part.value.without_hint() in str(caught.value)
    assert caught.value.enough_bytes == 4 * of_part.value.enough_bytes
    assert 0 <= hinted(caught.value) - caught.value.enough_bytes < MIB


@pytest.mark.parametrize("task", ON_BATCHES)
def test_whoever_follows_the_hints_arrives(path, task):
    make, options = ON_BATCHES[task]

    def least_beyond(memory):
        """What a run arrives at from `memory`, one hint after the other."""
        try:
            trainer = make(path, replace(options, memory=memory))
            trainer.train()
            trainer.test()
        except tg.BudgetError as error:
            hint = hinted(error)
        else:
            return memory
        assert hint > memory
        return least_beyond(hint)

    assert 32 * MIB < least_beyond(32 * MIB) < 512 * MIB


def layers_or_quarter(memory):
    """Evaluation by layers, where 100 bytes are no more than half."""
    return max(100, memory // 4) if memory >= 200 else memory // 4


@pytest.mark.parametrize("evaluation_of", [quarter, layers_or_quarter])
def test_the_memory_that_is_hinted_at_leaves_what_training_needs(evaluation_of):
    for part in range(1, 500):
        error = tg.BudgetError("cannot")
        error.enough_bytes = part
        shares = Shares(1, evaluation_of)
        with pytest.raises(tg.BudgetError, match="cannot train") as said, shares.while_training():
            raise error
        memory = said.value.enough_bytes
        assert Shares(memory, evaluation_of).training >= part
        if evaluation_of is quarter:
            assert Shares(memory - 2, evaluation_of).training < part


def test_errors_without_a_figure_and_of_unbounded_runs_stay_as_they_are():
    for memory, enough in ((None, 5), (5, None)):
        error = tg.BudgetError("cannot")
        error.enough_bytes = enough
        with pytest.raises(tg.BudgetError) as said, Shares(memory).while_evaluating():
            raise error
        assert said.value is error


@pytest.mark.parametrize("threads", [1, 3, 16])
def test_layers_fit_what_they_are_said_to_need(path, threads):
    """However many threads there are, whose buffers the graph reserves too."""
    options = replace(SMALL, model="gcn", threads=threads)
    need = Trainer(path, options)._evaluator._need
    trainer = Trainer(path, replace(options, memory=2 * need))
    assert trainer._evaluator.how == "layers"
    assert trainer.shares.evaluation == need
    trainer.train()
