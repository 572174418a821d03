"""What a call cannot use is refused in one way: an error of ours, and nothing left behind."""

import contextlib
import inspect
import math
import os
from pathlib import Path

import numpy as np
import pytest

import tiergraph as tg

NONSENSE = [
    None, object(), -1, 0, 2**64, 10**30, math.nan, math.inf, True, 1.5, 1j,
    "", "nonsense", "\0", b"bytes", [], {}, ["a"], [None], np.ones(3), (1, 2, 3, 4),
]  # fmt: skip
"""Values of which no argument takes all; what one takes must work."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a small graph that has all that a graph can have, and its sources."""
    folder = tmp_path_factory.mktemp("malformed")
    rng = np.random.default_rng(1)
    edges = rng.integers(0, 50, (200, 2))
    np.save(folder / "edges.npy", edges)
    np.save(folder / "x.npy", rng.normal(size=(50, 4)).astype(np.float32))
    tg.build(
        (edges[:, 0], edges[:, 1]),
        folder / "g.tg",
        vertices=50,
        features=folder / "x.npy",
        labels=np.arange(50) % 3,
        splits={"train": np.arange(20)},
        edge_values={"w": rng.random(200), "t": np.arange(200)},
    )
    return folder


def calls(folder):
    """Public calls by name, with arguments that they take."""
    graph = tg.open(folder / "g.tg", memory="64MiB", threads=1)
    edges, new = (np.array([0, 1, 2]), np.array([1, 2, 0])), folder / "new.tg"
    sampled = {"graph": folder / "g.tg", "num_neighbors": [2], "memory": "64MiB", "threads": 1}
    return {
        "open": (tg.open, {"path": folder / "g.tg"}),
        "degrees": (graph.degrees, {}),
        "pagerank": (graph.pagerank, {"iterations": 1}),
        "wcc": (graph.wcc, {}),
        "bfs": (graph.bfs, {"source": 0}),
        "sssp": (graph.sssp, {"source": 0}),
        "propagate": (graph.propagate, {"x": np.ones(50)}),
        "propagate_bytes": (graph.propagate_bytes, {"columns": 1}),
        "features": (graph.features["x"].read, {"vertices": [0]}),
        "build": (tg.build, {"source": edges, "path": new, "overwrite": True}),
        "build_file": (tg.build, {"source": folder / "edges.npy", "path": new, "overwrite": True}),
        "generate": (
            tg.generate,
            {"kind": "sbm", "path": new, "vertices": 20, "communities": 2, "overwrite": True},
        ),
        "add_features": (tg.add_features, {"path": folder / "g.tg", "overwrite": True}),
        "add_edge_values": (
            tg.add_edge_values,
            {"path": folder / "g.tg", "source": folder / "edges.npy", "overwrite": True,
             "values": {"w": np.ones(200), "t": np.arange(200)}},
        ),
        "order_features": (tg.order_features, {"path": folder / "g.tg", "by": "degree"}),
        "checksum_features": (tg.checksum_features, {"path": folder / "g.tg"}),
        "open_hetero": (tg.open_hetero, {"path": folder / "g.tg"}),
        "build_hetero": (
            tg.build_hetero,
            {"path": new, "nodes": {"a": {"vertices": 3}}, "edges": {("a", "b", "a"): edges},
             "overwrite": True},
        ),
        "NeighborLoader": (tg.NeighborLoader, sampled),
        "LinkNeighborLoader": (
            tg.LinkNeighborLoader, sampled | {"edge_label_index": np.array([[0, 1], [1, 2]])}
        ),
    }  # fmt: skip


def parameters():
    """Every parameter of every call, by the call's name."""
    signatures = {
        "open": tg.open, "degrees": tg.Graph.degrees, "pagerank": tg.Graph.pagerank,
        "wcc": tg.Graph.wcc, "bfs": tg.Graph.bfs, "sssp": tg.Graph.sssp,
        "propagate": tg.Graph.propagate, "propagate_bytes": tg.Graph.propagate_bytes,
        "build": tg.build, "build_file": tg.build, "generate": tg.generate,
        "add_features": tg.add_features, "add_edge_values": tg.add_edge_values,
        "order_features": tg.order_features, "checksum_features": tg.checksum_features,
        "open_hetero": tg.open_hetero, "build_hetero": tg.build_hetero,
        "NeighborLoader": tg.NeighborLoader.__init__,
        "LinkNeighborLoader": tg.LinkNeighborLoader.__init__,
    }  # fmt: skip
    for name, call in signatures.items():
        for parameter in inspect.signature(call).parameters.values():
            named = parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            if named and parameter.name != "self":
                yield name, parameter.name
    yield "features", "vertices"


def refusal(function, *arguments, **options):
    """The error of ours that a call ends with; None if it comes to its end."""
    try:
        function(*arguments, **options)
    except tg.Error as error:
        return error
    return None


LOADERS = ("NeighborLoader", "LinkNeighborLoader")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("call", "parameter"), list(parameters()))
def test_any_argument_may_be_nonsense(folder, monkeypatch, call, parameter):
    if call in LOADERS:
        pytest.importorskip("torch_geometric")
    monkeypatch.chdir(folder)
    function, arguments = calls(folder)[call]
    before = set(os.listdir(folder))
    for value in NONSENSE:
        if parameter in ("path", "graph", "trace") and isinstance(value, str):
            continue
        error = refusal(function, **arguments | {parameter: value})
        said = "cannot be told" if error is None else str(error)
        assert not isinstance(error, tg.InternalError), (value, said)
        assert said.startswith("cannot "), said
        assert said.count("\n\nhint: ") <= 1, said
        assert "`--" not in said, said
    assert set(os.listdir(folder)) - before <= {"new.tg"}


SIX = (np.array([0, 0, 1, 2, 3, 4]), np.array([1, 2, 2, 0, 4, 5]))


@pytest.mark.parametrize(
    ("call", "arguments", "said"),
    [
        ("bfs", {"source": 2**64}, "cannot use `source=18446744073709551616`: expected a vertex"),
        ("bfs", {"source": -1}, "cannot use `source=-1`: expected a vertex id"),
        ("bfs", {"source": 1.7}, "cannot use `source=1.7`: expected a vertex id"),
        ("bfs", {"source": 1.0}, "cannot use `source=1.0`: expected a vertex id"),
        ("bfs", {"source": True}, "cannot use `source=True`: expected a vertex id"),
        ("bfs", {"source": "a"}, "expected a graph with names"),
        ("bfs", {"source": ""}, 'cannot use `source=""`: expected a vertex id'),
        ("bfs", {"source": None}, "cannot use `source=None`: expected a vertex id"),
        ("bfs", {"source": 50}, "50"),
        ("sssp", {"source": 2**64}, "cannot use `source=18446744073709551616`"),
        ("pagerank", {"sources": []}, "cannot use `sources=[]`: expected one vertex id or more"),
        ("pagerank", {"sources": 10}, "cannot use `sources=10`: expected a list, set or array of"),
        ("pagerank", {"sources": [[1]]}, "cannot use `sources=[[1]]`: expected a list, set or"),
        ("pagerank", {"sources": {1, "a"}}, ": expected a list, set or array of vertex ids"),
        ("pagerank", {"sources": set()}, "cannot use `sources=set()`: expected one vertex id"),
        ("pagerank", {"sources": [2**64]}, "`18446744073709551616`: expected vertex ids from 0 to"),
        ("pagerank", {"sources": [0.5]}, "expected an array of integers, got float64"),
        ("pagerank", {"sources": [-1]}, "expected vertex ids of 0 or more"),
        ("pagerank", {"iterations": 0}, "cannot use `iterations=0`: expected a whole number from"),
        ("pagerank", {"damping": 1.5}, "cannot use `damping=1.5`: expected a finite number from 0"),
        ("pagerank", {"damping": math.nan}, "cannot use `damping=nan`"),
        ("pagerank", {"tolerance": -1e-3}, "cannot use `tolerance=-0.001`"),
        ("propagate", {"x": ["a"] * 50}, "expected an array of real numbers, got <U1"),
        ("propagate", {"x": np.ones(50) * 1j}, "expected an array of real numbers, got complex128"),
        ("propagate", {"x": np.ones(49)}, "expected shape (50,) or (50, F), got (49,)"),
        ("propagate", {"reduce": "mean"}, 'cannot use `reduce="mean"`: expected one of `sum`'),
        ("propagate", {"weights": True}, "weights"),
        ("degrees", {"direction": "up"}, 'cannot use `direction="up"`'),
        ("open", {"memory": -5}, "cannot use `memory=-5`: expected a size such as `2GiB`"),
        ("open", {"memory": 10**20}, "cannot use `memory=100000000000000000000`: expected a size"),
        ("open", {"memory": "much"}, "cannot read the size `much`"),
        ("open", {"memory": "99999999999GiB"}, "99999999999GiB"),
        ("open", {"memory": 0}, "run with `memory="),
        ("open", {"threads": 0}, "cannot use `threads=0`: expected a whole number from 1 to 1024"),
        ("open", {"threads": 100_000}, "expected a whole number from 1 to 1024"),
        ("open", {"threads": 2.0}, "cannot use `threads=2.0`"),
        ("open", {"io": "mmap"}, 'cannot use `io="mmap"`: expected one of `auto`'),
        ("open", {"device": "gpu"}, 'cannot use `device="gpu"`: expected `cpu`, `cuda`'),
        ("open", {"device": "cuda:x"}, 'cannot use `device="cuda:x"`'),
        ("open", {"path": None}, "cannot use `path=None`: expected a path"),
        ("open", {"path": b"g.tg"}, "expected a path"),
        ("open", {"path": "none.tg"}, "expected a graph directory, got nothing there"),
        ("open", {"path": "x.npy"}, "expected a graph directory, got a file"),
        ("build", {"source": None}, "NoneType"),
        ("build", {"source": 5}, "int"),
        ("build", {"source": "none.txt"}, "none.txt"),
        ("build", {"source": ([0], [1, 2])}, "arrays of one length"),
        ("build", {"source": ([0.5], [1])}, "float64"),
        ("build", {"source": ([-1], [1])}, "0 or more"),
        ("build", {"stripe": "a"}, 'cannot use `stripe="a"`: expected a list of directories'),
        ("build", {"block_bytes": 5000}, "4096"),
        ("build", {"order": "hot"}, 'cannot use `order="hot"`'),
        ("build", {"layouts": "all"}, 'cannot use `layouts="all"`'),
        ("build", {"edge_values": {"w": "none.npy"}}, "none.npy"),
        ("build", {"node_times": {"t": "none.npy"}}, "none.npy"),
        ("build", {"edge_values": {"w": np.ones(2)}}, "a value for each of 3 edges"),
        ("build", {"features": "none.npy"}, "none.npy"),
        ("build", {"labels": "none.npy"}, "none.npy"),
        ("build", {"splits": "none.npz"}, "none.npz"),
        ("build", {"overwrite": "yes"}, 'cannot use `overwrite="yes"`: expected True or False'),
        ("generate", {"kind": "ring"}, 'cannot use `kind="ring"`: expected one of `rmat`'),
        ("generate", {"vertices": 0}, "cannot use `vertices=0`"),
        ("generate", {"seed": -1}, "cannot use `seed=-1`"),
        ("generate", {"inside": 2}, "cannot use `inside=2`: expected a finite number from 0 to 1"),
        ("generate", {"mean_degree": math.inf}, "cannot use `mean_degree=inf`"),
        ("add_features", {"features": np.ones(3)}, "vertices"),
        ("add_features", {"features": "none.npy"}, "none.npy"),
        ("add_features", {"path": "none.tg"}, "none.tg"),
        ("order_features", {"by": "size"}, 'cannot use `by="size"`'),
        ("order_features", {"name": "z"}, "`z`"),
        ("checksum_features", {"name": "z"}, "`z`"),
        ("open_hetero", {}, "expected a heterogeneous graph"),
        ("features", {"vertices": [99]}, "99"),
        ("features", {"vertices": ["a"]}, "expected an array of integers"),
    ],
)
def test_what_is_refused_is_named(folder, monkeypatch, call, arguments, said):
    monkeypatch.chdir(folder)
    function, given = calls(folder)[call]
    before = set(os.listdir(folder))
    with pytest.raises(tg.Error) as caught:
        function(**given | arguments)
    assert said in str(caught.value)
    assert not isinstance(caught.value, tg.InternalError)
    assert set(os.listdir(folder)) - before <= {"new.tg"}


def test_a_bound_beyond_the_machine_bounds_nothing(folder):
    graph = tg.open(folder / "g.tg", memory=2**63)
    assert graph.bfs(0)[0] == 0


@pytest.mark.parametrize(
    "damage",
    [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f8'",
     b"no array at all", b"\x93NUMPY\x09\x00\x10\x00" + b" " * 16],
)  # fmt: skip
@pytest.mark.parametrize("role", ["features", "labels", "splits", "edge_values", "node_times"])
def test_a_damaged_header_is_an_error(folder, tmp_path, role, damage):
    path = tmp_path / "damaged.npy"
    path.write_bytes(damage)
    given = {"t": path} if role in ("edge_values", "node_times") else path
    with pytest.raises(tg.Error, match="damaged") as caught:
        tg.build(SIX, tmp_path / "g.tg", **{role: given})
    assert not isinstance(caught.value, tg.InternalError)
    assert os.listdir(tmp_path) == ["damaged.npy"]


def test_an_archive_with_a_damaged_member_is_an_error(tmp_path):
    path = tmp_path / "splits.npz"
    np.savez(path, train=np.arange(3), val=np.arange(3))
    sound = path.read_bytes()
    for at in range(0, len(sound), 7):
        path.write_bytes(sound[:at] + b"\xff\xff" + sound[at + 2 :])
        error = refusal(tg.build, SIX, tmp_path / "g.tg", splits=path, overwrite=True)
        assert not isinstance(error, tg.InternalError), at
    assert set(os.listdir(tmp_path)) <= {"splits.npz", "g.tg"}
    assert "splits.npz" not in open_files(), "what is refused is closed"


def open_files():
    """The names of this process's open files."""
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(os.path.basename(os.readlink(link)))
    return found


def test_labels_that_were_damaged_are_an_error(tmp_path):
    tg.build(SIX, tmp_path / "g.tg", labels=np.arange(6))
    path = Path(tmp_path / "g.tg/labels/y.npy")
    sound = path.read_bytes()
    path.write_bytes(b"\x00" * 16 + sound[16:])
    with pytest.raises(tg.Error):
        tg.open(tmp_path / "g.tg").labels["y"]
