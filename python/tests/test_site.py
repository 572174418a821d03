"""The documentation's site is built without a warning, and has all that there is to look up."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tiergraph as tg

pytest.importorskip("material", reason="no mkdocs-material")
pytest.importorskip("mkdocstrings", reason="no mkdocstrings")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    own = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def text(page):
    """What a page says."""
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text()))


def test_every_public_name_is_in_the_python_reference(site):
    page = (site / "reference" / "python.html").read_text()
    for name in set(tg.__all__) - {"__version__"}:
        assert f'id="tiergraph.{name}"' in page, name
    assert "(|E|, 2)" in text(site / "reference" / "python.html")


def test_every_command_is_in_the_command_reference(site):
    said = text(site / "reference" / "commands.html")
    helped = subprocess.run(
        [sys.executable, "-m", "tiergraph", "--help"], capture_output=True, text=True, check=True
    ).stdout
    commands = re.findall(r"^│ ([a-z][a-z-]+)  ", helped, re.MULTILINE)
    assert len(commands) >= 27
    for command in commands:
        assert f"$ tiergraph {command}" in said, command


def test_the_papers_figures_and_the_changes_are_pages(site):
    assert 'id="the-papers-figures"' in (site / "reference" / "results.html").read_text()
    assert "tiergraph plan" in text(site / "changes.html")


def test_pages_need_no_network(site):
    loaded = re.compile(r'<(?:link|script|img)[^>]*(?:href|src)="?(https?:[^"> ]+)')
    for page in site.rglob("*.html"):
        # The address of the site itself, and of icons in the text, are not loaded.
        assert not loaded.findall(page.read_text()), page


def test_links_out_of_the_site_are_names_of_files(site):
    # The page for what is not found has links of the server's root.
    for page in set(site.rglob("*.html")) - {site / "404.html"}:
        links = re.findall(r'href="([^"#?]+)', page.read_text())
        for link in links:
            if not link.startswith(("http", "mailto", "data:")) and link not in ("/", "."):
                assert (page.parent / link).exists(), (page, link)
