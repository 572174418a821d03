"""A file in another's place, or of another build of equal shape, never gives a wrong answer."""

import itertools
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from sealing import crc32c, write_manifest

import tiergraph as tg
from tiergraph.cli import main

VERTICES = 4096


def ring(stride):
    """A ring that steps over `stride` vertices: all degrees are 1 in either direction."""
    src = np.arange(VERTICES)
    return src, (src + stride) % VERTICES


def build(path, stride, **options):
    edges = ring(stride)
    rng = np.random.default_rng(stride)
    # Raw blocks have no rows, and without rows there are no values of edges.
    values = {} if options["codec"] == "raw" else {n: rng.random(VERTICES) for n in ("w", "v")}
    tg.build(
        edges, path, vertices=VERTICES, block_bytes=4096, order="none", layouts="both",
        features={name: rng.random((VERTICES, 4), dtype=np.float32) for name in ("x", "z")},
        labels={name: rng.integers(0, 9, VERTICES) for name in ("y", "other")},
        splits={name: rng.permutation(VERTICES)[:500] for name in ("train", "val")},
        edge_values=values,
        **options,
    )  # fmt: skip
    return path


CODECS = ("packed", "raw")


@pytest.fixture(scope="module", params=CODECS)
def builds(request, tmp_path_factory):
    """Two graphs whose files have the same names and lengths, and other contents."""
    folder = tmp_path_factory.mktemp("builds")
    options = {"codec": request.param}
    return build(folder / "a.tg", 1, **options), build(folder / "b.tg", 1001, **options)


def files_of(path):
    return [str(p.relative_to(path)) for p in sorted(Path(path).rglob("*")) if p.is_file()]


def answers(path):
    """What a graph says, by question; an error of ours instead where there is one."""
    try:
        graph = tg.open(path, memory="64MiB", threads=2)
    except tg.Error as error:
        return {"open": error}
    questions = {
        "bfs": lambda: graph.bfs(0),
        "sssp": lambda: graph.sssp(0),
        "wcc": graph.wcc,
        "pagerank": lambda: graph.pagerank(iterations=2, sources=[0]),
        "propagate": lambda: graph.propagate(np.arange(VERTICES, dtype=np.float32)),
        "transposed": lambda: graph.propagate(np.arange(VERTICES), transpose=True),
        "out": graph.degrees,
        "in": lambda: graph.degrees("in"),
        "x": lambda: graph.features["x"].read(np.arange(VERTICES)),
        "z": lambda: graph.features["z"].read(np.arange(VERTICES)),
        "y": lambda: graph.labels["y"],
        "other": lambda: graph.labels["other"],
        "train": lambda: graph.splits["train"],
        "val": lambda: graph.splits["val"],
    }
    if "rows" in {file["kind"] for file in manifest_of(path)["files"].values()}:
        questions["batch"] = lambda: batch_of(path, "in")
        questions["batch out"] = lambda: batch_of(path, "out")
    said = {}
    for question, ask in questions.items():
        try:
            said[question] = np.array(ask())
        except tg.Error as error:
            said[question] = error
    return said


def manifest_of(path):
    return json.loads((Path(path) / "manifest.json").read_text())


def batch_of(path, direction):
    """Neighbours, weights and rows of a batch, as one array."""
    options = {"direction": direction, "weight_attr": "w", "memory": "64MiB", "threads": 1}
    batch = next(iter(tg.NeighborLoader(path, [2], batch_size=256, **options)))
    parts = batch.n_id, batch.edge_index, batch.w, batch.x, batch.y
    return np.concatenate([part.numpy().ravel().astype(np.float64) for part in parts])


@pytest.fixture
def copy(builds, tmp_path):
    """A copy of the first graph, which a test may spoil."""
    return Path(shutil.copytree(builds[0], tmp_path / "copy.tg"))


def check(path, expected, what):
    """Every answer is right, or an error that is not about a mistake of tiergraph."""
    for question, answer in answers(path).items():
        if isinstance(answer, tg.Error):
            assert not isinstance(answer, tg.InternalError), (what, question, answer)
        else:
            np.testing.assert_allclose(answer, expected[question], err_msg=f"{what} {question}")


def test_files_of_another_build_are_never_taken_for_the_graphs(builds, copy):
    pytest.importorskip("torch_geometric")
    expected, other = answers(builds[0]), answers(builds[1])
    assert not [answer for answer in expected.values() if isinstance(answer, tg.Error)]
    assert any(not np.array_equal(other[question], expected[question]) for question in expected)
    names = files_of(copy)
    assert names == files_of(builds[1])
    for name in names:
        sound = (copy / name).read_bytes()
        foreign = (builds[1] / name).read_bytes()
        if foreign == sound:
            continue
        (copy / name).write_bytes(foreign)
        check(copy, expected, name)
        assert main(["verify", str(copy)]) == 1, name
        (copy / name).write_bytes(sound)
    assert main(["verify", str(copy)]) == 0


def test_files_that_were_swapped_are_never_taken_for_each_other(builds, copy, capfd):
    pytest.importorskip("torch_geometric")
    expected = answers(builds[0])
    by_length = {}
    for name in files_of(copy):
        by_length.setdefault((copy / name).stat().st_size, []).append(name)
    pairs = [pair for names in by_length.values() for pair in itertools.combinations(names, 2)]
    assert len(pairs) >= 6
    for one, two in pairs:
        if (copy / one).read_bytes() == (copy / two).read_bytes():
            continue
        swap(copy / one, copy / two)
        check(copy, expected, f"{one} and {two}")
        capfd.readouterr()
        assert main(["verify", str(copy), "--json"]) == 1, (one, two)
        damaged = {d["file"] for d in json.loads(capfd.readouterr().out)["damage"]}
        assert damaged & {one, two}, (one, two, damaged)
        swap(copy / one, copy / two)


def swap(one, two):
    aside = one.with_name("aside")
    os.rename(one, aside)
    os.rename(two, one)
    os.rename(aside, two)


def test_parts_of_a_heterogeneous_graph_are_not_taken_for_each_other(tmp_path):
    src, dst = ring(1)
    edges = {("a", "one", "a"): (src, dst), ("a", "two", "a"): (dst, src)}
    tg.build_hetero(tmp_path / "h.tg", nodes={"a": {"vertices": VERTICES}}, edges=edges)
    assert len(tg.open_hetero(tmp_path / "h.tg").edge_types) == 2
    swap(tmp_path / "h.tg/edge-0.tg", tmp_path / "h.tg/edge-1.tg")
    with pytest.raises(tg.FormatError, match=r"expected build .*, got build"):
        tg.open_hetero(tmp_path / "h.tg")
    assert main(["verify", str(tmp_path / "h.tg")]) == 1


def as_version_1(path):
    """The graph as a version of tiergraph wrote it that did not salt checksums."""
    manifest = manifest_of(path)
    for name, file in manifest["files"].items():
        step, at = {"blocks": (manifest["block_bytes"], 60), "rows": (4096, 0)}.get(
            file["kind"], (0, 0)
        )
        if step:
            salt = crc32c(f"{manifest['build_id']}/{name}".encode())
            data = bytearray((path / name).read_bytes())
            for place in range(at, len(data), step):
                stored = int.from_bytes(data[place : place + 4], "little") ^ salt
                data[place : place + 4] = stored.to_bytes(4, "little")
            (path / name).write_bytes(data)
            file["crc32c"] = crc32c(data)
    manifest["format_version"] = 1
    write_manifest(path, manifest)


def test_graphs_of_version_1_are_read_and_added_to(builds, copy):
    pytest.importorskip("torch_geometric")
    expected = answers(builds[0])
    as_version_1(copy)
    assert main(["verify", str(copy)]) == 0
    found = answers(copy)
    for question, answer in expected.items():
        np.testing.assert_allclose(found[question], answer, err_msg=question)
    tg.add_features(copy, labels={"more": np.arange(VERTICES)})
    assert manifest_of(copy)["format_version"] == 1
    assert main(["verify", str(copy)]) == 0
    assert np.array_equal(tg.open(copy).labels["more"], np.arange(VERTICES))
