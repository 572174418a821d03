"""`python -m engines.serve ENGINE [ARGUMENT...]`: executes commands from stdin until it closes.

ENGINE is a module here with a function `load(*arguments)`, whose result has commands as methods.
A method is timed; where it returns a callable, that fetches the result as an array afterwards,
untimed, and only if the request names a file to save it to.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from typing import Any

import numpy as np


def main(engine: str, *arguments: str) -> None:
    """Serves until stdin closes. The protocol has the only use of stdout; the rest is stderr."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    failed: str | None = None
    started = time.perf_counter()
    try:
        loaded = importlib.import_module(f"engines.{engine}").load(*arguments)
    except Exception as error:
        failed = f"cannot load: {type(error).__name__}: {error}"
    load_seconds = time.perf_counter() - started
    for line in sys.stdin:
        request = json.loads(line)
        if failed is not None:
            answer: dict[str, Any] = {"unavailable": failed}
        elif request["command"] == "loaded":
            answer = {"seconds": load_seconds}
        else:
            answer = _execute(loaded, request["command"], request["arguments"])
        answer["peak_rss_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        answers.write(json.dumps(answer) + "\n")


def _execute(engine: Any, command: str, arguments: dict[str, Any]) -> dict[str, Any]:
    save_to = arguments.pop("save_to", None)
    method = getattr(engine, command, None)
    if method is None:
        return {"unavailable": "does not have it"}
    try:
        started = time.perf_counter()
        value = method(**arguments)
        seconds = time.perf_counter() - started
    except Exception as error:
        return {"unavailable": f"{type(error).__name__}: {error}"}
    if not callable(value):
        return {"seconds": seconds, "value": value}
    if save_to is not None:
        np.save(save_to, value())
    return {"seconds": seconds, "details": getattr(engine, "details", None)}


if __name__ == "__main__":
    main(*sys.argv[1:])
