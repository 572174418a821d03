"""README's quick start can be followed in one folder, in a row, twice."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import tiergraph as tg

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDED = ("pyarrow", "torch", "torch_geometric")


def quick_start():
    """The blocks of code: their language and text; those for a GPU where there is one."""
    text = README.read_text()
    section = text.split("## Quick start", 1)[1].split("\n## ", 1)[0]
    return [block for block in BLOCK.findall(section) if "cuda" not in block[1] or has_gpu()]


def has_gpu():
    """Whether CUDA finds a GPU."""
    try:
        return bool(tg.cuda_devices())
    except tg.DeviceError:
        return False


def test_the_quick_start_has_blocks_of_both_kinds():
    languages = [language for language, _ in quick_start()]
    assert languages.count("python") >= 4
    assert languages.count("") >= 3


def test_every_block_runs_after_the_one_before_and_all_of_them_twice(tmp_path):
    for name in NEEDED:
        pytest.importorskip(name)
    script = "\n".join(map(as_python, *zip(*quick_start(), strict=True)))
    (tmp_path / "blocks.py").write_text(script)
    for _ in range(2):
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
    assert commands or lines[0][:2] == ["pip", "install"], text
    run = "from tiergraph.cli import main\n"
    return run + "".join(f"assert main({arguments}) == 0\n" for arguments in commands)
