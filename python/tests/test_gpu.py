"""Algorithms on a GPU against their CPU twins: layouts, residency, transfers, and odd graphs."""

from __future__ import annotations

import numpy as np
import pytest

import tiergraph as tg

MEMORY = "256MiB"


def gpu_or_reason() -> str | None:
    """Why there is no GPU to test on; None if there is one."""
    try:
        found = tg.cuda_devices()
    except tg.DeviceError as error:
        return str(error).splitlines()[0]
    return None if found else "the driver knows none"


REASON = gpu_or_reason()
pytestmark = pytest.mark.skipif(REASON is not None, reason=f"no GPU here: {REASON}")


def rmat(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A skewed graph with hubs, self-loops and isolated vertices."""
    ids = np.minimum(rng.zipf(1.3, (2, 60_000)), 20_000) - 1
    return ids[0], rng.permutation(20_000)[ids[1]]


def star(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One hub, larger than a block, with arcs both ways."""
    leaves = np.arange(1, 30_000)
    hub = np.zeros_like(leaves)
    return np.concatenate([hub, leaves]), np.concatenate([leaves, hub])


def path(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A long path: many levels with one vertex each."""
    return np.arange(200), np.arange(1, 201)


def loops(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Self-loops and double arcs only."""
    return np.array([0, 0, 1, 2, 2, 0]), np.array([0, 0, 1, 2, 2, 1])


def one(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One vertex."""
    return np.array([0]), np.array([0])


GRAPHS = [rmat, star, path, loops, one]
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


@pytest.fixture(scope="module", params=GRAPHS, ids=lambda make: make.__name__)
def edges(request):
    rng = np.random.default_rng(7)
    src, dst = request.param(rng)
    return src, dst, rng.random(len(src)).astype(np.float32)


@pytest.mark.parametrize("undirected", [False, True], ids=["directed", "undirected"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda o: "-".join(map(str, o.values())))
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_gpu_equals_cpu(tmp_path, edges, undirected, layout, weighted):
    given = edges if weighted else edges[:2]
    tg.build(given, tmp_path / "g.tg", undirected=undirected, **layout)
    cpu = tg.open(tmp_path / "g.tg", memory=MEMORY)
    ranks = cpu.pagerank(iterations=10)
    components, depths, distances = cpu.wcc(), cpu.bfs(0), cpu.sssp(0)
    for place in PLACES:
        gpu = tg.open(tmp_path / "g.tg", memory=MEMORY, device="cuda", **place)
        np.testing.assert_allclose(gpu.pagerank(iterations=10), ranks, rtol=1e-4, err_msg=place)
        assert gpu.last_run["device"] != "cpu"
        np.testing.assert_array_equal(gpu.wcc(), components, err_msg=place)
        np.testing.assert_array_equal(gpu.bfs(0), depths, err_msg=place)
        np.testing.assert_array_equal(gpu.sssp(0), distances, err_msg=place)


def test_personalised(tmp_path, edges):
    tg.build(edges, tmp_path / "g.tg")
    of = {d: tg.open(tmp_path / "g.tg", memory=MEMORY, device=d) for d in ("cpu", "cuda")}
    ranks = {d: g.pagerank(sources=[0, 0], iterations=20, damping=0.7) for d, g in of.items()}
    np.testing.assert_allclose(ranks["cuda"], ranks["cpu"], rtol=1e-4, atol=1e-9)


def test_state_that_does_not_fit_is_refused(tmp_path):
    ids = np.random.default_rng(0).integers(0, 5_000_000, (2, 100_000))
    tg.build((ids[0], ids[1]), tmp_path / "g.tg", order="none")
    graph = tg.open(tmp_path / "g.tg", device="cuda", device_memory="32MiB")
    with pytest.raises(tg.DeviceError, match="GPU memory for the vertices"):
        graph.pagerank()


def test_no_such_gpu(tmp_path, edges):
    tg.build(edges, tmp_path / "g.tg")
    with pytest.raises(tg.DeviceError, match="cannot open GPU `77`"):
        tg.open(tmp_path / "g.tg", device="cuda:77")


def test_damage_is_found_before_it_is_computed_on(tmp_path, edges):
    tg.build(edges, tmp_path / "g.tg", codec="raw")
    blocks = tmp_path / "g.tg" / "in.blocks"
    data = bytearray(blocks.read_bytes())
    data[100] ^= 1
    blocks.write_bytes(data)
    with pytest.raises(tg.FormatError, match=r"in\.blocks"):
        tg.open(tmp_path / "g.tg", device="cuda").pagerank()
