"""What goes wrong on a GPU's machine: a clear error, and the CPU goes on in the same process.

Each test runs a process against the emulated CUDA (`emulated_cuda/`), so none needs a GPU.
"""

from __future__ import annotations

import ctypes
import os
import re

import pytest
from gpu_graphs import build_even

RUN = """
import sys
import numpy as np
import tiergraph as tg

path = sys.argv[1]
expected = tg.open(path).pagerank(iterations=3)
try:
    tg.open(path, device="cuda", threads=1).pagerank(iterations=3)
    print("no error")
except tg.DeviceError as error:
    print(error)
np.testing.assert_allclose(tg.open(path, device="cpu").pagerank(iterations=3), expected)
print("the CPU goes on")
"""

# Every call that a run makes of the driver fails once, one a run.
SWEEP = """
import ctypes, os, sys
import numpy as np
import tiergraph as tg

path, code = sys.argv[1], int(sys.argv[2])
options = {"threads": 2, **eval(sys.argv[3])}
tg.cuda_devices()  # A driver that did not start stays unusable in its process.
driver = ctypes.CDLL("libcuda.so.1")
cpu = tg.open(path, device="cpu", threads=1)
depths = cpu.bfs(0)
failed = 0
for number in range(1, 10_000):
    driver.emulatedReset()
    os.environ["EMULATED_CUDA_FAULT"] = f"*:{number}:{code}"
    try:
        found = tg.open(path, device="cuda", **options).bfs(0)
    except tg.DeviceError as error:
        assert f"CUDA_ERROR_{code}" in str(error) and "hint: " in str(error), error
        failed += 1
    else:
        np.testing.assert_array_equal(found, depths)
        if driver.emulatedCalls() < number:
            break
    np.testing.assert_array_equal(cpu.bfs(0), depths)
print(failed, number)
"""


@pytest.fixture
def graph(tmp_path):
    """A directory of a small directed graph."""
    return build_even(tmp_path, 500, 3000, block_bytes=4096)


def test_without_faults_there_is_no_error(cuda, graph):
    assert cuda.run(RUN, graph) == "no error\nthe CPU goes on\n"


def test_no_driver(cuda, graph, tmp_path):
    if "no GPU" not in cuda.run(NO_GPU, libraries=str(tmp_path)):
        pytest.skip("there is a driver here that the system's loader finds")
    said = cuda.run(RUN, graph, libraries=str(tmp_path))
    assert "expected one of libcuda.so.1, libcuda.so where the system looks for libraries" in said
    assert 'hint: install NVIDIA\'s driver, or run with `device="cpu"`' in said
    assert said.endswith("the CPU goes on\n")


NO_GPU = """
import tiergraph as tg
try:
    print(tg.cuda_devices())
except tg.DeviceError:
    print("no GPU")
"""


def test_a_driver_that_is_too_old(cuda, graph):
    said = cuda.run(RUN, graph, EMULATED_CUDA_VERSION="11080")
    assert "expected a driver for CUDA 12.0 or newer, got one for CUDA 11.8" in said
    assert "hint: update NVIDIA's driver" in said
    assert said.endswith("the CPU goes on\n")


def is_loaded_by_name(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def test_no_compiler(cuda, graph, tmp_path):
    if any(map(is_loaded_by_name, ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"))):
        pytest.skip("there is a CUDA toolkit here that the system's loader finds")
    (tmp_path / "libcuda.so.1").symlink_to(cuda.folder / "libcuda.so.1")
    hidden = RUN.replace("path = ", "tg.devices.find_libraries = lambda: None\npath = ")
    said = cuda.run(hidden, graph, libraries=str(tmp_path))
    assert "expected one of libnvrtc.so.13, libnvrtc.so.12, libnvrtc.so where" in said
    assert "hint: pip install nvidia-cuda-nvrtc" in said
    assert said.endswith("the CPU goes on\n")


def test_a_kernel_that_does_not_compile(cuda, graph, tmp_path):
    log = "kernel.cu(7): error: expected a `;`"
    kernels = {"TIERGRAPH_KERNEL_CACHE": str(tmp_path / "empty")}
    said = cuda.run(RUN, graph, EMULATED_NVRTC_FAIL=log, **kernels)
    assert "cannot compile `kernel checksum`" in said
    assert log in said
    assert said.endswith("the CPU goes on\n")


def test_machine_code_that_the_driver_does_not_take(cuda, graph):
    said = cuda.run(RUN, graph, EMULATED_CUDA_FAULT="cuModuleLoadData:1:209")
    assert "cannot load kernel checksum" in said
    assert "the kernels' compiler is newer than the driver" in said
    assert said.endswith("the CPU goes on\n")


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("cuLaunchKernel:9", 700),
        ("cuStreamSynchronize:12", 214),
        ("cuStreamSynchronize:12", 719),
        ("cuMemcpyHtoDAsync_v2:6", 716),
        ("cuMemsetD8Async:3", 999),
    ],
)
def test_a_context_that_is_lost(cuda, graph, call, code):
    said = cuda.run(RUN, graph, EMULATED_CUDA_FAULT=f"{call}:{code}")
    assert f"(CUDA_ERROR_{code})" in said
    assert "this process has lost its context on the GPU, and the graph's files are unt" in said
    assert said.endswith("the CPU goes on\n")


def test_a_gpu_that_another_process_holds(cuda, graph):
    said = cuda.run(RUN, graph, EMULATED_CUDA_FAULT="cuDevicePrimaryCtxRetain:1:46")
    assert "another process may hold the GPU" in said
    assert said.endswith("the CPU goes on\n")


def test_out_of_gpu_memory_says_how_much_there_is(cuda, graph):
    said = cuda.run(RUN, graph, EMULATED_CUDA_FAULT="cuMemAlloc_v2:4:2")
    assert "cannot allocate GPU memory: expected " in said
    assert "free of 1.0 GiB" in said
    assert said.endswith("the CPU goes on\n")


def test_pinned_memory_that_is_refused(cuda, graph):
    said = cuda.run(RUN, graph, EMULATED_CUDA_FAULT="cuMemHostAlloc:1:2")
    assert "of host memory: out of memory, or of what may be locked (`ulimit -l`)" in said
    assert said.endswith("the CPU goes on\n")


REGISTERED = """
import ctypes, sys
import numpy as np
import tiergraph as tg

path, threads = sys.argv[1], int(sys.argv[2])
driver = ctypes.CDLL("libcuda.so.1")
expected = tg.open(path).pagerank(iterations=2)
with tg.open(path, device="cuda", threads=threads) as graph:
    np.testing.assert_allclose(graph.pagerank(iterations=2), expected, rtol=1e-4)
    most = driver.emulatedPinned()
del graph
print(most, driver.emulatedPinned())
"""


def test_much_memory_is_registered_by_several_threads_and_given_back(cuda, tmp_path):
    path = build_even(tmp_path, 500, 20_000, codec="raw", layouts="both")
    pinned, left = map(int, cuda.run(REGISTERED, path, 2).split())
    assert pinned > 0
    assert left == 0
    # A thread a core registers a part of its own.
    for part in range(1, min(2, len(os.sched_getaffinity(0))) + 1):
        fault = f"cuMemHostRegister_v2:{part}:2"
        said = cuda.run(RUN.replace("threads=1", "threads=2"), path, EMULATED_CUDA_FAULT=fault)
        assert re.search(r"cannot lock \d+\.\d MiB of host memory: out of memory, or of what", said)
        assert said.endswith("the CPU goes on\n")


SHRUNK = """
import os, sys
import numpy as np
import tiergraph as tg

path = sys.argv[1]
ranks = tg.open(path).pagerank(iterations=2)
graph = tg.open(path, device="cuda", threads=1)
for memory in range(1 << 20, 1 << 26, 1 << 18):
    os.environ["EMULATED_CUDA_MEMORY"] = str(memory)
    try:
        np.testing.assert_allclose(graph.pagerank(iterations=2), ranks, rtol=1e-4)
    except tg.DeviceError as error:
        assert "cannot allocate GPU memory: expected " in str(error), error
    else:
        break
assert 0 < graph.last_run["device_resident_bytes"] < graph.last_run["pass_bytes"]
print(graph.last_run["device_resident_why"])
"""


def test_memory_that_others_took_since_makes_a_smaller_plan(cuda, tmp_path):
    path = build_even(tmp_path, 500, 200_000, codec="raw", block_bytes=4096)
    said = cuda.run(SHRUNK, path)
    assert "were planned for blocks, and others have left" in said


HOST = """
import sys
import numpy as np
import tiergraph as tg

path, memory = sys.argv[1:]
graph = tg.open(path, device="cuda", threads=1, device_memory="2500KiB", memory=memory)
ranks = tg.open(path).pagerank(iterations=5)
np.testing.assert_allclose(graph.pagerank(iterations=5), ranks, rtol=1e-4)
run = graph.last_run
others = run["pass_bytes"] - run["device_resident_bytes"]
assert 0 < others < run["pass_bytes"]
read = run["bytes_read"] - run["loaded_bytes"]
print(run["host_resident_bytes"], others, read, run["host_resident_why"])
"""


def test_blocks_stay_in_host_memory(cuda, tmp_path):
    path = build_even(tmp_path, 500, 200_000, codec="raw", block_bytes=4096)
    host, others, read, why = cuda.run(HOST, path, "64MiB").split(" ", 3)
    # The first pass reads them, and they stay.
    assert (host, read, why) == (others, others, "all others fit\n")
    # Buffers for results, few values and readers are locked first; what blocks would stay in is
    # refused.
    fault = {"EMULATED_CUDA_FAULT": "cuMemHostAlloc:4:2"}
    host, others, read, why = cuda.run(HOST, path, "64MiB", **fault).split(" ", 3)
    assert (host, int(read)) == ("0", 5 * int(others))
    assert "of host memory: out of memory, or of what may be locked" in why


@pytest.mark.parametrize(
    ("code", "options"),
    [
        (719, "{}"),
        (1, "{'device_residency': False}"),
        (1, "{'device_residency': False, 'transfers': 'direct', 'threads': 1}"),
    ],
)
def test_any_call_of_the_driver_may_fail(cuda, graph, code, options):
    failed, runs = map(int, cuda.run(SWEEP, graph, code, options).split())
    assert 100 < failed < runs < 9_999
