"""`python bench/results` computes the pages' numbers from raw runs, and notices what differs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def copy(tmp_path):
    """The pages, the raw runs and the script, elsewhere."""
    shutil.copy(ROOT / "README.md", tmp_path)
    (tmp_path / "bench").mkdir()
    for name in ("results", "runs"):
        shutil.copytree(ROOT / "bench" / name, tmp_path / "bench" / name)
    shutil.copy(ROOT / "bench" / "RESULTS.md", tmp_path / "bench")
    return tmp_path


def results(root, *arguments):
    command = [sys.executable, str(root / "bench" / "results"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_pages_are_up_to_date(copy):
    assert results(copy, "--check").returncode == 0


@pytest.mark.parametrize(
    ("page", "number"),
    [
        ("README.md", r"cgroup of 1024 MiB \| [\d.]+"),
        ("bench/RESULTS.md", r"\| networkit \| [\d.]+"),
        ("bench/results/figure.svg", r">[\d.]+ s<"),
    ],
)
def test_a_number_that_was_typed_is_noticed_and_computed_again(copy, page, number):
    before = (copy / page).read_text()
    typed, found = re.subn(number, lambda match: match[0].replace(match[0][-2], "7x"), before)
    assert found
    (copy / page).write_text(typed)
    done = results(copy, "--check")
    assert done.returncode == 1
    assert f"{page} is out of date: run `python bench/results`" in done.stderr
    assert results(copy).returncode == 0
    assert (copy / page).read_text() == before


def test_another_run_changes_the_pages(copy):
    run = next((copy / "bench" / "runs").glob("*-2-core-epyc-*/peers-22.json"))
    content = json.loads(run.read_text())
    engine = content["results"]["engines"][0]
    engine["median_seconds"]["wcc"] *= 3
    run.write_text(json.dumps(content))
    done = results(copy, "--check")
    assert done.returncode == 1
    for page in ("README.md", "bench/RESULTS.md", "bench/results/figure.svg"):
        assert page in done.stderr


def test_a_run_that_nobody_describes_is_an_error(copy):
    folder = next((copy / "bench" / "runs").glob("*-2-core-epyc-*"))
    (folder / "notes.txt").write_text("42\n")
    done = results(copy, "--check")
    assert done.returncode == 1
    assert "notes.txt: no table for `notes`, and no line in its folder's README.md" in done.stderr
    (folder / "README.md").write_text(
        "A machine.\n\n| file | command |\n|---|---|\n| `notes.txt` | by hand |\n"
    )
    assert results(copy).returncode == 0
    assert "by hand" in (copy / "bench" / "RESULTS.md").read_text()
