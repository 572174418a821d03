"""tools/check_layers.py finds what it is there to find."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import tool


@pytest.fixture
def layers():
    return tool("check_layers")


def package(name, *dependencies, folder="."):
    return {
        "name": f"tiergraph-{name}",
        "manifest_path": str(Path(folder) / "Cargo.toml"),
        "dependencies": [{"name": f"tiergraph-{d}", "kind": None} for d in dependencies],
    }


def test_downward_imports_pass(layers):
    packages = [package("core"), package("cache", "core"), package("io", "cache", "core")]
    assert list(layers.wrong_edges(packages)) == []


def test_upward_sideways_and_unknown_are_found(layers):
    named = [package(name) for name in ("io", "gpu", "new")]
    packages = [package("core", "io"), package("kernels", "gpu"), *named]
    faults = list(layers.wrong_edges(packages))
    assert "`core` imports `io`, which is not below it" in faults
    assert "`kernels` imports `gpu`, which is not below it" in faults
    assert any(fault.startswith("crate `tiergraph-new` has no layer") for fault in faults)


def test_unsafe_is_found_but_not_in_comments_and_strings(layers, tmp_path):
    source = tmp_path / "src" / "lib.rs"
    source.parent.mkdir()
    source.write_text('#![forbid(unsafe_code)]\n// unsafe\nconst A: &str = "unsafe";\n')
    packages = [package("core", folder=tmp_path)]
    assert list(layers.unsafe_uses(packages)) == []
    source.write_text("fn f() { unsafe { g() } }\n")
    assert len(list(layers.unsafe_uses(packages))) == 2
