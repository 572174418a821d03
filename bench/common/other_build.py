"""Tasks of a script, done in processes of their own by one build of tiergraph or another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Builds = Mapping[str, Path | None]
"""By name, the folder with a build's `tiergraph`; None: the one that is installed."""


def builds(before: Path | None) -> Builds:
    """The installed build as `now`, and the one in the folder `before`, if any."""
    return {"now": None, **({"before": before} if before else {})}


def serve(tasks: Mapping[str, Callable[..., Any]]) -> bool:
    """In a process that `answer` began, prints what its task gives; whether this is one."""
    if sys.argv[1:2] != ["--task"]:
        return False
    print(json.dumps(tasks[sys.argv[2]](**json.loads(sys.argv[3]))))
    return True


def answer(
    script: str,
    task: str,
    what: Mapping[str, Any],
    package: Path | None = None,
    limit: float | None = None,
) -> Any:
    """What `task` of `script` gives by the build in `package`; None after `limit` seconds."""
    environment = dict(os.environ)
    if package is not None:
        environment["PYTHONPATH"] = str(package)
    command = [sys.executable, script, "--task", task, json.dumps(what)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)
