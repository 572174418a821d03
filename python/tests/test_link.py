"""Batches of links keep PyG's contract, and their negatives follow from the seed."""

from __future__ import annotations

import numpy as np
import pytest

import tiergraph as tg
from tiergraph import pyg

try:
    torch = pyg.torch()
    sampler = pyg.geometric("sampler")
except tg.InputError as error:
    pytest.skip(str(error), allow_module_level=True)

VERTICES, LINKS = 300, 130
FANOUTS = [4, 3]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Ids with gaps, in the order of degrees."""
    random = np.random.default_rng(5)
    ids = 3 * np.arange(VERTICES, dtype=np.int64) + 11
    path = tmp_path_factory.mktemp("link") / "g.tg"
    cycle = ids, np.roll(ids, 1)
    more = random.choice(ids, (2, 1500))
    x = random.normal(size=(VERTICES, 5)).astype(np.float32)
    src, dst = (np.concatenate(pair) for pair in zip(cycle, more, strict=True))
    tg.build((src, dst), path, ids="map", order="degree", layouts="both", features=x)
    return tg.open(path, memory="256MiB")


@pytest.fixture(scope="module")
def links(graph):
    """Pairs of ids, some of which share an end."""
    return np.random.default_rng(6).choice(graph.ids.astype(np.int64)[:40], (2, LINKS))


def loader(graph, links, **options):
    given = {"num_neighbors": FANOUTS, "batch_size": 16, "memory": "256MiB"} | options
    return tg.LinkNeighborLoader(graph, edge_label_index=links, **given)


def everything(batch):
    return {name: getattr(v, "tolist", lambda v=v: v)() for name, v in batch.to_dict().items()}


def ends(batch):
    """The user's ids of a batch's links."""
    return batch.n_id[batch.edge_label_index].numpy()


def test_links_are_those_given_and_their_ends_are_the_seeds(graph, links):
    seen = []
    for batch in loader(graph, links, edge_label=np.arange(LINKS), shuffle=True):
        chosen = batch.input_id.numpy()
        np.testing.assert_array_equal(ends(batch), links[:, chosen])
        np.testing.assert_array_equal(batch.edge_label, chosen)
        seeds = batch.num_sampled_nodes[0]
        assert batch.n_id.unique().numel() == batch.num_nodes
        assert batch.edge_label_index.unique().tolist() == list(range(seeds))
        assert batch.x.shape == (batch.num_nodes, 5)
        assert "batch_size" not in batch
        seen += chosen.tolist()
    assert sorted(seen) == list(range(LINKS))


def test_the_neighbours_are_those_of_a_node_loader(graph, links):
    """The same seeds in a `NeighborLoader` give the same nodes and edges."""
    first = next(iter(loader(graph, links)))
    seeds = first.n_id[: first.num_sampled_nodes[0]]
    twin = next(
        iter(tg.NeighborLoader(graph, FANOUTS, seeds, batch_size=len(seeds), memory="256MiB"))
    )
    for name in ("n_id", "edge_index", "e_id", "x"):
        assert torch.equal(first[name], twin[name])


@pytest.mark.parametrize("amount", [1.0, 0.3, 2])
def test_binary_negatives_come_last_with_label_0(graph, links, amount):
    given = set(graph.ids.astype(np.int64).tolist())
    sources = set()
    for batch in loader(graph, links, neg_sampling_ratio=amount):
        positives = len(batch.input_id)
        assert len(batch.edge_label) == positives + int(np.ceil(positives * amount))
        assert (batch.edge_label[:positives] == 1).all()
        assert (batch.edge_label[positives:] == 0).all()
        np.testing.assert_array_equal(ends(batch)[:, :positives], links[:, batch.input_id])
        drawn = ends(batch)[:, positives:]
        assert set(drawn.ravel().tolist()) <= given
        sources |= set(drawn[0].tolist())
    # They are drawn from all vertices, not from the ends of links.
    assert not sources <= set(links.ravel().tolist())


def test_labels_from_0_make_room_for_the_negatives(graph, links):
    labels = np.arange(LINKS) % 3
    batch = next(iter(loader(graph, links, edge_label=labels, neg_sampling="binary")))
    assert batch.edge_label.tolist() == [*(labels[:16] + 1).tolist(), *[0] * 16]


def test_triplets(graph, links):
    given = sampler.NegativeSampling("triplet", 2)
    batch = next(iter(loader(graph, links, neg_sampling=given)))
    np.testing.assert_array_equal(batch.n_id[batch.src_index], links[0, :16])
    np.testing.assert_array_equal(batch.n_id[batch.dst_pos_index], links[1, :16])
    assert batch.dst_neg_index.shape == (16, 2)
    assert batch.dst_neg_index.max() < batch.num_sampled_nodes[0]
    assert "edge_label_index" not in batch
    one = next(iter(loader(graph, links, neg_sampling={"mode": "triplet"})))
    assert one.dst_neg_index.shape == (16,)


def test_an_epoch_follows_from_seed_and_number(graph, links):
    options = {"shuffle": True, "neg_sampling_ratio": 1, "seed": 3}
    batches = loader(graph, links, **options)
    epochs = [[everything(batch) for batch in batches] for _ in range(2)]
    assert epochs[0] != epochs[1]
    batches.set_epoch(1)
    assert [everything(batch) for batch in batches.batches(first=4)] == epochs[1][4:]
    few = loader(graph, links, **options, threads=1, window=1, prefetch=0)
    assert [everything(batch) for batch in few] == epochs[0]
    other = loader(graph, links, **options | {"seed": 4})
    assert [everything(batch) for batch in other] != epochs[0]


def test_negatives_are_the_same_words_for_ever(graph, links):
    """What the docstring defines, written down: another program can draw the same."""
    batch = next(iter(loader(graph, links, neg_sampling_ratio=1, seed=7)))
    words = np.random.Philox(key=np.array([7, 0], dtype=np.uint64)).random_raw(32)
    expected = [(int(word) >> 32) * VERTICES >> 32 for word in words]
    found = np.searchsorted(graph.ids.astype(np.int64), ends(batch)[:, 16:])
    assert found.ravel().tolist() == expected


def test_an_epochs_seeds_are_those_of_its_batches(graph, links):
    """What the native part is told at an epoch's begin, of rank after rank."""
    for rank, disjoint in ((0, False), (1, False), (0, True)):
        options = {"shuffle": True, "neg_sampling_ratio": 0.5, "disjoint": disjoint}
        made = loader(graph, links, **options, rank=rank, world_size=2)
        for epoch in (0, 1):
            order, cut = made._order(epoch), made._cut()
            seeds, bounds = made._seeds_of(epoch, order, cut)
            assert (len(bounds), bounds[-1]) == (len(cut) + 1, len(seeds))
            for batch in range(len(cut)):
                expected = made._batch(epoch, order, cut, batch).seeds
                np.testing.assert_array_equal(seeds[bounds[batch] : bounds[batch + 1]], expected)


def test_an_epochs_seeds_are_made_once(graph, links, monkeypatch):
    made, seeds_of = [], tg.LinkNeighborLoader._seeds_of
    note = lambda *given: made.append(given[1]) or seeds_of(*given)  # noqa: E731
    monkeypatch.setattr(tg.LinkNeighborLoader, "_seeds_of", note)
    batches = loader(graph, links, neg_sampling_ratio=1)
    first = [everything(batch) for batch in batches]
    assert made == [0]
    batches.set_epoch(0)
    assert [everything(batch) for batch in batches] == first
    list(batches)
    assert made == [0, 1]
    few = loader(graph, links, presample=0, window=1)
    assert len(few.maker.seeds) < 64, "a window's"
    assert [everything(b) for b in few] == [everything(b) for b in loader(graph, links)]


def test_links_are_of_the_loaders_memory(graph):
    many = np.tile(graph.ids[:2].reshape(2, 1), 1 << 22)
    with pytest.raises(tg.BudgetError, match="seeds, their times, links and ids"):
        loader(graph, many, batch_size=1 << 16, memory="96MiB", threads=1)


def test_no_links_are_all_edges(graph):
    batches = loader(graph, None, batch_size=512)
    found = np.concatenate([ends(batch) for batch in batches], axis=1)
    edges = np.concatenate([np.stack(batch) for batch in graph.edge_batches()], axis=1)
    np.testing.assert_array_equal(found, edges.astype(np.int64))


def test_disjoint_links_share_no_node(graph, links):
    batch = next(iter(loader(graph, links, disjoint=True)))
    assert batch.num_sampled_nodes[0] == 32
    assert batch.edge_label_index.tolist() == [list(range(16)), list(range(16, 32))]
    assert batch.batch[:32].tolist() == list(range(16)) * 2


def test_lengths_and_what_there_is_to_know(graph, links):
    for drop_last, length in ((False, 9), (True, 8)):
        batches = loader(graph, links, drop_last=drop_last)
        assert len(batches) == len(list(batches)) == length
    assert batches.last_epoch["batches"] == 8
    assert batches.kept()["rows"] == VERTICES
    assert list(loader(graph, np.empty((2, 0), dtype=np.int64))) == []
    assert "edge_label" not in next(iter(loader(graph, links)))


def test_a_transform_comes_last(graph, links):
    def count(data):
        data.links = data.edge_label_index.shape[1]
        return data

    assert next(iter(loader(graph, links, transform=count))).links == 16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"links": np.zeros((3, 2), dtype=np.int64)}, r"shape \(2, L\)"),
        ({"links": np.array([[11], [12]])}, "find vertex `12`"),
        ({"links": np.array([[11.5], [14]])}, "an array of integers"),
        ({"edge_label": [1, 2]}, "one for each of 130 links"),
        ({"edge_label": np.ones(LINKS), "neg_sampling": "triplet"}, "beside triplets"),
        ({"neg_sampling": "random"}, "`binary` or `triplet`"),
        ({"neg_sampling": {"mode": "triplet", "amount": 1.5}}, "a whole number above 0"),
        ({"neg_sampling_ratio": -1}, "a finite number from 0"),
        ({"neg_sampling": {"mode": "binary", "amout": 2}}, "with `amout`"),
        ({"batch_size": 0}, "batch_size"),
    ],
)
def test_bad_input_is_named(graph, links, options, message):
    with pytest.raises(tg.InputError, match=message):
        loader(graph, **({"links": links} | options))


def test_weights_of_vertices_are_refused(graph, links):
    weighted = sampler.NegativeSampling("binary", 1, src_weight=torch.ones(VERTICES))
    with pytest.raises(tg.InputError, match="no weights"):
        loader(graph, links, neg_sampling=weighted)
