"""The exceptions of tiergraph, raised by the native part and by this package alike.

A message has one form: ``cannot {op} `{object}`: expected {x}, got {y}``, then an empty line and
``hint: {what to do}``. It names options as the caller does (`words`).
"""

from __future__ import annotations

from typing import Self

from .arguments.words import in_callers_words

HINT = "\n\nhint: "
REPORT = (
    "this is a mistake in tiergraph: please report it, with this message and what was called, at "
    "https://github.com/tiergraph/tiergraph/issues"
)


class Error(Exception):
    """Any failure that tiergraph reports."""

    def __init__(self, text: str = "") -> None:
        super().__init__(in_callers_words(text))

    @classmethod
    def of(
        cls,
        op: str,
        obj: object = None,
        *,
        expected: str | None = None,
        got: object = None,
        hint: str | None = None,
    ) -> Self:
        """Words an error in the one form: ``op`` completes "cannot …"."""
        text = f"cannot {op}" if obj is None else f"cannot {op} `{obj}`"
        details = []
        if expected is not None:
            details.append(f"expected {expected}")
        if got is not None:
            details.append(f"got {got}" if details else f"{got}")
        if details:
            text += ": " + ", ".join(details)
        return cls(text if hint is None else text + HINT + hint)

    def without_hint(self) -> str:
        """The message up to its hint, for an error that has this one as its cause."""
        return str(self).partition(HINT)[0]


class FormatError(Error):
    """Bytes on disk are not what the format says."""


class IoError(Error, OSError):
    """The operating system or a device refused or failed."""


class DeviceError(Error):
    """An accelerator failed or is missing."""


class BudgetError(Error):
    """A memory budget cannot hold what was asked for."""

    enough_bytes: int | None = None
    """The least budget, in bytes, that holds this beside what it held already; None: not known."""


class InputError(Error, ValueError):
    """The given input or argument cannot be used."""


class InternalError(Error):
    """A mistake of tiergraph itself; its message is what a report of it needs."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text if HINT in text else text + HINT + REPORT)

    @classmethod
    def wrapping(cls, error: Exception) -> Self:
        """What is said of an exception that nobody but tiergraph is to blame for."""
        return cls.of("finish", got=f"{type(error).__name__}: {' '.join(str(error).split())}")


class _Said(UserWarning):
    """A warning in the caller's words."""

    def __init__(self, text: str = "") -> None:
        super().__init__(in_callers_words(text))


class InputWarning(_Said):
    """Something was noticed about the input, or decided for the caller; says how to decide it."""

    def __init__(self, text: str) -> None:
        super().__init__(in_callers_words(text))


class FallbackWarning(_Said):
    """Something was done in another, slower way than was asked for; says which and why."""
