"""A graph on disk is what PyG expects of a feature store and a graph store."""

from __future__ import annotations

import numpy as np
import pytest

import tiergraph as tg
from tiergraph import pyg

try:
    torch = pyg.torch()
    data = pyg.geometric("data")
    loader_module = pyg.geometric("loader")
    sampler_module = pyg.geometric("sampler")
except tg.InputError as error:
    pytest.skip(str(error), allow_module_level=True)

from tiergraph.stores import FeatureStore, GraphStore, stores

VERTICES = 60


@pytest.fixture(scope="module")
def arrays():
    """Edges between ids with gaps, and what belongs to the vertices."""
    random = np.random.default_rng(1)
    ids = 3 * np.arange(VERTICES, dtype=np.int64) + 11
    places = random.integers(0, VERTICES, (2, 240))
    places[0, :VERTICES] = np.arange(VERTICES)
    x = random.normal(size=(VERTICES, 5)).astype(np.float32)
    return ids, places, x, np.arange(VERTICES) % 4


@pytest.fixture(scope="module", params=[False, True], ids=["directed", "undirected"])
def graph(request, arrays, tmp_path_factory):
    ids, places, x, y = arrays
    path = tmp_path_factory.mktemp("stores") / "g.tg"
    tg.build(
        (ids[places[0]], ids[places[1]]),
        path,
        ids="map",
        order="degree",
        undirected=request.param,
        features=x,
        labels=y,
        splits={"train": np.arange(0, VERTICES, 3), "val": np.arange(VERTICES) % 3 == 1},
    )
    return tg.open(path, memory="128MiB")


def test_features_come_by_any_index(graph, arrays):
    _, _, x, y = arrays
    store = FeatureStore(graph)
    assert isinstance(store, data.FeatureStore)
    chosen = torch.tensor([7, 3, 7, 59])
    for index, expected in (
        (None, x),
        (slice(None), x),
        (slice(5, 20, 3), x[5:20:3]),
        (chosen, x[chosen]),
        (torch.arange(VERTICES) % 2 == 0, x[::2]),
    ):
        found = store.get_tensor(group_name=None, attr_name="x", index=index)
        np.testing.assert_array_equal(found.numpy(), expected)
    one = store.get_tensor(group_name=None, attr_name="x", index=4)
    np.testing.assert_array_equal(one.numpy().reshape(-1), x[4])
    labels = store.get_tensor(group_name=None, attr_name="y", index=chosen)
    np.testing.assert_array_equal(labels.numpy(), y[chosen])
    mask = store.get_tensor(group_name=None, attr_name="train_mask", index=None)
    np.testing.assert_array_equal(mask.numpy(), np.arange(VERTICES) % 3 == 0)


def test_a_mask_of_another_length_is_refused(graph):
    mask = torch.ones(VERTICES - 1, dtype=torch.bool)
    with pytest.raises(tg.InputError, match=rf"shape \({VERTICES},\).*\({VERTICES - 1},\)"):
        FeatureStore(graph).get_tensor(group_name=None, attr_name="x", index=mask)


def test_what_there_is_and_how_large(graph):
    store = FeatureStore(graph)
    names = [attr.attr_name for attr in store.get_all_tensor_attrs()]
    assert sorted(names) == ["train_mask", "val_mask", "x", "y"]
    assert store.get_tensor_size(group_name=None, attr_name="x") == (VERTICES, 5)
    assert store.get_tensor_size(group_name=None, attr_name="val_mask") == (VERTICES,)
    assert store.view(group_name=None).x[torch.tensor([2])].shape == (1, 5)
    assert store.get_tensor_size(group_name=None, attr_name="z") is None
    with pytest.raises(tg.InputError, match="one of x, y, train_mask, val_mask"):
        store.get_tensor(group_name=None, attr_name="z", index=None)
    with pytest.raises(tg.InputError, match="positions below 60"):
        store.get_tensor(group_name=None, attr_name="x", index=torch.tensor([60]))


def test_edges_come_in_pygs_layouts(graph, arrays):
    _, places, _, _ = arrays
    store = GraphStore(graph)
    assert isinstance(store, data.GraphStore)
    expected = places
    if not graph.directed:
        loops = places[:, places[0] == places[1]]
        others = places[:, places[0] != places[1]]
        expected = np.concatenate([others, others[::-1], loops], axis=1)
    row, col = store.get_edge_index(edge_type=None, layout="coo")
    found = torch.stack([row, col]).numpy()
    order = np.lexsort(expected), np.lexsort(found)
    np.testing.assert_array_equal(found[:, order[1]], expected[:, order[0]])
    rows, colptr = store.get_edge_index(edge_type=None, layout="csc")
    assert torch.equal(rows, row)
    assert torch.equal(torch.arange(VERTICES).repeat_interleave(colptr.diff()), col)
    with pytest.raises(KeyError):
        store.get_edge_index(edge_type=("a", "b", "c"), layout="coo")
    typed = GraphStore(graph, ("a", "to", "a"))
    (attr, _) = typed.get_all_edge_attrs()
    assert attr.size == (VERTICES, VERTICES)
    assert torch.equal(typed.get_edge_index(attr)[0], rows)


def test_a_graph_is_written_once(graph):
    features, edges = stores(graph)
    for change in (
        lambda: features.put_tensor(torch.ones(3), group_name=None, attr_name="z", index=None),
        lambda: features.remove_tensor(group_name=None, attr_name="x", index=None),
        lambda: edges.put_edge_index((torch.ones(1), torch.ones(1)), edge_type=None, layout="coo"),
        lambda: edges.remove_edge_index(edge_type=None, layout="coo"),
    ):
        with pytest.raises(tg.InputError, match="change the"):
            change()


class AllNeighbours(sampler_module.BaseSampler):
    """PyG's own samplers need packages that are not on PyPI; this one takes all in-neighbours."""

    def __init__(self, store):
        self.rows, self.colptr = store.get_edge_index(edge_type=None, layout="csc")

    def sample_from_nodes(self, index, **_):
        seeds = index.node
        parts = [self.rows[self.colptr[v] : self.colptr[v + 1]] for v in seeds.tolist()]
        sources = torch.cat(parts)
        others = sources[~torch.isin(sources, seeds)].unique()
        node = torch.cat([seeds, others])
        place = torch.full((len(self.colptr) - 1,), -1)
        place[node] = torch.arange(len(node))
        col = torch.arange(len(seeds)).repeat_interleave(torch.tensor([len(p) for p in parts]))
        metadata = (index.input_id, None)
        return sampler_module.SamplerOutput(node, place[sources], col, None, metadata=metadata)

    def sample_from_edges(self, index, **_):
        raise NotImplementedError(index)


def test_pygs_loader_takes_the_two_as_a_tuple(graph, arrays):
    _, _, x, y = arrays
    pair = stores(graph)
    chosen = torch.tensor([4, 9, 2, 30, 1])
    sampler = AllNeighbours(pair[1])
    loader = loader_module.NodeLoader(pair, sampler, input_nodes=chosen, batch_size=2)
    seen = []
    for batch in loader:
        np.testing.assert_array_equal(batch.x.numpy(), x[batch.n_id])
        np.testing.assert_array_equal(batch.y.numpy(), y[batch.n_id])
        assert batch.edge_index.max() < batch.num_nodes
        seen += batch.n_id[: batch.batch_size].tolist()
    assert seen == chosen.tolist()
