"""tools/check_folders.py finds what it is there to find."""

from __future__ import annotations

import pytest
from conftest import tool


@pytest.fixture
def check():
    return tool("check_folders")


@pytest.fixture
def package(tmp_path):
    """Writes a package `p` of these modules, and returns its folder."""

    def write(**modules):
        for name, text in {"__init__": "", **modules}.items():
            file = tmp_path / "p" / f"{name.replace('_in_', '/')}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return tmp_path / "p"

    return write


def test_imports_in_one_direction_are_no_circle(check, package):
    modules = {"a": "from p import b\nfrom p.c import x", "b": "import p.c", "c": "x = 1"}
    assert list(check.circles(package(**modules))) == []


@pytest.mark.parametrize(
    "back",
    [
        "from p import a",
        "import p.a",
        "from . import a",
        "from .a import x",
        "def late():\n    from p.a import x",
        "try:\n    import p.a\nexcept ImportError:\n    pass",
    ],
)
def test_a_circle_is_found_however_the_import_is_written(check, package, back):
    found = list(check.circles(package(a="from p.b import y", b="import p.c", c=back)))
    assert found == [["p.a", "p.b", "p.c", "p.a"]]


def test_what_only_a_type_checker_imports_is_no_circle(check, package):
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import x"
    assert list(check.circles(package(a="import p.b", b=typed))) == []


def test_a_package_and_a_module_of_it_are_a_circle_if_both_import_names(check, package):
    found = list(check.circles(package(__init__="from p.a import x", a="from p import y")))
    assert found == [["p", "p.a", "p"]]


def test_subpackages_import_relative_to_themselves(check, package):
    modules = {"s_in___init__": "", "s_in_a": "from .b import x", "s_in_b": "from ..c import y"}
    found = list(check.circles(package(**modules, c="from .s import a")))
    assert found == [["p.c", "p.s.a", "p.s.b", "p.c"]]


def test_each_group_of_modules_gives_one_circle(check, package):
    pairs = {"a": "import p.b", "b": "import p.a", "c": "import p.d", "d": "import p.c"}
    found = sorted(check.circles(package(**pairs)))
    assert found == [["p.a", "p.b", "p.a"], ["p.c", "p.d", "p.c"]]


def test_folders_of_more_than_twenty_sources_are_told(check, tmp_path, monkeypatch):
    monkeypatch.setattr(check, "ROOT", tmp_path)
    for folder, count in (("few", 20), ("many", 21), ("tests", 30), (".venv-peers", 30)):
        (tmp_path / "c" / folder).mkdir(parents=True)
        for number in range(count):
            (tmp_path / "c" / folder / f"{number}.rs").touch()
    assert list(check.crowded([tmp_path / "c"])) == [("c/many", 21)]
