"""`python -m tools.wheels`: what a release is made of, built and tried here.

Wheels for manylinux_2_28 on x86-64 and aarch64 (linked by zig, which brings glibc's symbols of that
age), and the source distribution, go to `dist/`. `auditwheel` has to accept each wheel. The one for
this machine is installed in a fresh environment for each `--python`, and passes every test there
that needs no PyTorch: the first with the oldest NumPy, pyarrow and others that are promised, the
others with the newest there are. The CPU's kernels pass their tests as aarch64 programs under QEMU,
where it is.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
POLICY = "manylinux_2_28"
MACHINES = ("x86_64", "aarch64")
OWN_TARGET = ROOT / "target-wheels"
"""Objects for other machines: those of the usual builds stay as they are."""
USED = ("parquet", "report")
"""Extras that are installed beside the wheel; PyTorch is large, and training needs it."""
NOT_TESTED = {"maturin", "mypy", "nvidia-cuda-nvrtc", "ruff"}


def main() -> None:
    """Builds and tries everything, or says what went wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--python", nargs="*", default=[sys.executable], metavar="PYTHON")
    args = parser.parse_args()
    shutil.rmtree(DIST, ignore_errors=True)
    wheels = [build(machine) for machine in MACHINES]
    run("maturin", "sdist", "--out", DIST)
    for wheel in wheels:
        audit(wheel)
    kernels_on_aarch64()
    own = next((wheel for wheel in wheels if platform.machine() in wheel.name), None)
    if own is None:
        print(f"skipped: no wheel is for {platform.machine()}, so none is installed here")
        return
    for number, python in enumerate(args.python):
        try_out(own, python, oldest=number == 0)
    print("wheels: built, accepted, and tried")


def build(machine: str) -> Path:
    """The wheel for a kind of machine."""
    target = f"{machine}-unknown-linux-gnu"
    run("rustup", "target", "add", target)
    before = set(DIST.glob("*.whl"))
    how = ("--release", "--strip", "--locked", "--zig", "--target", target)
    run("maturin", "build", *how, "--compatibility", POLICY, "--out", DIST)
    (wheel,) = set(DIST.glob("*.whl")) - before
    return wheel


def audit(wheel: Path) -> None:
    """Refuses a wheel whose libraries ask for more than the policy's systems have."""
    said = run("auditwheel", "show", wheel, quiet=True)
    policy = re.search(r'platform tag:?\s+"(manylinux_\w+)"', said.replace("\n", " "))
    if policy is None or not policy[1].startswith(POLICY):
        raise SystemExit(f"error: {wheel.name}: expected {POLICY}, got:\n{said}")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, auditwheel says {policy[1]}")


def kernels_on_aarch64() -> None:
    """The tests of `crates/kernels`, as a static program for aarch64."""
    emulator = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if emulator is None:
        print(
            "skipped: no qemu-aarch64 here (qemu-user-static), so kernels for aarch64 are not run"
        )
        return
    target = "aarch64-unknown-linux-musl"
    run("rustup", "target", "add", target)
    name = f"CARGO_TARGET_{target.upper().replace('-', '_')}"
    own = {f"{name}_LINKER": "rust-lld", f"{name}_RUNNER": emulator}
    run(
        "cargo",
        "test",
        "--release",
        "--locked",
        "--target",
        target,
        "-p",
        "tiergraph-kernels",
        beside=own,
    )
    print("kernels: pass on aarch64, under QEMU")


def try_out(wheel: Path, python: str, oldest: bool) -> None:
    """Runs the tests on an installed wheel."""
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    used = project["dependencies"] + [each for extra in USED for each in extras[extra]]
    # `>=1.26` becomes any of 1.26's.
    wanted = [each.replace(">=", "==") + ".*" if oldest else each for each in used]
    wanted += [each for each in extras["dev"] if re.split(r"[>=<\[]", each)[0] not in NOT_TESTED]
    with tempfile.TemporaryDirectory(prefix="tiergraph-wheel-") as folder:
        run(python, "-m", "venv", folder)
        own = Path(folder) / "bin" / "python"
        run(own, "-m", "pip", "install", "--quiet", wheel, *wanted)
        found = "import numpy, sys, tiergraph; print(sys.version.split()[0], numpy.__version__)"
        versions = run(own, "-c", found, quiet=True).split()
        print(f"{wheel.name}: tests on Python {versions[0]}, NumPy {versions[1]}", flush=True)
        # The package of the wheel, and not the folder's.
        # Old packages warn of what newer ones that they use will drop; also in tests within tests.
        warns = {"PYTEST_ADDOPTS": "-W default::DeprecationWarning"}
        run(own, "-m", "pytest", "-q", "-p", "no:cacheprovider", "python/tests", beside=warns)


def run(*command: object, quiet: bool = False, beside: dict[str, str] | None = None) -> str:
    """Runs a command in the repository; returns what it said if that is not shown."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    own = os.environ | {"PATH": path, "CARGO_TARGET_DIR": str(OWN_TARGET)} | (beside or {})
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, cwd=ROOT, env=own, text=True, check=False, capture_output=quiet
        )
    except FileNotFoundError:
        raise SystemExit(f"error: cannot run `{words[0]}`: it is not installed") from None
    if done.returncode != 0:
        raise SystemExit(f"error: {' '.join(words)}\n{done.stderr or ''}".rstrip())
    return done.stdout or ""


if __name__ == "__main__":
    main()
