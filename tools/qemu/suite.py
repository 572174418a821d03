"""`python -m tools.qemu.suite`: builds the tests that every read engine passes; prints their path.

A guest runs the program for the engine that needs drives of the kernel's.
"""

from __future__ import annotations

import json
import subprocess

from .kernel import CLONE

BUILD = "cargo test --release --locked -p tiergraph-io --test engines --no-run"


def main() -> None:
    """Builds the program, and prints where it is."""
    command = [*BUILD.split(), "--message-format=json-render-diagnostics"]
    built = subprocess.run(command, cwd=CLONE, stdout=subprocess.PIPE, text=True, check=True)
    messages = map(json.loads, built.stdout.splitlines())
    [program] = [path for message in messages if (path := message.get("executable"))]
    print(program)


if __name__ == "__main__":
    main()
