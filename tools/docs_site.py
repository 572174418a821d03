"""What MkDocs adds to the pages of `docs/`: references, results, and links that lead out of them.

`mkdocs.yml` names this file as a hook. The command reference is written from the program's own help
(Typer), the Python reference lists `tiergraph.__all__` (mkdocstrings fills it from docstrings), and
results, changes and how to contribute are the repository's own files.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from typer.cli import get_docs_for_click

import tiergraph
from tiergraph.cli import app

ROOT = Path(__file__).resolve().parents[1]
COPIED = {
    "reference/results.md": ROOT / "bench" / "RESULTS.md",
    "reference/growth.svg": ROOT / "bench" / "results" / "growth.svg",
    "reference/benchmarks.md": ROOT / "bench" / "README.md",
    "changes.md": ROOT / "CHANGELOG.md",
    "contributing.md": ROOT / "CONTRIBUTING.md",
}
"""Pages of the site, and a chart, that are files elsewhere in the repository."""

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
NAMES = {
    "Building and opening": ["build", "generate", "open", "Graph", "BuildOptions"],
    "Pairs of ids, without a graph": ["components", "Components"],
    "Loaders": ["NeighborLoader", "LinkNeighborLoader"],
    "Graphs of several types": [
        "build_hetero",
        "open_hetero",
        "HeteroGraph",
        "HeteroNeighborLoader",
    ],
    "What is stored beside": [
        "add_features",
        "add_edge_values",
        "order_features",
        "checksum_features",
    ],
    "Plans": [
        "measure_job",
        "plan",
        "plan_passes",
        "Job",
        "Plan",
        "Estimate",
        "PassEstimate",
        "MoreMemory",
    ],
    "This machine": [
        "doctor",
        "Finding",
        "cuda_devices",
        "CudaDevice",
        "nvme_drives",
        "NvmeDrive",
        "write_drives",
        "release_drive",
    ],
    "Errors and warnings": [
        "Error",
        "InputError",
        "FormatError",
        "BudgetError",
        "IoError",
        "DeviceError",
        "InternalError",
        "FallbackWarning",
        "InputWarning",
    ],
}
"""Public names, in the order of the Python reference."""
MODULES = {
    "Centralities": [
        "centrality",
        "centrality.pagerank",
        "centrality.hits",
        "centrality.eigenvector",
        "centrality.katz",
        "centrality.NotConvergedError",
    ],
    "Measures": [
        "measures",
        "measures.similar",
        "measures.random_walk_with_restart",
        "measures.degree_assortativity",
        "measures.degree_statistics",
    ],
}
"""Modules, of which their own words are shown, and their names."""
ALONE = "\n    options:\n      members: false\n      show_root_heading: true"
"""What shows a module without its names, which follow."""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds the pages that are written or copied."""
    pages = {name: path.read_text() for name, path in COPIED.items()}
    pages |= {"reference/python.md": python(), "reference/commands.md": commands()}
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Has links lead to pages of the site; those to other files become the files' names."""
    own = page.file.src_uri
    # Where the page is in the repository, by which its links were written.
    at = Path(COPIED[own]) if own in COPIED else Path(config.docs_dir) / own
    places = {path.resolve(): name for name, path in COPIED.items()}

    def led(match: re.Match[str]) -> str:
        image, text, link = match.groups()
        target, _, heading = link.partition("#")
        if "://" in link or not target or own.startswith("reference/python"):
            return match[0]
        if own not in COPIED and files.get_file_from_path(_joined(own, target)):
            return match[0]
        path = (at.parent / target).resolve()
        name = places.get(path)
        if name is None and path.is_relative_to(Path(config.docs_dir).resolve()):
            name = path.relative_to(Path(config.docs_dir).resolve()).as_posix()
        if name is None or not files.get_file_from_path(name):
            return match[0] if image else f"{text} (`{path.relative_to(ROOT)}`)"
        to = posixpath.relpath(name, posixpath.dirname(own) or ".")
        return f"{image}[{text}]({to}{'#' + heading if heading else ''})"

    return LINK.sub(led, markdown)


def _joined(page: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


def python() -> str:
    """The Python reference: every public name, under headings."""
    listed = {name for names in (NAMES | MODULES).values() for name in names if "." not in name}
    public = set(tiergraph.__all__) - {"__version__"}
    if listed != public:
        raise SystemExit(f"{__file__}: NAMES and tiergraph.__all__ differ: {listed ^ public}")
    modules = {name for names in MODULES.values() for name in names if "." not in name}
    parts = ["# Python reference", "`import tiergraph as tg`. Units are bytes and seconds."]
    for heading, names in (NAMES | MODULES).items():
        parts.append(f"## {heading}")
        parts += [f"::: tiergraph.{name}" + (ALONE if name in modules else "") for name in names]
    return "\n\n".join(parts) + "\n"


def commands() -> str:
    """The command reference, from the commands' own help."""
    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="tiergraph")
    text = get_docs_for_click(obj=command, ctx=context, name="tiergraph", title="Command reference")
    return text.replace("`tiergraph`\n", "", 1)
