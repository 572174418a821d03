"""Rows of features in another order: the same features, fewer pages."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tiergraph as tg
from tiergraph.cli import main

VERTICES, DIM = 3000, 128


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "g.tg"
    tg.generate(
        "sbm",
        path,
        vertices=VERTICES,
        communities=60,
        mean_degree=10,
        inside=0.9,
        features=DIM,
        classes=4,
        layouts="training",
    )
    return path


def rows(path):
    graph = tg.open(path, memory="64MiB")
    return graph.features["x"].read(graph.ids)


def test_every_order_keeps_the_features(path, tmp_path):
    before = rows(path)
    for by in ("hot", "degree", "none"):
        report = tg.order_features(path, by=by, num_neighbors=[5, 3], batch_size=30, seed=4)
        assert report["rows"] == VERTICES
        assert (path / "features" / "x.ids").exists() == (by != "none")
        np.testing.assert_array_equal(rows(path), before)
    assert report["hot"] is None


def test_hot_rows_come_first(path):
    report = tg.order_features(path, by="hot", num_neighbors=[5], batch_size=30, window=1)
    hot = report["hot"]
    train = tg.open(path).splits["train"]
    assert hot["windows"] == -(-int(np.sum(train)) // 30)
    trials = dict(hot["trials"])
    assert trials[hot["by"]] == min(trials.values()) < hot["trial_rows"]
    # Every seed is wanted once an epoch; what nobody wants comes last.
    ids = np.fromfile(path / "features" / "x.ids", dtype="<u4")
    assert sorted(ids) == list(range(VERTICES))
    order = np.fromfile(path / "order.ids", dtype="<u4") if (path / "order.ids").exists() else None
    seeds = np.flatnonzero(train if order is None else train[order])
    assert (ids[seeds] < hot["wanted_rows"]).all()


def test_the_command_says_what_it_did(path, capsys):
    assert (
        main(["features", "order", str(path), "--fanout", "5,3", "--batch-size", "50", "--json"])
        == 0
    )
    report = json.loads(capsys.readouterr().out)
    assert report["by"] == "hot"
    assert report["bytes"] == VERTICES * DIM * 4
    assert main(["features", "order", str(path), "--by", "degree"]) == 0
    assert main(["features", "order", str(path), "z"]) == 1
    assert "features `z`" in capsys.readouterr().err
    assert main(["features", "order", str(path), "--fanout", "many"]) == 1
    assert "numbers such as 25,10" in capsys.readouterr().err


def test_checksums_of_rows_are_written_anew(path, capsys):
    file = path / "features" / "x.row_crc"
    crcs = file.read_bytes()
    assert len(crcs) == 4 * VERTICES
    assert tg.checksum_features(path)["rows"] == VERTICES
    assert file.read_bytes() == crcs
    tg.order_features(path, by="degree")
    # The same checksums, where their rows are now.
    ids = np.fromfile(path / "features" / "x.ids", dtype="<u4")
    np.testing.assert_array_equal(np.fromfile(file, "<u4")[ids], np.frombuffer(crcs, "<u4"))
    assert main(["features", "checksum", str(path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["bytes"] == VERTICES * DIM * 4
    assert main(["features", "checksum", str(path), "x", "--memory", "2MiB"]) == 0
    assert main(["verify", str(path)]) == 0
    assert main(["features", "checksum", str(path), "z"]) == 1
    assert "cannot checksum the features `z`: expected one of the graph's: x" in (
        capsys.readouterr().err
    )
    with pytest.raises(tg.BudgetError):
        tg.checksum_features(path, memory=10_000)


def test_what_cannot_be_ordered_is_refused(path):
    with pytest.raises(tg.InputError, match="features `z`"):
        tg.order_features(path, "z", by="none")
    with pytest.raises(tg.InputError, match="expected seeds"):
        tg.order_features(path, input_nodes=np.zeros(VERTICES, dtype=bool))
    with pytest.raises(tg.BudgetError):
        tg.order_features(path, by="none", memory=10_000)
    plain = path.parent / "plain.tg"
    tg.generate("uniform", plain, vertices=10, edges=20)
    with pytest.raises(tg.InputError, match="features `x`"):
        tg.order_features(plain)
