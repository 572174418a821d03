"""The GPU's tests without a GPU: kernels run on the CPU, thread by thread (`emulated_cuda/`).

Slowly, so only on the small graphs; what they show of a real device is the arithmetic.
"""

from __future__ import annotations

from pathlib import Path

import pytest

PYTEST = """
import sys
import pytest

if "loader" in sys.argv[2] or "training" in sys.argv[2]:
    from emulated_cuda.torch_cuda import use_emulated
    use_emulated()
options = ["-q", "-p", "no:cacheprovider", "--basetemp", sys.argv[1], "-k", sys.argv[3]]
assert pytest.main([*options, sys.argv[2]]) == 0
"""


@pytest.mark.parametrize(
    ("file", "chosen"),
    [
        ("test_gpu.py", "loops and 4096"),
        (
            "test_gpu.py",
            "(path and weighted and directed and 4096) or damage or search or stays or goes "
            "or own or large or little",
        ),
        ("test_gpu_propagate.py", "(loops and 4096) or nan or centralities"),
        (
            "test_gpu_lists.py",
            "path or loops or one or levels or without or little or hubs or elsewhere or room "
            "or stay or taken or of_hubs",
        ),
        ("test_gpu_trace.py", "test"),
        ("test_gpu_bench.py", "test"),
        ("test_gpu_direct.py", "not 65536"),
        (
            "test_gpu_loader.py",
            "f32 and (makes or lists and not modelled or repeated or damaged or few or counts "
            "or moved or checksums or storage and 7 and not modelled or job) and not -1",
        ),
        (
            "test_gpu_loader.py",
            "gathers or typed or ahead_is_told or kernels or any_width and not f16 or parts "
            "or neither_memory",
        ),
        (
            "test_gpu_loader.py",
            "come_from_storage and int8 and None and gpu and (modelled or 30) and not 25",
        ),
        ("test_gpu_training.py", "loops or not arrays"),
    ],
)
def test_kernels_equal_the_cpu(cuda, tmp_path, file, chosen):
    if "loader" in file or "training" in file:
        pytest.importorskip("torch_geometric", reason="loaders hand over PyG data")
    here = Path(__file__).with_name(file)
    said = cuda.run(PYTEST, tmp_path, here, chosen, EMULATED_CUDA_MULTIPROCESSORS="16")
    assert " passed" in said
    assert "skipped" not in said


@pytest.mark.parametrize(
    ("file", "chosen"),
    [
        (
            "test_gpu.py",
            "(path and weighted and 4096 and not undirected) or search or large or own",
        ),
        ("test_gpu_propagate.py", "loops and raw and 4096 and not undirected"),
        ("test_gpu_trace.py", "test"),
        ("test_gpu_direct.py", "4096"),
    ],
)
def test_streams_wait_for_each_other(cuda, tmp_path, file, chosen):
    here = Path(__file__).with_name(file)
    late = {"EMULATED_CUDA_MULTIPROCESSORS": "16", "EMULATED_CUDA_LATE": "1"}
    said = cuda.run(PYTEST, tmp_path, here, chosen, **late)
    assert " passed" in said
    assert "skipped" not in said
