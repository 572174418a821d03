"""A run shares its memory: what a part needs is named as what the run needs."""

from __future__ import annotations

import json
import re
import sys
import warnings
from dataclasses import replace

import limits
import numpy as np
import pytest

import tiergraph as tg
from tiergraph import _native, pyg
from tiergraph.train import LinkTrainer, Trainer, TrainOptions
from tiergraph.train import trainer as trainer_module
from tiergraph.train.shares import Part, share

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
    return int(re.search(r'hint: run with `memory="(\d+)MiB"` or more', str(error))[1]) * MIB


def trained(make, path, options):
    """A run from its first batch to the test."""
    trainer = make(path, options)
    trainer.train()
    trainer.test()
    return trainer


@pytest.mark.filterwarnings("ignore::tiergraph.errors.FallbackWarning")
@pytest.mark.parametrize("memory", [1, 60, 80])
@pytest.mark.parametrize("task", ON_BATCHES)
def test_whoever_follows_a_hint_once_arrives(path, task, memory):
    make, options = ON_BATCHES[task]
    with pytest.raises(tg.BudgetError, match="cannot train: expected") as said:
        make(path, replace(options, memory=memory * MIB))
    enough = hinted(said.value)
    assert memory * MIB < enough < 512 * MIB
    assert 0 <= enough - said.value.enough_bytes < MIB
    trained(make, path, replace(options, memory=enough))


@pytest.mark.filterwarnings("ignore::tiergraph.errors.FallbackWarning")
@pytest.mark.parametrize("fanout", [(4, 3), (-1, -1)])
@pytest.mark.parametrize("kind", ["star", "rmat"])
def test_hubs_and_their_neighbourhoods_are_known_before_the_first_batch(tmp_path, kind, fanout):
    """Batches differ most in size where a few vertices have most of the edges."""
    hubs = tmp_path / "hubs.tg"
    vertices = 3000
    random = np.random.default_rng(1)
    if kind == "star":
        ends = np.zeros(vertices - 1, dtype=int), np.arange(1, vertices)
    else:
        ends = tuple((random.random((2, 20_000)) ** 4 * vertices).astype(int))
    tg.build(ends, hubs, undirected=True, vertices=vertices, layouts="training")
    masks = {name: np.arange(vertices) % 3 == i for i, name in enumerate(("train", "val", "test"))}
    features = random.random((vertices, 400), dtype=np.float32)
    tg.add_features(hubs, features=features, labels=np.arange(vertices) % 2, splits=masks)
    options = replace(SMALL, fanout=fanout, batch_size=64, epochs=2)
    with pytest.raises(tg.BudgetError) as said:
        Trainer(str(hubs), replace(options, memory=40 * MIB))
    trained(Trainer, str(hubs), replace(options, memory=hinted(said.value)))


def test_what_shrinks_to_fit_is_said_and_changes_no_batch(path):
    make, options = ON_BATCHES["node"]
    options = replace(options, threads=4, window=8)
    roomy = trained(make, path, replace(options, memory=900 * MIB))
    assert roomy.notes == []
    with pytest.raises(tg.BudgetError) as said:
        make(path, replace(options, memory=MIB))
    with pytest.warns(tg.FallbackWarning, match="prepared together in place of 8"):
        tight = trained(make, path, replace(options, memory=hinted(said.value)))
    assert tight.loader.kept()["window"] < 8
    assert any("prepared together" in note for note in tight.notes)
    assert tight.report(path)["notes"] == tight.notes
    assert [r["loss"] for r in tight.history] == [r["loss"] for r in roomy.history]
    assert [r["accuracy"] for r in tight.history] == [r["accuracy"] for r in roomy.history]


@pytest.mark.parametrize("fanout", [[5, 3], [-1, -1]])
@pytest.mark.parametrize("features", ["x", None])
def test_a_loader_that_is_made_runs_its_epochs(path, features, fanout):
    """In the least memory that it names, for any epoch."""
    options = {"batch_size": 100, "threads": 2, "features": features, "shuffle": True}
    with pytest.raises(tg.BudgetError) as said:
        tg.NeighborLoader(path, fanout, **options, memory=MIB)
    enough = said.value.enough_bytes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tg.FallbackWarning)
        loader = tg.NeighborLoader(path, fanout, **options, memory=enough)
    for _ in range(5):
        assert sum(batch.batch_size for batch in loader) == 1200
    with pytest.raises(tg.BudgetError) as said:
        tg.NeighborLoader(path, fanout, **options, memory=enough - 64 * 1024)
    assert abs(said.value.enough_bytes - enough) < 4096


def parts_of(needs, made):
    """Parts that need so many bytes each and note in `made` what they were made in."""

    def part(name, need):
        def make(memory):
            made[name] = None
            if memory is not None and memory < need:
                error = tg.BudgetError("cannot")
                error.enough_bytes = need
                raise error
            made[name] = memory
            return need

        return Part(make, note=name)

    return [part(name, need) for name, need in needs.items()]


def test_evaluation_gives_up_what_training_needs_and_takes_what_it_can_spare():
    made = {}
    training, large, small = parts_of({"train": 60, "large": 50, "small": 20}, made)
    share(400, 0, training, [large, small])
    assert made == {"train": 300, "large": 100}
    shares = share(120, 0, training, [large, small])
    assert (made["train"], made["large"], shares.note) == (70, 50, "large")
    shares = share(100, 0, training, [large, small])
    assert (made["train"], made["small"], shares.note) == (75, 25, "small")
    assert share(100, 20, training, [large, small]).training == 60
    with pytest.raises(tg.BudgetError) as said:
        share(99, 20, training, [large, small])
    assert said.value.enough_bytes == 100
    with pytest.raises(tg.BudgetError) as said:
        share(10, 0, training, [large, small], least=500)
    assert said.value.enough_bytes == 500


def test_errors_without_a_figure_stay_as_they_are():
    plain = tg.BudgetError("cannot")

    def make(_memory):
        raise plain

    with pytest.raises(tg.BudgetError) as said:
        share(5, 0, Part(make), [Part(make)])
    assert said.value is plain


def test_what_pytorch_takes_is_measured_and_more_than_is_free_is_refused(path, monkeypatch):
    make, options = ON_BATCHES["node"]
    options = replace(options, hidden=256, memory=300 * MIB)
    memory = make(path, options).report(path)["memory"]
    assert memory["bytes"] == options.memory
    assert memory["training_bytes"] + memory["evaluation_bytes"] + memory["held_bytes"] == (
        options.memory
    )
    assert memory["pytorch_bytes"] >= 0
    monkeypatch.setattr(_native, "free_memory", lambda: 301 * MIB)
    monkeypatch.setattr(trainer_module, "measured_bytes", lambda *_: 60 * MIB)
    with pytest.raises(tg.BudgetError, match="60 MiB of PyTorch's") as said:
        make(path, options)
    fits = int(re.search(r'run with `memory="(\d+)MiB"`,', str(said.value))[1])
    assert fits == 241
    make(path, replace(options, memory=fits * MIB))


MODULES = "torch, torch_geometric.nn.models, tiergraph.train"
RUN = f"""
import {MODULES}
import json, sys, warnings
from tiergraph.train import Trainer, TrainOptions
warnings.simplefilter("ignore")
path, memory, model = sys.argv[1], int(sys.argv[2]), sys.argv[3]
options = TrainOptions(model=model, hidden=64, heads=2, batch_size=40, epochs=2, threads=2,
                       fanout=(8, 5), memory=memory)
trainer = Trainer(path, options)
print(json.dumps(trainer.memory))
trainer.train()
trainer.test()
"""


@pytest.mark.parametrize("model", ["sage", "gat"])
def test_a_cgroup_of_memory_and_pytorchs_share_never_kills_a_run(path, model):
    """What PyTorch was measured to take beside the memory, and a tenth, is all that a run takes."""
    options = {"hidden": 64, "heads": 2, "batch_size": 40, "threads": 2, "fanout": (8, 5)}
    with pytest.raises(tg.BudgetError) as said:
        Trainer(path, TrainOptions(model=model, memory=MIB, **options))
    memory = hinted(said.value)
    command = [sys.executable, "-W", "ignore", "-c", RUN, path, memory, model]
    modules = limits.loaded_bytes(MODULES)
    roomy = limits.run(command, 4 << 30)
    assert roomy.code == 0, roomy.err[-2000:]
    beside = json.loads(roomy.out)["pytorch_bytes"]
    assert beside > MIB
    tight = limits.run(command, modules + int(1.1 * (memory + beside)))
    assert (tight.killed, tight.code) == (False, 0), tight.err[-2000:]


@pytest.mark.parametrize("threads", [1, 3, 16])
def test_layers_fit_what_they_are_said_to_need(path, threads):
    """However many threads there are, whose buffers the graph reserves too."""
    options = replace(SMALL, model="gcn", threads=threads)
    evaluator = Trainer(path, options)._evaluator
    need = evaluator._layers_bytes()
    trainer = Trainer(path, replace(options, memory=2 * need + 200 * MIB))
    assert trainer._evaluator.how == "layers"
    assert trainer.shares.evaluation >= need
    trainer._evaluator._make_layers(need)
    trainer.train()
    with pytest.raises(tg.BudgetError):
        trainer._evaluator._make_layers(need - 1)
