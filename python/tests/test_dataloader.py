"""Loaders are called as PyG's and PyTorch's are, and what they do otherwise is said."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

import tiergraph as tg
from tiergraph import pyg
from tiergraph.arguments import dataloader

try:
    torch = pyg.torch()
    theirs = pyg.geometric("loader")
except tg.InputError as error:
    pytest.skip(str(error), allow_module_level=True)

VERTICES = 60


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("dataloader") / "g.tg"
    ring = np.arange(VERTICES)
    split = {"train": ring % 2 == 0}
    tg.build((ring, np.roll(ring, 1)), path, vertices=VERTICES, layouts="both", splits=split)
    return path


def names(made):
    return [name for name in inspect.signature(made.__init__).parameters if name != "self"]


@pytest.mark.parametrize("name", ["NeighborLoader", "LinkNeighborLoader"])
def test_arguments_by_position_are_pygs(name):
    ours, pygs = names(getattr(tg, name)), names(getattr(theirs, name))
    assert ours[1 : ours.index("transform") + 1] == pygs[1 : pygs.index("transform") + 1]
    assert names(tg.HeteroNeighborLoader)[:11] == names(tg.NeighborLoader)[:11]


def test_every_argument_of_pytorch_and_pyg_is_known():
    known = dataloader.TAKEN.keys() | dataloader.REFUSED.keys()
    pytorch = names(torch.utils.data.DataLoader)
    for made in (tg.NeighborLoader, tg.LinkNeighborLoader):
        pygs = names(getattr(theirs, made.__name__))
        asked = {*pytorch, *pygs} - {"dataset", "data", "kwargs"}
        assert asked <= known | set(names(made))


def test_what_cannot_change_a_batch_is_taken_with_one_line(path):
    plain = [batch.n_id.tolist() for batch in tg.NeighborLoader(path, [2], batch_size=16)]
    with pytest.warns(tg.FallbackWarning) as said:
        loader = tg.NeighborLoader(
            path, [2], batch_size=16, num_workers=4, persistent_workers=True, pin_memory=True
        )
    assert [str(one.message) for one in said] == [
        "`NeighborLoader` does not use `num_workers`, `persistent_workers`, `pin_memory`: "
        "threads of this process prepare batches, as many as `threads` says; "
        '`device="cuda"` hands batches over on a GPU'
    ]
    assert said[0].filename == __file__
    assert [batch.n_id.tolist() for batch in loader] == plain


def test_what_is_as_by_default_is_not_worth_a_line(path):
    usual = {name: default for name, (default, _) in dataloader.TAKEN.items()}
    usual |= {name: default for name, (default, _) in dataloader.REFUSED.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tg.NeighborLoader(path, [2], **usual)


@pytest.mark.parametrize("name", sorted(dataloader.REFUSED))
def test_what_would_change_batches_is_refused_with_what_to_do(path, name):
    with pytest.raises(tg.InputError, match=f"`NeighborLoader` with `{name}`: .*\n\nhint: "):
        tg.NeighborLoader(path, [2], **{name: False})


def test_ids_come_third(path):
    batch = next(iter(tg.NeighborLoader(path, [1], torch.tensor([7, 5]), batch_size=2)))
    assert batch.n_id[:2].tolist() == [7, 5]
    times = np.array([1, 2])
    with pytest.raises(tg.InputError, match="`time_attr` and `input_time`"):
        tg.NeighborLoader(path, [1], [7, 5], times)


def test_a_batch_size_in_the_place_of_the_seeds_is_told(path, tmp_path):
    with pytest.raises(tg.InputError, match="batch size goes by its name"):
        tg.NeighborLoader(path, [25, 10], 1024, "train")
    with pytest.raises(tg.InputError, match="batch size goes by its name"):
        tg.LinkNeighborLoader(path, [2], [[1], [2]], None, 16)
    edges = {("a", "to", "a"): (np.array([0]), np.array([1]))}
    tg.build_hetero(tmp_path / "h.tg", nodes={"a": {"vertices": 2}}, edges=edges)
    with pytest.raises(tg.InputError, match="batch size goes by its name"):
        tg.NeighborLoader(tmp_path / "h.tg", [2], 16, "a")


def test_what_pyg_takes_in_other_forms_is_taken(path):
    sampler, base = pyg.geometric("sampler"), pyg.geometric("sampler.base")
    given = {"memory": "64MiB", "batch_size": 4}
    expected = next(iter(tg.NeighborLoader(path, [2, 1], torch.tensor([7, 5]), **given)))
    made = tg.NeighborLoader(
        path,
        sampler.NumNeighbors([2, 1]),
        (None, torch.tensor([7, 5])),
        subgraph_type=base.SubgraphType.directional,
        shuffle=None,
        **given,
    )
    assert torch.equal(next(iter(made)).n_id, expected.n_id)
    with pytest.raises(tg.InputError, match="directional"):
        tg.NeighborLoader(path, [2], subgraph_type=base.SubgraphType.induced)


def test_what_loops_ask_a_loader_for_is_there(path):
    loader = tg.NeighborLoader(path, [2], "train", batch_size=4, drop_last=True)
    assert (len(loader.dataset), loader.num_workers, loader.drop_last) == (VERTICES // 2, 0, True)
    assert loader.input_nodes.tolist() == list(range(0, VERTICES, 2))
    links = tg.LinkNeighborLoader(path, [2], [[1, 2], [2, 3]], num_workers=0)
    assert (len(links.dataset), links.num_workers, links.drop_last) == (2, 0, False)


def test_an_engine_that_reads_nothing_is_refused(path):
    with pytest.raises(tg.InputError, match="read engine `null`: expected one that reads"):
        tg.NeighborLoader(path, [2], io="null")


def test_data_of_pyg_is_answered_with_how_to_store_it():
    data = pyg.geometric("data").Data(edge_index=torch.tensor([[0], [1]]))
    with pytest.raises(tg.InputError, match=r"tiergraph.build\(data"):
        tg.NeighborLoader(data, [2])


def test_links_are_not_sampled_by_time(path):
    with pytest.raises(tg.InputError, match="links by time"):
        tg.LinkNeighborLoader(path, [2], [[1], [2]], edge_label_time=[3])
