"""Options in the words of the caller: the command line's flags, or the arguments of Python.

Messages and hints, Rust's and Python's alike, name an option as the command line does, in
backticks and with a value where there is one: ``run with `--memory 600MiB` or more``. Whoever
calls from Python reads ``run with `memory="600MiB"` or more``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

OTHER_NAMES = {
    "--block-size": "block_bytes",
    "--directed": "undirected",
    "--fanout": "num_neighbors",
    "--for": "layouts",
    "--keep-duplicates": "dedup",
    "--keep-self-loops": "drop_self_loops",
    "--split": "splits",
}
"""Flags whose argument in Python is not the flag's name with underscores."""

SWITCHES = {
    "--allow-nan": True,
    "--dedup": True,
    "--directed": False,
    "--drop-self-loops": True,
    "--force": True,
    "--keep-duplicates": False,
    "--keep-self-loops": False,
    "--overwrite": True,
    "--resume": True,
    "--undirected": True,
}
"""Flags without a value, and what their argument is in Python."""

LISTS = ("--columns", "--fanout", "--feature-columns", "--splits", "--stripe")
"""Flags whose value is a list by commas."""

COMMANDS = {
    "tiergraph build": "tiergraph.build",
    "tiergraph doctor": "tiergraph.doctor",
    "tiergraph drive list": "tiergraph.nvme_drives",
    "tiergraph drive write": "tiergraph.write_drives",
    "tiergraph edges add": "tiergraph.add_edge_values",
    "tiergraph features checksum": "tiergraph.checksum_features",
    "tiergraph features order": "tiergraph.order_features",
    "tiergraph generate": "tiergraph.generate",
}
"""Commands that are functions in Python; the others are named as they are."""

MOST_LETTERS = 80
"""Of a value that a message repeats."""

_FLAG = r"--[a-z][a-z-]*"
_FLAGS = re.compile(rf"`({_FLAG}(?: [^`]+)?)`")
_COMMAND = re.compile(rf"`({'|'.join(COMMANDS)})((?: {_FLAG}[^`]*)?)`")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")

_from_command_line = False


@contextmanager
def as_command_line() -> Iterator[None]:
    """Whatever is said meanwhile, in any thread, is said to the user of the command line."""
    global _from_command_line
    before, _from_command_line = _from_command_line, True
    try:
        yield
    finally:
        _from_command_line = before


def in_callers_words(text: str) -> str:
    """`text` with each backticked flag as the caller would write it."""
    if _from_command_line:
        return text
    text = _COMMAND.sub(lambda found: f"`{_call(found[1], found[2].strip())}`", text)
    return _FLAGS.sub(lambda found: f"`{_arguments(found[1])}`", text)


def named(argument: str, value: object) -> str:
    """An argument and what it was given, as the caller wrote it; long values are cut."""
    if not _from_command_line:
        written = f'"{value}"' if isinstance(value, str) else repr(value)
        return f"{argument}={shortened(written)}"
    return f"{flag_of(argument)} {shortened(str(value))}"


def flag_of(argument: str) -> str:
    """The flag that an argument is on the command line."""
    flags = {name: flag for flag, name in OTHER_NAMES.items() if flag not in SWITCHES}
    return flags.get(argument, "--" + argument.replace("_", "-"))


def shortened(text: str) -> str:
    """One line of at most `MOST_LETTERS`."""
    line = " ".join(text.split())
    return line if len(line) <= MOST_LETTERS else line[: MOST_LETTERS - 1] + "…"


def python_name(flag: str) -> str:
    """The argument that a flag is in Python."""
    return OTHER_NAMES.get(flag, flag.removeprefix("--").replace("-", "_"))


def _call(command: str, flags: str) -> str:
    return f"{COMMANDS[command]}(…, {_arguments(flags)})" if flags else COMMANDS[command]


def _arguments(flags: str) -> str:
    """`--ids map --overwrite` as `ids="map", overwrite=True`."""
    parts = re.split(rf"(?:^| )({_FLAG})(?= |$)", flags)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return ", ".join(_argument(flag, value.strip()) for flag, value in pairs)


def _argument(flag: str, value: str) -> str:
    name = python_name(flag)
    if flag in SWITCHES:
        return f"{name}={SWITCHES[flag]}"
    if not value:
        return name
    if flag in LISTS:
        return f"{name}=[{', '.join(map(_literal, value.split(',')))}]"
    key, equals, path = value.partition("=")
    return (
        f"{name}={{{_literal(key)}: {_literal(path)}}}" if equals else f"{name}={_literal(value)}"
    )


def _literal(value: str) -> str:
    return value if _NUMBER.fullmatch(value) or value == "…" else f'"{value}"'
