"""Ranks share each epoch: every seed is one rank's, and every rank takes equally many steps."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys

import pytest
from small_loaders import (
    KINDS,
    SEEDS,
    build,
    build_hetero,
    everything,
    inputs,
    joined,
    made,
    neighbors,
)

import tiergraph as tg
from tiergraph import _native, pyg

try:
    torch = pyg.torch()
    pyg.geometric("data")
except tg.InputError as error:
    pytest.skip(str(error), allow_module_level=True)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return build(tmp_path_factory.mktemp("ranks") / "g.tg")


@pytest.fixture(scope="module")
def hetero(tmp_path_factory):
    return build_hetero(tmp_path_factory.mktemp("ranks") / "h.tg")


each_loader = pytest.mark.parametrize("kind", KINDS)
PATIENCE_SECONDS = 120


def shares(kind, request, world_size, **options):
    """Each rank's epoch."""
    ranks = range(world_size)
    loaders = [made(kind, request, rank=r, world_size=world_size, **options) for r in ranks]
    epochs = [list(loader) for loader in loaders]
    assert [len(loader) for loader in loaders] == [len(epoch) for epoch in epochs]
    return epochs


@each_loader
@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("batch_size", [4, 7, 19])
def test_every_seed_is_one_ranks_and_every_rank_has_as_many_batches(
    kind, request, world_size, batch_size
):
    epochs = shares(kind, request, world_size, batch_size=batch_size)
    assert len({len(epoch) for epoch in epochs}) == 1
    batches = joined(map(inputs, epochs))
    assert all(1 <= len(batch) <= batch_size for batch in batches)
    assert sorted(joined(batches)) == list(range(KINDS[kind][2]))


@each_loader
def test_a_whole_batch_is_the_same_whoever_makes_it(kind, request):
    alone = everything(made(kind, request, batch_size=5))
    epochs = [everything(epoch) for epoch in shares(kind, request, 2, batch_size=5)]
    # 200, 20 and 50 seeds: two ranks have 20, 2 and 5 rounds.
    assert epochs == [alone[0::2], alone[1::2]]


@each_loader
def test_drop_last_drops_what_is_not_a_whole_round(kind, request):
    epochs = shares(kind, request, 3, batch_size=6, drop_last=True)
    count = KINDS[kind][2] // 18
    assert [[len(batch) for batch in inputs(epoch)] for epoch in epochs] == [[6] * count] * 3


def test_epochs_differ_and_ranks_agree_on_them(path):
    two = [neighbors(path, rank=rank, world_size=2) for rank in range(2)]
    first = [inputs(loader) for loader in two]
    second = [inputs(loader) for loader in two]
    assert first != second
    assert sorted(joined(second[0] + second[1])) == list(range(SEEDS))


@pytest.mark.parametrize("shuffle", [False, True])
def test_fewer_seeds_than_ranks_come_more_than_once(path, shuffle):
    ids = tg.open(path).ids[:2]
    how = {"batch_size": 4, "world_size": 5, "shuffle": shuffle}
    seen = []
    for rank in range(5):
        loader = tg.NeighborLoader(path, [2], ids, rank=rank, memory="128MiB", **how)
        (batch,) = loader
        assert batch.batch_size == len(batch.input_id) == 1
        assert batch.n_id[0] == ids[batch.input_id[0]]
        seen += batch.input_id.tolist()
    assert len(seen) == 5
    assert set(seen) == {0, 1}
    empty = tg.NeighborLoader(path, [2], ids[:0], rank=1, memory="128MiB", **how)
    assert list(empty) == []


def plain(seeds, size, ranks, drop_last):
    """What `docs/sampling.md` says: where the batches of each rank begin and end."""
    whole, rest = divmod(seeds, ranks * size)
    shared, places = 0, seeds
    if rest == 0 or drop_last:
        places = whole * ranks * size
    elif rest >= ranks:
        shared = 1
    elif whole >= 1 and size >= 2:
        whole, shared = whole - 1, 2
    else:
        shared, places = 1, whole * ranks * size + ranks
    sizes = [size] * (whole * ranks)
    left = places - sum(sizes)
    for parts in range(shared * ranks, 0, -1):
        sizes.append(-(-left // parts))
        left -= sizes[-1]
    bounds = [0, *itertools.accumulate(sizes)]
    return [list(itertools.pairwise(bounds))[rank::ranks] for rank in range(ranks)]


def test_the_cut_is_the_documents():
    shapes = itertools.product(range(60), range(1, 8), range(1, 6), (False, True))
    for seeds, size, ranks, drop_last in shapes:
        cuts = [_native.Cut(seeds, size, drop_last, rank, ranks) for rank in range(ranks)]
        found = [[cut.range(batch) for batch in range(len(cut))] for cut in cuts]
        assert found == plain(seeds, size, ranks, drop_last)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rank": 1}, "`rank` and `world_size`, got rank=1"),
        ({"world_size": 2}, "`rank` and `world_size`, got rank=None"),
        ({"rank": 2, "world_size": 2}, "`rank=2`: expected a whole number from 0 to 1"),
        ({"rank": -1, "world_size": 2}, "`rank=-1`: expected a whole number from 0"),
        ({"rank": 0, "world_size": 0}, "`world_size=0`: expected a whole number from 1"),
        ({"rank": True, "world_size": 2}, "`rank=True`: expected a whole number"),
        ({"rank": 0.0, "world_size": 2}, "`rank=0.0`: expected a whole number"),
    ],
)
def test_a_rank_that_there_is_not_is_refused(path, given, message):
    with pytest.raises(tg.InputError, match=message):
        neighbors(path, **given)


@each_loader
@pytest.mark.parametrize("ranked", [{}, {"rank": 1, "world_size": 2}])
def test_a_state_goes_on_in_the_middle_of_an_epoch(kind, request, ranked):
    loader = made(kind, request, batch_size=3, **ranked)
    epochs = [everything(loader) for _ in range(2)]
    loader.set_epoch(1)
    for taken, _ in enumerate(loader, 1):
        if taken == 2:
            break
    state = json.loads(json.dumps(loader.state_dict()))
    assert (state["epoch"], state["batch"]) == (1, 2)
    other = made(kind, request, batch_size=3, **ranked)
    other.load_state_dict(state)
    assert other.state_dict() == state
    # What a training loop says at the begin of an epoch leaves the place in it alone.
    other.set_epoch(1)
    assert everything(other) == epochs[1][2:]
    assert other.state_dict() == state | {"epoch": 2, "batch": 0}
    other.load_state_dict(state)
    other.set_epoch(0)
    assert everything(other) == epochs[0]


def test_the_state_of_an_epoch_that_has_ended_is_the_next(path):
    loader = neighbors(path)
    assert loader.state_dict() | {"epoch": 0, "batch": 0} == loader.state_dict()
    batches = iter(loader)
    for taken in range(1, len(loader)):
        next(batches)
        assert (loader.state_dict()["epoch"], loader.state_dict()["batch"]) == (0, taken)
    next(batches)
    assert (loader.state_dict()["epoch"], loader.state_dict()["batch"]) == (1, 0)


@pytest.mark.parametrize(
    "other", [{"seed": 5}, {"batch_size": 31}, {"rank": 0, "world_size": 2}], ids=str
)
def test_the_state_of_another_loader_is_refused(path, other):
    state = neighbors(path).state_dict()
    with pytest.raises(tg.InputError, match="the state of another loader: expected "):
        neighbors(path, **other).load_state_dict(state)


TRAINING = """
import json, os, sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import tiergraph as tg

early = tg.NeighborLoader(sys.argv[1], [3, 2], "train", batch_size=7, memory="128MiB", threads=1)
dist.init_process_group("gloo")
rank = dist.get_rank()
loader = tg.NeighborLoader(
    sys.argv[1], [3, 2], "train", batch_size=7, shuffle=True, memory="128MiB", threads=1
)
model = DistributedDataParallel(torch.nn.Linear(6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
seen = []
for epoch in range(2):
    seen.append([])
    for batch in loader:
        optimizer.zero_grad()
        out = model(batch.x[: batch.batch_size])
        torch.nn.functional.cross_entropy(out, batch.y[: batch.batch_size]).backward()
        optimizer.step()
        seen[-1].append(batch.input_id.tolist())
same = [torch.zeros_like(model.module.bias) for _ in range(2)]
dist.all_gather(same, model.module.bias.detach())
assert torch.equal(*same)
alone = tg.NeighborLoader(sys.argv[1], [2], "train", rank=0, world_size=1, memory="128MiB")
with open(f"{sys.argv[2]}/{rank}.json", "w") as file:
    json.dump({"seen": seen, "early": len(early), "alone": len(alone)}, file)
dist.destroy_process_group()
"""


def test_two_ranks_of_torchrun_train_on_different_seeds(path, tmp_path):
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this build of PyTorch has no gloo")
    program = tmp_path / "train.py"
    program.write_text(TRAINING)
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [sys.executable, *torchrun, str(program), str(path), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stderr
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    # 200 seeds by 7: 28 batches and 4 seeds, which two ranks take in 15 steps.
    assert first["early"] == second["early"] == 15
    assert first["alone"] == second["alone"] == SEEDS
    for ours, theirs in zip(first["seen"], second["seen"], strict=True):
        assert len(ours) == len(theirs) == 15
        assert sorted(joined(ours + theirs)) == list(range(SEEDS))
    assert first["seen"][0] != first["seen"][1]
    assert first["seen"][0] == inputs(neighbors(path, batch_size=7, rank=0, world_size=2))
