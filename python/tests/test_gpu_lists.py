"""Triangles, clustering and cores on a GPU are those of the CPU, or ran there and say why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpu_graphs import MEMORY, build, each_graph, needs_gpu, skewed

import tiergraph as tg

pytestmark = needs_gpu

NAMES = ("triangles", "clustering", "kcore", "cdlp", "independent_set", "coloring", "mutual")
LAYOUTS = [{"order": "degree"}, {"order": "none", "codec": "raw"}]


@each_graph
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("undirected", [False, True], ids=["directed", "undirected"])
def test_lists_on_a_gpu_give_what_the_cpu_gives(tmp_path, make, undirected, layout):
    path = build(tmp_path, make, undirected=undirected, **layout)
    cpu = tg.open(path, memory=MEMORY)
    gpu = tg.open(path, memory=MEMORY, device="cuda")
    for name in NAMES:
        expected, found = cpu.run(name), gpu.run(name)
        np.testing.assert_array_equal(found, expected, err_msg=name)
        assert found.dtype == expected.dtype
        assert gpu.last_run["device"] != "cpu", name
        assert "CPU" not in gpu.last_run["device_why"]
        for key in (
            "triangles",
            "transitivity",
            "average_clustering",
            "largest_core",
            "size",
            "colors",
            "reciprocity",
        ):
            assert gpu.last_run.get(key) == cpu.last_run.get(key), (name, key)


@each_graph
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("undirected", [False, True], ids=["directed", "undirected"])
def test_paths_through_vertices(tmp_path, make, undirected, layout):
    path = build(tmp_path, make, undirected=undirected, **layout)
    with tg.open(path, memory=MEMORY) as cpu, tg.open(path, device="cuda") as gpu:
        how = {"samples": 12, "seed": 3}
        expected, found = cpu.betweenness(**how), gpu.betweenness(**how)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        assert gpu.last_run["device"] != "cpu"
        for key in ("sources", "error_bound"):
            assert gpu.last_run.get(key) == cpu.last_run.get(key), key


@each_graph
@pytest.mark.parametrize("registers", [16, 64, 256, 4096])
@pytest.mark.parametrize("undirected", [False, True], ids=["directed", "undirected"])
def test_distances_in_balls(tmp_path, make, undirected, registers):
    path = build(tmp_path, make, undirected=undirected)
    with tg.open(path) as cpu, tg.open(path, device="cuda") as gpu:
        expected = cpu.harmonic(registers=registers, seed=2)
        np.testing.assert_allclose(gpu.harmonic(registers=registers, seed=2), expected, rtol=1e-9)
        assert gpu.last_run["device"] != "cpu"
        assert gpu.last_run["iterations"] == cpu.last_run["iterations"]
        for key in ("effective_diameter", "mean_distance", "standard_error"):
            assert gpu.last_run[key] == pytest.approx(cpu.last_run[key], rel=1e-9), key


@each_graph
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("undirected", [False, True], ids=["directed", "undirected"])
def test_what_pairs_have_in_common(tmp_path, make, undirected, layout):
    """Counts are the CPU's, sums of shares but for their last bits. Loops and copies count once."""
    path = build(tmp_path, make, undirected=undirected, **layout)
    with tg.open(path, memory=MEMORY) as cpu, tg.open(path, device="cuda") as gpu:
        rng = np.random.default_rng(8)
        pairs = rng.choice(cpu.ids, (1000, 2))
        pairs[::10, 1] = pairs[::10, 0]
        for by in ("common", "jaccard", "overlap"):
            np.testing.assert_array_equal(
                gpu.similarity(pairs, by=by), cpu.similarity(pairs, by=by), err_msg=by
            )
            assert gpu.last_run["device"] != "cpu"
        for by in ("adamic_adar", "resource_allocation"):
            found, expected = gpu.similarity(pairs, by=by), cpu.similarity(pairs, by=by)
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=by)
        assert len(gpu.similarity(np.empty((0, 2), np.uint64))) == 0


def test_similarity_of_pairs_of_hubs(tmp_path):
    """Lists of many steps of a warp, alike and not."""
    rng = np.random.default_rng(1)
    hubs = np.repeat(np.arange(6), 4000)
    edges = hubs, 6 + rng.integers(0, 9000, len(hubs))
    path = tmp_path / "hubs.tg"
    tg.build(edges, path, undirected=True, order="none", ids="dense")
    pairs = np.array([(a, b) for a in range(6) for b in [*range(6), 6, 7, 8]])
    with tg.open(path) as cpu, tg.open(path, device="cuda") as gpu:
        expected = cpu.similarity(pairs, by="common")
        assert expected.max() > 1000
        np.testing.assert_array_equal(gpu.similarity(pairs, by="common"), expected)
        assert gpu.last_run["device"] != "cpu"


def test_similarity_without_room_for_lists_is_left_to_the_cpu(tmp_path):
    path = tmp_path / "g.tg"
    tg.build(tuple(np.random.default_rng(5).integers(0, 2000, (2, 100_000))), path)
    pairs = np.arange(200).reshape(-1, 2)
    with tg.open(path) as cpu, tg.open(path, device="cuda", device_memory="1MiB") as gpu:
        found = gpu.similarity(pairs)
        np.testing.assert_array_equal(found, cpu.similarity(pairs))
        assert gpu.last_run["device"] == "cpu"
        assert "it ran on the CPU" in gpu.last_run["device_why"]


def test_colors_beyond_one_look(tmp_path):
    """A clique of more vertices than colours are looked at together, and hubs beside it."""

    def make(rng):
        a, b = np.triu_indices(1100, 1)
        leaves = np.arange(1100, 4000)
        return np.concatenate([a, leaves % 7]), np.concatenate([b, leaves])

    path = build(tmp_path, make, undirected=True)
    with tg.open(path) as cpu, tg.open(path, device="cuda") as gpu:
        colors = gpu.coloring()
        np.testing.assert_array_equal(colors, cpu.coloring())
        assert colors.max() == 1099
        np.testing.assert_array_equal(gpu.independent_set(seed=4), cpu.independent_set(seed=4))
        found = gpu.betweenness(sources=gpu.ids[:3].tolist())
        np.testing.assert_allclose(found, cpu.betweenness(sources=cpu.ids[:3].tolist()), rtol=1e-9)
        np.testing.assert_allclose(
            gpu.harmonic(registers=32), cpu.harmonic(registers=32), rtol=1e-9
        )


@pytest.mark.parametrize("name", ["pagerank", "bfs", "sssp", "cdlp", "betweenness", "harmonic"])
@pytest.mark.parametrize("first", ["cuda", "cpu"])
def test_a_stopped_run_goes_on_elsewhere(tmp_path, name, first):
    """On the other device than the one that it was stopped on."""
    path = build(tmp_path, lambda rng: skewed(rng, 2000, 20_000, 1.1))
    own: dict[str, dict[str, Any]] = {
        "bfs": {"source": 5},
        "sssp": {"source": 5},
        "betweenness": {"samples": 6, "seed": 1},
    }
    how = own.get(name, {})

    class StoppedError(Exception):
        pass

    def progress(stage, done, total, unit):
        if unit == "iterations" and done > 1:
            raise StoppedError

    kept = {"checkpoint": tmp_path / "kept", "checkpoint_every": 1}
    with tg.open(path) as plain:
        expected = getattr(plain, name)(**how)
    with tg.open(path, device=first, threads=1, **kept) as graph, pytest.raises(StoppedError):
        getattr(graph, name)(**how, progress=progress)
    other = "cpu" if first == "cuda" else "cuda"
    with tg.open(path, device=other, resume=True, **kept) as graph:
        found = getattr(graph, name)(**how)
        assert graph.last_run["resumed_after"] >= 1
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_cores_of_many_levels(tmp_path):
    def make(rng):
        # Cliques of 3 to 20 vertices, with a hub that all are joined to.
        pairs, first = [], 1
        for size in range(3, 21):
            members = np.arange(first, first + size)
            pairs += [(a, b) for a in members for b in members if a < b]
            pairs += [(0, a) for a in members]
            first += size
        return tuple(np.array(pairs).T)

    path = build(tmp_path, make, undirected=True)
    with tg.open(path) as cpu, tg.open(path, device="cuda") as gpu:
        cores = gpu.kcore()
        np.testing.assert_array_equal(cores, cpu.kcore())
        assert cores.max() == 20
        assert len(gpu.last_run["details"]) >= 18


def test_labels_of_hubs(tmp_path):
    """A hub with more labels around it than a table has places, and edges that come twice."""

    def make(rng):
        leaves = np.arange(1, 6000)
        near = leaves + rng.integers(1, 4, len(leaves))
        twice = rng.integers(1, 6000, 300)
        src = np.concatenate([np.zeros_like(leaves), leaves, np.zeros_like(twice), twice])
        return src, np.concatenate([leaves, near, twice, np.zeros_like(twice)])

    path = build(tmp_path, make)
    with tg.open(path) as cpu, tg.open(path, device="cuda") as gpu:
        for iterations in (1, 2, 4):
            found = gpu.cdlp(iterations=iterations)
            np.testing.assert_array_equal(found, cpu.cdlp(iterations=iterations))
            assert gpu.last_run["iterations"] == cpu.last_run["iterations"]


@pytest.mark.parametrize(
    ("layouts", "edges", "options", "why"),
    [
        ("both", 100_000, {"device_memory": "1MiB"}, "lists of neighbours take"),
        ("both", 100_000, {"memory": "48MiB", "threads": 1}, None),
        ("sampling", 4_000_000, {"memory": "48MiB", "threads": 1}, "do not fit the host's memory"),
        ("sampling", 100_000, {}, None),
    ],
)
def test_lists_with_too_little_memory_are_left_to_the_cpu(tmp_path, layouts, edges, options, why):
    """A graph of rows alone has its lists made by the host, which needs memory for them."""

    def make(rng):
        return skewed(rng, 60_000, edges, 1.1)

    path = build(tmp_path, make, has_weights=False, undirected=True, layouts=layouts)
    expected = tg.open(path).kcore()
    gpu = tg.open(path, device="cuda", **options)
    np.testing.assert_array_equal(gpu.kcore(), expected)
    assert (gpu.last_run["device"] == "cpu") == (why is not None)
    assert (why or "lists of all neighbours are on the device") in (
        gpu.last_run["device_why"] if why else gpu.last_run["device_resident_why"]
    )


def test_lists_stay_for_later_runs(tmp_path):
    """Those of a graph without repeated edges and loops serve every algorithm of their side."""
    how = {"undirected": True, "dedup": True, "drop_self_loops": True}
    path = build(tmp_path, lambda rng: skewed(rng, 3000, 30_000, 1.1), **how)
    with tg.open(path) as cpu, tg.open(path, device="cuda") as gpu:
        expected = {name: cpu.run(name) for name in NAMES}
        for turn, name in enumerate(["triangles", *NAMES, "triangles"]):
            np.testing.assert_array_equal(gpu.run(name), expected[name], err_msg=name)
            stayed = "an earlier run has left them there" in gpu.last_run["device_resident_why"]
            assert stayed == (turn > 0), name
            assert (gpu.last_run["bytes_read"] > 0) == (turn == 0), name
        gpu.similarity([[0, 1]])
        assert "an earlier run has left them there" in gpu.last_run["device_resident_why"]
        ranks = gpu.pagerank()
        np.testing.assert_allclose(ranks, cpu.pagerank(), rtol=1e-4)
        assert "all blocks are there" in gpu.last_run["device_resident_why"]
        gpu.kcore()
        assert gpu.last_run["loaded_bytes"] == gpu.last_run["load_seconds"] == 0


def test_lists_of_arcs_and_of_neighbours_are_not_taken_for_each_other(tmp_path):
    """Edges that come twice, loops, and a graph with directions: each has lists of its own."""

    def make(rng):
        src, dst = skewed(rng, 500, 6000, 1.1)
        loops = np.arange(0, 500, 7)
        return np.concatenate([src, src, loops]), np.concatenate([dst, dst, loops])

    for undirected in (False, True):
        path = build(tmp_path, make, undirected=undirected, overwrite=True)
        with tg.open(path) as cpu, tg.open(path, device="cuda") as gpu:
            names = ("cdlp", "kcore", "cdlp", "triangles", "mutual", "cdlp", "clustering", "mutual")
            for name in (*names, "triangles", "cdlp", "harmonic"):
                how = {"registers": 16} if name == "harmonic" else {}
                close = 1e-9 if how else 0
                np.testing.assert_allclose(
                    gpu.run(name, **how), cpu.run(name, **how), rtol=close, err_msg=name
                )


def test_lists_make_room(tmp_path):
    """Where the device holds lists or blocks, and not both, each run has what it needs."""
    how = {"undirected": True, "block_bytes": 65536}
    path = build(tmp_path, lambda rng: skewed(rng, 4000, 200_000, 1.1), has_weights=False, **how)
    with tg.open(path) as cpu:
        cores, ranks = cpu.kcore(), cpu.pagerank(iterations=4, tolerance=0)
    with tg.open(path, device="cuda") as gpu:
        gpu.kcore()
        lists = gpu.last_run["device_resident_bytes"]
    with tg.open(path, device="cuda", device_memory=lists + (7 << 18), threads=1) as gpu:
        for _ in range(2):
            np.testing.assert_array_equal(gpu.kcore(), cores)
            assert gpu.last_run["device"] != "cpu"
            assert "made of the blocks" in gpu.last_run["device_resident_why"]
            found = gpu.pagerank(iterations=4, tolerance=0)
            np.testing.assert_allclose(found, ranks, rtol=1e-4)


def test_an_algorithm_without_a_version_for_gpus_says_so(tmp_path):
    path = build(tmp_path, lambda rng: skewed(rng, 100, 400, 1.1))
    gpu = tg.open(path, device="cuda")
    gpu.scc()
    assert gpu.last_run["device_why"] == "scc has no version for GPUs: it ran on the CPU"
