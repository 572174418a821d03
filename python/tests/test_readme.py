"""Pages can be followed: their blocks run in one folder, in a row; links lead on."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

import tiergraph as tg

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
ALONE = ("index", "install", "quickstart", "formats", "extending")
"""Pages that begin with nothing, as tutorials do."""
FOLLOWED = {
    "README and usage": [README, DOCS / "usage.md"],
    **{name: [DOCS / f"{name}.md"] for name in ALONE},
    **{page.stem: [page] for page in sorted((DOCS / "tutorials").glob("*.md"))},
}
"""Pages whose blocks are followed in one folder, in a row."""
PAGES = [README, *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "bench").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)]+)\)")
NEEDED = ("pyarrow", "bokeh", "torch", "torch_geometric", "networkx", "igraph")


def blocks(pages):
    """The blocks of code: their language and text; those for a GPU where there is one."""
    found = [block for page in pages for block in BLOCK.findall(page.read_text())]
    run = [block for block in found if block[0] in ("", "python")]
    return [block for block in run if 'device="cuda"' not in block[1] or has_gpu()]


def has_gpu():
    """Whether CUDA finds a GPU."""
    try:
        return bool(tg.cuda_devices())
    except tg.DeviceError:
        return False


def test_the_pages_have_blocks_of_both_kinds():
    languages = [language for language, _ in blocks(list(chain(*FOLLOWED.values())))]
    assert languages.count("python") >= 20
    assert languages.count("") >= 20


def test_every_page_with_code_is_followed():
    followed = list(chain(*FOLLOWED.values()))
    # Pages about the inside show formats and formulas, and one how to work on the project.
    inside = {"architecture", "gpu", "format", "sampling", "glossary", "development"}
    rest = [p for p in DOCS.rglob("*.md") if p not in followed and p.stem not in inside]
    assert not [page for page in rest if BLOCK.search(page.read_text())]


def test_the_front_page_is_short():
    assert len(README.read_text().splitlines()) <= 150


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page):
    # Pages that `tools/docs_site.py` adds to the site are checked where it is built.
    for link in LINK.findall(BLOCK.sub("", page.read_text())):
        if not link.startswith("http") and "reference/" not in link:
            name, _, heading = link.partition("#")
            target = page.parent / name if name else page
            assert target.exists(), link
            assert not heading or heading in headings(target), link


def headings(page):
    """The anchors of a page's headings, as GitHub makes them."""
    lines = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("pages", FOLLOWED.values(), ids=FOLLOWED.keys())
def test_every_block_runs_after_the_one_before(tmp_path, pages):
    for name in NEEDED:
        pytest.importorskip(name)
    script = "\n".join(map(as_python, *zip(*blocks(pages), strict=True)))
    (tmp_path / "blocks.py").write_text(script)
    # The front page says that its blocks can be followed as often as one likes.
    for _ in range(2 if README in pages else 1):
        done = subprocess.run(
            [sys.executable, "blocks.py"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def as_python(language, text):
    """A block as Python: a command's lines are run by the command's own entry point."""
    if language == "python":
        return text
    lines = [shlex.split(line, comments=True) for line in text.splitlines()]
    commands = [words[1:] for words in lines if words[0] == "tiergraph"]
    others = [words[:2] for words in lines if words[0] != "tiergraph"]
    assert others in ([], [["pip", "install"]]), text
    run = "from contextlib import nullcontext, redirect_stdout\nfrom tiergraph.cli import main\n"
    return run + "".join(map(called, commands))


def called(words):
    """A command as a call; `> FILE` at its end has the file take what it prints."""
    to = "nullcontext()"
    if ">" in words:
        words, (file,) = words[: words.index(">")], words[words.index(">") + 1 :]
        to = f"redirect_stdout(open({file!r}, 'w'))"
    return f"with {to}:\n    assert main({words}) == 0\n"
