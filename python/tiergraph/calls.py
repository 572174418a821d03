"""Public calls refuse arguments that they do not have, and say which was probably meant."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar

from .errors import InputError

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

LIKENESS = 0.7
"""How alike a name must be to be suggested, as `difflib` counts it: at most 1."""


class ArgumentError(InputError, TypeError):
    """A call has an argument that it does not take, or lacks one that it needs."""


def checked(call: Callable[P, R]) -> Callable[P, R]:
    """The same function, which refuses wrong arguments with `ArgumentError` and a suggestion."""
    signature = inspect.signature(call)

    @wraps(call)
    def checking(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            _refuse(call, signature, kwargs, error)
        return call(*args, **kwargs)

    return checking


def checked_class(made: C) -> C:
    """The same class, whose `__init__` and public methods are `checked`."""
    for name, member in list(vars(made).items()):
        if inspect.isfunction(member) and (name == "__init__" or not name.startswith("_")):
            setattr(made, name, checked(member))
    return made


def _refuse(
    call: Callable[..., Any],
    signature: inspect.Signature,
    given: dict[str, Any],
    error: TypeError,
) -> NoReturn:
    called = call.__qualname__.removesuffix(".__init__")
    known = [name for name in signature.parameters if name != "self"]
    unknown = [name for name in given if name not in known]
    if not unknown:
        raise ArgumentError.of(f"call `{called}`", got=error, hint=_usage(signature)) from None
    close = difflib.get_close_matches(unknown[0], known, n=1, cutoff=LIKENESS)
    raise ArgumentError.of(
        f"call `{called}` with",
        unknown[0],
        expected="one of its arguments",
        hint=f"did you mean `{close[0]}`?" if close else f"it has {', '.join(known)}",
    ) from None


def _usage(signature: inspect.Signature) -> str:
    """What a call takes by position, as one line."""
    by_position = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    names = [p.name for p in parameters if p.kind is by_position]
    return f"by position it takes {', '.join(names) or 'nothing'}; the rest by keyword"
