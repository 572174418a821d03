"""The timeline of a run on a GPU: reads, copies and kernels, on one clock."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from itertools import pairwise

import pytest
from gpu_graphs import build_even, needs_gpu

import tiergraph as tg

pytestmark = needs_gpu

STAGES = {
    "storage to host": "storage_to_host_seconds",
    "host to device": "host_to_device_seconds",
    "processing on the device": "device_seconds",
}


def spans_of(path) -> dict[str, list[tuple[float, float, int]]]:
    """The spans of each process by its name: begin, end (seconds), row."""
    events = json.loads(path.read_text())["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    spans = defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            begin = e["ts"] * 1e-6
            spans[names[e["pid"]]].append((begin, begin + e["dur"] * 1e-6, e["tid"]))
    return spans


@pytest.fixture
def graph(tmp_path):
    """A directory of a graph of some dozen blocks."""
    return build_even(tmp_path, 2000, 30_000, codec="raw", block_bytes=4096)


@pytest.mark.parametrize("transfers", ["async", "sync"])
def test_stages_are_on_the_timeline(graph, tmp_path, transfers):
    gpu = tg.open(graph, device="cuda", device_residency=False, transfers=transfers, threads=2)
    gpu.pagerank(iterations=2, trace=tmp_path / "run.json")
    spans, run = spans_of(tmp_path / "run.json"), gpu.last_run
    blocks = run["pass_bytes"] // 4096
    together = 1 if transfers == "sync" else 8
    assert 2 * blocks / together <= len(spans["host to device"]) <= 2 * blocks
    assert len(spans["storage to host"]) >= 2 * blocks
    iterations = [s for s in spans["workers"] if s[2] == 2]
    assert len(iterations) == 2
    begin, end = iterations[0][0], iterations[-1][1]
    for stage, key in STAGES.items():
        assert 0 < run[key] <= 1.05 * run["seconds"]
        # The clocks agree to some microseconds, and events are stamped to half of one.
        assert all(s[1] >= s[0] and s[1] <= end + 1e-3 for s in spans[stage]), stage
        rows = defaultdict(list)
        for span in sorted(spans[stage]):
            rows[span[2]].append(span)
        for row in rows.values():
            assert all(b[0] >= a[1] - 1e-6 for a, b in pairwise(row)), stage
    assert all(s[0] >= begin - 1e-3 for s in spans["host to device"])


def test_blocks_of_host_memory_are_copied_together(tmp_path):
    path = build_even(tmp_path, 500, 200_000, codec="raw", block_bytes=4096)
    # Blocks that are read in their order lie side by side in host memory, whatever the drive does.
    memory = {"device_memory": "2500KiB", "memory": "64MiB"}
    gpu = tg.open(path, device="cuda", threads=1, io="posix", **memory)
    gpu.pagerank(iterations=3, trace=tmp_path / "run.json")
    run = gpu.last_run
    on_device, on_host = (run[f"{place}_resident_bytes"] // 4096 for place in ("device", "host"))
    assert on_device + on_host == run["pass_bytes"] // 4096
    assert on_host > 16
    copies = spans_of(tmp_path / "run.json")["host to device"]
    assert len(copies) == on_device + 3 * math.ceil(on_host / 8)


def test_resident_blocks_are_on_the_timeline(graph, tmp_path):
    gpu = tg.open(graph, device="cuda", threads=1)
    gpu.pagerank(iterations=3, trace=tmp_path / "run.json")
    spans = spans_of(tmp_path / "run.json")
    assert len(spans["processing on the device"]) == 3
    assert len(spans["host to device"]) == gpu.last_run["pass_bytes"] // 4096
    assert 0 < gpu.last_run["storage_to_host_seconds"] <= gpu.last_run["load_seconds"]
    gpu.pagerank(iterations=3, trace=tmp_path / "again.json")
    spans = spans_of(tmp_path / "again.json")
    assert len(spans["processing on the device"]) == 3
    assert "host to device" not in spans
    assert gpu.last_run["storage_to_host_seconds"] == 0


def test_a_run_without_a_trace_measures_no_stage(graph):
    gpu = tg.open(graph, device="cuda", threads=1)
    gpu.wcc()
    assert not set(STAGES.values()) & set(gpu.last_run)
