"""Graphs and matrices of other libraries, in memory and in files, are read as they are."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import tiergraph as tg


def edges_of(path):
    """Edges by ids or names, with weights, in one order, and how many vertices there are."""
    with tg.open(path) as graph:
        rows = []
        for src, dst, *weights in graph.edge_batches():
            ends = zip(src.tolist(), dst.tolist(), strict=True)
            if graph.names is not None:
                ends = ((graph.names[a], graph.names[b]) for a, b in ends)
            own = (w.tolist() for w in weights)
            for ends_of, *own_of in zip(ends, *own, strict=True):
                pair = ends_of if graph.directed else sorted(ends_of)
                rows.append((*pair, *own_of))
        return sorted(rows), graph.vertices, graph.directed


def built(source, tmp_path, **options):
    """The edges of a graph that is built from a source."""
    tg.build(source, tmp_path / "g.tg", overwrite=True, **options)
    return edges_of(tmp_path / "g.tg")


class TestNetworkX:
    """Graphs of NetworkX."""

    def test_integers_with_gaps_keep_isolated_nodes(self, tmp_path):
        nx = pytest.importorskip("networkx")
        graph = nx.Graph([(3, 10), (10, 40)])
        graph.add_node(77)
        assert built(graph, tmp_path) == ([(3, 10), (10, 40)], 4, False)
        with tg.open(tmp_path / "g.tg") as opened:
            assert opened.ids.tolist() == [3, 10, 40, 77]

    def test_counted_nodes_and_directions(self, tmp_path):
        nx = pytest.importorskip("networkx")
        graph = nx.DiGraph([(1, 0), (1, 2)])
        graph.add_node(3)
        assert built(graph, tmp_path) == ([(1, 0), (1, 2)], 4, True)

    def test_texts_are_names_in_the_order_of_nodes(self, tmp_path):
        nx = pytest.importorskip("networkx")
        graph = nx.Graph()
        graph.add_nodes_from(["alone", "a", "b"])
        graph.add_edge("b", "a", weight=2)
        assert built(graph, tmp_path) == ([("a", "b", 2.0)], 3, False)
        with tg.open(tmp_path / "g.tg") as opened:
            assert opened.names[:] == ["alone", "a", "b"]
        nothing = nx.Graph()
        nothing.add_nodes_from(["x", "y"])
        assert built(nothing, tmp_path) == ([], 2, False)

    def test_weights_are_an_attribute(self, tmp_path):
        nx = pytest.importorskip("networkx")
        graph = nx.Graph()
        graph.add_edge(0, 1, weight=2, cost=0.5)
        graph.add_edge(1, 2, weight=3, cost=1.5)
        assert built(graph, tmp_path)[0] == [(0, 1, 2.0), (1, 2, 3.0)]
        assert built(graph, tmp_path, weights="cost")[0] == [(0, 1, 0.5), (1, 2, 1.5)]
        assert built(graph, tmp_path, weights="none")[0] == [(0, 1), (1, 2)]
        with pytest.raises(tg.InputError, match="expected one of `cost`, `weight`, got price"):
            built(graph, tmp_path, weights="price")
        graph.add_edge(2, 3)
        with pytest.raises(tg.InputError, match="expected `weight` of every edge, got none of"):
            built(graph, tmp_path)

    def test_other_nodes_are_refused(self, tmp_path):
        nx = pytest.importorskip("networkx")
        for edge in [((0, 1), (1, 1)), (1.5, 2.5), ("a", 1), (-1, 0)]:
            with pytest.raises(tg.InputError, match="convert_node_labels_to_integers"):
                built(nx.Graph([edge]), tmp_path)

    def test_values_of_edges_go_with_its_edges(self, tmp_path):
        nx = pytest.importorskip("networkx")
        graph = nx.DiGraph([("a", "b"), ("b", "c")])
        stats = tg.build(graph, tmp_path / "g.tg", edge_values={"at": np.array([5, 6])})
        assert "at" in stats["edge_values"]


def test_igraph(tmp_path):
    ig = pytest.importorskip("igraph")
    graph = ig.Graph(n=4, edges=[(0, 1), (1, 2)])
    assert built(graph, tmp_path) == ([(0, 1), (1, 2)], 4, False)
    graph.es["weight"] = [0.5, 2.0]
    graph.vs["name"] = ["a", "b", "c", "d"]
    assert built(graph, tmp_path) == ([("a", "b", 0.5), ("b", "c", 2.0)], 4, False)
    graph.vs["name"] = ["a", "b", "c", "a"]
    with pytest.raises(tg.InputError, match="expected each name once, got `a` twice"):
        built(graph, tmp_path)


def stand_in():
    """A graph with NetworKit's methods, where NetworKit is not installed."""
    answers = {
        "numberOfNodes": 3,
        "upperNodeIdBound": 4,
        "isWeighted": True,
        "isDirected": True,
        "iterEdges": [(0, 1), (3, 1)],
        "iterEdgesWeights": [(0, 1, 2.0), (3, 1, 0.5)],
    }
    return SimpleNamespace(**{name: partial(lambda x: x, x) for name, x in answers.items()})


def test_networkit(tmp_path):
    try:
        import networkit as nk
    except ImportError:
        graph = stand_in()
    else:
        graph = nk.Graph(4, weighted=True, directed=True)
        graph.addEdge(0, 1, 2.0)
        graph.addEdge(3, 1, 0.5)
        graph.removeNode(2)
    assert built(graph, tmp_path) == ([(0, 1, 2.0), (3, 1, 0.5)], 4, True)
    assert built(graph, tmp_path, weights="none") == ([(0, 1), (3, 1)], 4, True)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", [np.float64, np.int32, bool])
def test_matrices_of_scipy_in_memory_and_in_files(tmp_path, kind, dtype):
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(2)
    dense = (rng.integers(0, 4, (30, 30)) * (rng.random((30, 30)) < 0.1)).astype(dtype)
    dense[17] = 0
    matrix = sparse.coo_array(dense).asformat(kind)
    rows, columns = dense.nonzero()
    expected = [(int(i), int(j)) for i, j in zip(rows, columns, strict=True)]
    if dtype is not bool:
        expected = [(i, j, float(dense[i, j])) for i, j in expected]
    assert built(matrix, tmp_path) == (expected, 30, True)
    for compressed in (False, True):
        sparse.save_npz(tmp_path / "m.npz", matrix, compressed=compressed)
        assert built(tmp_path / "m.npz", tmp_path) == (expected, 30, True)
    assert built(tmp_path / "m.npz", tmp_path, weights="none")[0] == [e[:2] for e in expected]


def test_matrices_that_are_no_graph_are_refused(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    sparse.save_npz(tmp_path / "square.npz", sparse.csr_array(np.eye(2)))
    for source in (sparse.csr_array(np.eye(2)), tmp_path / "square.npz"):
        with pytest.raises(tg.InputError, match="expected `none` or `auto`"):
            built(source, tmp_path, weights="cost")
    oblong = sparse.csr_array(np.eye(2, 3))
    for source in (oblong, tmp_path / "m.npz"):
        sparse.save_npz(tmp_path / "m.npz", oblong)
        with pytest.raises(tg.InputError, match="expected a square"):
            built(source, tmp_path)
    sparse.save_npz(tmp_path / "m.npz", sparse.dia_matrix(np.eye(3)))
    with pytest.raises(tg.InputError, match="expected a matrix in CSR, CSC or COO, got dia"):
        built(tmp_path / "m.npz", tmp_path)
    np.savez(
        tmp_path / "m.npz",
        format=b"csr",
        shape=(2, 2),
        data=np.ones(2),
        indices=[0, 1],
        indptr=[0, 1, 3],
    )
    with pytest.raises(tg.InputError, match="expected rows that end at 2 entries"):
        built(tmp_path / "m.npz", tmp_path)
    sparse.save_npz(tmp_path / "m.npz", sparse.csr_array(-np.eye(2)))
    with pytest.raises(tg.InputError, match="weights of 0 or more"):
        built(tmp_path / "m.npz", tmp_path)


METADATA = """
dataset_name: tiny
graph:
  nodes:
    - num: 5
  edges:
    - format: {format}
      path: edges/e.{suffix}
feature_data:
  - domain: node
    name: feat
    format: numpy
    path: data/x.npy
tasks:
  - name: node_classification
    train_set:
      - data:
          - {{name: seeds, format: numpy, path: set/train.npy}}
          - {{name: labels, format: numpy, path: set/train-y.npy}}
    validation_set:
      - data:
          - {{name: seed_nodes, format: numpy, path: set/val.npy}}
          - {{name: labels, format: numpy, path: set/val-y.npy}}
"""


@pytest.fixture
def bolt(tmp_path):
    """A folder as GraphBolt has it, with edges as an array and as CSV."""
    pytest.importorskip("yaml")
    folder = tmp_path / "bolt"
    for part in ("edges", "data", "set"):
        (folder / part).mkdir(parents=True)
    np.save(folder / "edges/e.npy", np.array([[0, 1, 2], [1, 2, 4]]))
    (folder / "edges/e.csv").write_text("0,1\n1,2\n2,4\n")
    np.save(folder / "data/x.npy", np.arange(10, dtype=np.float32).reshape(5, 2))
    for name, seeds, labels in [("train", [0, 3], [1, 2]), ("val", [4], [0])]:
        np.save(folder / f"set/{name}.npy", np.array(seeds))
        np.save(folder / f"set/{name}-y.npy", np.array(labels))
    return folder


@pytest.mark.parametrize(("form", "suffix"), [("numpy", "npy"), ("csv", "csv")])
def test_a_folder_of_graphbolt(bolt, tmp_path, form, suffix):
    (bolt / "metadata.yaml").write_text(METADATA.format(format=form, suffix=suffix))
    assert built(bolt, tmp_path) == ([(0, 1), (1, 2), (2, 4)], 5, True)
    with tg.open(tmp_path / "g.tg") as graph:
        assert graph.features["x"].read(np.array([3])).tolist() == [[6, 7]]
        assert graph.labels["y"].tolist() == [1, -1, -1, 2, 0]
        assert graph.splits["train"].tolist() == [0, 3]
        assert graph.splits["val"].tolist() == [4]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("graph:", "grph:", "expected `graph` with `nodes` and `edges`"),
        ("    - num: 5", "    - num: 5\n    - num: 6", "expected one type of nodes and of edges"),
        ("    - num: 5", "    - count: 5", "expected `num` of nodes"),
        ("edges/e.npy", "edges/none.npy", "expected a file, got"),
        ("dataset_name: tiny", "dataset_name: [", "expected YAML"),
    ],
)
def test_folders_of_graphbolt_that_are_not_sound_are_refused(bolt, tmp_path, old, new, expected):
    text = METADATA.format(format="numpy", suffix="npy")
    assert old in text
    (bolt / "metadata.yaml").write_text(text.replace(old, new))
    with pytest.raises(tg.InputError, match=expected):
        built(bolt, tmp_path)
