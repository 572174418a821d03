"""Public calls refuse arguments that they do not have, and say which was probably meant.

They also refuse values that no argument of their name can have (`checks`).
"""

from __future__ import annotations

import difflib
import inspect
import warnings
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, NoReturn, ParamSpec, TypeAlias, TypeVar

from ..errors import InputError
from .checks import check_values

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

Take: TypeAlias = Callable[[str, dict[str, Any]], dict[str, Any]]

PACKAGE = __name__.partition(".")[0]

LIKENESS = 0.7
"""How alike a name must be to be suggested, as `difflib` counts it: at most 1."""


class ArgumentError(InputError, TypeError):
    """A call has an argument that it does not take, or lacks one that it needs."""


def checked(call: Callable[P, R], take: Take | None = None) -> Callable[P, R]:
    """The same function, which refuses wrong arguments with `ArgumentError` and a suggestion.

    `take` gets the name of the call and its keywords, and gives those that go on to it.
    """
    signature = inspect.signature(call)
    named = call.__qualname__.removesuffix(".__init__")

    @wraps(call)
    def checking(*args: P.args, **kwargs: P.kwargs) -> R:
        if take is not None:
            kwargs = take(named, kwargs)  # type: ignore[assignment]
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            _refuse(named, signature, kwargs, error)
        check_values(call, bound)
        return call(*bound.args, **bound.kwargs)

    return checking


def checked_class(made: C, take: Take | None = None) -> C:
    """The same class, whose `__init__` (with `take`) and public methods are `checked`."""
    for name, member in list(vars(made).items()):
        if inspect.isfunction(member) and (name == "__init__" or not name.startswith("_")):
            setattr(made, name, checked(member, take if name == "__init__" else None))
    return made


def taking(take: Take) -> Callable[[C], C]:
    """As `checked_class`; `__init__` gets what `take` gives of its keywords."""
    return partial(checked_class, take=take)


def options_of(options: type, defaults: Mapping[str, Any]) -> Callable[[F], F]:
    """Has `**options` of a function shown and checked as the parameters that a `TypedDict` names.

    Those without one of `defaults` are None.
    """

    def note(function: F) -> F:
        signature = inspect.signature(function)
        *others, _ = signature.parameters.values()
        kinds = {
            name: getattr(a, "__forward_arg__", a) for name, a in options.__annotations__.items()
        }
        shown = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=kind
            )
            for name, kind in kinds.items()
        ]
        function.__signature__ = signature.replace(parameters=[*others, *shown])  # type: ignore[attr-defined]
        return function

    return note


def _refuse(
    called: str, signature: inspect.Signature, given: dict[str, Any], error: TypeError
) -> NoReturn:
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


def warn(text: str, category: type[Warning]) -> None:
    """Warns whoever called this package, from however deep inside."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def _is_ours(module: str) -> bool:
    """Whether a module, by its whole name, is one of this package."""
    return module.partition(".")[0] == PACKAGE
