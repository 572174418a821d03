"""The loader keeps PyG's contract, and gives the same batches however they are prepared."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from test_interrupt import interrupt

import tiergraph as tg
from tiergraph import pyg

try:
    torch = pyg.torch()
    Data = pyg.geometric("data").Data
except tg.InputError as error:
    pytest.skip(str(error), allow_module_level=True)

VERTICES, DIM = 600, 7
FANOUTS = [4, 3]
SBM = {
    "communities": 4,
    "mean_degree": 8,
    "inside": 0.8,
    "features": 1024,
    "layouts": "both",
}


@pytest.fixture(scope="module")
def edges():
    """A directed multigraph on ids with gaps; the last tenth of the vertices are isolated."""
    random = np.random.default_rng(5)
    ids = 3 * np.arange(VERTICES, dtype=np.int64) + 11
    connected = ids[: VERTICES * 9 // 10]
    return ids, random.choice(connected, 4000), random.choice(connected, 4000)


@pytest.fixture(scope="module")
def x(edges):
    return np.random.default_rng(6).normal(size=(VERTICES, DIM)).astype(np.float32)


@pytest.fixture(scope="module")
def path(edges, x, tmp_path_factory):
    """The graph, in the order of degrees, with features, labels and splits."""
    ids, src, dst = edges
    loops = ids[VERTICES * 9 // 10 :]
    path = tmp_path_factory.mktemp("loader") / "g.tg"
    tg.build(
        (np.concatenate([src, loops]), np.concatenate([dst, loops])),
        path,
        ids="map",
        order="degree",
        drop_self_loops=True,
        layouts="both",
        features=x,
        labels=np.arange(VERTICES) % 5,
        splits={"train": np.arange(VERTICES) % 3 == 0, "val": np.array([4, 2, 9])},
    )
    return path


@pytest.fixture(scope="module")
def graph(path):
    return tg.open(path, memory="256MiB")


@pytest.fixture(scope="module")
def arcs(edges):
    """Every edge of the graph, with how often it is there."""
    _, src, dst = edges
    kept = src != dst
    pairs, counts = np.unique(np.stack([src[kept], dst[kept]]), axis=1, return_counts=True)
    return {(int(u), int(v)): int(n) for (u, v), n in zip(pairs.T, counts, strict=True)}


def loader(graph, **options):
    given = {"num_neighbors": FANOUTS, "batch_size": 32, "shuffle": True, "memory": "256MiB"}
    return tg.NeighborLoader(graph, **(given | options))


def everything(batch):
    """A batch as plain values, to be compared."""
    return {name: getattr(v, "tolist", lambda v=v: v)() for name, v in batch.to_dict().items()}


def test_a_batch_keeps_the_contract_of_pyg(graph, arcs, x):
    seen = []
    batches = loader(graph)
    for batch in batches:
        assert isinstance(batch, Data)
        n, e = batch.num_nodes, batch.edge_index.shape[1]
        assert batch.edge_index.dtype == batch.n_id.dtype == batch.e_id.dtype == torch.int64
        assert batch.x.dtype == torch.float32
        assert batch.x.shape == (n, DIM)
        assert batch.n_id.unique().numel() == n
        # Counts per hop add up, seeds come first, and a hop expands what the last one found.
        assert sum(batch.num_sampled_nodes) == n
        assert sum(batch.num_sampled_edges) == e
        assert batch.num_sampled_nodes[0] == batch.batch_size
        seeds = torch.from_numpy(batches.seeds.astype(np.int64))[batch.input_id]
        assert torch.equal(batch.n_id[: batch.batch_size], seeds)
        bounds = np.cumsum([0, *batch.num_sampled_nodes])
        row, col = batch.edge_index.numpy()
        begin = 0
        for hop, count in enumerate(batch.num_sampled_edges):
            expanded = col[begin : begin + count]
            assert ((bounds[hop] <= expanded) & (expanded < bounds[hop + 1])).all()
            assert (row[begin : begin + count] < bounds[hop + 2]).all()
            degrees = batch.degree[bounds[hop] : bounds[hop + 1]].numpy()
            taken = np.bincount(expanded, minlength=n)[bounds[hop] : bounds[hop + 1]]
            np.testing.assert_array_equal(taken, np.minimum(degrees, FANOUTS[hop]))
            begin += count
        # Every edge is one of the graph's, and no arc comes twice.
        assert batch.e_id.unique().numel() == e
        n_id = batch.n_id.numpy()
        found, counts = np.unique(np.stack([n_id[row], n_id[col]]), axis=1, return_counts=True)
        for (u, v), count in zip(found.T, counts, strict=True):
            assert count <= arcs[int(u), int(v)]
        # Features and labels are the user's.
        position = np.searchsorted(graph.ids.astype(np.int64), n_id)
        np.testing.assert_array_equal(batch.x.numpy(), x[position])
        np.testing.assert_array_equal(batch.y.numpy(), position % 5)
        seen += batch.input_id.tolist()
    assert sorted(seen) == list(range(VERTICES))


def test_all_neighbours_are_all_edges(graph, arcs):
    batch = next(iter(loader(graph, num_neighbors=[-1], batch_size=VERTICES)))
    n_id = batch.n_id.numpy()
    row, col = batch.edge_index.numpy()
    found, counts = np.unique(np.stack([n_id[row], n_id[col]]), axis=1, return_counts=True)
    pairs = zip(found.T.tolist(), counts.tolist(), strict=True)
    assert {(u, v): count for (u, v), count in pairs} == arcs


def test_batches_do_not_depend_on_what_prepares_them(graph):
    twin = [everything(batch) for batch in loader(graph, seed=3)]
    for options in (
        {"threads": 1},
        {"threads": 2, "window": 1, "prefetch": 0},
        {"window": 5, "memory": "96MiB"},
        {"io": "posix", "placement": "features"},
        {"placement": 0.5, "presample": 2},
    ):
        assert [everything(batch) for batch in loader(graph, seed=3, **options)] == twin
    assert [everything(batch) for batch in loader(graph, seed=4)] != twin


def test_out_of_core_is_resident(tmp_path):
    """Features larger than the memory: read in part, and the same."""
    path = tmp_path / "g.tg"
    tg.generate("sbm", path, vertices=30_000, **SBM)
    graph = tg.open(path)
    options = {"num_neighbors": [3, 2], "batch_size": 100, "input_nodes": "train", "window": 2}
    small = loader(graph, **options, memory="96MiB", threads=2)
    large = loader(graph, **options, memory="1GiB")
    kept = small.kept()
    assert 0 < kept["kept_rows"] < kept["rows"] == 30_000
    assert large.kept()["kept_rows"] == 30_000
    for one, other in zip(small, large, strict=True):
        assert torch.equal(one.x, other.x)
        assert torch.equal(one.edge_index, other.edge_index)
        assert torch.equal(one.n_id, other.n_id)
    read = small.last_epoch
    assert read["bytes_ssd"] == 4096 * (read["distinct_pages"] + read["repeated_pages"]) > 0
    assert large.last_epoch["bytes_ssd"] == 0


def test_every_epoch_is_shuffled_anew_and_can_be_had_again(graph):
    batches = loader(graph, num_neighbors=[2], seed=1)
    epochs = [[everything(batch) for batch in batches] for _ in range(2)]
    assert epochs[0] != epochs[1]
    batches.set_epoch(1)
    rest = [everything(batch) for batch in batches.batches(first=5)]
    assert rest == epochs[1][5:]
    fixed = [b.input_id.tolist() for b in loader(graph, shuffle=False)]
    assert [place for places in fixed for place in places] == list(range(VERTICES))


def test_seeds_come_as_ids_masks_splits_and_none(graph):
    ids = graph.ids
    mask = np.arange(VERTICES) % 3 == 0
    for given, expected in (
        (None, ids),
        (mask, ids[mask]),
        (torch.from_numpy(mask), ids[mask]),
        ("train", ids[mask]),
        ("val", ids[[4, 2, 9]]),
        ([int(ids[7]), int(ids[3])], ids[[7, 3]]),
    ):
        batches = loader(graph, input_nodes=given, shuffle=False)
        seeds = np.concatenate([b.n_id[: b.batch_size].numpy() for b in batches])
        np.testing.assert_array_equal(seeds, expected.astype(np.int64))


def test_lengths(graph):
    for size, drop_last, length in ((32, False, 19), (32, True, 18), (10_000, False, 1)):
        batches = loader(graph, batch_size=size, drop_last=drop_last)
        sizes = [batch.batch_size for batch in batches]
        assert len(batches) == len(sizes) == length
        assert sum(sizes) == (VERTICES // size * size if drop_last else VERTICES)
    assert len(loader(graph, batch_size=10_000, drop_last=True)) == 0
    assert list(loader(graph, input_nodes=np.array([], dtype=np.int64))) == []


def test_a_seed_without_neighbours_is_alone(graph):
    alone = graph.ids[[-1, -2]]
    batch = next(iter(loader(graph, input_nodes=alone, shuffle=False)))
    assert batch.n_id.tolist() == alone.tolist()
    assert batch.edge_index.shape == (2, 0)
    assert batch.num_sampled_nodes == [2, 0, 0]


def test_fanout_0_takes_nothing(graph):
    batch = next(iter(loader(graph, num_neighbors=[3, 0, 2])))
    assert batch.num_sampled_edges[1:] == [0, 0]


def test_disjoint_trees_share_no_node(graph):
    batch = next(iter(loader(graph, disjoint=True)))
    assert batch.batch[: batch.batch_size].tolist() == list(range(batch.batch_size))
    row, col = batch.edge_index
    assert torch.equal(batch.batch[row], batch.batch[col])
    pairs = torch.stack([batch.batch, batch.n_id])
    assert pairs.unique(dim=1).shape[1] == batch.num_nodes
    assert "batch" not in next(iter(loader(graph)))


def test_features_lie_where_they_were_gathered_and_stay_there(graph, x):
    batches = iter(loader(graph))
    kept = [batch.x for batch in batches]
    twins = [tensor.clone() for tensor in kept]
    assert all(tensor.data_ptr() % 4096 == 0 for tensor in kept)
    del batches
    gc.collect()
    kept[0][0] = 7.0
    assert kept[0][0, 0] == 7.0
    for tensor, twin in zip(kept[1:], twins[1:], strict=True):
        assert torch.equal(tensor, twin)


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("dedup", [False, True])
def test_rows_of_one_direction_are_enough(edges, tmp_path, undirected, dedup):
    _, src, dst = edges
    options = {"ids": "map", "order": "none", "undirected": undirected, "dedup": dedup}
    graphs = []
    for layouts in ("training", "sampling"):
        path = tmp_path / f"{layouts}.tg"
        tg.build((src, dst), path, layouts=layouts, **options)
        graphs.append(tg.open(path))
    training, sampling = graphs
    assert (training.edges, training.info()["arcs"]) == (sampling.edges, sampling.info()["arcs"])
    assert np.array_equal(training.degrees("in"), sampling.degrees("in"))
    assert training.info()["bytes"] > sampling.info()["bytes"] or undirected
    given = {"num_neighbors": FANOUTS, "batch_size": 50, "memory": "128MiB"}
    pairs = (tg.NeighborLoader(graph, **given) for graph in graphs)
    for a, b in zip(*pairs, strict=True):
        assert torch.equal(a.n_id, b.n_id)
        assert torch.equal(a.e_id, b.e_id)


def test_leaving_a_loop_ends_its_threads(graph):
    batches = loader(graph, prefetch=40)

    def threads():
        gc.collect()
        return sum(line.startswith("tiergraph-batch") for line in thread_names())

    def fail():
        for batch in batches:
            raise RuntimeError(batch.batch_size)

    for _ in batches:
        break
    assert threads() == 0
    with pytest.raises(RuntimeError, match="32"):
        fail()
    assert threads() == 0
    epoch = iter(batches)
    next(epoch)
    epoch.close()
    assert list(epoch) == []
    assert len(list(batches)) == len(batches)


def thread_names():
    """The names of this process's threads."""
    for task in Path("/proc/self/task").iterdir():
        yield (task / "comm").read_text()


def test_no_callback_swallows_an_interrupt_at_an_epochs_end(graph):
    # An exception of a weak reference's callback is ignored, and so would be a Ctrl-C there.
    loader = tg.NeighborLoader(graph, [2], batch_size=64)
    epochs = [iter(loader), iter(loader)]
    references = [one for epoch in epochs for one in weakref.getweakrefs(epoch)]
    assert len(references) >= 2
    assert all(one.__callback__ is None for one in references)
    loader.close()
    assert all(next(epoch, None) is None for epoch in epochs), "those that go on are closed"


def test_two_threads_share_an_epoch(graph):
    epoch = iter(loader(graph))
    seen: list[int] = []

    def take():
        for batch in epoch:
            seen.extend(batch.input_id.tolist())

    takers = [threading.Thread(target=take) for _ in range(2)]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join()
    assert sorted(seen) == list(range(VERTICES))


def test_a_transform_comes_last(graph):
    def double(data):
        data.x = data.x * 2
        return data

    plain = next(iter(loader(graph)))
    assert torch.equal(next(iter(loader(graph, transform=double))).x, plain.x * 2)


def test_a_transform_that_returns_nothing_does_not_end_the_epoch(graph):
    batches = iter(loader(graph, transform=lambda data: None))
    with pytest.raises(tg.InputError, match="transform returned None"):
        next(batches)


def test_masks_of_splits_come_with_a_batch(graph, path):
    for batch in loader(graph):
        places = np.searchsorted(graph.ids, batch.n_id.numpy().view(np.uint64))
        np.testing.assert_array_equal(batch.train_mask.numpy(), places % 3 == 0)
        assert "val_mask" not in batch, "a list of positions is no mask"


def test_labels_keep_their_type_on_disk_and_are_int64_in_batches(ring_path):
    batches = tg.NeighborLoader(ring_path, [1], "train", batch_size=8, memory="64MiB")
    assert batches.given.collate.labels[None].dtype == np.int8
    assert next(iter(batches)).y.dtype == torch.int64
    assert "ids" not in vars(batches.graph), "ids that are positions need no array"
    for chosen in (False, None, True):
        batch = next(iter(tg.NeighborLoader(ring_path, [1], labels=chosen)))
        assert (batch.y is None) == (chosen is False)


def test_seeds_are_of_the_loaders_memory(ring_path):
    few = tg.NeighborLoader(ring_path, [1], np.arange(8), memory="64MiB", threads=1)
    many = np.zeros(4 << 20, dtype=np.uint64)
    with pytest.raises(tg.BudgetError, match="seeds, their times, links and ids"):
        tg.NeighborLoader(ring_path, [1], many, memory="64MiB", threads=1)
    enough = few.kept()["enough_bytes"]
    more = tg.NeighborLoader(ring_path, [1], np.arange(8).repeat(1000), threads=1, memory="64MiB")
    assert more.kept()["enough_bytes"] >= enough + 16 * 8 * 999


@pytest.fixture(scope="module")
def ring_path(tmp_path_factory):
    """A ring of vertices numbered from 0, with small labels."""
    path, ring = tmp_path_factory.mktemp("ring") / "g.tg", np.arange(VERTICES)
    labels, train = (ring % 5).astype(np.int8), ring % 2 == 0
    tg.build((ring, np.roll(ring, 1)), path, labels=labels, splits={"train": train})
    return path


def test_a_graph_without_features_gives_edges(edges, tmp_path):
    tg.build(edges[1:], tmp_path / "plain.tg", ids="map", layouts="training")
    graph = tg.open(tmp_path / "plain.tg", memory="256MiB")
    batch = next(iter(loader(graph)))
    assert batch.x is None
    assert batch.y is None
    assert batch.num_nodes == len(batch.n_id)
    for name in ("features", "labels"):
        with pytest.raises(tg.InputError, match=r"use the .* `x`"):
            loader(graph, **{name: "x"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"replace": True}, "with replacement"),
        ({"subgraph_type": "induced"}, "`induced`"),
        ({"input_nodes": [5]}, "find vertex `5`"),
        ({"input_nodes": [-1]}, "vertex ids of 0 or more"),
        ({"input_nodes": [1.5]}, "an array of integers"),
        ({"input_nodes": np.ones(3, dtype=bool)}, "a mask of shape"),
        ({"input_nodes": "dev"}, "split `dev`"),
        ({"num_neighbors": [-2]}, "fanouts, each a whole number from -1"),
        ({"num_neighbors": [1] * 300}, "at most 255 hops"),
        ({"batch_size": 0}, "batch_size"),
        ({"threads": 0}, "threads"),
        ({"features": "z"}, "features `z`"),
        ({"labels": "z"}, "labels `z`"),
        ({"placement": "random"}, 'placement="random"'),
        ({"direction": "up"}, 'direction="up"'),
        ({"num_neighbors": [2.5]}, "fanouts, each a whole number from -1"),
        ({"num_neighbors": 5}, "a list of fanouts"),
        ({"batch_size": 2.5}, "`batch_size=2.5`: expected a whole number from 1"),
        ({"batch_size": "8"}, '`batch_size="8"`: expected a whole number from 1'),
        ({"window": 0}, "`window=0`: expected a whole number from 1"),
        ({"threads": 1.5}, "`threads=1.5`: expected a whole number from 1"),
        ({"prefetch": -1}, "`prefetch=-1`"),
        ({"presample": True}, "`presample=True`"),
        ({"seed": -1}, "`seed=-1`"),
    ],
)
def test_bad_input_is_named(graph, options, message):
    with pytest.raises(tg.InputError, match=message):
        loader(graph, **options)


def test_memory_that_holds_no_batch_is_refused(tmp_path):
    path = tmp_path / "g.tg"
    tg.generate("sbm", path, vertices=20_000, **SBM)
    with pytest.raises(tg.BudgetError, match="a smaller `batch_size`"):
        list(loader(tg.open(path), num_neighbors=[8, 8], batch_size=20_000, memory="60MiB"))


def test_a_graph_for_analytics_alone_says_what_it_lacks(edges, tmp_path):
    tg.build(edges[1:], tmp_path / "a.tg", ids="map", layouts="analytics")
    with pytest.raises(tg.InputError, match=r"the layout `in.rows`"):
        loader(tg.open(tmp_path / "a.tg", memory="64MiB"))


def test_a_damaged_page_is_told_mid_epoch(path, tmp_path):
    copy = tmp_path / "damaged.tg"
    shutil.copytree(path, copy)
    rows = copy / "features" / "x.rows"
    damaged = bytearray(rows.read_bytes())
    damaged[100] ^= 1
    rows.write_bytes(damaged)
    with pytest.raises(tg.FormatError, match="page"):
        list(loader(tg.open(copy, memory="256MiB")))


PROGRAM = """
import sys, tiergraph as tg
loader = tg.NeighborLoader(sys.argv[1], [20, 20, 20], batch_size=2000, memory="1GiB")
print("running", flush=True)
try:
    while True:
        for batch in loader:
            pass
except KeyboardInterrupt:
    print("stopped", next(iter(loader)).batch_size, flush=True)
"""


def test_ctrl_c_stops_a_loop_and_leaves_the_loader_usable(tmp_path):
    tg.generate("rmat", tmp_path / "g.tg", scale=14, seed=1, layouts="training")
    code, out, _ = interrupt([sys.executable, "-c", PROGRAM, str(tmp_path / "g.tg")])
    assert (code, out.split()) == (0, ["stopped", "2000"])


def test_nothing_imports_pytorch_before_a_loader_does():
    program = "import sys, tiergraph, tiergraph.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_fewer_threads_than_cores_do_where_none_are_asked_for(path):
    shape = {"batch_size": 100, "seed": 3, "shuffle": True, "window": 1}
    with pytest.raises(tg.BudgetError) as refused:
        tg.NeighborLoader(path, FANOUTS, memory="1MiB", threads=1, **shape)
    shape["memory"] = refused.value.enough_bytes
    with pytest.raises(tg.BudgetError, match="memory"):
        tg.NeighborLoader(path, FANOUTS, threads=64, **shape)
    one = tg.NeighborLoader(path, FANOUTS, threads=1, **shape)
    fewer = tg.NeighborLoader(path, FANOUTS, **shape)
    assert one.kept()["threads"] == fewer.kept()["threads"] == 1
    for a, b in zip(one, fewer, strict=True):
        assert torch.equal(a.n_id, b.n_id)
