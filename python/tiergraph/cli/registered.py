"""Commands of the algorithms that run by name, such as `tiergraph triangles`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer

from .. import results
from ..algorithms import COMMON, REGISTERED, Registered
from ..graph import Graph
from .algorithms import Run, Values
from .flags import with_flags_of
from .options import Top
from .output import print_table


def commands() -> dict[str, Callable[..., None]]:
    """A command for each algorithm, by its name."""
    return {name.replace("_", "-"): _command(name, how) for name, how in REGISTERED.items()}


def _command(name: str, how: Registered) -> Callable[..., None]:
    method = getattr(Graph, name)

    def own(run: Run, top: int, **options: Any) -> None:
        if options.get("sources"):
            options["sources"] = [run.vertex(source) for source in options["sources"]]
        values = run.measure(getattr(run.graph, name), **options)
        if how.shows == "groups":
            _show_groups(run, how.column, values, top)
        else:
            run.show(how.column, values, {}, results.top(values, top))

    keyword = inspect.Parameter.KEYWORD_ONLY
    shared = [
        inspect.Parameter("run", inspect.Parameter.POSITIONAL_OR_KEYWORD),
        inspect.Parameter("top", keyword, default=10, annotation=Top),
    ]
    options = [
        _option(parameter, how.help[parameter.name])
        for parameter in inspect.signature(method).parameters.values()
        if parameter.name not in ("self", *COMMON)
    ]
    own.__signature__ = inspect.Signature([shared[0], *options, shared[1]])  # type: ignore[attr-defined]
    own.__name__ = name
    said = (inspect.getdoc(method) or "").partition("\n")[0]
    own.__doc__ = re.sub(r", \w+ of shape.*", ".", said)
    return with_flags_of(Run)(own)


KINDS = {"int": int, "float": float, "bool": bool, "str": str}
"""Types of options, by how annotations of methods begin."""


def _option(parameter: inspect.Parameter, text: str) -> inspect.Parameter:
    """The flag of a method's parameter."""
    written = str(parameter.annotation)
    listed = written.startswith(("Sequence", "Vertices"))
    kind: Any = str if listed else KINDS[written.partition(" ")[0].partition("[")[0]]
    if parameter.default is None or listed:
        kind = list[kind] | None if listed else kind | None
    # What may be given several times is named for one.
    names = ("--" + parameter.name.removesuffix("s"),) if listed else ()
    annotation = Annotated[kind, typer.Option(*names, help=text)]
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=annotation)


def _show_groups(run: Run, column: str, values: Values, top: int) -> None:
    """Shows the largest groups of vertices of one value."""
    names, sizes = np.unique(values, return_counts=True)
    largest = np.lexsort((names, -sizes))[:top]
    found = [(int(names[i]), int(sizes[i])) for i in largest]
    summary: dict[str, Any] = {}
    if run.as_json:
        summary["groups"] = [{column: name, "vertices": size} for name, size in found]
    run.show(column, values, summary, [])
    if not run.as_json:
        print_table((column, "vertices"), [(str(name), f"{size:,}") for name, size in found])
