"""Checks that crates import strictly downwards and that safe crates stay safe.

Reads `cargo metadata`. Dependencies of build scripts count too; those of tests do not: a test
builds what it needs with whatever makes it. Prints every wrong edge and exits 1. The layers are
those of docs/architecture.md.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LAYERS = [
    {"core"},
    {"format", "mem"},
    {"kernels", "gpu", "cache", "nvme"},
    {"io", "planner"},
    {"graph"},
    {"ingest", "analytics", "sampler"},
    {"py"},
]

SAFE = {"core", "format", "cache", "graph", "ingest", "analytics", "sampler", "planner"}
"""Crates that forbid `unsafe`."""

PREFIX = "tiergraph-"
FORBID = "#![forbid(unsafe_code)]"
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', re.DOTALL)
UNSAFE = re.compile(r"\bunsafe\b")


def main() -> int:
    """Checks the workspace that the working directory is in."""
    packages = workspace_packages()
    faults = [*wrong_edges(packages), *unsafe_uses(packages)]
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    if not faults:
        print(f"layers: {len(packages)} crates, every import points down")
    return 1 if faults else 0


def workspace_packages() -> list[dict[str, Any]]:
    """The packages of this workspace, as `cargo metadata` describes them."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit("error: cannot run `cargo metadata`, for the reason above")
    packages: list[dict[str, Any]] = json.loads(done.stdout)["packages"]
    return packages


def wrong_edges(packages: list[dict[str, Any]]) -> Iterator[str]:
    """Crates without a layer, and imports that do not point to a lower one."""
    layer_of = {crate: layer for layer, crates in enumerate(LAYERS) for crate in crates}
    names = {package["name"] for package in packages}
    for package in packages:
        crate = role(package["name"])
        if crate not in layer_of:
            yield f"crate `{package['name']}` has no layer: add it to LAYERS in {__file__}"
            continue
        for dependency in package["dependencies"]:
            target = role(dependency["name"])
            if dependency["name"] not in names or target not in layer_of:
                continue
            if dependency["kind"] == "dev":
                continue
            if layer_of[target] >= layer_of[crate]:
                kind = f" ({dependency['kind']})" if dependency["kind"] else ""
                yield f"`{crate}` imports `{target}`{kind}, which is not below it"


def unsafe_uses(packages: list[dict[str, Any]]) -> Iterator[str]:
    """Safe crates that do not forbid `unsafe`, or whose sources hold it."""
    for package in packages:
        if role(package["name"]) not in SAFE:
            continue
        folder = Path(package["manifest_path"]).parent
        if FORBID not in (folder / "src" / "lib.rs").read_text():
            yield f"{folder / 'src' / 'lib.rs'}: expected `{FORBID}`"
        for source in sorted(folder.rglob("*.rs")):
            code = COMMENT_OR_STRING.sub("", source.read_text())
            if UNSAFE.search(code):
                yield f"{source}: `unsafe` in a crate that must not hold it"


def role(name: str) -> str:
    """A crate's name without the project's."""
    return name.removeprefix(PREFIX)


if __name__ == "__main__":
    sys.exit(main())
