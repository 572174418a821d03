"""Values of edges: stored in the user's order, sampled by, and delivered with their edges."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import tiergraph as tg
from tiergraph import _native, pyg

try:
    torch = pyg.torch()
    Data = pyg.geometric("data").Data
except tg.InputError as error:
    pytest.skip(str(error), allow_module_level=True)

VERTICES, EDGES, DIM = 300, 4000, 5
MEMORY = "256MiB"


@pytest.fixture(scope="module")
def edges():
    """A directed multigraph with hubs: sources, targets, weights, times, features."""
    random = np.random.default_rng(8)
    src = random.integers(0, VERTICES, EDGES)
    dst = (random.integers(0, VERTICES, EDGES) * random.random(EDGES) ** 2).astype(np.int64)
    weights = random.choice([0, 0.5, 1, 4], EDGES).astype(np.float32)
    times = random.integers(-50, 50, EDGES)
    return src, dst, weights, times, random.normal(size=(EDGES, DIM)).astype(np.float32)


@pytest.fixture(scope="module")
def path(edges, tmp_path_factory):
    src, dst, weights, times, features = edges
    path = tmp_path_factory.mktemp("edges") / "g.tg"
    tg.build((src, dst), path, vertices=VERTICES, order="degree", layouts="both")
    stored = tg.add_edge_values(
        path, (src, dst), values={"w": weights, "time": times}, features=features, memory=MEMORY
    )
    assert stored["edge_values"] == {"w": "f32", "time": "i64"}
    assert stored["edge_features"]["edge_attr"]["rows"] == EDGES
    return path


def loader(path, **options):
    given = {"num_neighbors": [5, 3], "batch_size": 40, "shuffle": True, "memory": MEMORY}
    return tg.NeighborLoader(path, **(given | options))


def assert_edges(batch, edges):
    """Every edge of a batch is the user's edge `e_id`, with its features."""
    src, dst, _, _, features = edges
    n_id, e_id = batch.n_id.numpy(), batch.e_id.numpy()
    row, col = batch.edge_index.numpy()
    np.testing.assert_array_equal(n_id[row], src[e_id])
    np.testing.assert_array_equal(n_id[col], dst[e_id])
    np.testing.assert_array_equal(batch.edge_attr.numpy(), features[e_id])


@pytest.mark.parametrize("disjoint", [False, True])
def test_e_id_is_the_place_among_the_users_edges(path, edges, disjoint):
    for batch in loader(path, disjoint=disjoint, direction="in"):
        assert_edges(batch, edges)
        assert batch.edge_attr.dtype == torch.float32
        if disjoint:
            row, col = batch.edge_index
            assert torch.equal(batch.batch[row], batch.batch[col])
            assert batch.batch[: batch.batch_size].tolist() == list(range(batch.batch_size))


def test_weights_choose_and_come_with_the_batch(path, edges):
    _, dst, weights, _, _ = edges
    positive = np.bincount(dst[weights > 0], minlength=VERTICES)
    for batch in loader(path, weight_attr="w", edge_features=None):
        assert "edge_attr" not in batch
        e_id = batch.e_id.numpy()
        np.testing.assert_array_equal(batch.w.numpy(), weights[e_id])
        assert (weights[e_id] > 0).all()
        assert len(np.unique(e_id)) == len(e_id), "without replacement"
        seeds = batch.n_id.numpy()[: batch.batch_size]
        first = batch.edge_index[1].numpy()[: batch.num_sampled_edges[0]]
        taken = np.bincount(first, minlength=batch.batch_size)
        np.testing.assert_array_equal(taken, np.minimum(positive[seeds], 5))


@pytest.mark.parametrize("strategy", ["uniform", "last"])
def test_no_edge_is_later_than_its_seed(path, edges, strategy):
    _, dst, _, times, _ = edges
    input_time = np.arange(VERTICES) % 90 - 45
    batches = loader(path, time_attr="time", input_time=input_time, temporal_strategy=strategy)
    seen = 0
    for batch in batches:
        assert_edges(batch, edges)
        e_id, tree = batch.e_id.numpy(), batch.batch.numpy()
        np.testing.assert_array_equal(batch.time.numpy(), times[e_id])
        np.testing.assert_array_equal(batch.seed_time, input_time[batch.input_id])
        until = batch.seed_time.numpy()[tree[batch.edge_index[1].numpy()]]
        assert (times[e_id] <= until).all()
        for seed in range(batch.batch_size):
            vertex, end = batch.n_id[seed].item(), batch.seed_time[seed].item()
            known = np.sort(times[(dst == vertex) & (times <= end)])
            of_seed = batch.edge_index[1].numpy()[: batch.num_sampled_edges[0]] == seed
            taken = times[e_id[: batch.num_sampled_edges[0]][of_seed]]
            assert len(taken) == min(5, len(known))
            if strategy == "last":
                np.testing.assert_array_equal(np.sort(taken), known[len(known) - len(taken) :])
            seen += len(taken)
    assert seen > 100


def philox(counter, key):
    """Philox4x32-10, as Random123 defines it."""
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(10):
        left, right = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (
            right >> 32 ^ b ^ k0,
            right & 0xFFFFFFFF,
            left >> 32 ^ d ^ k1,
            left & 0xFFFFFFFF,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return a, b, c, d


def test_weighted_samples_are_those_of_the_definition(edges, tmp_path):
    """docs/sampling.md, in plain Python: keys of all arcs, the smallest are taken."""
    src, dst, weights, _, _ = edges
    path = tmp_path / "g.tg"
    tg.build((src, dst), path, vertices=VERTICES, order="none", layouts="training")
    tg.add_edge_values(path, (src, dst, weights))
    seed, epoch, k = 13, 2, 4
    key = philox((epoch, 0, int.from_bytes(b"SAMP", "big"), 0), (seed, 0))[:2]
    batches = loader(path, num_neighbors=[k], weight_attr="weight", shuffle=False, seed=seed)
    batches.set_epoch(epoch)
    order = np.lexsort((np.arange(EDGES), src, dst))
    for number, batch in enumerate(batches):
        expected = []
        for vertex in batch.n_id[: batch.batch_size].tolist():
            arcs = order[dst[order] == vertex]
            keys = []
            for position, edge in enumerate(arcs.tolist()):
                words = philox((position // 2, vertex, number, 0), key)
                low, high = words[:2] if position % 2 == 0 else words[2:]
                u = (((high << 32 | low) >> 11) + 1) / 2**53
                if weights[edge] > 0:
                    keys.append((-math.log(u) / float(weights[edge]), edge))
            few = len(keys) <= k
            expected += [edge for _, edge in (keys if few else sorted(keys)[:k])]
        assert batch.e_id.tolist() == expected


def test_pyg_data_gives_what_it_has_of_its_edges(edges, tmp_path):
    src, dst, weights, times, features = edges
    data = Data(
        edge_index=torch.from_numpy(np.stack([src, dst])),
        num_nodes=VERTICES,
        edge_attr=torch.from_numpy(features),
        edge_weight=torch.from_numpy(weights),
        time=torch.from_numpy(times),
    )
    path = tmp_path / "g.tg"
    stored = tg.build(data, path, layouts="training")
    assert stored == tg.add_edge_values(path, data, overwrite=True) | stored
    assert stored["edge_values"] == {"edge_weight": "f32", "time": "i64"}
    rows = tg.open(path).info()["edge_features"]["edge_attr"]
    assert (rows["dim"], rows["row_checksums"]) == (DIM, True)
    assert (path / "edges" / "edge_attr.row_crc").stat().st_size == 4 * EDGES
    assert json.loads(_native.verify(str(path), None))["damage"] == []
    batch = next(iter(loader(path, weight_attr="edge_weight")))
    assert_edges(batch, edges)


def test_stored_values_come_with_their_edges(edges, tmp_path):
    """As PyG's batches have what `Data` has of its edges."""
    src, dst, weights, times, _ = edges
    data = Data(edge_index=torch.from_numpy(np.stack([src, dst])), num_nodes=VERTICES)
    data.edge_weight, data.edge_year = torch.from_numpy(weights), torch.from_numpy(times)
    path = tmp_path / "g.tg"
    tg.build(data, path, layouts="training")
    for batch, plain in zip(loader(path), loader(path, edge_values=False), strict=True):
        assert torch.equal(batch.e_id, plain.e_id)
        e_id = batch.e_id.numpy()
        assert (batch.edge_weight.dtype, batch.edge_year.dtype) == (torch.float32, torch.int64)
        np.testing.assert_array_equal(batch.edge_weight.numpy(), weights[e_id])
        np.testing.assert_array_equal(batch.edge_year.numpy(), times[e_id])
        assert "edge_year" not in plain
        assert plain.edge_weight is None
    for named in ("edge_year", ["edge_year"]):
        batch = next(iter(loader(path, edge_values=named, weight_attr="edge_weight")))
        np.testing.assert_array_equal(batch.edge_year.numpy(), times[batch.e_id.numpy()])
        np.testing.assert_array_equal(batch.edge_weight.numpy(), weights[batch.e_id.numpy()])
    batch = next(iter(loader(path, edge_values="edge_year")))
    assert batch.edge_weight is None


def test_times_that_there_are_not_are_told_before_those_of_seeds(path):
    for name in ("t", "w"):
        with pytest.raises(tg.InputError, match=f"by the times `{name}`: expected one of time"):
            loader(path, time_attr=name)


def test_values_that_batches_cannot_have_are_refused(path, edges, tmp_path):
    with pytest.raises(tg.InputError, match="values of edges `v`: expected one of time, w"):
        loader(path, edge_values=["w", "v"])
    with pytest.raises(tg.InputError, match="a name, a list of names, True or False"):
        loader(path, edge_values=3)
    src, dst, weights, times, _ = edges
    tg.build((src, dst), tmp_path / "g.tg", edge_values={"y": times, "w": weights})
    with pytest.raises(tg.InputError, match="edges' values `y`"):
        loader(tmp_path / "g.tg")
    assert "w" in next(iter(loader(tmp_path / "g.tg", edge_values=["w"])))


def test_what_does_not_belong_to_the_edges_is_refused(path, edges, tmp_path):
    src, dst, weights, _, features = edges
    with pytest.raises(tg.InputError, match="`overwrite=True` replaces it"):
        tg.add_edge_values(path, (src, dst, weights))
    graph = tmp_path / "g.tg"
    tg.build((src, dst), graph, vertices=VERTICES, layouts="training")

    def add(source=(src, dst), **given):
        tg.add_edge_values(graph, source, **given)

    for message, given in {
        "for each of 4000 edges, got 3999 values": {"values": {"w": weights[:-1]}},
        r"expected numbers of shape \(E,\)": {"values": {"w": features}},
        "a row for each of 4000": {"features": features[1:]},
        "finite numbers, got inf of edge 7": {
            "values": {"w": np.where(np.arange(EDGES) == 7, np.inf, 1.0)}
        },
        "give all edges": {"source": (src[1:], dst[1:]), "values": {"w": weights[1:]}},
        "for each of 4000 edges, got 4001 values": {"values": {"w": np.append(weights, 1)}},
        "1 to 64 letters": {"values": {"../w": weights}},
    }.items():
        with pytest.raises(tg.InputError, match=message):
            add(**given)
    assert tg.open(graph).info()["edge_values"] == {}
    assert not list((graph / "edges").glob("*")), "nothing is left behind"


def test_options_that_do_not_go_together_are_refused(path):
    times = np.zeros(VERTICES, dtype=np.int64)
    for message, given in {
        "one without the other": {"time_attr": "time"},
        "got one without": {"input_time": times},
        "an integer for each of 300 seeds": {"time_attr": "time", "input_time": times[1:]},
        "one of `uniform`, `last`": {
            "time_attr": "time",
            "input_time": times,
            "temporal_strategy": "first",
        },
        "column `z`: expected one of w": {"weight_attr": "z"},
        "`uniform`, for weights": {
            "time_attr": "time",
            "input_time": times,
            "weight_attr": "w",
            "temporal_strategy": "last",
        },
        "features `z`": {"edge_features": "z"},
    }.items():
        with pytest.raises(tg.InputError, match=message):
            loader(path, **given)


def test_a_push_after_the_end_is_an_error(path):
    native = _native.EdgeValues(str(path), json.dumps({"columns": [], "overwrite": True}), [], None)
    native.abort()
    with pytest.raises(tg.InputError, match="a call after the last"):
        native.push(np.empty(0, np.uint64), np.empty(0, np.uint64), [])
