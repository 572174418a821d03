"""Messages and hints name options as their reader writes them."""

import ast
import inspect
import re
import warnings
from pathlib import Path

import pytest
import typer

import tiergraph as tg
from tiergraph import train
from tiergraph.arguments import words
from tiergraph.cli import app, main
from tiergraph.errors import Error

ROOT = Path(__file__).parents[2]
COMMENT = re.compile(r"^\s*//")


@pytest.mark.parametrize(
    ("written", "in_python"),
    [
        ("run with `--memory 600MiB` or more", 'run with `memory="600MiB"` or more'),
        ("a larger `--memory`; or `--ids map`", 'a larger `memory`; or `ids="map"`'),
        ("`--columns SRC,DST` names them", '`columns=["SRC", "DST"]` names them'),
        ("`--overwrite` replaces it", "`overwrite=True` replaces it"),
        ("`--directed`, `--keep-duplicates`", "`undirected=False`, `dedup=False`"),
        ("`--for both --ids map`", '`layouts="both", ids="map"`'),
        ("`--threads 4`, `--fanout 25,10`", "`threads=4`, `num_neighbors=[25, 10]`"),
        ("`--edge-values w=w.npy`", '`edge_values={"w": "w.npy"}`'),
        ("`tiergraph build --labels y.npy` stores", '`tiergraph.build(…, labels="y.npy")` stores'),
        ("`tiergraph edges add` stores them", "`tiergraph.add_edge_values` stores them"),
        ("`tiergraph verify` lists damage", "`tiergraph verify` lists damage"),
        ("nothing of `--`, or `a--b c`", "nothing of `--`, or `a--b c`"),
    ],
)
def test_flags_become_arguments_for_whoever_calls_from_python(written, in_python):
    assert str(Error(written)) == in_python
    assert words.in_callers_words(in_python) == in_python
    with words.as_command_line():
        assert str(Error(written)) == written
    assert str(Error(written)) == in_python


@pytest.mark.parametrize("kind", [tg.InputWarning, tg.FallbackWarning])
def test_warnings_are_in_the_callers_words_too(kind):
    with pytest.warns(kind, match="^`dedup=True` keeps one$"):
        warnings.warn("`--dedup` keeps one", kind, stacklevel=1)


def test_one_mistake_is_hinted_at_in_both_languages(tmp_path, capfd):
    path = str(tmp_path / "g.tg")
    tg.generate("rmat", path, scale=4)
    with pytest.raises(tg.InputError, match=r"hint: `overwrite=True` replaces it"):
        tg.generate("rmat", path, scale=4)
    assert main(["generate", "rmat", path, "--scale", "4"]) == 1
    assert "hint: `--overwrite` replaces it" in capfd.readouterr().err


def options_of_the_command_line():
    flags = set()

    def visit(command):
        for option in command.params:
            flags.update(option.opts + option.secondary_opts)
        for child in getattr(command, "commands", {}).values():
            visit(child)

    visit(typer.main.get_command(app))
    return flags


def arguments_of_python():
    public = [call for name in tg.__all__ if callable(call := getattr(tg, name))]
    public.remove(tg.BuildOptions)
    public += [tg.NeighborLoader.__init__, train.TrainOptions, train.Trainer, train.LinkTrainer]
    methods = [m for _, m in inspect.getmembers(tg.Graph, inspect.isfunction)]
    names = set()
    for call in public + methods:
        if not (inspect.isclass(call) and issubclass(call, BaseException)):
            names.update(inspect.signature(call).parameters)
    names.update(tg.BuildOptions.__annotations__)
    return names


def texts_of(source):
    """The string literals of a Python file but its docstrings; the lines of a Rust file's code."""
    if source.suffix == ".rs":
        return [line for line in source.read_text().splitlines() if not COMMENT.match(line)]
    nodes = list(ast.walk(ast.parse(source.read_text())))
    described = {id(n.value) for n in nodes if isinstance(n, ast.Expr)}
    strings = [n for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return [n.value for n in strings if id(n) not in described]


def flags_in_messages():
    sources = [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("python/tiergraph/**/*.py")]
    said = {}
    for source in sources:
        for text in texts_of(source):
            for quoted in re.findall(r"`(?:tiergraph [a-z ]+ )?(--[^`]*)", text):
                for flag in re.findall(r"--[a-z][a-z-]*", quoted):
                    said.setdefault(flag, source)
    return said


def test_every_flag_that_is_named_exists_here_and_there():
    said = flags_in_messages()
    assert {"--memory", "--overwrite", "--format", "--ids"} <= said.keys()
    on_the_command_line, in_python = options_of_the_command_line(), arguments_of_python()
    for flag, source in said.items():
        assert flag in on_the_command_line, source
        assert words.python_name(flag) in in_python, source
    assert words.SWITCHES.keys() | words.OTHER_NAMES.keys() <= on_the_command_line


def test_an_exception_of_nobody_asks_for_a_report(monkeypatch, capfd):
    def fail(*_):
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr("tiergraph.cli.inspect.is_hetero", fail)
    assert main(["info", "g.tg"]) == 1
    said = capfd.readouterr().err
    assert said.startswith("error: cannot finish: ZeroDivisionError: division by zero\n\nhint: ")
    assert "please report" in said
    monkeypatch.setenv("TIERGRAPH_TRACEBACK", "1")
    assert main(["info", "g.tg"]) == 1
    assert "Traceback" in capfd.readouterr().err
