"""The kernels that a tool of compute-sanitizer should look at: `_kernels.py FOLDER TOOL`.

All of tiergraph's; for racecheck, which looks at shared memory alone, those that have some or call
a function that has. One name a line.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

FUNCTION = re.compile(
    r"__(?P<kind>global|device)__ (?:\w+ )*?(?:__launch_bounds__\(\w+\) )?(?P<name>\w+)"
    r"\([^{;]*\{(?P<body>[^\n]*\}$|.*?^\})",
    re.MULTILINE | re.DOTALL,
)


def kernels(folder: Path, *, shared: bool) -> set[str]:
    """Names of the kernels in `folder`'s sources; `shared`: of those with shared memory."""
    found = set()
    headers = "".join(path.read_text() for path in sorted(folder.rglob("*.cuh")))
    for path in folder.rglob("*.cu"):
        functions = list(FUNCTION.finditer(headers + path.read_text()))
        have = [f["name"] for f in functions if "__shared__" in f["body"]]
        calls = re.compile(rf"__shared__|\b({'|'.join(have)})\(" if have else "__shared__")
        of_kernels = [f for f in functions if f["kind"] == "global"]
        found |= {f["name"] for f in of_kernels if not shared or calls.search(f["body"])}
    return found


if __name__ == "__main__":
    found = kernels(Path(sys.argv[1]), shared=sys.argv[2] == "racecheck")
    if not found:
        sys.exit(f"no kernels for {sys.argv[2]} in {sys.argv[1]}")
    print(*sorted(found), sep="\n")
