"""Heterogeneous graphs are built whole or not at all, and say what they are."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tiergraph as tg
from tiergraph import _native
from tiergraph.cli import main

WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "paper")


def typed(**changes):
    """What `build_hetero` is given: three types of nodes, two of edges."""
    nodes = {
        "paper": {"features": np.arange(40, dtype=np.float32).reshape(10, 4), "labels": range(10)},
        "author": {"vertices": 3},
        "topic": {"vertices": 2},
    }
    nodes["paper"]["labels"] = np.arange(10)
    edges = {
        WRITES: (np.array([0, 1, 2, 2]), np.array([9, 0, 5, 5])),
        CITES: np.array([[1, 2, 3], [1, 0, 0]]),
    }
    return {"nodes": nodes, "edges": edges} | changes


@pytest.fixture
def path(tmp_path):
    tg.build_hetero(tmp_path / "h.tg", **typed())
    return tmp_path / "h.tg"


def test_a_graph_says_what_it_is(path):
    graph = tg.open_hetero(path)
    assert graph.metadata() == (["paper", "author", "topic"], [WRITES, CITES])
    assert graph.num_nodes_dict == {"paper": 10, "author": 3, "topic": 2}
    assert graph.num_edges_dict == {WRITES: 4, CITES: 3}
    assert graph["paper"].features["x"].read([3]).tolist() == [[12, 13, 14, 15]]
    assert graph["paper"].labels["y"].tolist() == list(range(10))
    assert repr(graph).endswith("paper: 10, author: 3, topic: 2; 2 edge types>")
    with pytest.raises(tg.InputError, match=r"`venue`: expected one of paper, author, topic"):
        graph["venue"]


def test_tables_and_batches_are_edges_too(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"src": [0, 1, 2, 2], "dst": [9, 0, 5, 5]})
    parquet.write_table(table, tmp_path / "writes.parquet")
    batches = iter([(np.array([1, 2]), np.array([1, 0])), (np.array([3]), np.array([0]))])
    edges = {WRITES: str(tmp_path / "writes.parquet"), CITES: batches}
    counts = tg.build_hetero(tmp_path / "t.tg", **typed(edges=edges), memory="64MiB")
    assert counts["edges"] == {WRITES: 4, CITES: 3}
    tg.build_hetero(tmp_path / "a.tg", **typed())
    rows = [(tmp_path / g / "edge-0.tg" / "in.rows").read_bytes() for g in ("t.tg", "a.tg")]
    assert [len(page) for page in rows] == [4096, 4096]
    assert rows[0][4:] == rows[1][4:], "but for the checksum, which is salted by the build"


def test_equal_edges_are_dropped_where_asked(tmp_path):
    counts = tg.build_hetero(tmp_path / "d.tg", **typed(), dedup=True)
    assert counts["edges"] == {WRITES: 3, CITES: 3}


def refused(tmp_path, match, **changes):
    with pytest.raises(tg.InputError, match=match):
        tg.build_hetero(tmp_path / "h.tg", **typed(**changes))
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_edges_between_nodes_that_are_not_there_are_refused(tmp_path):
    for src, dst, what in [
        ([3], [0], "`src` from 0 to 2, the nodes of `author`, got 3"),
        ([0], [10], "`dst` from 0 to 9, the nodes of `paper`, got 10"),
        ([-1], [0], "`src` from 0 to 2, the nodes of `author`, got -1"),
    ]:
        edges = {WRITES: (np.array(src), np.array(dst))}
        refused(tmp_path, f"`author writes paper`: expected {what}", edges=edges)
    edges = {("venue", "prints", "paper"): (np.array([0]), np.array([0]))}
    refused(tmp_path, "`venue prints paper`: .*got venue", edges=edges)


def test_what_is_no_graph_of_types_is_refused(tmp_path):
    refused(tmp_path, "no node type", nodes={}, edges={})
    refused(tmp_path, "`author`: expected `vertices`", nodes={"author": {}}, edges={})
    refused(tmp_path, "`count`: expected one of vertices", nodes={"author": {"count": 3}}, edges={})
    refused(tmp_path, "use the edge type `writes`", edges={"writes": ([], [])})
    refused(tmp_path, r"shape \(2, E\)", edges={CITES: np.zeros((3, 5), dtype=int)})
    refused(tmp_path, "`paper cites paper`: expected arrays", edges={CITES: "cites.txt"})


def test_options_of_ordinary_graphs_are_not_taken(tmp_path):
    for options in ({"ids": "map"}, {"order": "degree"}, {"undirected": True}):
        with pytest.raises(TypeError, match="it has path, data, nodes, edges, memory, threads"):
            tg.build_hetero(tmp_path / "h.tg", **typed(), **options)
    with pytest.raises(tg.InputError, match="`data`, or `nodes` and `edges`"):
        tg.build_hetero(tmp_path / "h.tg", object(), **typed())
    with pytest.raises(tg.InputError, match="PyG's `HeteroData`"):
        tg.build_hetero(tmp_path / "h.tg", object())


def test_a_graph_is_replaced_only_when_asked(path):
    with pytest.raises(tg.InputError, match="overwrite=True"):
        tg.build_hetero(path, **typed())
    bad = {CITES: (np.array([99]), np.array([0]))}
    with pytest.raises(tg.InputError):
        tg.build_hetero(path, **typed(edges=bad), overwrite=True)
    assert tg.open_hetero(path).num_edges_dict == {WRITES: 4, CITES: 3}, "the old one stays"
    tg.build_hetero(path, **typed(edges={}), overwrite=True)
    assert tg.open_hetero(path).edge_types == []
    tg.build((np.array([0]), np.array([1])), path, overwrite=True)
    assert tg.open(path).edges == 1
    tg.build_hetero(path, **typed(), overwrite=True)
    assert [entry.name for entry in path.parent.iterdir()] == ["h.tg"]


def test_graphs_of_one_type_and_of_several_are_told_apart(path, tmp_path):
    with pytest.raises(tg.InputError, match=r"got a heterogeneous one\n\nhint: .*open_hetero"):
        tg.open(path)
    tg.build((np.array([0]), np.array([1])), tmp_path / "one.tg")
    with pytest.raises(tg.InputError, match=r"without `hetero.json`"):
        tg.open_hetero(tmp_path / "one.tg")


def test_info_and_verify_know_types(path, capsys):
    assert main(["info", str(path), "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert [t["name"] for t in info["edge_types"]] == [list(WRITES), list(CITES)]
    x = info["node_types"][0]["features"]["x"]
    assert (x["dim"], x["row_checksums"]) == (4, True)
    assert main(["info", str(path)]) == 0
    assert main(["verify", str(path), "--json"]) == 0
    files = sum(entry.is_file() for entry in path.rglob("*"))
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["files"] == files


@pytest.mark.parametrize("name", ["edge-0.tg/in.rows", "node-0.tg/features/x.rows", "hetero.json"])
def test_a_flipped_bit_is_found(path, name):
    content = bytearray((path / name).read_bytes())
    content[len(content) // 2] ^= 4
    (path / name).write_bytes(content)
    damage = json.loads(_native.verify(str(path), None))["damage"]
    assert {place["file"] for place in damage} == {name}


def test_parts_of_another_graph_are_refused(path, tmp_path):
    other = {CITES: (np.array([1]), np.array([1]))}
    tg.build_hetero(tmp_path / "other.tg", **typed(edges=other))
    (path / "edge-1.tg").rename(tmp_path / "kept.tg")
    (tmp_path / "other.tg" / "edge-0.tg").rename(path / "edge-1.tg")
    with pytest.raises(tg.FormatError, match=r"`edge-1.tg`: expected 10 vertices and 3 directed"):
        tg.open_hetero(path)
    damage = json.loads(_native.verify(str(path), None))["damage"]
    assert [place["file"] for place in damage] == ["hetero.json"]
