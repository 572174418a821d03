"""Batches that a GPU makes against those of the CPU, bit for bit."""

from __future__ import annotations

import json
import shutil
import time
import warnings
from contextlib import closing

import numpy as np
import pytest
from gpu_graphs import needs_gpu
from sealing import write_manifest

import tiergraph as tg
from tiergraph.train.options import TrainOptions
from tiergraph.train.trainer import Trainer

torch = pytest.importorskip("torch", reason="loaders hand over PyTorch tensors")
pytest.importorskip("torch_geometric", reason="loaders hand over PyG data")


pytestmark = needs_gpu

CASES = [
    ([25, 10], None),
    ([25, 10], "4MiB"),
    ([-1], None),
    ([3, -1, 2], None),
    ([100, 5], None),
    ([100, 5], "4MiB"),
    ([0, 4], None),
    ([], None),
    ([], "100KiB"),
]
"""Fanouts, and the device memory: the small ones leave rows to pinned host memory."""
VERTICES, DIM = 3000, 20


@pytest.fixture(scope="module", params=["f32", "f16", "int8"])
def path(request, tmp_path_factory):
    """A skewed graph with own ids, re-ordered, with features and labels."""
    rng = np.random.default_rng(3)
    ids = np.sort(rng.choice(10**9, VERTICES, replace=False))
    src = ids[np.minimum(rng.zipf(1.4, 30_000), VERTICES) - 1]
    dst = np.concatenate([ids, ids[rng.integers(0, VERTICES, 30_000 - VERTICES)]])
    path = tmp_path_factory.mktemp("gpu") / "g.tg"
    tg.build(
        (src, dst),
        path,
        ids="map",
        order="degree",
        features=rng.normal(size=(VERTICES, DIM)).astype(np.float32),
        feature_dtype=request.param,
        labels=rng.integers(0, 7, VERTICES),
    )
    return path


@pytest.mark.parametrize(("fanouts", "device_memory"), CASES, ids=str)
def test_gpu_makes_the_cpus_batches(path, fanouts, device_memory):
    seeds = tg.open(path).ids[::3]
    same = {"batch_size": 128, "shuffle": True, "seed": 9, "presample": 2}
    cpu = tg.NeighborLoader(path, fanouts, input_nodes=seeds, **same)
    gpu = tg.NeighborLoader(
        path, fanouts, input_nodes=seeds, device="cuda", device_memory=device_memory, **same
    )
    assert len(cpu) == len(gpu)
    for _ in range(2):
        for a, b in zip(cpu, gpu, strict=True):
            assert b.x.is_cuda
            assert b.edge_index.is_cuda
            assert b.y.is_cuda
            for name in ("n_id", "edge_index", "e_id", "y", "input_id", "degree"):
                assert torch.equal(a[name], b[name].cpu()), name
            assert torch.equal(a.x, b.x.cpu())
            assert a.num_sampled_nodes == b.num_sampled_nodes
            assert a.num_sampled_edges == b.num_sampled_edges
            assert a.batch_size == b.batch_size


def test_tensors_of_a_batch_of_kernels_change_by_themselves(path):
    """Autograd refuses a tensor that was changed in place, and those that are counted with it."""
    batch = next(iter(tg.NeighborLoader(path, [5, 3], batch_size=64, device="cuda")))
    names = ("n_id", "degree", "edge_index", "e_id", "x", "input_id")
    for changed in names:
        before = {name: (batch[name]._version, batch[name].clone()) for name in names}
        batch[changed] += 1
        for name, (version, values) in before.items():
            if name != changed:
                assert batch[name]._version == version, (changed, name)
                assert torch.equal(batch[name], values), (changed, name)
        assert not torch.equal(batch[changed], before[changed][1])


@pytest.mark.parametrize("dtype", ["f32", "f16", "int8"])
@pytest.mark.parametrize("dim", [17, 33, 286, 520, 1036, 2061])
def test_rows_of_any_width_come_from_the_host(tmp_path, dtype, dim):
    """By words of all sizes and by bulk, in rows of less than a piece and of several."""
    rng = np.random.default_rng(dim)
    edges = rng.integers(0, 600, (2, 3000))
    x = rng.normal(size=(600, dim)).astype(np.float32)
    path = tmp_path / "g.tg"
    tg.build(tuple(edges), path, order="degree", features=x, feature_dtype=dtype)
    same = {"batch_size": 64, "seed": 2, "presample": 2}
    cpu = tg.NeighborLoader(path, [3], **same)
    with closing(tg.NeighborLoader(path, [3], device="cuda", **same)) as whole:
        needed = whole.kept()["device_bytes"]
    rows = 600 * dim * {"f32": 4, "f16": 2, "int8": 1}[dtype]
    same |= {"placement": "topology"}
    memory = {"device_memory": needed - rows * 3 // 4}
    gpu = tg.NeighborLoader(path, [3], device="cuda", **same, **memory)
    placed = gpu.kept()
    assert placed["host_rows"] > 0, placed
    for a, b in zip(cpu, gpu, strict=True):
        assert torch.equal(a.x, b.x.cpu())


@pytest.mark.parametrize("drop_last", [False, True])
def test_each_rank_makes_the_cpus_batches(path, drop_last):
    seeds = tg.open(path).ids[:: VERTICES // 130]
    same = {"batch_size": 32, "shuffle": True, "seed": 9, "presample": 2, "drop_last": drop_last}
    for rank in range(3):
        same |= {"rank": rank, "world_size": 3}
        cpu = tg.NeighborLoader(path, [4, 4], seeds, **same)
        gpu = tg.NeighborLoader(path, [4, 4], seeds, device="cuda", **same)
        for a, b in zip(cpu, gpu, strict=True):
            for name in ("n_id", "edge_index", "input_id"):
                assert torch.equal(a[name], b[name].cpu()), name


STORAGE = {"device_memory": "4MiB", "memory": "45MiB", "threads": 1}
"""What leaves most rows of `wide` to storage: reading them takes 10 MiB, an opened graph 32 MiB."""


@pytest.fixture(scope="module", params=["f32", "f16", "int8"])
def wide(request, tmp_path_factory):
    """A graph of 18 MB of features."""
    rng = np.random.default_rng(4)
    edges = rng.integers(0, VERTICES, (2, 30_000))
    dim = {"f32": 1500, "f16": 3000, "int8": 6000}[request.param]
    x = rng.normal(size=(VERTICES, dim)).astype(np.float32)
    path = tmp_path_factory.mktemp("gpu") / "wide.tg"
    tg.build(tuple(edges), path, order="degree", features=x, feature_dtype=request.param)
    return path


@pytest.fixture(scope="module")
def dense(tmp_path_factory):
    """A graph of 16 MB of neighbours, twice as many as `STORAGE` leaves to a loader."""
    rng = np.random.default_rng(4)
    edges = np.minimum(rng.zipf(1.4, 4_000_000), VERTICES) - 1, rng.integers(0, VERTICES, 4_000_000)
    x = rng.normal(size=(VERTICES, DIM)).astype(np.float32)
    path = tmp_path_factory.mktemp("gpu") / "dense.tg"
    tg.build(edges, path, order="none", ids="dense", features=x)
    return path


@pytest.mark.parametrize("fanouts", [[25, 10], [30], []], ids=str)
@pytest.mark.parametrize("prefetch", [None, 1, 7])
@pytest.mark.parametrize(
    "io", ["auto", "gpu", "gpu:coupled", "gpu:coupled-cache", "gpu:modelled:t705*3"]
)
def test_rows_come_from_storage(wide, fanouts, prefetch, io):
    path, seeds = wide, np.arange(0, VERTICES, 3)
    same = {"batch_size": 128, "shuffle": True, "seed": 9, "presample": 2}
    cpu = tg.NeighborLoader(path, fanouts, input_nodes=seeds, **same)
    gpu = tg.NeighborLoader(
        path, fanouts, input_nodes=seeds, device="cuda", prefetch=prefetch, io=io, **same, **STORAGE
    )
    placed = gpu.kept()
    assert placed["storage_rows"] > 0, placed
    assert ("cached_rows" in placed) == ("cache" in io), placed
    for _ in range(2):
        for a, b in zip(cpu, gpu, strict=True):
            assert torch.equal(a.n_id, b.n_id.cpu())
            assert torch.equal(a.x, b.x.cpu())
        assert gpu.last_epoch["missed_rows"] > 0
        read, missed = gpu.last_epoch["bytes_ssd"], gpu.last_epoch["missed_rows"]
        if io == "auto":
            assert read == 4096 * gpu.last_epoch["distinct_pages"]
        else:  # Blocks of 512 bytes: no row of 6,000 or 6,004 bytes has more than 13.
            read -= 4096 * gpu.last_epoch["list_pages"]
            assert 12 * 512 * missed <= read <= 13 * 512 * missed
        next(iter(gpu))  # An epoch that is left half-way leaves nothing behind.
        gpu.set_epoch(cpu.epoch)


@pytest.mark.parametrize("io", ["gpu", "gpu:modelled:t705*3"])
def test_lists_come_from_storage(wide, io):
    same = {"batch_size": 128, "shuffle": True, "seed": 9, "presample": 2}
    how = {"device": "cuda", "io": io, "placement": "features"} | STORAGE
    cpu = tg.NeighborLoader(wide, [25, 10], **same)
    gpu = tg.NeighborLoader(wide, [25, 10], **same, **how)
    placed = gpu.kept()
    assert (placed["made_on"], placed["device_list_bytes"]) == ("gpu", 0), placed
    assert placed["storage_list_bytes"] > 0, placed
    assert placed["list_reads_by"] == "gpu", placed
    for a, b in zip(cpu, gpu, strict=True):
        assert torch.equal(a.n_id, b.n_id.cpu())
        assert torch.equal(a.edge_index, b.edge_index.cpu())
        assert torch.equal(a.x, b.x.cpu())
    assert gpu.last_epoch["list_pages"] > 0
    assert gpu.last_epoch["transactions"]["storage_lists"] > 0


@pytest.mark.parametrize("io", ["auto", "posix", "gpu"])
@pytest.mark.parametrize("placement", ["unified", "topology", "features"])
def test_lists_that_fit_neither_memory(dense, io, placement):
    """The host reads pages of them for kernels, or these read them by themselves."""
    path, seeds = dense, np.arange(0, VERTICES, 20)
    same = {"batch_size": 50, "shuffle": True, "seed": 9, "presample": 2}
    how = {"device": "cuda", "io": io, "placement": placement} | STORAGE
    cpu = tg.NeighborLoader(path, [25, 10], seeds, **same)
    with warnings.catch_warnings():
        warnings.simplefilter("error", tg.FallbackWarning)
        gpu = tg.NeighborLoader(path, [25, 10], seeds, **same, **how)
    placed = gpu.kept()
    assert placed["made_on"] == "gpu", placed.get("why")
    assert placed["storage_list_bytes"] > 0, placed
    assert placed["list_reads_by"] == ("gpu" if io == "gpu" else "host"), placed
    for _ in range(2):
        for a, b in zip(cpu, gpu, strict=True):
            assert torch.equal(a.n_id, b.n_id.cpu())
            assert torch.equal(a.edge_index, b.edge_index.cpu())
            assert torch.equal(a.x, b.x.cpu())
        epoch = gpu.last_epoch
        assert epoch["list_pages"] > 0
        assert epoch["transactions"]["storage_lists"] > 0
        assert epoch["bytes_ssd"] >= 4096 * epoch["list_pages"]


@pytest.mark.parametrize("io", ["auto", "gpu"])
def test_damaged_rows_are_found_on_their_way(wide, tmp_path, io):
    copy = shutil.copytree(wide, tmp_path / "damaged.tg")
    rows = copy / "features" / "x.rows"
    with rows.open("r+b") as file:
        # Of one of the last rows, which memory has no room for.
        file.seek(rows.stat().st_size // 8 * 7)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))
    how = {"batch_size": 500, "device": "cuda", "presample": 0, "io": io}
    loader = tg.NeighborLoader(copy, [5], **how, **STORAGE)
    with pytest.raises(tg.FormatError, match=r"x\.rows"):
        list(loader)


def test_rows_without_checksums_are_not_read_by_the_gpu(wide, tmp_path):
    copy = shutil.copytree(wide, tmp_path / "older.tg")
    manifest = json.loads((copy / "manifest.json").read_text())
    del manifest["files"]["features/x.row_crc"]
    (copy / "features" / "x.row_crc").unlink()
    write_manifest(copy, manifest)
    how = {"batch_size": 500, "device": "cuda", "presample": 0, "io": "gpu"}
    with pytest.raises(tg.InputError, match=r"a checksum for each row") as refused:
        tg.NeighborLoader(copy, [5], **how, **STORAGE)
    assert "checksum_features" in str(refused.value)
    tg.checksum_features(copy)
    assert len(list(tg.NeighborLoader(copy, [5], **how, **STORAGE))) == -(-VERTICES // 500)


def test_who_has_no_kernels_does_not_read_by_them(wide):
    with pytest.raises(tg.InputError, match="expected a loader or a graph on a GPU"):
        tg.NeighborLoader(wide, [5], io="gpu")
    with pytest.raises(tg.InputError, match="expected a loader or a graph on a GPU"):
        tg.open(wide, io="gpu")


def test_damage_of_a_batch_that_is_ahead_is_told_when_its_turn_comes(tmp_path):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(VERTICES, 4000)).astype(np.float32)
    path = tmp_path / "damaged.tg"
    tg.build(tuple(rng.integers(0, VERTICES, (2, 30_000))), path, order="none", features=x)
    memory = {"device_memory": "4MiB", "memory": "60MiB", "threads": 2}
    # A batch is read in three pieces of 65 rows, a MiB each; the last batch is one row, which may
    # be read before the last piece of the batch before.
    seeds = np.arange(13 * 195 + 1)
    loader = tg.NeighborLoader(
        path, [], seeds, batch_size=195, device="cuda", presample=0, prefetch=7, **memory
    )
    assert loader.kept()["storage_rows"] > VERTICES // 2, loader.kept()
    rows = path / "features" / "x.rows"
    with rows.open("r+b") as file:
        file.seek(rows.stat().st_size // VERTICES * seeds[-1])
        file.write(b"damage")
    for _ in range(12):
        handed_over = []
        with pytest.raises(tg.FormatError, match=r"x\.rows"):
            handed_over.extend(loader)
        assert len(handed_over) == len(loader) - 1
        for batch in handed_over:
            assert torch.equal(torch.from_numpy(x[batch.n_id.cpu()]), batch.x.cpu())


@pytest.mark.parametrize("model", ["sage", "gcn"])
def test_training_where_the_batches_are(tmp_path, model):
    graph = tmp_path / "sbm.tg"
    tg.generate(
        "sbm",
        graph,
        vertices=4000,
        communities=8,
        mean_degree=12,
        inside=0.9,
        features=16,
        classes=8,
        seed=5,
    )
    losses, scores = [], []
    for device in ("cpu", "cuda"):
        # Dropout would draw otherwise there.
        options = TrainOptions(
            model=model,
            fanout=(10, 5),
            batch_size=128,
            epochs=6,
            hidden=64,
            dropout=0.0,
            device=device,
        )
        trainer = Trainer(str(graph), options)
        trainer.train()
        assert trainer.history[-1]["nodes"] > 0
        assert trainer.history[-1]["seconds_wait"] > 0
        losses.append(trainer.history[0]["loss"])
        scores.append(trainer.test()["accuracy"])
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)
    assert scores[1] == pytest.approx(scores[0], abs=0.05)
    assert scores[0] > 0.7


def test_lists_of_many_parts_of_host_memory(tmp_path):
    # Edges whose neighbours lie in more than 128 MiB of host memory are listed by parts of it.
    path, vertices, edges = tmp_path / "g.tg", 1 << 18, 34 << 20
    tg.generate("uniform", path, vertices=vertices, edges=edges, layouts="training", order="none")
    same = {
        "batch_size": 40,
        "input_nodes": np.arange(0, vertices, vertices // 100),
        "presample": 0,
    }
    fanouts, room = [12, 5], {"device": "cuda", "device_memory": "40MiB", "placement": 1.0}
    cpu = tg.NeighborLoader(path, fanouts, **same)
    gpu = tg.NeighborLoader(path, fanouts, **same, **room)
    assert gpu.kept()["host_list_bytes"] == 4 * edges
    for a, b in zip(cpu, gpu, strict=True):
        for name in ("n_id", "edge_index", "e_id", "degree"):
            assert torch.equal(a[name], b[name].cpu()), name


def test_rows_are_placed_by_their_use(path):
    loader = tg.NeighborLoader(path, [5], batch_size=64, device="cuda", device_memory="1MiB")
    placed = loader.kept()
    assert placed["device_rows"] + placed["host_rows"] == VERTICES
    assert placed["device_bytes"] <= 1 << 20


def test_repeated_seeds(path):
    seeds = np.repeat(tg.open(path).ids[:10], 3)
    cpu = next(iter(tg.NeighborLoader(path, [4, 4], batch_size=30, input_nodes=seeds)))
    loader = tg.NeighborLoader(path, [4, 4], batch_size=30, input_nodes=seeds, device="cuda")
    gpu = next(iter(loader))
    assert torch.equal(cpu.n_id, gpu.n_id.cpu())
    assert torch.equal(cpu.edge_index, gpu.edge_index.cpu())


def test_a_few_multiprocessors_make_the_same_batches(path):
    shape = {"num_neighbors": [10, 5], "batch_size": 512, "shuffle": True}
    most = tg.NeighborLoader(path, **shape, device="cuda").kept()["multiprocessors"] // 2
    with warnings.catch_warnings():
        warnings.simplefilter("error", tg.FallbackWarning)
        try:
            gpu = tg.NeighborLoader(path, **shape, device="cuda", multiprocessors=most)
        except tg.FallbackWarning as why:
            pytest.skip(f"no green contexts here: {why}")
    assert 0 < gpu.kept()["multiprocessors"] <= most
    for batch, expected in zip(gpu, tg.NeighborLoader(path, **shape), strict=True):
        same(batch, expected)


def test_an_epoch_counts_what_the_gpu_was_given(path):
    loader = tg.NeighborLoader(path, [5, 5], batch_size=512, device="cuda")
    assert len(list(loader)) == len(loader)
    done = loader.last_epoch
    # The seeds, `start`, the sizes; eight kernels and the sizes a hop; `forget`, `give`, `gather`.
    assert done["submissions"] == len(loader) * (3 + 2 * 9 + 3)
    assert 0 < done["seconds_submit"] <= done["seconds_sample"] + done["seconds_fill"]


def same(moved, expected):
    """Whether a batch is another on the GPU."""
    assert set(moved.keys()) == set(expected.keys())
    for key, value in expected.to_dict().items():
        if isinstance(value, torch.Tensor):
            assert moved[key].is_cuda
            assert torch.equal(moved[key].cpu(), value), key
        else:
            assert moved[key] == value, key


@pytest.mark.parametrize(
    ("options", "memory"),
    [({"disjoint": True, "features": None}, None), ({}, "16KiB")],
)
def test_what_is_neither_sampled_nor_gathered_there_is_moved_there(path, options, memory):
    shape = {"num_neighbors": [4, 3], "batch_size": 16, "shuffle": True} | options
    with pytest.warns(tg.FallbackWarning, match="made on the CPU and moved there"):
        loader = tg.NeighborLoader(path, **shape, device="cuda", device_memory=memory)
    assert loader.kept()["made_on"] == "cpu"
    moved, expected = list(loader), list(tg.NeighborLoader(path, **shape))
    assert len(moved) == len(expected) == len(loader)
    for pair in zip(moved, expected, strict=True):
        same(*pair)


def valued(folder, attribute):
    """A graph with features, and weights and times of edges or features of edges."""
    rng = np.random.default_rng(6)
    pairs, path = tuple(rng.integers(0, 600, (2, 6000))), folder / "valued.tg"
    given = {"features": rng.normal(size=(600, DIM)).astype(np.float32)}
    if attribute == "edge_attr":
        given["edge_features"] = rng.random((6000, 3), dtype=np.float32)
    tg.build(pairs, path, order="degree", labels=rng.integers(0, 7, 600), **given)
    if attribute != "edge_attr":
        values = {"weight": rng.random(6000, dtype=np.float32), "time": rng.integers(0, 1000, 6000)}
        tg.add_edge_values(path, pairs, values=values)
    return path


TIMES = {"time_attr": "time", "input_time": np.full(600, 500)}


@pytest.mark.parametrize("memory", [None, "40KiB"])
@pytest.mark.parametrize(
    ("attribute", "options"),
    [
        ("weight", {"weight_attr": "weight"}),
        ("time", TIMES),
        ("time", TIMES | {"temporal_strategy": "last"}),
        ("time", TIMES | {"weight_attr": "weight"}),
        ("disjoint", {"disjoint": True}),
        ("disjoint", {"disjoint": True, "drop_last": True, "rank": 1, "world_size": 2}),
        ("edge_attr", {}),
        ("values", {}),
    ],
)
def test_the_gpu_gathers_what_the_cpu_samples(tmp_path, attribute, options, memory):
    path = valued(tmp_path, attribute)
    shape = {"num_neighbors": [4, 3], "batch_size": 64, "shuffle": True, "seed": 5} | options
    cpu = tg.NeighborLoader(path, **shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error", tg.FallbackWarning)
        gpu = tg.NeighborLoader(path, **shape, device="cuda", device_memory=memory)
    kept = gpu.kept()
    assert kept["made_on"] == "both"
    assert kept["device_rows"] + kept["host_rows"] == 600
    assert (kept["host_rows"] > 0) == (memory is not None)
    for _ in range(2):
        for pair in zip(gpu, cpu, strict=True):
            same(*pair)
        for count in ("nodes", "edges", "batches"):
            assert gpu.last_epoch[count] == cpu.last_epoch[count]
    # A run that is resumed goes on with the same batches.
    batches = iter(gpu)
    next(batches)
    state = gpu.state_dict()
    batches.close()
    gpu.load_state_dict(state)
    cpu.load_state_dict(state)
    for pair in zip(gpu, cpu, strict=True):
        same(*pair)


def test_moved_batches_begin_when_they_are_asked_for(path):
    made = []
    loader = tg.NeighborLoader(
        path,
        [3],
        batch_size=1500,
        disjoint=True,
        transform=lambda batch: made.append(batch) or batch,
        device="cuda",
    )
    batches = iter(loader)
    assert not made
    next(batches)
    while len(made) < 2:  # One is on its way.
        time.sleep(0.01)
    next(batches)
    assert len(made) == 2
    assert list(batches) == list(batches) == []


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("neg_sampling", [None, "binary", "triplet"])
def test_the_gpu_makes_batches_of_links(path, disjoint, neg_sampling):
    links = tg.open(path).ids[np.random.default_rng(5).integers(0, 30, (2, 40))]
    shape = {"num_neighbors": [3], "edge_label_index": links, "batch_size": 16, "shuffle": True}
    shape |= {"disjoint": disjoint, "neg_sampling": neg_sampling}
    with warnings.catch_warnings():
        warnings.simplefilter("error", tg.FallbackWarning)
        loader = tg.LinkNeighborLoader(path, device="cuda", **shape)
    assert loader.kept()["made_on"] == ("both" if disjoint else "gpu")
    for pair in zip(loader, tg.LinkNeighborLoader(path, **shape), strict=True):
        same(*pair)


def test_batches_of_typed_graphs_are_moved_there(tmp_path):
    rng = np.random.default_rng(7)
    path = tmp_path / "typed.tg"
    tg.build_hetero(
        path,
        nodes={"a": {"features": rng.random((40, 3), dtype=np.float32)}, "b": {"vertices": 30}},
        edges={("b", "to", "a"): (rng.integers(0, 30, 200), rng.integers(0, 40, 200))},
    )
    with pytest.warns(tg.FallbackWarning, match="several types"):
        loader = tg.NeighborLoader(path, [4], "a", batch_size=8, device="cuda")
    for moved, expected in zip(
        loader, tg.NeighborLoader(path, [4], "a", batch_size=8), strict=True
    ):
        assert moved["a"].x.is_cuda
        assert torch.equal(moved["a"].x.cpu(), expected["a"].x)
        edge_type = ("b", "to", "a")
        assert torch.equal(moved[edge_type].edge_index.cpu(), expected[edge_type].edge_index)


def test_an_unknown_device_is_refused(path):
    with pytest.raises(tg.InputError, match="`cpu`, `cuda`, `cuda:N`"):
        tg.NeighborLoader(path, [2], device="tpu")


def test_a_job_is_measured_where_a_gpu_trains(wide):
    seeds = np.arange(0, VERTICES, 3)
    how = {"batch_size": 64, "shuffle": True, "device": "cuda", "io": "gpu:modelled:p5510*2"}
    loader = tg.NeighborLoader(wide, [5, 5], input_nodes=seeds, **how, **STORAGE)
    job = tg.measure_job(loader, lambda batch: batch.x.sum())
    assert loader.epoch == 0
    assert job.is_on_gpu
    assert 0 < job.drive_share <= 1
    assert job.drive_reads > 0
    assert 12 * 512 <= job.drive_bytes / job.drive_reads <= 13 * 512
    # What it misses, as it was seen to want and not have, in an epoch that placing did not look at.
    loader.set_epoch(7)
    batches = sum(1 for _ in loader)
    kept, read = loader.kept(), loader.last_epoch
    assert (job.device_rows, job.host_rows) == (kept["device_rows"], kept["host_rows"])
    at, missed = np.transpose(job.misses)
    expected = np.interp(job.device_rows + job.host_rows, at, missed)
    assert expected == pytest.approx(read["missed_rows"] / batches, rel=0.2)
    plan = tg.plan(job, drive="p5510")
    assert plan.best.device_cache_bytes == job.device_rows * job.row_bytes
    all_rows = tg.plan(job, drive="p5510", host_cache="1GiB").best
    assert all_rows.seeds_per_second >= plan.best.seeds_per_second
