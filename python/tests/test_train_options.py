"""What a training run takes and saves: schedules, splits, seeds, models, predictions."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from communities import build_communities

import tiergraph as tg
from tiergraph import pyg
from tiergraph.cli import main
from tiergraph.train import LinkTrainer, Trainer, TrainOptions, load, train_seeds
from tiergraph.train.data import class_weights
from tiergraph.train.schedule import rate

try:
    torch = pyg.torch()
    pyg.geometric("nn")
except tg.InputError as error:
    pytest.skip(str(error), allow_module_level=True)

SMALL = TrainOptions(hidden=8, fanout=(4, 3), batch_size=40, epochs=3, lr=0.01, heads=2)
ON_COMMAND_LINE = ["--epochs", "2", "--hidden", "8", "--fanout", "4,3"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return build_communities(tmp_path_factory.mktemp("options"))


def test_the_step_size_grows_and_falls_as_the_schedule_says():
    cosine = replace(SMALL, epochs=10, lr=1.0, schedule="cosine", warmup=2)
    assert [rate(cosine, done) for done in (0, 1, 2)] == [0, 0.5, 1.0]
    assert rate(cosine, 6) == pytest.approx(0.5)
    assert rate(cosine, 10) == pytest.approx(0)
    step = replace(SMALL, epochs=9, lr=1.0, schedule="step")
    assert [rate(step, done) for done in (0, 2.9, 3, 6)] == pytest.approx([1, 1, 0.1, 0.01])
    often = replace(step, step_epochs=1, step_factor=0.5)
    assert rate(often, 2.5) == 0.25
    assert rate(SMALL, 7.5) == SMALL.lr


def test_a_resumed_run_with_a_schedule_is_the_run(path, tmp_path):
    options = replace(SMALL, schedule="cosine", warmup=1, evaluate_every=2)
    whole = Trainer(path, options)
    whole.train()

    class KilledError(Exception):
        pass

    def kill(progress):
        if (progress.epoch, progress.stage, progress.done) == (2, "train", 1):
            raise KilledError

    file = tmp_path / "run.pt"
    with pytest.raises(KilledError):
        Trainer(path, options, checkpoint=file).train(kill)
    resumed = Trainer(path, options, checkpoint=file, resume=True)
    assert len(resumed.history) == 2
    resumed.train()
    for name in ("loss", "lr", "accuracy"):
        assert [r[name] for r in resumed.history] == [r[name] for r in whole.history]
    assert whole.history[0]["accuracy"] is None
    assert [record["validated"] for record in whole.history] == [False, True, True]
    assert whole.best["epoch"] > 0
    with pytest.raises(tg.InputError, match="expected epochs 3"):
        Trainer(path, replace(options, epochs=5), checkpoint=file, resume=True)


@pytest.mark.parametrize(
    ("io", "of_the_host"),
    [
        ("auto", "auto"),
        ("modelled:p5510*2", "modelled:p5510*2"),
        ("gpu", "auto"),
        ("gpu:auto", "auto"),
        ("gpu:coupled:modelled:t705*3", "modelled:t705*3"),
        ("gpu:coupled-cache:modelled:t705*3", "modelled:t705*3"),
        ("gpu:coupled-cache", "auto"),
        ("gpu:0000:01:00.0,0000:02:00.0", "nvme:0000:01:00.0,0000:02:00.0"),
    ],
)
def test_the_host_reads_from_where_the_gpu_does(io, of_the_host):
    assert TrainOptions(io=io).host_io == of_the_host


def test_all_that_a_run_reads_is_read_by_its_engine(path, monkeypatch):
    opened = []

    def noted(*given, **how):
        opened.append(how["io"])
        return tg.open(*given, **how)

    monkeypatch.setattr("tiergraph.train.evaluate.open", noted)
    runs = []
    for io in ("posix", "modelled:t705*2"):
        trainer = Trainer(path, replace(SMALL, io=io))
        trainer.train()
        assert trainer.loader.reads_by == trainer.graph.io == io
        assert set(opened) == {io}
        opened.clear()
        runs.append([(epoch["loss"], epoch["accuracy"]) for epoch in trainer.history])
    assert runs[0] == runs[1]


def test_an_engine_that_there_is_not_is_refused(path):
    with pytest.raises(tg.InputError, match="io"):
        TrainOptions(io="floppy")


@pytest.mark.parametrize("model", ["sage", "gat"])
def test_who_watches_is_told_of_training_and_evaluation(path, model):
    told = []
    options = replace(SMALL, model=model, epochs=3, evaluate_every=2)
    trainer = Trainer(path, options)
    trainer.train(told.append)
    in_training = len(told)
    trainer.test()
    for epoch in range(3):
        trained = [p for p in told if (p.epoch, p.stage) == (epoch, "train")]
        assert [p.done for p in trained] == list(range(1, len(trainer.loader) + 1))
        assert {p.total for p in trained} == {len(trainer.loader)}
        assert trained[-1].loss == pytest.approx(trainer.history[epoch]["loss"])
        evaluated = [p for p in told[:in_training] if (p.epoch, p.stage) == (epoch, "evaluate")]
        assert bool(evaluated) == trainer.history[epoch]["validated"]
    tested = told[in_training:]
    assert {(p.epoch, p.stage) for p in tested} == {(3, "evaluate")}
    assert [p.done for p in tested] == list(range(1, tested[0].total + 1))


def test_patience_waits_for_the_next_validation(path):
    options = replace(SMALL, lr=0.0, epochs=20, evaluate_every=3, patience=4)
    trainer = Trainer(path, options)
    trainer.train()
    # Best at the first look, after epoch 2; over at the third, after epoch 8.
    assert (trainer.best["epoch"], len(trainer.history)) == (2, 9)


@pytest.mark.parametrize(
    ("seeds", "size"), [(5, 8), (140, 8), (200, 16), (1000, 64), (10_240, 1024), (10**7, 1024)]
)
def test_batches_are_small_where_seeds_are_few(seeds, size):
    assert replace(SMALL, batch_size=None).for_seeds(seeds).batch_size == size
    assert SMALL.for_seeds(seeds).batch_size == 40


def test_few_seeds_learn_with_the_defaults(path, tmp_path):
    """Eighty seeds of a graph; in one batch of 1,024 they learn nothing in ten epochs."""
    graph = tg.open(path)
    few = np.zeros(1200, dtype=bool)
    few[np.random.default_rng(0).choice(1200, 80, replace=False)] = True
    tg.add_features(path, splits={"few": few})
    options = TrainOptions(splits=("few", "val", "test"))
    small, one = Trainer(path, options), Trainer(path, replace(options, batch_size=1024))
    small.train()
    one.train()
    assert small.options.batch_size == 8
    assert small.notes == [
        "batches of 8 of the 80 seeds, 10 steps an epoch; `batch_size` takes another"
    ]
    assert small.test()["accuracy"] > 0.75
    assert small.history[-1]["loss"] < one.history[-1]["loss"] / 2
    assert graph.vertices == 1200


def test_classes_that_are_rare_weigh_more():
    labels = np.array([0, 0, 0, 2])
    assert class_weights(None, labels, 3) is None
    np.testing.assert_allclose(class_weights("balanced", labels, 3), [4 / 6, 0, 2])
    np.testing.assert_array_equal(class_weights((1, 2, 0.5), labels, 3), [1, 2, 0.5])
    for wrong in ((1, 2), (1, 2, -1), (1, 2, float("nan"))):
        with pytest.raises(tg.InputError, match="3 numbers of 0 or more"):
            class_weights(wrong, labels, 3)


def test_a_class_that_weighs_nothing_is_not_learnt(path):
    trainer = Trainer(path, replace(SMALL, epochs=8, class_weights=(0, 1, 1, 1)), predicts=True)
    trainer.train()
    classes, _ = trainer.predictions()
    assert (classes == 0).mean() < 0.02
    with pytest.raises(tg.InputError, match="expected the task `node`"):
        replace(SMALL, task="link", class_weights="balanced")


@pytest.mark.parametrize("model", ["sage", "gcn", "gat"])
def test_models_with_residuals_learn(path, model):
    trainer = Trainer(path, replace(SMALL, model=model, residual=True, epochs=20))
    trainer.train()
    assert trainer.history[-1]["loss"] < trainer.history[0]["loss"]
    assert trainer.test()["accuracy"] > 0.6


def test_residuals_without_skips_are_the_model(path):
    """What goes past the layers at zero adds nothing."""
    plain, past = (Trainer(path, replace(SMALL, residual=r, epochs=1)) for r in (False, True))
    for skip in past.model.skips:
        torch.nn.init.zeros_(skip.weight)
    past.model.load_state_dict(plain.model.state_dict(), strict=False)
    batch = next(iter(plain.loader))
    hops = batch.num_sampled_nodes, batch.num_sampled_edges
    given = batch.x, batch.edge_index
    names = ("num_sampled_nodes_per_hop", "num_sampled_edges_per_hop")
    of_both = [t.model.eval()(*given, **dict(zip(names, hops, strict=True))) for t in (plain, past)]
    torch.testing.assert_close(*(values[: batch.batch_size] for values in of_both))


def test_splits_are_named_and_must_be_there(path):
    trainer = Trainer(path, replace(SMALL, splits=("val", "train", ""), epochs=1))
    trainer.train()
    splits = tg.open(path).splits
    assert len(trainer._train) == splits["val"].sum()
    assert len(trainer._val) == splits["train"].sum()
    assert trainer.test() == {"accuracy": None}
    for wrong in (("trian", "val", "test"), ("train", "validation", "test")):
        with pytest.raises(tg.InputError, match=r"use the split `(trian|validation)`"):
            Trainer(path, replace(SMALL, splits=wrong))


@pytest.mark.parametrize("model", ["sage", "gat"])
def test_a_saved_model_gives_what_the_trained_one_gave(path, tmp_path, model):
    trainer = Trainer(path, replace(SMALL, model=model, residual=True, norm="layer"), predicts=True)
    trainer.train()
    trainer.save(tmp_path / "model.pt")
    saved = load(tmp_path / "model.pt")
    assert (saved.options.model, saved.features, saved.outputs) == (model, 16, 4)
    assert saved.graph["vertices"] == 1200
    assert saved.score == trainer.best["score"]
    logits = saved.logits(path)
    classes, confidence = trainer.predictions()
    np.testing.assert_array_equal(logits.argmax(axis=1), classes)
    chances = torch.from_numpy(logits).softmax(dim=1).numpy()
    np.testing.assert_allclose(chances.max(axis=1), confidence, rtol=1e-4)
    some = saved.logits(path, [5, 3, 1100])
    np.testing.assert_allclose(some, logits[[5, 3, 1100]], rtol=1e-4, atol=1e-5)
    with pytest.raises(tg.InputError, match="ids of the graph"):
        saved.logits(path, [5000])


def test_what_is_no_saved_model_is_refused(path, tmp_path):
    with pytest.raises(tg.IoError, match="read the model"):
        load(tmp_path / "absent.pt")
    checkpoint = tmp_path / "run.pt"
    Trainer(path, replace(SMALL, epochs=1), checkpoint=checkpoint).train()
    with pytest.raises(tg.FormatError, match="got a checkpoint of a run"):
        load(checkpoint)
    trainer = Trainer(path, replace(SMALL, epochs=1))
    trainer.train()
    trainer.save(tmp_path / "model.pt")
    with pytest.raises(tg.FormatError, match="got a saved model"):
        Trainer(path, SMALL, checkpoint=tmp_path / "model.pt", resume=True)
    whole = (tmp_path / "model.pt").read_bytes()
    (tmp_path / "model.pt").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(tg.FormatError, match="read the model"):
        load(tmp_path / "model.pt")


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npy"])
def test_predictions_are_files_beside_the_users_ids(path, tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    file, model = tmp_path / f"found{suffix}", tmp_path / "model.pt"
    flags = [*ON_COMMAND_LINE, "--predict", str(file), "--save", str(model)]
    assert main(["train", path, *flags]) == 0
    expected = load(model).logits(path).argmax(axis=1)
    if suffix == ".npy":
        table = np.load(file)
        vertex, classes, confidence = (table[n] for n in ("vertex", "class", "confidence"))
    elif suffix == ".csv":
        assert file.read_text().splitlines()[0] == "vertex,class,confidence"
        vertex, classes, confidence = np.loadtxt(file, delimiter=",", skiprows=1).T
    else:
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(file).to_pydict()
        vertex, classes, confidence = (table[n] for n in ("vertex", "class", "confidence"))
    np.testing.assert_array_equal(vertex, np.arange(1200))
    np.testing.assert_array_equal(classes, expected)
    assert 0.25 <= min(confidence) <= max(confidence) <= 1


def test_several_seeds_have_a_mean_and_a_deviation(path, capsys):
    flags = [*ON_COMMAND_LINE, "--seeds", "3", "--seed", "5"]
    assert main(["train", path, *flags, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["seeds"] == [5, 6, 7]
    scores = [run["test"]["accuracy"] for run in report["runs"]]
    assert len(set(scores)) > 1
    assert report["summary"]["test_accuracy"] == {
        "mean": pytest.approx(np.mean(scores)),
        "deviation": pytest.approx(np.std(scores, ddof=1)),
    }
    best = [max(r["accuracy"] for r in run["epochs"]) for run in report["runs"]]
    assert report["summary"]["validation_accuracy"]["mean"] == pytest.approx(np.mean(best))
    assert report["best_seed"] == 5 + int(np.argmax(best))
    assert [run["options"]["seed"] for run in report["runs"]] == [5, 6, 7]
    assert main(["train", path, *ON_COMMAND_LINE, "--seed", "1", "--seed", "9"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in table] == ["seed", "1", "9", "mean", "deviation"]


def test_the_model_of_several_seeds_is_the_best_ones(path):
    made = {}

    def make(seed):
        made[seed] = Trainer(path, replace(SMALL, epochs=1, seed=seed))
        return made[seed]

    trainer, report = train_seeds(make, [1, 2, 3], path)
    best = made[report["best_seed"]]
    assert trainer is made[3]
    trainer.test()
    for name, tensor in best.best["model"].items():
        assert torch.equal(tensor, trainer.model.state_dict()[name])
    assert trainer.options.seed == report["best_seed"]


def test_links_are_saved_and_not_predicted(path, tmp_path):
    options = replace(SMALL, task="link", links=400, epochs=1)
    trainer = LinkTrainer(path, options)
    trainer.train()
    trainer.save(tmp_path / "model.pt")
    assert load(tmp_path / "model.pt").logits(path, [1, 2]).shape == (2, 8)
    with pytest.raises(tg.InputError, match="expected the task `node`"):
        LinkTrainer(path, options, predicts=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--splits", "a,b,c,d"], "up to three names"),
        (["--splits", ",val"], "up to three names"),
        (["--class-weights", "a"], "numbers such as 1,2,0.5"),
        (["--seeds", "2", "--seed", "1", "--seed", "2"], "one `--seed`"),
        (["--seed", "1", "--seed", "1"], "different seeds"),
        (["--seeds", "2", "--checkpoint", "run.pt"], "neither `--checkpoint` nor a curve"),
        (["--step-factor", "0"], "above 0"),
        (["--predict", "found.txt"], "a file name in .parquet, .arrow, .csv, .npy"),
        (["--save", "absent/model.pt"], "no file in a writable directory"),
    ],
)
def test_wrong_arguments_are_named(path, capsys, arguments, message):
    assert main(["train", path, *arguments]) == 1
    assert message in capsys.readouterr().err
