"""Triangles, clustering and cores on a GPU are those of the CPU, or ran there and say why."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_graphs import MEMORY, build, each_graph, needs_gpu, skewed

import tiergraph as tg

pytestmark = needs_gpu

NAMES = ("triangles", "clustering", "kcore", "cdlp")
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
        if name == "clustering" and not undirected:
            assert gpu.last_run["device"] == "cpu"
            assert "it ran on the CPU" in gpu.last_run["device_why"]
        else:
            assert gpu.last_run["device"] != "cpu", name
            assert "CPU" not in gpu.last_run["device_why"]
        for key in ("triangles", "transitivity", "average_clustering", "largest_core"):
            assert gpu.last_run.get(key) == cpu.last_run.get(key), (name, key)


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
    ("options", "why"),
    [
        ({"device_memory": "1MiB"}, "lists of neighbours take"),
        ({"memory": "48MiB", "threads": 1}, "do not fit the host's memory"),
    ],
)
def test_lists_with_too_little_memory_are_left_to_the_cpu(tmp_path, options, why):
    path = build(tmp_path, lambda rng: skewed(rng, 60_000, 4_000_000, 1.1), undirected=True)
    expected = tg.open(path).kcore()
    gpu = tg.open(path, device="cuda", **options)
    np.testing.assert_array_equal(gpu.kcore(), expected)
    assert gpu.last_run["device"] == "cpu"
    assert why in gpu.last_run["device_why"]


def test_an_algorithm_without_a_version_for_gpus_says_so(tmp_path):
    path = build(tmp_path, lambda rng: skewed(rng, 100, 400, 1.1))
    gpu = tg.open(path, device="cuda")
    gpu.scc()
    assert gpu.last_run["device_why"] == "scc has no version for GPUs: it ran on the CPU"
