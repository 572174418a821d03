"""A GPU that is not there: `libcuda`, NVRTC and `libcufile` for host memory, built on first use."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
LIBRARIES = {
    "libcuda.so.1": "driver.cpp",
    "libnvrtc.so.13": "nvrtc.cpp",
    "libcufile.so.0": "cufile.cpp",
}


class EmulatedCuda:
    """Runs Python in processes that find the emulated libraries, and no others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if shutil.which("c++") is None:
            pytest.skip("no C++ compiler here (`c++`) to build the emulated CUDA with")
        for name, source in LIBRARIES.items():
            where = f'-DEMULATED_CUDA_FOLDER="{FOLDER}"'
            command = [
                "c++",
                "-std=c++17",
                "-O2",
                "-U_FORTIFY_SOURCE",
                "-fPIC",
                "-shared",
                where,
                "-o",
                folder / name,
            ]
            subprocess.run([*command, FOLDER / source], check=True)
        # What is looked for with a driver for CUDA 12.
        (folder / "libnvrtc.so.12").symlink_to("libnvrtc.so.13")

    def run(self, script: str, *arguments: object, timeout: float = 900, **environment: str) -> str:
        """What `script` prints, with `sys.argv[1:]` as given; fails if it crashes or hangs."""
        libraries = environment.pop("libraries", str(self.folder))
        given = {
            **os.environ,
            "LD_LIBRARY_PATH": libraries,
            "TIERGRAPH_KERNEL_CACHE": str(self.folder / "kernels"),
            "PYTHONPATH": os.pathsep.join([str(FOLDER.parent), *sys.path]),
            **environment,
        }
        command = [sys.executable, "-c", script, *map(str, arguments)]
        done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=timeout)
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout
