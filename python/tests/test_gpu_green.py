"""Batches prepared on a few of a GPU's multiprocessors, in a green context.

Each test runs a process against the emulated CUDA (`emulated_cuda/`), so none needs a GPU.
"""

from __future__ import annotations

import numpy as np
import pytest
from gpu_graphs import build_even

pytest.importorskip("torch_geometric", reason="loaders hand over PyG data")

EMULATED = {"EMULATED_CUDA_MULTIPROCESSORS": "16"}

LOADER = """
import ctypes, gc, os, sys, warnings
from emulated_cuda.torch_cuda import use_emulated
use_emulated()
import torch
import tiergraph as tg

path, arguments = sys.argv[1], sys.argv[2:]
driver = ctypes.CDLL("libcuda.so.1")
shape = {"num_neighbors": [4], "batch_size": 16, "input_nodes": range(24), "presample": 1}
expected = list(tg.NeighborLoader(path, **shape))

def loader(most):
    return tg.NeighborLoader(
        path, **shape, device="cuda", device_memory="30KiB", multiprocessors=most
    )

def compare(batches):
    for batch, other in zip(batches, expected, strict=True):
        assert torch.equal(batch.n_id, other.n_id)
        assert torch.equal(batch.edge_index, other.edge_index)
        assert torch.equal(batch.x, other.x)
"""

# What each count comes to: multiprocessors, green contexts, the share of kernels in them, warnings.
KEPT = (
    LOADER
    + """
def show(most):
    before = driver.emulatedGreenLaunches(), driver.emulatedLaunches()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", tg.FallbackWarning)
        gpu = loader(most)
    compare(gpu)
    kept, contexts = gpu.kept(), driver.emulatedGreenContexts()
    assert 0 < kept["device_rows"] < 200, kept
    launches = driver.emulatedLaunches() - before[1]
    share = (driver.emulatedGreenLaunches() - before[0]) / launches
    print(kept["multiprocessors"], contexts, share, *(str(w.message) for w in warned))
    assert all(w.filename == "<string>" for w in warned)
    del gpu
    gc.collect()
    assert driver.emulatedGreenContexts() == 0
"""
)

COUNTS = (
    KEPT
    + """
for most in eval(arguments[0]):
    show(most)
for most in (0, 1.5, 3):
    try:
        loader(most)
    except tg.InputError as error:
        print(str(error).splitlines()[0])
    assert driver.emulatedGreenContexts() == 0
"""
)

WITHOUT = (
    KEPT
    + """
os.environ["EMULATED_CUDA_VERSION"] = "12040"
show(4)
del os.environ["EMULATED_CUDA_VERSION"]
for call in arguments:
    driver.emulatedReset()
    os.environ["EMULATED_CUDA_FAULT"] = f"{call}:1:801"
    show(4)
    assert driver.emulatedCalls() > 0
del os.environ["EMULATED_CUDA_FAULT"]
os.environ["EMULATED_CUDA_MULTIPROCESSORS"] = "3"
show(2)
"""
)

# Every call that a loader makes of the driver fails once, one a run.
SWEEP = (
    LOADER
    + """
tg.cuda_devices()  # A driver that did not start stays unusable in its process.
code, failed = int(arguments[0]), 0
for number in range(1, 10_000):
    driver.emulatedReset()
    os.environ["EMULATED_CUDA_FAULT"] = f"*:{number}:{code}"
    before, message = driver.emulatedGreenContexts(), None
    try:
        compare(loader(4))
    except tg.DeviceError as error:
        message = str(error)
    calls = driver.emulatedCalls()
    if message is None:
        # What fails in ending something stays; all else is as good as without.
        if calls < number:
            break
    else:
        assert f"CUDA_ERROR_{code}" in message and "hint: " in message, message
        failed += 1
        # A context that is lost takes its green contexts along.
        assert code == 719 or driver.emulatedGreenContexts() == before, message
print(failed, number)
"""
)


@pytest.fixture
def graph(tmp_path):
    """A directory of a small graph with features, some of which do not fit the device's memory."""
    x = np.random.default_rng(4).random((200, 64), dtype=np.float32)
    return build_even(tmp_path, 200, 1000, features=x)


def test_kernels_run_on_no_more_multiprocessors(cuda, graph):
    said = cuda.run(COUNTS, graph, [None, 4, 5, 9, 15, 16, 99], **EMULATED).splitlines()
    assert said == [
        "16 0 0.0",
        "4 1 1.0",
        "4 1 1.0",
        "8 1 1.0",
        "14 1 1.0",
        "16 0 0.0",
        "16 0 0.0",
        "cannot use `multiprocessors=0`: expected a whole number from 1 to 4294967295",
        "cannot use `multiprocessors=1.5`: expected a whole number from 1 to 4294967295",
        "cannot set multiprocessors apart for a stream: expected at least 4, the fewest that this "
        "GPU sets apart, got 3",
    ]


def test_without_green_contexts_all_are_used(cuda, graph):
    calls = [
        "cuDeviceGetDevResource",
        "cuDevSmResourceSplitByCount",
        "cuDevResourceGenerateDesc",
        "cuGreenCtxCreate",
        "cuGreenCtxStreamCreate",
    ]
    on_all = "batches are prepared on all 16 multiprocessors of cuda:"
    assert cuda.run(WITHOUT, graph, *calls, **EMULATED).splitlines() == [
        f"16 0 0.0 {on_all} the driver is for CUDA 12.4, green contexts need 12.5",
        *[f"16 0 0.0 {on_all} the driver has no green contexts for this GPU"] * len(calls),
        "3 0 0.0 batches are prepared on all 3 multiprocessors of cuda: this GPU's multiprocessors "
        "cannot be divided",
    ]


@pytest.mark.parametrize("code", [1, 719])
def test_any_call_of_the_driver_may_fail(cuda, graph, code):
    failed, runs = map(int, cuda.run(SWEEP, graph, code, **EMULATED).split())
    assert 50 < failed < runs < 9_999
