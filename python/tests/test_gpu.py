"""Algorithms on a GPU against their CPU twins: layouts, residency, transfers, and odd graphs."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_graphs import MEMORY, build, build_even, each_build, each_graph, needs_gpu, one, skewed

import tiergraph as tg

pytestmark = needs_gpu


LAYOUTS = [
    {"codec": "packed"},
    {"codec": "raw"},
    {"codec": "packed", "block_bytes": 65536},
    {"codec": "raw", "block_bytes": 4096},
    {"codec": "packed", "block_bytes": 4096},
]
PLACES = [
    {},
    {"device_residency": False},
    {"device_residency": False, "transfers": "sync"},
    {"device_memory": "64MiB", "threads": 1},
]


@each_build(LAYOUTS)
def test_gpu_equals_cpu(tmp_path, make, undirected, layout, has_weights):
    path = build(tmp_path, make, has_weights=has_weights, undirected=undirected, **layout)
    cpu = tg.open(path, memory=MEMORY)
    ranks = cpu.pagerank(iterations=10)
    components, depths, distances = cpu.wcc(), cpu.bfs(0), cpu.sssp(0)
    for place in PLACES:
        gpu = tg.open(path, memory=MEMORY, device="cuda", **place)
        np.testing.assert_allclose(gpu.pagerank(iterations=10), ranks, rtol=1e-4, err_msg=place)
        assert gpu.last_run["device"] != "cpu"
        np.testing.assert_array_equal(gpu.wcc(), components, err_msg=place)
        np.testing.assert_array_equal(gpu.bfs(0), depths, err_msg=place)
        np.testing.assert_array_equal(gpu.sssp(0), distances, err_msg=place)


@pytest.mark.parametrize("place", [{}, {"device_residency": False}], ids=["resident", "streamed"])
def test_a_search_pushes_and_pulls(tmp_path, place):
    options = {"codec": "raw", "block_bytes": 4096, "undirected": True}
    path = build(tmp_path, lambda rng: skewed(rng, 2000, 12_000, 1.4), **options)
    cpu, gpu = tg.open(path), tg.open(path, device="cuda", **place)
    ways = set()
    for source in range(0, 2000, 400):
        np.testing.assert_array_equal(gpu.bfs(source), cpu.bfs(source))
        ways |= {level["how"] for level in gpu.last_run["details"]}
    assert ways == {"push", "pull"}


def hub_and_path(rng):
    """A hub whose list spans pages, at the end of a path, among many others."""
    leaves = rng.choice(np.arange(100, 40_000), 9000, replace=False)
    others = rng.integers(20_000, 40_000, (2, 60_000))
    sources = np.concatenate([np.arange(99), np.full(9000, 99), others[0]])
    return sources, np.concatenate([np.arange(1, 100), leaves, others[1]])


@pytest.mark.parametrize("io", ["auto", "gpu", "gpu:modelled:p5510*3"])
@pytest.mark.parametrize("undirected", [False, True], ids=["directed", "undirected"])
def test_small_levels_of_a_search_read_pages(tmp_path, undirected, io):
    options = {"undirected": undirected, "block_bytes": 4096, "order": "degree"}
    path = build(tmp_path, hub_and_path, **options)
    cpu = tg.open(path)
    gpu = tg.open(path, device="cuda", io=io, device_residency=False, memory="128MiB")
    for source in (0, 99, 30_000):
        np.testing.assert_array_equal(gpu.bfs(source), cpu.bfs(source))
        run = gpu.last_run
        pushed = [level for level in run["details"] if level["how"] == "push"]
        assert len(pushed) >= 90 or source != 0
        # The hub's list is on several pages.
        assert run["frontier_pages"] > len(pushed) or source == 30_000
        assert run["frontier_reads_by"] == io.partition(":")[0].replace("auto", "host")
        assert run["frontier_pages"] * 4096 == sum(level["bytes_read"] for level in pushed)
    # Where all blocks stay on the device, no page is read.
    resident = tg.open(path, device="cuda", io=io)
    np.testing.assert_array_equal(resident.bfs(0), cpu.bfs(0))
    assert "frontier_pages" not in resident.last_run


@pytest.mark.parametrize("io", ["auto", "gpu"])
def test_a_damaged_page_of_a_search_is_found(tmp_path, io):
    path = build(tmp_path, hub_and_path, block_bytes=4096)
    size = (path / "out.rows").stat().st_size
    with (path / "out.rows").open("r+b") as file:
        for page in range(size // 4096):
            file.seek(page * 4096 + 40)
            byte = file.read(1)[0]
            file.seek(page * 4096 + 40)
            file.write(bytes([byte ^ 8]))
    gpu = tg.open(path, device="cuda", io=io, device_residency=False, memory="128MiB")
    for _ in range(2):
        with pytest.raises(tg.FormatError, match=r"page \d+ .*out\.rows"):
            gpu.bfs(0)


@pytest.mark.parametrize("codec", ["packed", "raw"])
@pytest.mark.parametrize("undirected", [False, True], ids=["directed", "undirected"])
def test_a_long_search_ends_along_lists(tmp_path, codec, undirected):
    """After some hundred small levels or passes the CPU goes on, from what the GPU found."""

    def make(rng):
        ids = rng.permutation(3000)
        ids[ids == 0], ids[0] = ids[0], 0
        return ids[:-1], ids[1:]

    path = build(
        tmp_path, make, codec=codec, block_bytes=4096, undirected=undirected, has_weights=True
    )
    cpu, gpu = tg.open(path), tg.open(path, device="cuda")
    for algorithm in ("bfs", "sssp"):
        expected = getattr(cpu, algorithm)(0)
        np.testing.assert_array_equal(getattr(gpu, algorithm)(0), expected)
        ways = {step["how"] for step in gpu.last_run["details"]}
        assert "lists" in ways, algorithm
        assert len(ways) > 1, algorithm
    assert gpu.last_run["device"] != "cpu"


@each_graph
def test_personalised(tmp_path, make):
    path = build(tmp_path, make)
    of = {d: tg.open(path, memory=MEMORY, device=d) for d in ("cpu", "cuda")}
    ranks = {d: g.pagerank(sources=[0, 0], iterations=20, damping=0.7) for d, g in of.items()}
    np.testing.assert_allclose(ranks["cuda"], ranks["cpu"], rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("codec", ["packed", "raw"])
def test_a_graph_that_fits_stays_there(tmp_path, codec):
    path = build_even(tmp_path, 9000, 20_000, codec=codec, block_bytes=65536, order="degree")
    cpu, gpu = tg.open(path), tg.open(path, device="cuda")
    x = np.random.default_rng(1).random(9000)
    np.testing.assert_array_equal(gpu.wcc(), cpu.wcc())
    assert gpu.last_run["loaded_bytes"] == gpu.last_run["pass_bytes"] > 0
    run = gpu.last_run
    in_iterations = run["seconds_per_iteration"] * run["iterations"]
    assert in_iterations == pytest.approx(run["seconds"] - run["load_seconds"])
    assert run["load_seconds"] > 0
    assert gpu.last_run["device_resident_why"] == "all blocks fit"
    np.testing.assert_allclose(gpu.pagerank(), cpu.pagerank(), rtol=1e-4)
    np.testing.assert_array_equal(gpu.bfs(7), cpu.bfs(7))
    np.testing.assert_allclose(gpu.propagate(x), cpu.propagate(x))
    run = gpu.last_run
    assert run["loaded_bytes"] == run["bytes_read"] == 0
    assert run["device_resident_bytes"] == run["pass_bytes"]
    assert set(run["residency"]["device"]) == {1.0}
    assert run["device_resident_why"] == "all blocks are there from an earlier run"
    # The other way, raw blocks are others.
    transposed = gpu.propagate(x, transpose=True)
    np.testing.assert_allclose(transposed, cpu.propagate(x, transpose=True))
    assert (gpu.last_run["loaded_bytes"] > 0) == (codec == "raw")
    np.testing.assert_array_equal(gpu.wcc(), cpu.wcc())
    np.testing.assert_array_equal(gpu.wcc(), cpu.wcc())
    assert gpu.last_run["loaded_bytes"] == 0


def test_own_ids_are_found_and_given_in_every_call(tmp_path):
    rng = np.random.default_rng(2)
    ids = np.sort(rng.choice(10**12, 3000, replace=False).astype(np.uint64))
    ends = ids[rng.integers(0, 3000, (2, 4000))]
    tg.build((ends[0], ends[1]), tmp_path / "g.tg", ids="map", order="degree")
    cpu, gpu = tg.open(tmp_path / "g.tg"), tg.open(tmp_path / "g.tg", device="cuda")
    for source in (ends[0, 0], ends[1, 7], ends[0, 99]):
        np.testing.assert_array_equal(gpu.bfs(source), cpu.bfs(source))
        np.testing.assert_array_equal(gpu.sssp(source), cpu.sssp(source))
        np.testing.assert_array_equal(gpu.wcc(), cpu.wcc())
        ranks = [graph.pagerank(sources=[source]) for graph in (gpu, cpu)]
        np.testing.assert_allclose(*ranks, rtol=1e-4, atol=1e-9)
    assert gpu.last_run["loaded_bytes"] == 0
    with pytest.raises(tg.InputError, match="one of the graph's"):
        gpu.bfs(10**12)


@pytest.mark.parametrize("place", [{}, {"device_residency": False}], ids=["resident", "streamed"])
def test_large_results_pass_in_parts(tmp_path, place):
    path = build_even(tmp_path, 1_300_000, 25_000, order="degree")
    cpu, gpu = tg.open(path), tg.open(path, device="cuda", threads=3, **place)
    np.testing.assert_array_equal(gpu.wcc(), cpu.wcc())
    np.testing.assert_array_equal(gpu.sssp(5), cpu.sssp(5))
    x = np.random.default_rng(3).integers(0, 9, (cpu.vertices, 3)).astype(np.float32)
    np.testing.assert_array_equal(gpu.propagate(x), cpu.propagate(x))


def test_a_graph_goes_where_state_needs_its_room(tmp_path):
    path = build_even(tmp_path, 200_000, 2_000_000, codec="raw", block_bytes=65536, order="none")
    cpu = tg.open(path, threads=1)
    gpu = tg.open(path, device="cuda", device_memory="14MiB", threads=1)
    components, ranks = cpu.wcc(), cpu.pagerank(iterations=2)
    for _ in range(2):
        np.testing.assert_array_equal(gpu.wcc(), components)
        run = gpu.last_run
        assert run["loaded_bytes"] == run["device_resident_bytes"] == run["pass_bytes"] > 0
        np.testing.assert_allclose(gpu.pagerank(iterations=2), ranks, rtol=1e-4)
        assert 0 < gpu.last_run["device_resident_bytes"] < run["pass_bytes"]


def test_many_slots_are_smaller_where_there_is_little_memory(tmp_path):
    path = build_even(tmp_path, 500, 300_000, codec="raw", block_bytes=4096)
    gpu = tg.open(path, device="cuda", device_memory="2500KiB", threads=16)
    ranks = tg.open(path).pagerank(iterations=3)
    np.testing.assert_allclose(gpu.pagerank(iterations=3), ranks, rtol=1e-4)
    run = gpu.last_run
    assert 0 < run["device_resident_bytes"] < run["pass_bytes"]
    on_device = run["residency"]["device"]
    assert on_device == sorted(on_device, reverse=True), "the first blocks are there"
    covered = sum(on_device) / len(on_device) * run["pass_bytes"]
    assert covered == pytest.approx(run["device_resident_bytes"])


def test_state_that_does_not_fit_is_refused(tmp_path):
    path = build_even(tmp_path, 5_000_000, 100_000, order="none")
    graph = tg.open(path, device="cuda", device_memory="32MiB")
    with pytest.raises(tg.DeviceError, match="GPU memory for the vertices"):
        graph.pagerank()


def test_no_such_gpu(tmp_path):
    with pytest.raises(tg.DeviceError, match="cannot open GPU `77`"):
        tg.open(build(tmp_path, one), device="cuda:77")


@each_graph
def test_damage_is_found_before_it_is_computed_on(tmp_path, make):
    path = build(tmp_path, make, codec="raw")
    blocks = path / "in.blocks"
    data = bytearray(blocks.read_bytes())
    data[100] ^= 1
    blocks.write_bytes(data)
    with pytest.raises(tg.FormatError, match=r"in\.blocks"):
        tg.open(path, device="cuda").pagerank()
