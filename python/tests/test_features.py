"""Features, labels and splits, from every source, and back."""

import gzip
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tiergraph as tg
from tiergraph.cli import main

N, D = 40, 6

MEMORY = "64MiB"


@pytest.fixture
def x():
    """A feature matrix, exact in float16."""
    return (np.arange(N * D, dtype=np.float32).reshape(N, D) - 100) / 4


@pytest.fixture
def ring():
    """A ring of N vertices with a hub, so that the order by degrees is another."""
    src = np.arange(N)
    hub = np.full(N - 1, N // 2)
    return np.concatenate([src, hub]), np.concatenate([(src + 1) % N, np.delete(src, N // 2)])


@pytest.fixture
def build(ring, tmp_path):
    """Builds and opens the ring with what it is given."""

    def run(**given):
        tg.build(ring, tmp_path / "g.tg", order="degree", overwrite=True, memory=MEMORY, **given)
        return tg.open(tmp_path / "g.tg", memory=MEMORY)

    return run


def sparse(x):
    """The rows of `x` as compressed sparse rows."""
    rows, columns = np.nonzero(x)
    indptr = np.zeros(len(x) + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=len(x)), out=indptr[1:])
    return {
        "data": x[rows, columns],
        "indices": columns.astype(np.int32),
        "indptr": indptr,
        "shape": np.array(x.shape),
    }


def write_parquet(path, columns):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table(columns), path, row_group_size=7)
    return path


def sources(x, tmp_path):
    """The same rows in every form that holds them."""
    pa = pytest.importorskip("pyarrow")
    np.save(tmp_path / "x.npy", x.astype(np.float64))
    np.savez(tmp_path / "csr.npz", **sparse(x), format=b"csr")
    np.savez_compressed(tmp_path / "pyg.npz", **{f"x_{k}": v for k, v in sparse(x).items()})
    np.savez(tmp_path / "dense.npz", x=x)
    with gzip.open(tmp_path / "x.csv.gz", "wt") as file:
        np.savetxt(file, x, delimiter=",")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), D)
    yield x
    yield x.tolist()
    yield (x[i : i + 7] for i in range(0, N, 7))
    yield SimpleNamespace(tocsr=lambda: SparseRows(x))
    for name in ("x.npy", "csr.npz", "pyg.npz", "dense.npz", "x.csv.gz"):
        yield tmp_path / name
    yield write_parquet(tmp_path / "fixed.parquet", {"id": np.arange(N), "feat": lists})
    yield write_parquet(tmp_path / "list.parquet", {"feat": pa.array(list(x))})
    yield write_parquet(tmp_path / "columns.parquet", {f"c{i}": x[:, i] for i in range(D)})


class SparseRows:
    """As much of a SciPy matrix as is used."""

    def __init__(self, x):
        self.x, self.shape = x, x.shape

    def __getitem__(self, rows):
        return SparseRows(self.x[rows])

    def toarray(self):
        return self.x


def test_every_source_gives_the_same_rows(build, x, tmp_path):
    ids = np.random.default_rng(1).permutation(np.repeat(np.arange(N), 2))
    for source in sources(x, tmp_path):
        features = build(features=source).features["x"]
        assert (features.shape, features.dtype, len(features)) == ((N, D), "f32", N)
        read = features.read(ids)
        assert read.dtype == np.float32
        np.testing.assert_array_equal(read, x[ids])


def test_types_cost_what_they_say(build, x):
    noise = np.random.default_rng(2).normal(size=(N, D)).astype(np.float32)
    for dtype, bound in [
        ("f32", 0.0 * np.abs(noise)),
        ("f16", np.maximum(np.abs(noise) * 2.0**-11, 2.0**-25)),
        ("int8", np.abs(noise).max(axis=1, keepdims=True) / 254 * 1.0001),
    ]:
        read = build(features=noise, feature_dtype=dtype).features["x"].read(np.arange(N))
        assert (np.abs(read - noise) <= bound).all(), dtype
    np.testing.assert_array_equal(
        build(features=x, feature_dtype="f16").features["x"].read(np.arange(N)), x
    )


def test_labels_and_splits_stay_in_the_users_order(build, tmp_path):
    y = np.arange(N) % 5
    np.save(tmp_path / "y.npy", y.astype(np.int16))
    mask = np.arange(N) < 10
    np.savez(tmp_path / "split.npz", train_mask=mask, valid=np.array([11, 12]), test_idx=[39])
    graph = build(labels=tmp_path / "y.npy", splits=tmp_path / "split.npz")
    assert graph.labels["y"].dtype == np.int16
    np.testing.assert_array_equal(graph.labels["y"], y)
    assert sorted(graph.splits) == ["test", "train", "val"]
    np.testing.assert_array_equal(graph.splits["train"], mask)
    np.testing.assert_array_equal(graph.splits["val"], [11, 12])
    assert graph.features == {}
    with pytest.raises(KeyError):
        graph.labels["z"]


def test_rows_belong_to_mapped_ids_in_ascending_order(edges, tmp_path):
    ids = np.unique(np.concatenate(edges[:2]))
    x = ids[:, None] * np.ones((1, 3))
    tg.build(edges, tmp_path / "g.tg", ids="map", order="degree", features={"f": x}, labels=ids)
    graph = tg.open(tmp_path / "g.tg", memory=MEMORY)
    np.testing.assert_array_equal(graph.features["f"].read([90, 10, 40])[:, 0], [90, 10, 40])
    np.testing.assert_array_equal(graph.labels["y"], graph.ids)
    with pytest.raises(tg.InputError, match="find vertex `11`"):
        graph.features["f"].read([11])


def test_parts_are_added_to_a_graph_or_it_stays_as_it_was(build, x, tmp_path):
    path = tmp_path / "g.tg"
    build(features=x)
    stored = tg.add_features(path, features={"z": x * 2}, labels=np.arange(N), memory=MEMORY)
    assert sorted(stored["features"]) == ["x", "z"]
    assert stored["labels"] == ["y"]
    graph = tg.open(path, memory=MEMORY)
    np.testing.assert_array_equal(graph.features["z"].read([3, 1]), x[[3, 1]] * 2)

    with pytest.raises(tg.InputError, match="a name that"):
        tg.add_features(path, features=x)
    before = sorted(p.name for p in path.rglob("*"))

    def broken():
        yield x[:10]
        raise ZeroDivisionError("in the middle")

    with pytest.raises(ZeroDivisionError, match="in the middle"):
        tg.add_features(path, features={"w": broken()}, labels={"v": np.arange(N)})
    assert sorted(p.name for p in path.rglob("*")) == before
    tg.add_features(path, features=-x, overwrite=True)
    np.testing.assert_array_equal(tg.open(path).features["x"].read([5]), -x[[5]])


def test_an_iterator_that_fails_fails_the_build(ring, x, tmp_path):
    def broken():
        yield x[:10]
        raise ZeroDivisionError("in the middle")

    with pytest.raises(ZeroDivisionError):
        tg.build(ring, tmp_path / "g.tg", features=broken(), memory=MEMORY)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"features": np.zeros((N - 1, 2))}, "a row for each of 40 vertices, got 39 rows"),
        ({"features": np.full((N, 2), np.nan)}, "finite numbers, got NaN in row 0, column 0"),
        ({"features": np.full((N, 2), 1e300)}, "finite numbers, got inf in row 0, column 0"),
        (
            {"features": np.full((N, 2), 1e5), "feature_dtype": "f16"},
            "numbers that f16 holds, got 100000 in row 0, column 0",
        ),
        ({"features": np.zeros((N, 2, 2))}, "numbers of shape"),
        ({"features": np.array(["a"] * N)}, "numbers of shape"),
        ({"features": iter([np.zeros((N, 2)), np.zeros((1, 3))])}, "batches of one width"),
        ({"features": iter([])}, "batches of rows, got none"),
        ({"features": 7}, "a path, an array"),
        ({"features": {"a/b": np.zeros((N, 2))}}, "letters, digits"),
        ({"labels": np.full(N, np.nan)}, "finite numbers, got NaN at 0"),
        ({"labels": np.zeros(N + 1)}, "one for each of 40 vertices, got 41"),
        ({"splits": {"train": [0, N]}}, "positions of 0 to 39, got 40 at 1"),
        ({"splits": {"train": np.zeros(N - 1, dtype=bool)}}, "each of 40 vertices, got 39"),
        ({"splits": {"train": [0.5]}}, "a mask of booleans, or positions, got floats"),
        ({"splits": 7}, "a dictionary of masks"),
        ({"features": "x.txt"}, "one of .npy, .npz"),
    ],
)
def test_bad_input_is_refused_and_leaves_nothing(ring, tmp_path, given, message):
    with pytest.raises(tg.InputError, match=message):
        tg.build(ring, tmp_path / "g.tg", memory=MEMORY, **given)
    assert list(tmp_path.iterdir()) == []


def test_bad_files_are_refused(build, x, tmp_path):
    np.save(tmp_path / "fortran.npy", np.asfortranarray(x))
    with pytest.raises(tg.InputError, match="ascontiguousarray"):
        build(features=tmp_path / "fortran.npy")
    np.save(tmp_path / "cut.npy", x)
    cut = (tmp_path / "cut.npy").read_bytes()[:-1]
    (tmp_path / "cut.npy").write_bytes(cut)
    with pytest.raises(tg.InputError, match="40 rows of 6 numbers"):
        build(features=tmp_path / "cut.npy")
    parts = sparse(x)
    np.savez(tmp_path / "wide.npz", **{**parts, "indices": parts["indices"] + 1})
    with pytest.raises(tg.InputError, match="columns below 6"):
        build(features=tmp_path / "wide.npz")
    np.savez(tmp_path / "short.npz", **{**parts, "indptr": parts["indptr"][:-1]})
    with pytest.raises(tg.InputError, match="sparse rows of shape"):
        build(features=tmp_path / "short.npz")
    (tmp_path / "bad.npz").write_bytes(b"PK no archive")
    with pytest.raises(tg.InputError, match="npz archive"):
        build(features=tmp_path / "bad.npz")
    ragged = pytest.importorskip("pyarrow").array([[1.0], [1.0, 2.0]] * (N // 2))
    with pytest.raises(tg.InputError, match="rows of one length"):
        build(features=write_parquet(tmp_path / "ragged.parquet", {"x": ragged}))
    with pytest.raises(tg.InputError, match="`nope`"):
        build(features=tmp_path / "ragged.parquet", feature_columns=["nope"])


def test_nan_is_stored_when_asked(build, x):
    x[3, 2] = np.nan
    graph = build(features=x, labels=x[:, 2].copy(), allow_nan=True)
    np.testing.assert_array_equal(graph.features["x"].read(np.arange(N)), x)
    np.testing.assert_array_equal(graph.labels["y"], x[:, 2])


def test_a_corrupt_page_is_named(build, x, tmp_path):
    graph = build(features=x)
    path = tmp_path / "g.tg" / "features" / "x.rows"
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)
    with pytest.raises(tg.FormatError, match=r"page 0 \(offset 0\) of `features/x.rows`"):
        graph.features["x"].read(np.arange(N))
    assert main(["verify", str(tmp_path / "g.tg")]) == 1


@pytest.mark.parametrize("name", ["cora", "minesweeper"])
def test_an_archive_is_a_whole_dataset(data, tmp_path, name):
    source = data(f"gnn/{name}.npz")
    archive = np.load(source)
    stats = tg.build(source, tmp_path / "g.tg", memory=MEMORY, feature_dtype="f16")
    n, d = archive["x_shape"]
    assert (stats["vertices"], stats["edges"]) == (n, archive["edge_index"].shape[1])
    graph = tg.open(tmp_path / "g.tg", memory=MEMORY)
    x = np.zeros((n, d), dtype=np.float32)
    rows = np.repeat(np.arange(n), np.diff(archive["x_indptr"]))
    x[rows, archive["x_indices"]] = archive["x_data"]
    np.testing.assert_array_equal(graph.features["x"].read(np.arange(n)), x)
    np.testing.assert_array_equal(graph.labels["y"], archive["y"])
    masks = archive["train_mask"] if name == "cora" else archive["train_masks"].T
    np.testing.assert_array_equal(graph.splits["train"], masks)
    assert graph.info()["features"]["x"]["dim"] == d
    assert graph.info()["layouts"] == ["tiles", "rows"]


def test_data_of_pyg_is_a_whole_dataset(ring, x, tmp_path):
    data = SimpleNamespace(
        edge_index=np.stack(ring), x=x, y=np.arange(N), num_nodes=N, val_mask=np.arange(N) > 30
    )
    tg.build(data, tmp_path / "g.tg", memory=MEMORY)
    graph = tg.open(tmp_path / "g.tg", memory=MEMORY)
    np.testing.assert_array_equal(graph.features["x"].read([7]), x[[7]])
    np.testing.assert_array_equal(graph.labels["y"], np.arange(N))
    assert graph.splits["val"].sum() == 9


def test_data_of_pyg_says_what_is_left_out(ring, x, tmp_path):
    time = np.arange(N) * 3
    data = SimpleNamespace(edge_index=np.stack(ring), x=x, num_nodes=N, time=time, pos=x, z=time)
    with pytest.warns(tg.InputWarning, match="`pos`, `z` of `Data`: left out"):
        [note] = tg.build(data, tmp_path / "g.tg", memory=MEMORY)["notes"]
    assert note.startswith("`pos`, `z` of `Data`")
    graph = tg.open(tmp_path / "g.tg", memory=MEMORY)
    assert graph.info()["node_times"] == ["time"]
    np.testing.assert_array_equal(graph.labels["time"], time)
    data = SimpleNamespace(edge_index=np.stack(ring), num_nodes=N, time=time)
    with pytest.warns(tg.InputWarning, match="times of nodes are left out"):
        tg.build(data, tmp_path / "g.tg", dedup=True, overwrite=True)


def test_integers_that_float32_does_not_hold_are_told(ring, x, tmp_path):
    exact, inexact = np.full((N, 1), 1 << 24), np.full((N, 1), (1 << 24) + 1)
    given = {"edge_index": np.stack(ring), "num_nodes": N}
    told = "16777217 becomes 16777216"
    with pytest.warns(tg.InputWarning, match=told):
        notes = tg.build(SimpleNamespace(**given, x=inexact), tmp_path / "g.tg")["notes"]
    assert len(notes) == 1
    assert told in notes[0]
    with pytest.warns(tg.InputWarning, match=told):
        tg.build(ring, tmp_path / "g.tg", features=inexact, overwrite=True)
    tg.build(ring, tmp_path / "g.tg", features=exact, overwrite=True)


def test_tensors_of_any_kind_are_stored_or_named(ring, x, tmp_path):
    torch = pytest.importorskip("torch")
    given = {"edge_index": torch.from_numpy(np.stack(ring)), "num_nodes": N}
    rows = torch.from_numpy(x)
    for tensor in (rows.clone().requires_grad_(), rows.bfloat16(), torch.nn.Parameter(rows)):
        tg.build(SimpleNamespace(**given, x=tensor), tmp_path / "g.tg", overwrite=True)
        found = tg.open(tmp_path / "g.tg", memory=MEMORY).features["x"].read(np.arange(N))
        np.testing.assert_array_equal(found, tensor.detach().float().numpy())
        tg.build(ring, tmp_path / "g.tg", features=tensor, overwrite=True)
    for name in ("x", "y", "train_mask"):
        data = SimpleNamespace(**given, **{name: rows.to_sparse()})
        with pytest.raises(tg.InputError, match=f"`data.{name}`: expected a dense tensor"):
            tg.build(data, tmp_path / "g.tg", overwrite=True)
    for option in ("features", "labels", "edge_features"):
        with pytest.raises(tg.InputError, match="expected a dense tensor"):
            tg.build(ring, tmp_path / "g.tg", **{option: rows.to_sparse()}, overwrite=True)


def write_ogb(folder: Path, ring, x, *, arrays: bool):
    """The ring in OGB's layout: text, or arrays and an archive."""
    (folder / "raw").mkdir(parents=True)
    (folder / "split" / "time").mkdir(parents=True)
    labels = np.where(np.arange(N) == 4, np.nan, np.arange(N) % 3)

    def text(name, values, form):
        with gzip.open(folder / name, "wt") as file:
            np.savetxt(file, np.asarray(values), delimiter=",", fmt=form)

    if arrays:
        np.savez(folder / "raw/data.npz", edge_index=np.stack(ring), node_feat=x)
        np.savez(folder / "raw/node-label.npz", node_label=labels[:, None])
        text("raw/num-node-list.csv.gz", [N], "%d")
    else:
        text("raw/edge.csv.gz", np.stack(ring, axis=1), "%d")
        text("raw/node-feat.csv.gz", x, "%.4f")
        text("raw/node-label.csv.gz", labels, "%g")
        text("raw/num-node-list.csv.gz", [N], "%d")
    for name, values in [("train", [0, 1]), ("valid", [2]), ("test", [3, 39])]:
        text(f"split/time/{name}.csv.gz", values, "%d")


@pytest.mark.parametrize("arrays", [False, True])
def test_a_folder_of_ogb_is_a_whole_dataset(ring, x, tmp_path, arrays):
    write_ogb(tmp_path / "ogb", ring, x, arrays=arrays)
    stats = tg.build(tmp_path / "ogb", tmp_path / "g.tg", memory=MEMORY)
    assert (stats["vertices"], stats["edges"]) == (N, 2 * N - 1)
    graph = tg.open(tmp_path / "g.tg", memory=MEMORY)
    np.testing.assert_array_equal(graph.features["x"].read(np.arange(N)), x)
    assert graph.labels["y"].dtype == np.int64
    assert graph.labels["y"][:6].tolist() == [0, 1, 2, 0, -1, 2]
    assert {name: split.tolist() for name, split in graph.splits.items()} == {
        "train": [0, 1],
        "val": [2],
        "test": [3, 39],
    }


def test_archives_are_streamed(x, tmp_path):
    """A member is read front to back, and what is missing is told."""
    from tiergraph.sources.archives import Member, members

    np.savez_compressed(tmp_path / "a.npz", x=x)
    assert members(tmp_path / "a.npz") == {"x"}
    member = Member(tmp_path / "a.npz", "x")
    np.testing.assert_array_equal(member.take(D), x[0])
    np.testing.assert_array_equal(member.take(2 * D), x[1:3].ravel())
    with pytest.raises(tg.InputError, match="more bytes"):
        member.take(N * D)
    np.savez(tmp_path / "f.npz", x=np.asfortranarray(x))
    with pytest.raises(tg.InputError, match="C order"):
        Member(tmp_path / "f.npz", "x")
    assert zipfile.is_zipfile(tmp_path / "f.npz")


PROGRAM = """
import resource, sys
import numpy, tiergraph as tg
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
base = peak()
tg.add_features(sys.argv[1], features=sys.argv[2], memory=int(sys.argv[3]))
print(peak() - base)
"""


@pytest.mark.parametrize("form", ["npy", "npz"])
def test_a_matrix_larger_than_memory_is_put_in_order(tmp_path, form):
    """128 MiB of rows in 32 MiB, in an order of vertices that scatters them."""
    n, d, memory = 1 << 16, 512, 32 << 20
    path = tmp_path / "g.tg"
    tg.generate("uniform", path, vertices=n, edges=2 * n, order="degree", memory=MEMORY)
    x = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (n, d))
    x[:] = np.arange(n, dtype=np.float32)[:, None]
    x[:, 1] = 7
    x.flush()
    source = tmp_path / "x.npy"
    if form == "npz":
        source = tmp_path / "x.npz"
        np.savez(source, x=x)
    command = [sys.executable, "-c", PROGRAM, path, source, str(memory)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) <= memory + (16 << 20), "the budget, and batches on their way"
    ids = np.random.default_rng(5).integers(0, n, 2000)
    np.testing.assert_array_equal(tg.open(path).features["x"].read(ids), x[ids])


def test_generated_graphs_have_features_that_tell_classes_apart(tmp_path):
    path = tmp_path / "sbm.tg"
    arguments = ["generate", "sbm", str(path), "--vertices", "2000", "--communities", "8"]
    arguments += ["--mean-degree", "10", "--inside", "0.8", "--features", "32", "--classes", "4"]
    assert main([*arguments, "--memory", MEMORY, "--json"]) == 0
    graph = tg.open(path, memory=MEMORY)
    x, y = graph.features["x"].read(graph.ids), graph.labels["y"]
    np.testing.assert_array_equal(y, np.arange(2000) % 8 % 4)
    train = graph.splits["train"]
    assert (train ^ graph.splits["val"] ^ graph.splits["test"]).all()
    means = np.stack([x[train & (y == c)].mean(axis=0) for c in range(4)])
    nearest = ((x[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    accuracy = (nearest == y)[graph.splits["test"]].mean()
    assert 0.5 < accuracy < 0.85, "better than chance (0.25), and worse than its neighbours'"


def test_generated_noise_is_stored_as_asked(tmp_path):
    path = tmp_path / "rmat.tg"
    arguments = ["generate", "rmat", str(path), "--scale", "8", "--features", "10"]
    assert main([*arguments, "--feature-dtype", "int8", "--memory", MEMORY]) == 0
    graph = tg.open(path, memory=MEMORY)
    assert graph.features["x"].dtype == "int8"
    assert graph.features["x"].shape == (256, 10)
    x = graph.features["x"].read(graph.ids)
    assert abs(x.mean()) < 0.1
    assert 0.9 < x.std() < 1.1


def test_the_command_line_stores_and_lists_them(capfd, ring, x, tmp_path):
    np.save(tmp_path / "edges.npy", np.stack(ring, axis=1))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "labels.npy", np.arange(N))
    np.save(tmp_path / "train.npy", np.arange(5))
    np.save(tmp_path / "odd.npy", np.array([9]))
    graph = str(tmp_path / "g.tg")
    arguments = ["build", str(tmp_path / "edges.npy"), graph, "--memory", MEMORY]
    arguments += ["--features", str(tmp_path / "x.npy"), "--feature-dtype", "f16"]
    arguments += ["--features", f"again={tmp_path / 'x.npy'}"]
    arguments += ["--labels", str(tmp_path / "labels.npy")]
    arguments += ["--split", str(tmp_path / "train.npy"), "--split", f"val={tmp_path / 'odd.npy'}"]
    assert main([*arguments, "--json"]) == 0
    capfd.readouterr()
    assert main(["info", graph, "--json"]) == 0
    info = json.loads(capfd.readouterr().out)
    assert sorted(info["features"]) == ["again", "x"]
    assert info["features"]["x"]["dtype"] == "f16"
    assert (info["labels"], info["splits"]) == (["y"], ["train", "val"])
    assert all("/" not in file for file in info["bytes_per_edge_by_file"])
    assert main(["verify", graph, "--json"]) == 0
    opened = tg.open(graph, memory=MEMORY)
    np.testing.assert_array_equal(opened.features["again"].read([1, 2]), x[1:3])
