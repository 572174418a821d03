"""Where the test data is, and the six-vertex graph that most tests use."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from emulated_cuda import EmulatedCuda

import tiergraph as tg

DATA = Path(
    os.environ.get("TIERGRAPH_TEST_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
)


def tool(name: str) -> ModuleType:
    """A script of `tools/`, as a module."""
    path = Path(__file__).resolve().parents[2] / "tools" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def data() -> Callable[[str], Path]:
    """The path of a file under shared/data; skips the test, with the reason, if it is missing."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            pytest.skip(f"test data `{path}` is missing")
        return path

    return find


@pytest.fixture
def edges() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids with gaps: a cycle 10, 20, 30, a tail to 40, and 70 to 90 apart."""
    src = np.array([10, 20, 30, 30, 70, 10])
    dst = np.array([20, 30, 10, 40, 90, 30])
    weights = np.array([1.0, 2.0, 0.5, 4.0, 1.0, 2.5])
    return src, dst, weights


@pytest.fixture
def six(edges, tmp_path) -> tg.Graph:
    """`edges` as an opened graph, directed and weighted."""
    tg.build(edges, tmp_path / "six.tg", ids="map")
    return tg.open(tmp_path / "six.tg")


@pytest.fixture(scope="session")
def cuda(tmp_path_factory) -> EmulatedCuda:
    """A GPU that is not there, for processes of their own."""
    return EmulatedCuda(tmp_path_factory.mktemp("emulated-cuda"))
