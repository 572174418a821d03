"""Compiles every CUDA kernel with NVRTC for the architectures that are supported; needs no GPU.

NVRTC is that of PyPI's `nvidia-cuda-nvrtc`, which the development environment has. Exits 1 with the
compiler's log if a kernel does not compile.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

EXAMPLE = ["cargo", "run", "--quiet", "--locked", "-p", "tiergraph-gpu"]
EXAMPLE += ["--example", "compile_kernels", "--"]


def main() -> int:
    """Runs the example of crate `gpu` that compiles them all."""
    spec = importlib.util.find_spec("nvidia")
    roots = [] if spec is None else list(spec.submodule_search_locations or [])
    folders = {lib.parent for root in roots for lib in Path(root).glob("*/lib/libnvrtc.so.*")}
    return subprocess.run([*EXAMPLE, *sorted(map(str, folders))]).returncode


if __name__ == "__main__":
    sys.exit(main())
