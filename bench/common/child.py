"""A process that loads something once and then executes commands, so that runs can interleave.

A request is one line of JSON on its stdin, an answer one line on its stdout: `engines/serve.py` is
the other end.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
from pathlib import Path
from typing import Any

from common.cgroup import MemoryGroup

BENCH = Path(__file__).resolve().parent.parent
KILLED_FIRST = "1000"


class UnavailableError(Exception):
    """A command that gave no result; its text is the reason."""


class Child:
    """A serving process. `group` is the cgroup that it runs in, if any."""

    def __init__(
        self,
        python: Path,
        engine: str,
        *arguments: str,
        threads: int,
        group: MemoryGroup | None = None,
    ) -> None:
        def prepare() -> None:
            # When memory runs out, the system ends this process rather than another.
            Path("/proc/self/oom_score_adj").write_text(KILLED_FIRST)
            if group is not None:
                group.enter()

        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
        self._process = subprocess.Popen(
            [str(python), "-m", "engines.serve", engine, *arguments],
            cwd=BENCH,
            env=os.environ | dict.fromkeys(names, str(threads)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            preexec_fn=prepare,
        )

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def call(self, command: str, limit: float | None = None, **arguments: Any) -> dict[str, Any]:
        """Executes `command` and returns its answer; `UnavailableError` where there is none."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"command": command, "arguments": arguments}) + "\n")
        except BrokenPipeError as error:
            raise UnavailableError(self._ended()) from error
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(limit):
                self.close()
                raise UnavailableError(f"over {limit:g} s")
        line = process.stdout.readline()
        if not line:
            raise UnavailableError(self._ended())
        answer: dict[str, Any] = json.loads(line)
        if "unavailable" in answer:
            raise UnavailableError(answer["unavailable"].split("\n")[0])
        return answer

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()

    def _ended(self) -> str:
        code = self._process.wait()
        reason = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        return f"ended with {reason}"
