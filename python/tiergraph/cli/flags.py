"""Flags that several commands have, worded once: as the arguments of a class's constructor."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from typer.models import ArgumentInfo

Command = Callable[..., None]


def with_flags_of(*shared: Callable[..., Any]) -> Callable[[Command], Command]:
    """Gives a command that takes what each of `shared` makes first its own flags and all of theirs.

    Arguments come before options, and what is the command's own before what is shared.
    """
    flags_of = [inspect.signature(one, eval_str=True).parameters for one in shared]

    def decorate(own: Command) -> Command:
        @wraps(own)
        def command(**given: Any) -> None:
            made = [
                one(**{name: given.pop(name) for name in flags})
                for one, flags in zip(shared, flags_of, strict=True)
            ]
            own(*made, **given)

        own_flags = list(inspect.signature(own, eval_str=True).parameters.values())[len(shared) :]
        shared_flags = [flag for flags in flags_of for flag in flags.values()]
        flags = sorted([*own_flags, *shared_flags], key=_is_option)
        keyword = inspect.Parameter.KEYWORD_ONLY
        flags = [flag.replace(kind=keyword) for flag in flags]
        command.__signature__ = inspect.Signature(flags)  # type: ignore[attr-defined]
        command.__annotations__ = {flag.name: flag.annotation for flag in flags}
        return command

    return decorate


def _is_option(flag: inspect.Parameter) -> bool:
    return not any(isinstance(info, ArgumentInfo) for info in flag.annotation.__metadata__)
