"""Checkpoints: written beside and renamed, so that a killed run leaves a whole one."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

from .. import pyg
from ..errors import FormatError, InputError, IoError

State = dict[str, Any]

VERSION = 1


def save(path: Path, state: State) -> None:
    """Writes `state`; whoever reads `path` meets the old file or the new one."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("wb") as file:
            pyg.torch().save({"version": VERSION} | state, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise IoError.of("write", path, got=error.strerror or error) from error


def read(path: Path, op: str) -> State:
    """What `save` wrote to `path`; `op` is what an error says of it."""
    try:
        state = pyg.torch().load(path, weights_only=True, map_location="cpu")
    except OSError as error:
        raise IoError.of(op, path, got=error.strerror or error) from error
    except (RuntimeError, EOFError, pickle.UnpicklingError, KeyError, ValueError) as error:
        raise FormatError.of(op, path, got=error) from error
    if not isinstance(state, dict) or state.get("version") != VERSION:
        raise FormatError.of(op, path, expected=f"version {VERSION}")
    return state


def load(path: Path, run: State) -> State:
    """The state at `path`, of a run whose options are `run`."""
    state = read(path, "read the checkpoint")
    if "run" not in state:
        raise FormatError.of(
            "read the checkpoint", path, expected="a file of `--checkpoint`", got="a saved model"
        )
    for name, value in run.items():
        if state["run"].get(name) != value:
            raise InputError.of(
                "resume",
                path,
                expected=f"{name} {state['run'].get(name)}, as the run began",
                got=value,
            )
    return state
