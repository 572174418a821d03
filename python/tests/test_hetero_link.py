"""Batches of links between nodes of types: by the definition, with PyG's names."""

from __future__ import annotations

import pickle

import hetero_twin
import numpy as np
import pytest

import tiergraph as tg
from tiergraph import pyg

try:
    torch = pyg.torch()
except tg.InputError as error:
    pytest.skip(str(error), allow_module_level=True)

NODES = {"item": 60, "user": 200}
BUYS, LIKED = ("user", "buys", "item"), ("item", "liked_by", "user")
KNOWS = ("user", "knows", "user")
EDGES = {BUYS: 1500, LIKED: 900, KNOWS: 1200}
FANOUTS, LINKS = [4, 3], 130


@pytest.fixture(scope="module")
def edges():
    random = np.random.default_rng(2)
    return {
        t: (random.integers(0, NODES[t[0]], n), random.integers(0, NODES[t[2]], n))
        for t, n in EDGES.items()
    }


@pytest.fixture(scope="module")
def path(edges, tmp_path_factory):
    path = tmp_path_factory.mktemp("links") / "h.tg"
    x = np.arange(2 * NODES["item"], dtype=np.float32).reshape(-1, 2)
    nodes = {"item": {"features": x}, "user": {"vertices": NODES["user"]}}
    weighted = {t: {"edges": e, "edge_values": {"w": np.ones(len(e[0]))}} for t, e in edges.items()}
    tg.build_hetero(path, nodes=nodes, edges=weighted)
    return str(path)


def links_between(edge_type):
    random = np.random.default_rng(6)
    return np.stack([random.integers(0, NODES[edge_type[end]], LINKS) for end in (0, 2)])


def loader(path, edge_type, **options):
    given = {"num_neighbors": FANOUTS, "batch_size": 16, "memory": "256MiB", "seed": 5} | options
    return tg.LinkNeighborLoader(
        path, edge_label_index=(edge_type, links_between(edge_type)), **given
    )


@pytest.mark.parametrize("edge_type", [BUYS, KNOWS])
def test_an_edge_type_alone_is_all_its_edges(path, edges, edge_type):
    for given in (edge_type, (edge_type, None)):
        made = tg.LinkNeighborLoader(path, [2], edge_label_index=given, batch_size=400)
        found = np.concatenate([ends(batch, edge_type) for batch in made], axis=1)
        expected = np.stack(edges[edge_type])
        assert sorted(map(tuple, found.T)) == sorted(map(tuple, expected.T))


def ends(batch, edge_type):
    """The nodes of a batch's links."""
    row, col = batch[edge_type].edge_label_index
    return np.stack([batch[edge_type[0]].n_id[row], batch[edge_type[2]].n_id[col]])


@pytest.mark.parametrize("edge_type", EDGES)
@pytest.mark.parametrize("memory", ["256MiB", "48MiB"])
def test_links_are_those_given_and_batches_those_of_the_definition(path, edges, edge_type, memory):
    """Seeds of both types, each once; negatives come last, between nodes of their types."""
    adjacency = {t: hetero_twin.lists_of(*of) for t, of in edges.items()}
    orders = {t: np.lexsort((np.arange(len(s)), s, d)) for t, (s, d) in edges.items()}
    links, seen = links_between(edge_type), []
    made = loader(path, edge_type, neg_sampling="binary", shuffle=True, memory=memory, threads=1)
    for number, batch in enumerate(made):
        chosen = batch[edge_type].input_id.numpy()
        found = ends(batch, edge_type)
        np.testing.assert_array_equal(found[:, : len(chosen)], links[:, chosen])
        label = batch[edge_type].edge_label.tolist()
        assert label == [1.0] * len(chosen) + [0.0] * len(chosen)
        of = {t: [] for t in NODES}
        for end, row in zip(edge_type[::2], found, strict=True):
            of[end] += row.tolist()
        seeds = {t: sorted(set(nodes)) for t, nodes in of.items()}
        twin = hetero_twin.batch(
            list(NODES), adjacency, dict.fromkeys(EDGES, FANOUTS), None, seeds, number, 5, 0
        )
        n_id, _, nodes, arcs = twin
        for name in NODES:
            assert batch[name].n_id.tolist() == n_id[name]
            assert batch[name].num_sampled_nodes == nodes[name]
            assert "batch_size" not in batch[name]
            assert "input_id" not in batch[name]
        for t, of_type in arcs.items():
            assert batch[t].edge_index.tolist() == [of_type["row"], of_type["col"]]
            assert batch[t].e_id.tolist() == orders[t][of_type["e_id"]].tolist()
        assert batch["item"].x[:, 0].tolist() == (2 * batch["item"].n_id).tolist()
        seen += chosen.tolist()
    assert sorted(seen) == list(range(LINKS))


def test_negatives_are_spread_over_the_nodes_of_their_types(path):
    drawn = [[], []]
    for batch in loader(path, BUYS, neg_sampling={"mode": "binary", "amount": 8}):
        positives = len(batch[BUYS].input_id)
        for to, row in zip(drawn, ends(batch, BUYS), strict=True):
            to += row[positives:].tolist()
    for found, name in zip(drawn, ("user", "item"), strict=True):
        assert max(found) == NODES[name] - 1
        counts = np.bincount(found, minlength=NODES[name])
        assert counts.min() > 0 or name == "user"
        assert counts.max() < 6 * len(found) / NODES[name]


@pytest.mark.parametrize("edge_type", [BUYS, KNOWS])
def test_triplets_and_trees_of_their_own(path, edge_type):
    source, _, target = edge_type
    links = links_between(edge_type)
    how = {"mode": "triplet", "amount": 2}
    for batch in loader(path, edge_type, neg_sampling=how, disjoint=True, weight_attr="w"):
        chosen = batch[edge_type].input_id.numpy()
        src, dst = batch[source].src_index, batch[target].dst_pos_index
        np.testing.assert_array_equal(batch[source].n_id[src], links[0, chosen])
        np.testing.assert_array_equal(batch[target].n_id[dst], links[1, chosen])
        assert batch[target].dst_neg_index.shape == (len(chosen), 2)
        assert batch[source].batch[src].tolist() == list(range(len(chosen)))
        assert batch[target].batch[dst].tolist() == list(range(len(chosen)))
        for t in EDGES:
            row, col = batch[t].edge_index
            assert torch.equal(batch[t[0]].batch[row], batch[t[2]].batch[col])
            assert (batch[t].w == 1).all()


@pytest.mark.filterwarnings("ignore::tiergraph.errors.FallbackWarning")
def test_batches_follow_from_the_seed_alone(path):
    def batches(made):
        return [
            {t: b[t].edge_index.tolist() for t in EDGES} | {0: ends(b, BUYS).tolist()} for b in made
        ]

    options = {"neg_sampling_ratio": 1.0, "shuffle": True}
    plain = loader(path, BUYS, **options)
    expected = [batches(plain), batches(plain)]
    assert expected[0] != expected[1]
    other = loader(tg.open_hetero(path), BUYS, **options, threads=3, window=2, memory="48MiB")
    assert [batches(other), batches(other)] == expected
    assert [batches(pickle.loads(pickle.dumps(other)))] == [batches(plain)]
    shared = [batches(loader(path, BUYS, **options, rank=r, world_size=2)) for r in range(2)]
    assert [shared[0][0], shared[1][0]] == expected[0][:2]


def test_links_that_are_none_are_refused(path, edges):
    for match, given in [
        (
            r"`\(edge type, nodes of shape \(2, L\)\)`, with one of .*got ndarray",
            links_between(BUYS),
        ),
        (r"got \('user', 'sells', 'item'\)", (("user", "sells", "item"), links_between(BUYS))),
        ("nodes of `item` from 0 to 59, got 60", (BUYS, [[0], [60]])),
        ("nodes of `user` from 0 to 199, got 200", (BUYS, [[200], [0]])),
        (r"shape \(2, L\), got \(3, 1\)", (BUYS, [[0], [1], [2]])),
        ("got tuple", (BUYS, links_between(BUYS), 3)),
    ]:
        with pytest.raises(tg.InputError, match=match):
            tg.LinkNeighborLoader(path, FANOUTS, given)
    with pytest.raises(tg.InputError, match="by time"):
        loader(path, BUYS, edge_label_time=np.zeros(LINKS))
