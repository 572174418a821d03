"""Checks that Python modules import each other in no circle, and that no folder holds too much.

An import counts wherever it stands, in a function too, but for those that only a type checker sees
(`if TYPE_CHECKING:`). A package's `__init__` is a module like any other; what is imported from it
counts as imported from there, unless it is a module of its own. Prints every circle and every
folder of more than 20 sources, and exits 1.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("python/tiergraph", "tools")
"""Folders whose modules must not import in a circle."""

FOLDERS = ("crates", "python/tiergraph", "tools", "bench")
SOURCES = {".rs", ".py", ".cu", ".cuh"}
MOST = 20
"""Sources in a folder at most."""

TESTS = {"tests", "target"}
"""Folders that mirror sources, or are made from them."""


def main() -> int:
    """Checks the repository that this file is in."""
    faults = [f"circle of imports: {' → '.join(c)}" for p in PACKAGES for c in circles(ROOT / p)]
    faults += (
        f"{folder}: {count} sources in one folder, more than {MOST}"
        for folder, count in crowded(ROOT / name for name in FOLDERS)
    )
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    if not faults:
        print("folders: no circle of imports in Python")
    return 1 if faults else 0


def circles(package: Path) -> Iterator[list[str]]:
    """One circle of each group of modules that import each other, its first module at both ends."""
    edges = imports(package)
    for group in groups(edges):
        yield circle(edges, group)


def imports(package: Path) -> dict[str, set[str]]:
    """What each module of the package imports of the package."""
    files = {
        name_of(package, file): file
        for file in sorted(package.rglob("*.py*"))
        if file.suffix in (".py", ".pyi")
    }
    edges: dict[str, set[str]] = {}
    for name, file in files.items():
        here = name if file.stem == "__init__" else name.rpartition(".")[0]
        found = set(imported(ast.parse(file.read_text()), here))
        # `from a import b` is an import of the module `a.b`, or else of `a`.
        edges[name] = {
            f"{a}.{b}" if f"{a}.{b}" in files else a
            for a, b in found
            if a in files or f"{a}.{b}" in files
        } - {name}
    return edges


def name_of(package: Path, file: Path) -> str:
    """The dotted name of a module, from the package's folder on."""
    parts = file.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST, here: str) -> Iterator[tuple[str, str]]:
    """Modules and names that are imported below `tree`, in a module of package `here`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = here.split(".")[: len(here.split(".")) - node.level + 1]
            start = ".".join(above) if node.level else ""
            module = ".".join(filter(None, (start, node.module)))
            yield from ((module, alias.name) for alias in node.names)
        else:
            yield from imported(node, here)


def groups(edges: dict[str, set[str]]) -> Iterator[set[str]]:
    """Modules of which each imports every other, over others or not: Kosaraju's components."""
    order: list[str] = []
    seen: set[str] = set()
    for name in edges:
        order += after(name, edges, seen)
    backwards: dict[str, set[str]] = {name: set() for name in edges}
    for name, targets in edges.items():
        for target in targets:
            backwards[target].add(name)
    seen = set()
    for name in reversed(order):
        group = set(after(name, backwards, seen))
        if len(group) > 1:
            yield group


def after(name: str, edges: dict[str, set[str]], seen: set[str]) -> list[str]:
    """Modules that `name` reaches and nobody has seen, each after those that it imports."""
    if name in seen:
        return []
    seen.add(name)
    return [other for target in sorted(edges[name]) for other in after(target, edges, seen)] + [
        name
    ]


def circle(edges: dict[str, set[str]], group: set[str]) -> list[str]:
    """A shortest circle through the group's first module."""
    first = min(group)
    ways = [[first]]
    seen: set[str] = set()
    while True:
        way = ways.pop(0)
        for target in sorted(edges[way[-1]] & group):
            if target == first:
                return [*way, first]
            if target not in seen:
                seen.add(target)
                ways.append([*way, target])


def crowded(roots: Iterable[Path]) -> Iterator[tuple[str, int]]:
    """Folders below the roots with more than `MOST` sources, and how many they have."""
    for root in roots:
        for folder in [root, *sorted(path for path in root.rglob("*") if path.is_dir())]:
            parts = folder.relative_to(ROOT).parts
            # Hidden ones are environments, which somebody else wrote.
            if not TESTS.isdisjoint(parts) or any(part.startswith(".") for part in parts):
                continue
            count = sum(file.suffix in SOURCES for file in folder.iterdir())
            if count > MOST:
                yield folder.relative_to(ROOT).as_posix(), count


if __name__ == "__main__":
    sys.exit(main())
