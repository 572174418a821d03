"""Folders of data sets with several types of nodes and edges: GraphBolt's, IGBH's and OGB's."""

from __future__ import annotations

import gzip
import json
import warnings

import numpy as np
import pytest

import tiergraph as tg
from tiergraph.cli import main

WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "paper")

BOLT = """
graph:
  nodes:
    - {type: paper, num: 5}
    - {type: author, num: 3}
  edges:
    - {type: "author:writes:paper", format: csv, path: edges/writes.csv}
    - {type: "paper:cites:paper", format: numpy, path: edges/cites.npy}
feature_data:
  - {domain: node, type: paper, name: feat, format: numpy, path: data/x.npy}
  - {domain: node, type: paper, name: year, format: numpy, path: data/year.npy}
  - {domain: node, type: author, name: rank, format: numpy, path: data/rank.npy}
  - {domain: edge, type: "author:writes:paper", name: share, format: numpy, path: data/share.npy}
tasks:
  - name: nodes
    train_set:
      - type: paper
        data:
          - {name: seeds, format: numpy, path: set/train.npy}
          - {name: labels, format: numpy, path: set/train-y.npy}
      - type: "author:writes:paper"
        data: [{name: seeds, format: numpy, path: edges/links.npy}]
    test_set:
      - type: paper
        data: [{name: seeds, format: numpy, path: set/test.npy}]
  - name: links
"""


@pytest.fixture
def bolt(tmp_path):
    pytest.importorskip("yaml")
    folder = tmp_path / "bolt"
    for part in ("edges", "data", "set"):
        (folder / part).mkdir(parents=True)
    (folder / "metadata.yaml").write_text(BOLT)
    (folder / "edges/writes.csv").write_text("0,4\n2,1\n")
    np.save(folder / "edges/cites.npy", np.array([[0, 1, 2], [1, 2, 4]]))
    np.save(folder / "edges/links.npy", np.array([[0, 4]]))
    np.save(folder / "data/x.npy", np.arange(10, dtype=np.float32).reshape(5, 2))
    np.save(folder / "data/year.npy", np.arange(2000, 2005))
    np.save(folder / "data/rank.npy", np.array([[1.5], [2.5], [3.5]], np.float32))
    np.save(folder / "data/share.npy", np.array([[0.25], [0.75]], np.float32))
    np.save(folder / "set/train.npy", np.array([0, 3]))
    np.save(folder / "set/train-y.npy", np.array([1.0, 2.0]))
    np.save(folder / "set/test.npy", np.array([4]))
    return folder


def arcs(graph, edge_type):
    """The edges of a type, from a loader that takes all neighbours."""
    fanouts = {of: [-1 if of == edge_type else 0] for of in tg.open_hetero(graph).edge_types}
    loader = tg.HeteroNeighborLoader(graph, fanouts, edge_type[2], batch_size=64)
    batch = next(iter(loader))
    src, dst = (batch[name].n_id for name in (edge_type[0], edge_type[2]))
    index = batch[edge_type].edge_index
    return sorted(zip(src[index[0]].tolist(), dst[index[1]].tolist(), strict=True))


def test_a_folder_of_graphbolt_with_types(bolt, tmp_path):
    pytest.importorskip("torch_geometric", reason="loaders hand over PyG data")
    with pytest.warns(tg.InputWarning) as warned:
        built = tg.build_hetero(tmp_path / "h.tg", bolt)
    assert built["nodes"] == {"paper": 5, "author": 3}
    assert built["edges"] == {WRITES: 2, CITES: 3}
    assert [str(w.message) for w in warned] == built["notes"]
    assert built["notes"] == [
        "task `links` is left out: only the first is read",
        "`train_set` of author:writes:paper is left out: it is of edges",
    ]
    graph = tg.open_hetero(tmp_path / "h.tg")
    paper = graph["paper"]
    assert paper.features["x"].read([3]).tolist() == [[6, 7]]
    assert paper.features["year"].read([4]).tolist() == [[2004]]
    assert graph["author"].features["x"].read([1]).tolist() == [[2.5]]
    assert paper.labels["y"].tolist() == [1, -1, -1, 2, -1]
    assert paper.splits["train"].tolist() == [0, 3]
    assert paper.splits["test"].tolist() == [4]
    assert arcs(tmp_path / "h.tg", WRITES) == [(0, 4), (2, 1)]
    assert arcs(tmp_path / "h.tg", CITES) == [(0, 1), (1, 2), (2, 4)]


def test_tensors_are_arrays(bolt, tmp_path):
    torch = pytest.importorskip("torch")
    torch.save(torch.arange(10.0).reshape(5, 2), bolt / "data/x.pt")
    text = BOLT.replace("numpy, path: data/x.npy", "torch, path: data/x.pt")
    (bolt / "metadata.yaml").write_text(text)
    with pytest.warns(tg.InputWarning):
        tg.build_hetero(tmp_path / "h.tg", bolt)
    graph = tg.open_hetero(tmp_path / "h.tg")
    assert graph["paper"].features["x"].read([3]).tolist() == [[6, 7]]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("{type: author, num: 3}", "{num: 3}", "`type` of each kind of nodes"),
        ("num: 3", "num: many", "a number of nodes, got many"),
        ("author:writes:paper", "author-paper", "`source:relation:destination`"),
        ("author:writes", "writer:writes", "node types among paper, author, got writer"),
        ("csv, path: edges/writes.csv", "dense, path: edges/writes.csv", "numpy, torch or csv"),
        (
            "name: seeds, format: numpy, path: set/train",
            "name: who, format: csv, path: set/train",
            "`seeds` in `train_set`, got who, labels",
        ),
        ("node, type: author", "node, type: reader", "`type` of features one of `author`, `paper`"),
        ("edge, type:", "link, type:", "`domain` of features `node` or `edge`, got link"),
        ("path: set/test.npy", "path: data/year.npy", "nodes from 0 to 4"),
        ("path: set/train-y.npy", "path: data/x.npy", "an integer for each of 2 seeds"),
        (
            "test_set:\n      - type: paper",
            "test_set:\n      - type: nobody",
            "one of `paper`, `auth",
        ),
    ],
)
def test_folders_that_are_not_sound_are_refused(bolt, tmp_path, old, new, expected):
    assert old in BOLT
    (bolt / "metadata.yaml").write_text(BOLT.replace(old, new))
    warnings.simplefilter("ignore", tg.InputWarning)
    with pytest.raises(tg.InputError, match=expected):
        tg.build_hetero(tmp_path / "h.tg", bolt)
    assert not (tmp_path / "h.tg").exists()


def igb(folder, *, plain):
    """Papers that cite each other, with authors and institutes; `plain` files have no header."""
    root = folder / "igb" / "processed"
    rng = np.random.default_rng(1)

    def write(path, array):
        path.parent.mkdir(parents=True, exist_ok=True)
        if plain:
            array.tofile(path)
        else:
            np.save(path, array)

    rows = {"paper": 10, "author": 4, "institute": 2}
    for name, count in rows.items():
        write(root / name / "node_feat.npy", rng.random((count, 1024), np.float32))
    write(root / "paper" / "node_label_19.npy", np.arange(10, dtype=np.float32))
    write(root / "paper" / "node_label_2K.npy", np.arange(10, dtype=np.float32) * 100)
    for name, index in [
        ("paper__cites__paper", [[0, 1], [1, 2], [9, 3]]),
        ("paper__written_by__author", [[0, 3], [9, 1]]),
        ("author__affiliated_to__institute", [[3, 1]]),
    ]:
        (root / name).mkdir(parents=True)
        np.save(root / name / "edge_index.npy", np.array(index, np.int32))
    return folder / "igb", rng


@pytest.mark.parametrize("plain", [False, True])
def test_folders_of_igbh(tmp_path, plain, capsys):
    pytest.importorskip("torch_geometric", reason="loaders hand over PyG data")
    folder, _ = igb(tmp_path, plain=plain)
    out = tmp_path / "h.tg"
    assert main(["build", str(folder), str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["nodes"] == {"author": 4, "institute": 2, "paper": 10}
    assert said["edges"]["paper cites paper"] == 3
    graph = tg.open_hetero(out)
    expected = np.random.default_rng(1).random((10, 1024), np.float32)
    np.testing.assert_array_equal(graph["paper"].features["x"].read([7]), expected[7:8])
    assert graph["paper"].labels["y"].tolist() == list(range(10))
    assert graph["paper"].labels["y_2k"][9] == 900
    splits = {
        name: np.flatnonzero(graph["paper"].splits[name]).tolist() for name in ("val", "test")
    }
    assert splits == {"val": [6, 7], "test": [8, 9]}
    assert arcs(out, ("paper", "written_by", "author")) == [(0, 3), (9, 1)]
    with pytest.raises(tg.InputError, match="heterogeneous graph"):
        tg.build(folder, tmp_path / "g.tg")
    assert main(["build", str(folder), str(out), "--undirected", "--vertices", "10"]) == 1
    assert "no --vertices, --undirected" in capsys.readouterr().err


def test_a_folder_of_igb(tmp_path):
    folder, _ = igb(tmp_path, plain=False)
    for path in folder.glob("processed/*__*__*"):
        if path.name != "paper__cites__paper":
            (path / "edge_index.npy").unlink()
    built = tg.build(folder, tmp_path / "g.tg", undirected=True)
    assert (built["vertices"], built["edges"]) == (10, 3)
    with tg.open(tmp_path / "g.tg") as graph:
        assert sorted(graph.labels) == ["y", "y_2k"]
        assert graph.features["x"].shape == (10, 1024)
    np.save(folder / "processed/paper/node_label_19.npy", np.full(10, 0.5, np.float32))
    with pytest.raises(tg.InputError, match=r"node_label_19.npy`: expected whole numbers"):
        tg.build(folder, tmp_path / "g.tg", overwrite=True)
    (folder / "processed/paper/node_feat.npy").write_bytes(b"x" * 4097)
    with pytest.raises(tg.InputError, match=r"1024 a row, got 4097 bytes"):
        tg.build(folder, tmp_path / "g.tg", overwrite=True)


def test_a_folder_of_ogb_with_types(tmp_path):
    """Files as ogbn-mag has them, with two types of nodes."""
    pytest.importorskip("torch_geometric", reason="loaders hand over PyG data")
    texts = {
        "raw/num-node-dict.csv.gz": "author,paper\n3,5\n",
        "raw/triplet-type-list.csv.gz": "author,writes,paper\npaper,cites,paper\n",
        "raw/node-feat/paper/node-feat.csv.gz": "".join(f"{v},{v + 0.5}\n" for v in range(5)),
        "raw/node-feat/paper/node_year.csv.gz": "2010\n" * 5,
        "raw/node-label/paper/node-label.csv.gz": "".join(f"{v}\n" for v in range(5)),
        "raw/relations/author___writes___paper/edge.csv.gz": "0,4\n2,1\n",
        "raw/relations/author___writes___paper/num-edge-list.csv.gz": "2\n",
        "raw/relations/author___writes___paper/edge_reltype.csv.gz": "7\n8\n",
        "raw/relations/paper___cites___paper/edge.csv.gz": "0,1\n1,2\n",
        "raw/relations/paper___cites___paper/num-edge-list.csv.gz": "2\n",
        "split/time/paper/train.csv.gz": "0\n1\n",
        "split/time/paper/valid.csv.gz": "2\n",
        "split/time/paper/test.csv.gz": "3\n",
        "split/time/nodetype-has-split.csv.gz": "author,paper\nFalse,True\n",
    }
    for name, text in texts.items():
        (tmp_path / "mag" / name).parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(tmp_path / "mag" / name, "wt") as file:
            file.write(text)
    with pytest.warns(tg.InputWarning, match=r"node_year.csv.gz` is left out"):
        built = tg.build_hetero(tmp_path / "h.tg", tmp_path / "mag")
    assert built["edges"] == {WRITES: 2, CITES: 2}
    graph = tg.open_hetero(tmp_path / "h.tg")
    assert graph["paper"].features["x"].read([2]).tolist() == [[2, 2.5]]
    assert graph["paper"].labels["y"].tolist() == [0, 1, 2, 3, 4]
    assert {name: graph["paper"].splits[name].tolist() for name in ("train", "val", "test")} == {
        "train": [0, 1],
        "val": [2],
        "test": [3],
    }
    assert arcs(tmp_path / "h.tg", WRITES) == [(0, 4), (2, 1)]
    part = tmp_path / "mag/raw/relations/paper___cites___paper"
    with gzip.open(part / "num-edge-list.csv.gz", "wt") as file:
        file.write("3\n")
    with pytest.raises(tg.InputError, match="expected 3 edges, got 2"):
        tg.build_hetero(tmp_path / "h.tg", tmp_path / "mag", overwrite=True)
    (part / "edge.csv.gz").unlink()
    with pytest.raises(tg.InputError, match=r"expected `edge.csv.gz`, got none"):
        tg.build_hetero(tmp_path / "h.tg", tmp_path / "mag", overwrite=True)
