"""Training out of core is training: the same losses, the same run after a resumption."""

from __future__ import annotations

import json

import numpy as np
import pytest
from communities import build_communities

import tiergraph as tg
from tiergraph import pyg
from tiergraph.cli import main
from tiergraph.train import Trainer, TrainOptions
from tiergraph.train import scores as tg_scores

try:
    torch = pyg.torch()
    pyg.geometric("nn")
except tg.InputError as error:
    pytest.skip(str(error), allow_module_level=True)

SMALL = TrainOptions(hidden=8, fanout=(4, 3), batch_size=40, epochs=4, lr=0.01, heads=2)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return build_communities(tmp_path_factory.mktemp("train"))


def changed(**given):
    return TrainOptions(**(SMALL.__dict__ | given))


def losses(trainer):
    return [record["loss"] for record in trainer.history]


@pytest.mark.parametrize("model", ["sage", "gcn", "gat"])
def test_models_learn(path, model):
    trainer = Trainer(path, changed(model=model, epochs=15))
    trainer.train()
    assert losses(trainer)[-1] < losses(trainer)[0]
    assert trainer.test()["accuracy"] > 0.6


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("model", ["sage", "gcn"])
def test_layer_by_layer_is_all_neighbours(path, model, residual):
    options = {"norm": "layer", "fanout": (3, 3, 3), "epochs": 1, "residual": residual}
    trainer = Trainer(path, changed(model=model, **options))
    trainer.train()
    positions = np.arange(0, 1200, 7)
    evaluator = trainer._evaluator
    assert evaluator.how == "layers"
    by_layers = evaluator.logits(trainer.model, positions)
    # The loader of batches in place of the passes.
    batches = next(way for way in evaluator.ways([positions]) if way.make != evaluator._make_layers)
    batches.make(None)
    assert evaluator.how == "neighbours"
    on_batches = evaluator.logits(trainer.model, positions)
    np.testing.assert_allclose(by_layers, on_batches, rtol=1e-4, atol=1e-5)


def test_whole_neighbourhoods_are_pygs_gcn(path):
    """PyG's own GCN on the whole graph in memory, with the weights that the batches trained."""
    nn = pyg.geometric("nn").models
    trainer = Trainer(path, changed(model="gcn", fanout=(-1, -1), epochs=2))
    trainer.train()
    whole = next(iter(tg.NeighborLoader(path, [-1], batch_size=1200)))
    twin = nn.GCN(16, 8, 2, trainer.classes)
    twin.load_state_dict(trainer.model.state_dict())
    expected = twin.eval()(whole.x, whole.edge_index).detach().numpy()
    found = trainer._evaluator.logits(trainer.model, np.arange(1200))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_losses_are_those_of_the_same_batches_in_memory(path):
    """A plain loop over batches whose features and labels come from arrays."""
    options = changed(model="sage", dropout=0.0)
    trainer = Trainer(path, options)
    trainer.train()
    graph = tg.open(path)
    x = torch.from_numpy(graph.features["x"].read(graph.ids))
    y = torch.from_numpy(graph.labels["y"].astype(np.int64))
    torch.manual_seed(options.seed)
    model = pyg.geometric("nn").models.GraphSAGE(16, 8, 2, trainer.classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    loader = tg.NeighborLoader(
        path, options.fanout, "train", batch_size=options.batch_size, shuffle=True, features=None
    )
    for expected in losses(trainer):
        total = 0.0
        for batch in loader:
            optimizer.zero_grad()
            logits = model(x[batch.n_id], batch.edge_index)[: batch.batch_size]
            loss = torch.nn.functional.cross_entropy(logits, y[batch.n_id[: batch.batch_size]])
            loss.backward()
            optimizer.step()
            total += float(loss.detach()) * batch.batch_size
        assert total / len(loader.seeds) == pytest.approx(expected, rel=1e-4)


def test_a_resumed_run_is_the_run(path, tmp_path):
    whole = Trainer(path, changed(model="gat", epochs=4))
    whole.train()
    file = tmp_path / "run.pt"
    Trainer(path, changed(model="gat", epochs=2), checkpoint=file).train()
    resumed = Trainer(path, changed(model="gat", epochs=4), checkpoint=file, resume=True)
    assert len(resumed.history) == 2
    resumed.train()
    assert losses(resumed) == losses(whole)
    assert resumed.best["epoch"] == whole.best["epoch"]
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, resumed.model.state_dict()[name])
    assert not (tmp_path / "run.pt.partial").exists()


def test_a_checkpoint_of_another_run_or_of_nothing_is_refused(path, tmp_path):
    file = tmp_path / "run.pt"
    with pytest.raises(tg.IoError, match="read the checkpoint"):
        Trainer(path, SMALL, checkpoint=file, resume=True)
    Trainer(path, changed(epochs=1), checkpoint=file).train()
    with pytest.raises(tg.InputError, match="expected hidden 8"):
        Trainer(path, changed(hidden=9), checkpoint=file, resume=True)
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(tg.FormatError, match="read the checkpoint"):
        Trainer(path, SMALL, checkpoint=file, resume=True)


def test_patience_ends_a_run(path):
    trainer = Trainer(path, changed(lr=0.0, epochs=50, patience=3))
    trainer.train()
    assert len(trainer.history) == 4
    assert trainer.best["epoch"] == 0


def test_scores():
    random = np.random.default_rng(1)
    values, labels = random.integers(0, 9, 300), random.integers(0, 2, 300)
    positive, negative = values[labels == 1][:, None], values[labels == 0][None, :]
    expected = ((positive > negative) + 0.5 * (positive == negative)).mean()
    assert tg_scores.roc_auc(values, labels) == pytest.approx(expected)
    assert np.isnan(tg_scores.roc_auc(values, np.ones(300, dtype=int)))


def test_the_command_prints_what_it_measured(path, tmp_path, capsys):
    curve = tmp_path / "curve.png"
    arguments = ["--epochs", "2", "--batch-size", "40", "--hidden", "8", "--fanout", "4"]
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    more = ["--layers", "2", "--memory", "512MiB", "--curve", str(curve), "--json"]
    assert main(["train", path, *arguments, *more]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["epochs"]) == 2
    assert report["options"]["fanout"] == [4, 4]
    for record in report["epochs"]:
        for name in (
            "seconds",
            "loss",
            "accuracy",
            "samples_per_second",
            "bytes_ssd",
            "bytes_host",
            "bytes_device",
            "distinct_pages",
            "seconds_sample",
            "seconds_gather",
            "seconds_wait",
            "seconds_train",
        ):
            assert record[name] >= 0, name
    assert curve.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--resume"], "expected `--checkpoint FILE`"),
        (["--fanout", "a"], "numbers such as 25,10"),
        (["--fanout", "3,3", "--layers", "1"], "expected 1, one a layer"),
    ],
)
def test_wrong_arguments_are_named(path, capsys, arguments, message):
    assert main(["train", path, *arguments]) == 1
    assert message in capsys.readouterr().err


def test_a_graph_without_labels_or_features_says_how_to_add_them(tmp_path):
    edges = np.arange(10), (np.arange(10) + 1) % 10
    tg.build(edges, tmp_path / "g.tg", layouts="both")
    with pytest.raises(tg.InputError, match=r'features="x\.npy"'):
        Trainer(str(tmp_path / "g.tg"), SMALL)
    tg.add_features(tmp_path / "g.tg", features=np.ones((10, 2)))
    with pytest.raises(tg.InputError, match=r'labels="y\.npy"'):
        Trainer(str(tmp_path / "g.tg"), SMALL)
