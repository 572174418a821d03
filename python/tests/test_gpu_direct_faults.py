"""What goes wrong with cuFile: a clear error, and other ways of reading go on in the same process.

Each test runs a process against the emulated CUDA and cuFile (`emulated_cuda/`).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from gpu_graphs import build_even

RUN = """
import ctypes, sys
import numpy as np
import tiergraph as tg

path = sys.argv[1]
expected = tg.open(path).pagerank(iterations=3)
options = {"device": "cuda", "threads": 2, "device_residency": False}
try:
    gpu = tg.open(path, transfers="direct", **options)
    np.testing.assert_allclose(gpu.pagerank(iterations=3), expected, rtol=1e-4)
    print(gpu.last_run["io_engine_why"])
except tg.Error as error:
    print(f"{type(error).__name__}: {error}")
ranks = tg.open(path, transfers="async", **options).pagerank(iterations=3)
np.testing.assert_allclose(ranks, expected, rtol=1e-4)
try:
    cufile = ctypes.CDLL("libcufile.so.0")
    assert cufile.emulatedFiles() == cufile.emulatedBuffers() == 0
except (OSError, AttributeError):
    pass
print("others go on")
"""


@pytest.fixture
def graph(tmp_path):
    """A directory of a graph of some dozen blocks."""
    return build_even(tmp_path, 2000, 30_000, codec="raw", block_bytes=4096)


def run(cuda, graph, **environment: str) -> str:
    """What the run says before others go on."""
    said, went_on = cuda.run(RUN, graph, **environment).rsplit("\n", 2)[:2]
    assert went_on == "others go on"
    return said


def test_without_nvidia_fs_it_is_compatibility_mode(cuda, graph):
    said = run(cuda, graph)
    assert said == "compatibility mode, through cuFile's host memory: nvidia-fs is not loaded"


def test_with_nvidia_fs_it_is_direct(cuda, graph):
    said = run(cuda, graph, EMULATED_CUFILE_NVFS="2")
    assert said == "nvidia-fs 2.0: direct where drive and file system allow it"


def test_memory_that_cannot_be_registered_is_said(cuda, graph):
    said = run(cuda, graph, EMULATED_CUFILE_FAULT="cuFileBufRegister:5:9:5036")
    assert "cannot register GPU memory with cuFile: the GPU's memory cannot be pinned" in said


def test_reads_in_pieces_are_put_together(cuda, graph):
    assert "compatibility mode" in run(cuda, graph, EMULATED_CUFILE_SHORT="1000")


def test_a_passing_fault_is_tried_again(cuda, graph):
    assert "compatibility mode" in run(cuda, graph, EMULATED_CUFILE_FAULT="cuFileRead:7:9:5")


def test_no_library(cuda, graph, tmp_path):
    for name in ("libcuda.so.1", "libnvrtc.so.13"):
        (tmp_path / name).symlink_to(cuda.folder / name)
    hidden = RUN.replace("path = ", "tg.devices.find_libraries = lambda: None\npath = ")
    said = cuda.run(hidden, graph, libraries=str(tmp_path))
    if said.startswith("compatibility") or "cannot start cuFile" in said:
        pytest.skip("there is a libcufile here that the system's loader finds")
    assert "DeviceError: cannot use cuFile: expected one of libcufile.so.0, libcufile.so" in said
    assert "hint: pip install nvidia-cufile" in said
    assert said.endswith("others go on\n")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("cuFileDriverOpen:1:2:5001", "cannot start cuFile: nvidia-fs is not loaded, and compat"),
        ("cuFileDriverOpen:1:2:5007", "cannot start cuFile: this platform is not supported"),
        ("cuFileHandleRegister:1:2:5008", "a file that cuFile takes, got this file is not"),
        ("cuFileRead:3:99:5008", "`4096` bytes at offset `"),
        ("cuFileRead:3:99:5012", "got this is not the device memory that was expected"),
    ],
)
def test_what_cufile_refuses(cuda, graph, fault, error):
    said = run(cuda, graph, EMULATED_CUFILE_FAULT=fault)
    assert said.startswith("DeviceError: ")
    assert error in said
    assert f"cuFile's error {fault.rsplit(':', 1)[1]}" in said
    assert 'transfers="async"' in said


@pytest.fixture
def memory_backed(graph):
    """The graph on a file system that refuses `O_DIRECT`, if there is one."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        copy = shutil.copytree(graph, Path(folder) / "g.tg")
        try:
            os.close(os.open(copy / "in.blocks", os.O_RDONLY | os.O_DIRECT))
        except OSError:
            yield copy
        else:
            pytest.skip("/dev/shm takes `O_DIRECT` here")


def test_a_file_system_that_refuses_direct_io_is_said(cuda, memory_backed):
    assert run(cuda, memory_backed).endswith("; the file system refuses `O_DIRECT`")
    said = run(cuda, memory_backed, EMULATED_CUFILE_FAULT="cuFileHandleRegister:1:2:5020")
    assert "this file system (tmpfs?) refuses `O_DIRECT`, got the file is not open for" in said
    assert 'transfers="async"' in said


def test_what_the_system_refuses(cuda, graph):
    said = run(cuda, graph, EMULATED_CUFILE_FAULT="cuFileRead:3:999:5")
    assert said.startswith("IoError: cannot read `")
    assert "in.blocks`: expected `4096` bytes at offset `" in said
    assert "Input/output error" in said
    assert 'transfers="async"' in said
