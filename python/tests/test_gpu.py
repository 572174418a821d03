"""Algorithms on a GPU against their CPU twins: layouts, residency, transfers, and odd graphs."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_graphs import GRAPHS, MEMORY, REASON, build_even, weighted

import tiergraph as tg

pytestmark = pytest.mark.skipif(REASON is not None, reason=f"no GPU here: {REASON}")


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
    return weighted(request.param)


@pytest.mark.parametrize("undirected", [False, True], ids=["directed", "undirected"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda o: "-".join(map(str, o.values())))
@pytest.mark.parametrize("has_weights", [False, True], ids=["unweighted", "weighted"])
def test_gpu_equals_cpu(tmp_path, edges, undirected, layout, has_weights):
    tg.build(
        edges if has_weights else edges[:2], tmp_path / "g.tg", undirected=undirected, **layout
    )
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
    path = build_even(tmp_path, 5_000_000, 100_000, order="none")
    graph = tg.open(path, device="cuda", device_memory="32MiB")
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
