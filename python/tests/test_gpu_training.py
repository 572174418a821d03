"""Training on a GPU: features and values stay there while a model is evaluated."""

from __future__ import annotations

import numpy as np
import pytest
from communities import build_communities
from gpu_graphs import build, each_build, needs_gpu

import tiergraph as tg
from tiergraph.train import Trainer, TrainOptions, evaluate, load

torch = pytest.importorskip("torch", reason="tensors are PyTorch's")
pytest.importorskip("torch_geometric", reason="models are PyG's")

pytestmark = needs_gpu

SMALL = {"hidden": 8, "batch_size": 40, "epochs": 1, "lr": 0.01, "device": "cuda"}
PLACES = [{}, {"transfers": "sync"}, {"device_residency": False}]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A graph that is ordered by degree."""
    return build_communities(tmp_path_factory.mktemp("train"))


def on_gpu(values):
    return torch.from_numpy(values).to(tg.pyg.device("cuda"))


@each_build([{"codec": "packed", "order": "degree"}, {"codec": "raw", "layouts": "both"}])
def test_tensors_are_propagated_as_arrays_are(tmp_path, make, undirected, layout, has_weights):
    path = build(tmp_path, make, has_weights=has_weights, undirected=undirected, **layout)
    gpus = [tg.open(path, device="cuda", **place) for place in PLACES]
    for number, shape in enumerate([(), (1,), (4,), (7,)]):
        for dtype in (np.float32, np.float64):
            graph = gpus[number % len(gpus)]
            x = np.random.default_rng(5).normal(size=(graph.vertices, *shape)).astype(dtype)
            for reduce in ("sum", "min"):
                how = {"reduce": reduce, "transpose": number % 2 == 1, "weights": has_weights}
                found, expected = graph.propagate(on_gpu(x), **how), graph.propagate(x, **how)
                assert found.is_cuda
                assert found.cpu().numpy().dtype == dtype
                found = found.cpu().numpy()
                if reduce == "min":
                    np.testing.assert_array_equal(found, expected)
                    continue
                # The order of a sum varies; terms that cancel leave the rounding of the largest.
                size = graph.propagate(np.abs(x), **how)
                assert (np.abs(found - expected) <= 1e-5 * size).all()


def test_tensors_are_taken_as_they_are_and_integers_as_doubles(path):
    graph = tg.open(path, device="cuda")
    x = np.random.default_rng(1).integers(0, 9, (graph.vertices, 6))
    expected = graph.propagate(x)
    np.testing.assert_allclose(graph.propagate(on_gpu(x)).cpu().numpy(), expected)
    columns = on_gpu(x.astype(np.float64))[:, ::2].requires_grad_()
    np.testing.assert_allclose(graph.propagate(columns).cpu().numpy(), expected[:, ::2])


@pytest.mark.parametrize("width", [3, 64])
def test_tensors_that_do_not_fit_beside_each_other_take_several_passes(tmp_path, width):
    tg.generate("uniform", tmp_path / "g.tg", vertices=50_000, edges=100_000, order="degree")
    graph = tg.open(tmp_path / "g.tg", device="cuda", device_memory="40MiB", threads=1)
    x = np.random.default_rng(2).normal(size=(graph.vertices, width)).astype(np.float32)
    found = graph.propagate(on_gpu(x))
    assert (graph.last_run["iterations"] > 1) == (width == 64)
    np.testing.assert_allclose(
        found.cpu().numpy(), tg.open(graph.path).propagate(x), rtol=1e-4, atol=1e-4
    )


def test_wrong_tensors_are_refused(path):
    x = np.zeros((1200, 2), dtype=np.float32)
    with pytest.raises(tg.InputError, match="host memory, or on the graph's device: the CPU"):
        tg.open(path).propagate(on_gpu(x))
    with pytest.raises(tg.InputError, match=r"expected shape \(1200,\) or \(1200, F\)"):
        tg.open(path, device="cuda").propagate(on_gpu(x[:-1]))


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A graph that is ordered by degree, with 18 MB of features."""
    rng = np.random.default_rng(4)
    path = tmp_path_factory.mktemp("wide") / "g.tg"
    x = rng.normal(size=(3000, 1500)).astype(np.float32)
    tg.build(tuple(rng.integers(0, 3000, (2, 30_000))), path, order="degree", features=x)
    return path


@pytest.mark.parametrize(
    ("tier", "given"),
    [
        ("device", {}),
        ("host", {"device_memory": "4MiB"}),
        ("storage", {"device_memory": "4MiB", "memory": "45MiB", "threads": 1}),
    ],
)
@pytest.mark.parametrize("most", [700, 1 << 20])
def test_a_loader_gives_the_rows_of_all_vertices(wide, tier, given, most):
    loader = tg.NeighborLoader(wide, [3], batch_size=64, device="cuda", presample=2, **given)
    assert loader.kept()[f"{tier}_rows"] > 0, loader.kept()
    graph = tg.open(wide)
    expected = graph.features["x"].read(graph.ids)
    batches = [batch.x.cpu().clone() for batch in loader]
    loader.set_epoch(0)
    for _ in range(2):
        found = np.full_like(expected, np.nan)
        for positions, rows in loader.rows_on_device(most):
            assert len(positions) <= most
            found[positions.cpu().numpy()] = rows.cpu().numpy()
        np.testing.assert_array_equal(found, expected)
    given_up = loader.rows_on_device(700)
    next(given_up)
    given_up.close()
    assert all(torch.equal(a, b.x.cpu()) for a, b in zip(batches, loader, strict=True))


def test_a_loader_of_the_cpu_has_no_rows_on_a_device(path):
    assert tg.NeighborLoader(path, [3]).rows_on_device(50) is None


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("model", ["sage", "gcn"])
def test_evaluation_there_is_the_cpus(path, tmp_path, model, residual):
    options = TrainOptions(model=model, residual=residual, norm="layer", fanout=(4, 3, 2), **SMALL)
    trainer = Trainer(path, options)
    trainer.train()
    assert trainer.report(path)["evaluation"] == "layers on the GPU"
    trainer.save(tmp_path / "model.pt")
    saved = load(tmp_path / "model.pt")
    everything = np.arange(1200)
    on_the_cpu = saved.logits(path)
    np.testing.assert_allclose(trainer.logits(everything), on_the_cpu, rtol=1e-4, atol=1e-5)
    positions = np.flatnonzero(np.asarray(trainer.graph.splits["val"]))
    labels = np.asarray(trainer.graph.labels["y"])[positions]
    expected = (on_the_cpu[positions].argmax(axis=1) == labels).mean()
    assert trainer.history[0]["accuracy"] == pytest.approx(expected)


def test_features_are_read_where_the_loader_does_not_have_them(path, monkeypatch):
    trainer = Trainer(path, TrainOptions(fanout=(4, 3), **SMALL))
    trainer.train()
    everything = np.arange(1200)
    expected = trainer.logits(everything)
    monkeypatch.setattr(type(trainer.loader), "rows_on_device", lambda _loader, _most: None)
    np.testing.assert_allclose(trainer.logits(everything), expected, rtol=1e-5, atol=1e-6)


def test_values_that_do_not_fit_the_gpu_are_evaluated_on_the_cpu_and_said(path, monkeypatch):
    monkeypatch.setattr(evaluate, "DEVICE_PART", 1 << 60)
    with pytest.warns(tg.FallbackWarning, match="evaluation runs on the CPU: cannot evaluate"):
        trainer = Trainer(path, TrainOptions(fanout=(4, 3), **SMALL))
    trainer.train()
    assert trainer.report(path)["evaluation"] == "layers"
    assert any("evaluation runs on the CPU" in note for note in trainer.notes)


def test_a_bounded_run_evaluates_there_too(path):
    with pytest.raises(tg.BudgetError) as refused:
        Trainer(path, TrainOptions(fanout=(4, 3), memory="1MiB", **SMALL))
    trainer = Trainer(path, TrainOptions(fanout=(4, 3), memory="2GiB", **SMALL))
    trainer.train()
    assert trainer.report(path)["evaluation"] == "layers on the GPU"
    assert 1 << 20 < refused.value.enough_bytes <= 2 << 30
