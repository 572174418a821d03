"""Flags that several commands have, worded once: as the arguments of a class's constructor."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from typer.models import ArgumentInfo

Command = Callable[..., None]


def with_flags_of(shared: Callable[..., Any]) -> Callable[[Command], Command]:
    """Gives a command that takes what `shared` makes first its own flags and those of `shared`.

    Arguments come before options, and what is the command's own before what is shared.
    """
    shared_flags = inspect.signature(shared, eval_str=True).parameters

    def decorate(own: Command) -> Command:
        @wraps(own)
        def command(**given: Any) -> None:
            made = shared(**{name: given.pop(name) for name in shared_flags})
            own(made, **given)

        _, *own_flags = inspect.signature(own, eval_str=True).parameters.values()
        flags = sorted([*own_flags, *shared_flags.values()], key=_is_option)
        keyword = inspect.Parameter.KEYWORD_ONLY
        flags = [flag.replace(kind=keyword) for flag in flags]
        command.__signature__ = inspect.Signature(flags)  # type: ignore[attr-defined]
        command.__annotations__ = {flag.name: flag.annotation for flag in flags}
        return command

    return decorate


def _is_option(flag: inspect.Parameter) -> bool:
    return not any(isinstance(info, ArgumentInfo) for info in flag.annotation.__metadata__)
