"""Features, labels and splits of tables whose rows say which vertex they belong to."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tiergraph as tg
from tiergraph.cli import main

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

NAMES = ["carol", "alice", "bob", "dave"]


@pytest.fixture
def named(tmp_path):
    """A graph whose vertices are numbered as their names come: carol, alice, bob, dave."""
    edges = pa.table({"src": ["carol", "alice", "bob"], "dst": ["alice", "bob", "dave"]})
    tg.build(edges, tmp_path / "n.tg", undirected=True)
    return tmp_path / "n.tg"


def shuffled(ids, **columns):
    """A table of a row for each id, in another order than theirs; row i has i in its columns."""
    order = np.random.default_rng(3).permutation(len(ids))
    made = {"who": [ids[i] for i in order]}
    return pa.table(made | {name: [float(i) for i in order] for name in columns["names"]})


@pytest.mark.parametrize("form", ["memory", "parquet", "lists"])
def test_rows_find_their_vertices_by_name(named, tmp_path, form):
    table = shuffled(NAMES, names=("a", "b"))
    if form == "lists":
        rows = np.stack([table["a"].to_numpy(), table["b"].to_numpy()], 1).tolist()
        table = pa.table({"who": table["who"], "x": pa.array(rows, pa.list_(pa.float32(), 2))})
    source = table
    if form != "memory":
        source = tmp_path / "rows.parquet"
        parquet.write_table(table, source)
    splits = {"train": ["dave", "alice"], "val": np.array([0])}
    stored = tg.add_features(named, features=source, splits=splits, by="who")
    assert "x" in stored["features"]
    with tg.open(named) as graph:
        assert list(graph.names) == NAMES
        rows = graph.features["x"].read(np.arange(4))
        np.testing.assert_array_equal(rows, np.arange(4)[:, None] * [1, 1])
        assert graph.splits["train"].tolist() == [3, 1]
        assert graph.splits["val"].tolist() == [0]


def test_labels_find_their_vertices(named):
    table = shuffled(NAMES, names=("kind",))
    tg.add_features(named, labels=table, by="who")
    with tg.open(named) as graph:
        assert graph.labels["y"].dtype.kind == "i"
        assert graph.labels["y"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("ids", ["map", "dense"])
@pytest.mark.parametrize("order", ["none", "degree"])
def test_rows_find_their_vertices_by_id(tmp_path, ids, order):
    """In little memory, and whatever the order of vertices on disk."""
    rng = np.random.default_rng(1)
    own = np.sort(rng.choice(10**9, 3000, replace=False)) if ids == "map" else np.arange(3000)
    edges = own[rng.integers(0, 3000, (2, 30_000))]
    edges = np.concatenate([edges, [own, np.roll(own, 1)]], axis=1)
    path = tmp_path / "g.tg"
    tg.build((edges[0], edges[1]), path, ids=ids, order=order)
    table = pa.table({"node_id": own[::-1], "x": rng.random(3000), "y": np.arange(3000)[::-1]})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=700)
    argv = ["features", "add", str(path), "--features", str(tmp_path / "t.parquet")]
    assert main([*argv, "--by", "node_id", "--memory", "64MiB", "--json"]) == 0
    with tg.open(path) as graph:
        rows = graph.features["x"].read(own)
    np.testing.assert_array_equal(rows[:, 1], np.arange(3000))
    np.testing.assert_array_equal(rows[:, 0], table["x"].to_numpy()[::-1].astype(np.float32))


@pytest.mark.parametrize(
    ("who", "match"),
    [
        (["carol", "alice", "bob"], "a row for each of 4 vertices, got 3 rows, and none of `dave`"),
        (["carol", "alice", "bob", "bob", "dave"], "each vertex once, got `bob` twice"),
        (["carol", "alice", "bob", "eve"], "eve"),
        (["carol", "alice", None, "dave"], "an id in every row"),
        ([0, 1, 2, 3], "names, which this graph has"),
    ],
)
def test_rows_that_are_not_the_vertices_are_refused(named, who, match):
    before = sorted(p.name for p in named.rglob("*"))
    table = pa.table({"who": who, "x": np.arange(len(who), dtype=np.float32)})
    with pytest.raises(tg.InputError, match=match):
        tg.add_features(named, features=table, by="who")
    assert sorted(p.name for p in named.rglob("*")) == before


def test_columns_that_are_not_ids_are_refused(named, tmp_path):
    table = pa.table({"who": NAMES, "x": [0.0, 1, 2, 3]})
    with pytest.raises(tg.InputError, match="expected a column `name`, got who, x"):
        tg.add_features(named, features=table, by="name")
    with pytest.raises(tg.InputError, match="expected one table"):
        tg.add_features(named, features=np.zeros((4, 2)), by="who")
    path = tmp_path / "i.tg"
    tg.build((np.array([0, 1]), np.array([1, 2])), path)
    with pytest.raises(tg.InputError, match="integers: it has no names"):
        tg.add_features(path, features=table, by="who")
    with pytest.raises(tg.InputError, match="integers: it has no names"):
        tg.add_features(path, splits={"train": ["a"]})
    numbers = pa.table({"who": [0, 1, 7], "x": [0.0, 1, 2]})
    with pytest.raises(tg.InputError, match="vertex `7`: expected an id of the graph"):
        tg.add_features(path, features=numbers, by="who")


@pytest.mark.parametrize("column", ["who", "Node_ID"])
def test_ids_are_not_taken_for_features(tmp_path, column, capsys):
    """A table with a column of ids, whose rows would be taken in the order in which they come."""
    ids = [2, 1, 0] if column == "Node_ID" else ["c", "b", "a"]
    table = pa.table({column: ids, "x": [2.0, 1, 0]})
    edges, path = (np.array([0, 1]), np.array([1, 2])), tmp_path / "g.tg"
    with pytest.raises(tg.InputError, match=rf"got `{column}`, which looks like ids\n\nhint: .*by"):
        tg.build(edges, path, features=table)
    with pytest.raises(tg.InputError, match="looks like ids"):
        tg.build(edges, path, labels=table)
    parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(tg.InputError, match="looks like ids"):
        tg.build(edges, path, labels=tmp_path / "t.parquet")
    assert not path.exists()
    tg.build(edges, path, features=table, feature_columns=["x"])
    with tg.open(path) as graph:
        assert graph.features["x"].read([0]).tolist() == [[2]]
    if column == "Node_ID":
        # Ids that ascend say the order of the rows themselves.
        ascending = pa.table({column: [0, 1, 2], "x": [5.0, 6, 7]})
        tg.add_features(path, features=ascending, overwrite=True)
        with tg.open(path) as graph:
            assert graph.features["x"].read([0, 2]).tolist() == [[5], [7]]
        more = ["--features", f"z={tmp_path / 't.parquet'}", "--by", column, "--json"]
        assert main(["features", "add", str(path), *more]) == 0
        assert sorted(json.loads(capsys.readouterr().out)["features"]) == ["x", "z"]
        with tg.open(path) as graph:
            assert graph.features["z"].read([0, 2]).tolist() == [[0], [2]]
