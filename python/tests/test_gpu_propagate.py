"""`propagate` on a GPU against its CPU twin: reductions, shapes, layouts, weights, directions."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_graphs import MEMORY, build, build_even, each_build, needs_gpu

import tiergraph as tg
from tiergraph import centrality

pytestmark = needs_gpu

LAYOUTS = [
    {"codec": "packed"},
    {"codec": "raw", "layouts": "both"},
    {"codec": "packed", "block_bytes": 4096},
    {"codec": "raw", "layouts": "both", "block_bytes": 4096},
]
PLACES = [{}, {"transfers": "sync"}, {"device_residency": False}]
SHAPES = [(np.float32, None), (np.float32, 4), (np.float32, 7), (np.float64, None), (np.float64, 3)]


def values(vertices: int, dtype: type, width: int | None) -> np.ndarray:
    """Of both signs, with zeros."""
    shape = (vertices,) if width is None else (vertices, width)
    drawn = np.random.default_rng(5).normal(size=shape)
    return np.where(np.abs(drawn) < 0.1, 0, drawn).astype(dtype)


def assert_same(cpu, x, how, found):
    """Minima and maxima are equal; sums differ by rounding, which grows with what is added up."""
    expected, message = cpu.propagate(x, **how), f"{how} {x.dtype} {x.shape}"
    assert found.dtype == expected.dtype
    if how["reduce"] == "sum":
        rounding = 1e-4 if x.dtype == np.float32 else 1e-12
        differs = np.abs(found - expected) > rounding * cpu.propagate(np.abs(x), **how)
        assert not differs.any(), f"{message}: {found[differs]}, {expected[differs]}"
    else:
        np.testing.assert_array_equal(found, expected, err_msg=message)


def test_centralities_equal_the_cpus(tmp_path):
    path = build_even(tmp_path, 300, 2000)
    graphs = [tg.open(path, memory=MEMORY, **device) for device in ({}, {"device": "cuda"})]
    for measure, how in (
        (centrality.pagerank, {}),
        (centrality.eigenvector, {}),
        (centrality.hits, {}),
        (centrality.katz, {"alpha": 0.01}),
    ):
        cpu, gpu = (np.stack(np.atleast_2d(measure(graph, **how))) for graph in graphs)
        np.testing.assert_allclose(gpu, cpu, rtol=1e-9)


@each_build(LAYOUTS)
def test_gpu_equals_cpu(tmp_path, make, undirected, layout, has_weights):
    path = build(tmp_path, make, has_weights=has_weights, undirected=undirected, **layout)
    cpu = tg.open(path, memory=MEMORY)
    gpus = [tg.open(path, memory=MEMORY, device="cuda", **place) for place in PLACES]
    for number, (dtype, width) in enumerate(SHAPES):
        x = values(cpu.vertices, dtype, width)
        for transpose in (False, True):
            for weights in {False, has_weights}:
                for reduce in ("sum", "min", "max"):
                    how = {"reduce": reduce, "transpose": transpose, "weights": weights}
                    gpu = gpus[number % len(gpus)]
                    assert_same(cpu, x, how, gpu.propagate(x, **how))
    assert gpus[0].last_run["device"] != "cpu"


def test_nan_and_infinities_are_the_cpus(tmp_path):
    src, dst = np.array([0, 1, 2, 3, 4, 5, 0]), np.array([6, 6, 6, 7, 7, 8, 9])
    tg.build((src, dst), tmp_path / "g.tg")
    x = np.array([np.nan, 2, -3, np.nan, np.inf, np.nan, 0, 0, 0, 0])
    of = {d: tg.open(tmp_path / "g.tg", memory=MEMORY, device=d) for d in ("cpu", "cuda")}
    for reduce in ("sum", "min", "max"):
        found = {device: graph.propagate(x, reduce=reduce) for device, graph in of.items()}
        np.testing.assert_array_equal(found["cuda"], found["cpu"], err_msg=reduce)


def test_a_matrix_that_does_not_fit_takes_several_passes(tmp_path):
    path = build_even(tmp_path, 50_000, 100_000)
    x = values(tg.open(path).vertices, np.float32, 64)
    gpu = tg.open(path, device="cuda", device_memory="48MiB", threads=1)
    expected = tg.open(path).propagate(x)
    np.testing.assert_allclose(gpu.propagate(x), expected, rtol=1e-4, atol=1e-4)
    assert gpu.last_run["iterations"] > 1


@pytest.mark.parametrize("undirected", [False, True])
def test_nan_of_either_sign_makes_nan(tmp_path, undirected):
    rng = np.random.default_rng(8)
    src, dst = rng.integers(0, 300, (2, 900))
    tg.build((src, dst), tmp_path / "g.tg", vertices=300, undirected=undirected)
    of = {d: tg.open(tmp_path / "g.tg", memory=MEMORY, device=d) for d in ("cpu", "cuda")}
    for dtype, width in SHAPES:
        x = values(300, dtype, width)
        missing = rng.random(x.shape) < 0.1
        x[missing] = np.copysign(np.nan, rng.normal(size=missing.sum()))
        for reduce in ("min", "max"):
            found = {device: graph.propagate(x, reduce=reduce) for device, graph in of.items()}
            assert np.isnan(found["cpu"]).any()
            np.testing.assert_array_equal(found["cuda"], found["cpu"], err_msg=reduce)
