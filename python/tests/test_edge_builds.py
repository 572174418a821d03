"""Values of edges that go in with the build: in the order of the edges, all or nothing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import tiergraph as tg
from tiergraph import pyg
from tiergraph.cli import main

VERTICES, EDGES, DIM = 200, 3000, 4
MEMORY = "256MiB"


@pytest.fixture(scope="module")
def given():
    """A directed multigraph: sources, targets, weights, times, features."""
    random = np.random.default_rng(3)
    src, dst = random.integers(0, VERTICES, (2, EDGES))
    weights = random.choice([0.5, 1, 4], EDGES).astype(np.float32)
    times = random.integers(-(2**60), 2**60, EDGES)
    return src, dst, weights, times, random.normal(size=(EDGES, DIM)).astype(np.float32)


def values(given):
    return {"w": given[2], "time": given[3]}


def files_of(graph: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (graph / "edges").iterdir()}


@pytest.fixture(scope="module")
def expected(given, tmp_path_factory):
    """The edges' files of a graph that was built first and given its values then."""
    path = tmp_path_factory.mktemp("expected") / "g.tg"
    src, dst, *_, features = given
    tg.build((src, dst), path, vertices=VERTICES, order="degree", layouts="both")
    tg.add_edge_values(path, (src, dst), values=values(given), features=features)
    return files_of(path)


def left(folder: Path) -> list[str]:
    """What a build left in a folder, hidden files included."""
    return sorted(path.name for path in folder.iterdir())


def sources(given, folder: Path):
    """The same edges in every form that is read twice."""
    src, dst = given[:2]
    pairs = np.stack([src, dst], axis=1)
    np.save(folder / "pairs.npy", pairs)
    np.savetxt(folder / "edges.txt", pairs, fmt="%d")
    with gzip.open(folder / "edges.csv.gz", "wt") as file:
        np.savetxt(file, pairs, fmt="%d", delimiter=",")
    pairs.astype("<u4").tofile(folder / "edges.u32")
    half = EDGES // 2
    batches = [(src[:half], dst[:half]), (src[half:], dst[half:])]
    names = ["pairs.npy", "edges.txt", "edges.csv.gz", "edges.u32"]
    return [(src, dst), batches, *(folder / name for name in names)]


def test_what_goes_in_with_the_build_is_what_is_added_later(given, expected, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    for number, source in enumerate(sources(given, tmp_path / "in")):
        path = tmp_path / "out" / f"{number}.tg"
        stats = tg.build(
            source,
            path,
            order="degree",
            edge_values=values(given),
            edge_features=given[4],
        )
        assert (stats["edges"], stats["edge_values"]) == (EDGES, {"time": "i64", "w": "f32"})
        assert stats["bytes"] == tg.open(path).info()["bytes"]
        assert files_of(path) == expected, source
        assert tg.open(path).info()["layouts"] == ["tiles", "rows"]


def test_values_come_from_files_too(given, expected, tmp_path):
    src, dst, weights, times, features = given
    np.save(tmp_path / "w.npy", weights)
    np.savetxt(tmp_path / "time.csv", times, fmt="%d")
    np.save(tmp_path / "e.npy", features)
    files = {"w": tmp_path / "w.npy", "time": str(tmp_path / "time.csv")}
    path = tmp_path / "g.tg"
    tg.build((src, dst), path, order="degree", edge_values=files, edge_features=tmp_path / "e.npy")
    assert files_of(path) == expected


def test_an_error_leaves_nothing_or_what_was_there(given, tmp_path):
    src, dst, weights, _, features = given
    folder = tmp_path / "out"
    folder.mkdir()
    bad = weights.copy()
    bad[7] = np.nan
    wrong = {
        "`w`: expected a value for each of 3000 edges, got 2999 values": {
            "edge_values": {"w": weights[1:]}
        },
        "`w`: expected a value for each of 3000 edges, got 3001 values": {
            "edge_values": {"w": np.append(weights, 1)}
        },
        "finite numbers, got NaN of edge 7": {"edge_values": {"w": bad}},
        "a row for each of 3000": {"edge_features": features[1:]},
        "removed duplicates": {"edge_values": {"w": weights}, "dedup": True},
        "numbers of shape": {"edge_values": {"w": features}},
        "1 to 64 letters": {"edge_values": {"a/b": weights}},
    }
    for there in [False, True]:
        if there:
            tg.build(([0], [1]), folder / "g.tg")
        for message, options in wrong.items():
            with pytest.raises(tg.InputError, match=message):
                tg.build((src, dst), folder / "g.tg", overwrite=True, **options)
            assert left(folder) == (["g.tg"] if there else [])
    assert tg.open(folder / "g.tg").info()["edges"] == 1


def test_edges_that_are_read_once_are_refused(given, tmp_path):
    src, dst, weights, *_ = given
    with pytest.raises(tg.InputError, match="read twice: arrays, files, or a list of batches"):
        tg.build(iter([(src, dst)]), tmp_path / "g.tg", edge_values={"w": weights})
    assert left(tmp_path) == []


def write_ogb(folder: Path, given, *, arrays: bool):
    """OGB's layout on disk: text, or its binary archive."""
    src, dst, weights, times, features = given
    raw = folder / "raw"
    raw.mkdir(parents=True)

    def text(name, array, form):
        with gzip.open(raw / name, "wt") as file:
            np.savetxt(file, array, delimiter=",", fmt=form)

    if arrays:
        np.savez(
            raw / "data.npz",
            edge_index=np.stack([src, dst]),
            edge_feat=features,
            edge_weight=weights[:, None],
            edge_year=times,
            num_nodes_list=np.array([VERTICES]),
            num_edges_list=np.array([EDGES]),
        )
    else:
        text("edge.csv.gz", np.stack([src, dst], axis=1), "%d")
        text("edge-feat.csv.gz", features, "%.9g")
        text("edge_weight.csv.gz", weights, "%.6f")
        text("edge_year.csv.gz", times, "%d")
        text("num-node-list.csv.gz", [VERTICES], "%d")
        text("num-edge-list.csv.gz", [EDGES], "%d")


@pytest.mark.parametrize("arrays", [False, True])
def test_a_folder_of_ogb_brings_its_edges_values(given, expected, tmp_path, arrays):
    write_ogb(tmp_path / "ogb", given, arrays=arrays)
    stats = tg.build(tmp_path / "ogb", tmp_path / "g.tg", order="degree")
    assert stats["edge_values"] == {"edge_weight": "f32", "edge_year": "i64"}
    assert stats["edge_features"]["edge_attr"]["rows"] == EDGES
    renamed = {".w.": ".edge_weight.", ".time.": ".edge_year."}
    for name, content in expected.items():
        for old, new in renamed.items():
            name = name.replace(old, new)
        assert files_of(tmp_path / "g.tg")[name] == content, name
    added = tg.add_edge_values(tmp_path / "g.tg", tmp_path / "ogb", overwrite=True)
    assert added == {key: stats[key] for key in added}


def test_ogbs_own_count_of_edges_is_compared(given, tmp_path):
    write_ogb(tmp_path / "ogb", given, arrays=False)
    with gzip.open(tmp_path / "ogb/raw/num-edge-list.csv.gz", "wt") as file:
        file.write("2999\n")
    with pytest.raises(
        tg.InputError, match=r"num-edge-list.csv.gz`: expected 2999 edges, got 3000"
    ):
        tg.build(tmp_path / "ogb", tmp_path / "g.tg")
    assert left(tmp_path) == ["ogb"]


def loader(path, **options):
    pyg.geometric("data")
    known = {"num_neighbors": [5, 3], "batch_size": 40, "shuffle": True, "memory": MEMORY}
    return tg.NeighborLoader(path, **(known | options))


def needs_torch():
    try:
        pyg.geometric("data")
    except tg.InputError as error:
        pytest.skip(str(error))


def test_inverse_edges_have_their_edges_values_as_ogb_adds_them(given, tmp_path):
    """`add_inverse_edge` repeats each edge's features; `undirected` gives both ways one edge's."""
    needs_torch()
    write_ogb(tmp_path / "ogb", given, arrays=True)
    tg.build(tmp_path / "ogb", tmp_path / "g.tg", undirected=True)
    src, dst, weights, _, features = given
    seen = set()
    for batch in loader(tmp_path / "g.tg", weight_attr="edge_weight"):
        row, col = batch.n_id.numpy()[batch.edge_index.numpy()]
        edge = batch.e_id.numpy()
        forward = (row == src[edge]) & (col == dst[edge])
        inverse = (row == dst[edge]) & (col == src[edge])
        assert (forward | inverse).all()
        np.testing.assert_array_equal(batch.edge_attr.numpy(), features[edge])
        np.testing.assert_array_equal(batch.edge_weight.numpy(), weights[edge])
        seen |= {bool(forward.any()), bool((inverse & ~forward).any())}
    assert seen == {True}, "edges are sampled both ways"


def test_datasets_values_can_be_left_out(given, tmp_path):
    write_ogb(tmp_path / "ogb", given, arrays=True)
    stats = tg.build(tmp_path / "ogb", tmp_path / "g.tg", edge_values={}, edge_features={})
    assert "edge_values" not in stats
    assert tg.open(tmp_path / "g.tg").info()["edge_values"] == {}


def test_small_memory_reads_values_and_changes_no_batch(tmp_path):
    needs_torch()
    random = np.random.default_rng(4)
    edges, vertices = 1_000_000, 2000
    src, dst = random.integers(0, vertices, (2, edges))
    stored = {"w": random.random(edges), "time": random.integers(0, 100, edges)}
    path = tmp_path / "g.tg"
    tg.build((src, dst), path, vertices=vertices, layouts="training", edge_values=stored)
    times = np.full(300, 50)
    found = []
    for memory in ["60MiB", MEMORY]:
        batches = loader(
            path,
            input_nodes=np.arange(300),
            weight_attr="w",
            time_attr="time",
            input_time=times,
            memory=memory,
            threads=1,
            window=2,
        )
        kept = batches.kept()
        assert kept["values_bytes"] == edges * 16
        all_kept = kept["kept_values_bytes"] == kept["values_bytes"]
        found.append([(b.n_id.tolist(), b.e_id.tolist(), b.w.tolist()) for b in batches])
        assert (batches.last_epoch["bytes_ssd_values"] == 0) == all_kept == (memory == MEMORY)
    assert found[0] == found[1]


def test_values_of_tables_and_floats_of_text(given, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    src, dst, weights, times, _ = given
    parquet.write_table(pyarrow.table({"t": times}), tmp_path / "t.parquet")
    parquet.write_table(pyarrow.table({"a": times, "b": times}), tmp_path / "two.parquet")
    np.savetxt(tmp_path / "w.csv", weights, fmt="%.3f")
    path = tmp_path / "g.tg"
    values = {"time": tmp_path / "t.parquet", "w": tmp_path / "w.csv"}
    assert tg.build((src, dst), path, edge_values=values)["edge_values"] == {
        "time": "i64",
        "w": "f32",
    }
    by_array = tmp_path / "array.tg"
    tg.build((src, dst), by_array, edge_values={"time": times, "w": weights})
    assert files_of(path) == files_of(by_array)
    for file, message in {
        "two.parquet": "expected one column, got a, b",
        "w.txt": "one of .npy",
    }.items():
        with pytest.raises(tg.InputError, match=message):
            tg.build((src, dst), tmp_path / "h.tg", edge_values={"w": tmp_path / file})


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("strategy", ["uniform", "last"])
def test_neighbours_that_are_later_than_the_seed_are_not_there(
    given, tmp_path, strategy, undirected
):
    """Times of nodes, as PyG has them: a neighbour is taken if its time is not above the seed's."""
    needs_torch()
    src, dst = given[:2]
    times = np.random.default_rng(9).integers(-100, 100, VERTICES)
    path = tmp_path / "g.tg"
    ids = np.arange(VERTICES) * 3 + 5
    edges = ids[src], ids[dst]
    tg.build(edges, path, ids="map", order="degree", undirected=undirected, layouts="both")
    stored = tg.add_edge_values(path, edges, values={}, node_times={"born": times})
    assert stored["node_times"] == ["born"]
    assert stored["edge_values"] == {"born": "i64"}
    np.testing.assert_array_equal(tg.open(path).labels["born"], times)
    sources, targets = (
        (np.concatenate([src, dst[src != dst]]), np.concatenate([dst, src[src != dst]]))
        if undirected
        else (src, dst)
    )
    seen = 0
    for batch in loader(path, time_attr="born", temporal_strategy=strategy):
        nodes = (batch.n_id.numpy() - 5) // 3
        np.testing.assert_array_equal(batch.born.numpy(), times[nodes])
        seeds = nodes[: batch.batch_size]
        np.testing.assert_array_equal(batch.seed_time.numpy(), times[seeds])
        row, col = batch.edge_index.numpy()
        until = batch.seed_time.numpy()[batch.batch.numpy()[col]]
        assert (times[nodes[row]] <= until).all()
        first = batch.num_sampled_edges[0]
        for place, seed in enumerate(seeds):
            known = np.sort(times[sources[targets == seed]])
            known = known[known <= times[seed]]
            taken = np.sort(times[nodes[row[:first][col[:first] == place]]])
            assert len(taken) == min(5, len(known))
            if strategy == "last":
                np.testing.assert_array_equal(taken, known[len(known) - len(taken) :])
            seen += len(taken)
    assert seen > 100


def test_times_of_nodes_that_do_not_fit_are_refused(given, tmp_path):
    src, dst, _, times, _ = given
    path = tmp_path / "g.tg"
    nodes = np.arange(VERTICES)
    for message, options in {
        "a time for each of 200 vertices, got 199": {"node_times": {"t": nodes[1:]}},
        "expected integers": {"node_times": {"t": nodes / 2}},
        "expected each name once": {"node_times": {"t": nodes}, "edge_values": {"t": times}},
    }.items():
        with pytest.raises(tg.InputError, match=message):
            tg.build((src, dst), path, vertices=VERTICES, **options)
        assert left(tmp_path) == []
    tg.build((src, dst), path, vertices=VERTICES, node_times={"t": nodes})
    assert tg.open(path).info()["node_times"] == ["t"]
    tg.add_edge_values(path, (src, dst), values={"t": times}, overwrite=True)
    assert tg.open(path).info()["node_times"] == []


def test_the_command_line_builds_and_adds(given, expected, tmp_path, capsys):
    src, dst, weights, times, features = given
    np.savetxt(tmp_path / "e.txt", np.stack([src, dst], axis=1), fmt="%d")
    np.save(tmp_path / "w.npy", weights)
    np.save(tmp_path / "t.npy", times)
    np.save(tmp_path / "f.npy", features)
    edges, graph = str(tmp_path / "e.txt"), str(tmp_path / "g.tg")
    given_values = [f"w={tmp_path / 'w.npy'}", f"time={tmp_path / 't.npy'}"]
    pairs = [text for value in given_values for text in ("--edge-values", value)]
    feature = ["--edge-features", str(tmp_path / "f.npy")]
    assert main(["build", edges, graph, "--order", "degree", *pairs, *feature, "--json"]) == 0
    stats = json.loads(capsys.readouterr().out)
    assert stats["edge_values"] == {"w": "f32", "time": "i64"}
    assert files_of(tmp_path / "g.tg") == expected
    assert main(["info", graph]) == 0
    shown = capsys.readouterr().out
    assert "edge_values.w" in shown
    assert "edge_features.edge_attr.dim" in shown
    again = ["edges", "add", graph, edges, "--values", given_values[0], "--json"]
    assert main(again) == 1
    assert "`--overwrite` replaces it" in capsys.readouterr().err
    assert main([*again, "--overwrite"]) == 0
    stored = json.loads(capsys.readouterr().out)
    assert stored.pop("tiergraph") == tg.__version__
    assert stored == {"edge_values": {"w": "f32"}, "edge_features": {}, "node_times": []}
    np.save(tmp_path / "n.npy", np.arange(src.max() + 1))
    born = ["--node-times", f"born={tmp_path / 'n.npy'}"]
    assert main([*again, "--overwrite", *born]) == 0
    assert json.loads(capsys.readouterr().out)["node_times"] == ["born"]
    assert main(["build", edges, graph, "--edge-values", "w"]) == 1
    assert "expected NAME=FILE" in capsys.readouterr().err
