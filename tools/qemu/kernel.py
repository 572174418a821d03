"""What a guest boots: Debian's kernel, some of its modules, and BusyBox, kept in `.qemu/`.

Both packages are downloaded once and unpacked, never installed. Removing the folder fetches the
newest kernel, and the modules that `MODULES` names then. The kernel is of the backports of this
Debian, whose own may be older than 6.6: before that, polling what passthrough reads is not safe.
apt keeps what it knows of them in a folder of its own, and this machine's apt as it is.
"""

from __future__ import annotations

import lzma
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

CLONE = Path(__file__).resolve().parents[2]
FOLDER = CLONE / ".qemu"

MODULES = (
    *("nvme", "virtio_pci", "9pnet_virtio", "9p", "overlay"),
    *("vfio_iommu_type1", "vfio_pci", "crc32c_generic", "ext4"),
)
"""Modules that a guest loads, after those that they depend on; one that is missing is built in."""

PACKAGES = {"qemu-system-x86_64": "qemu-system-x86", "cpio": "cpio"}
"""Programs that a guest needs and not every Debian has, and the packages that they are in."""


MIRROR = "http://deb.debian.org/debian"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
"""Where Debian's packages are, and the keys that they are signed with, which every Debian has."""


class UnavailableError(Exception):
    """Something that a guest needs is missing on this machine; the message says how to get it."""


@dataclass(frozen=True)
class Kernel:
    """A kernel image, and the archive of files that it starts with."""

    image: Path
    initramfs: Path
    """BusyBox, modules, and `/modules/order`: their names in the order in which they load."""


def kernel() -> Kernel:
    """The kernel in `.qemu/`, which is fetched the first time: some 70 MB."""
    missing = [program for program in PACKAGES if not shutil.which(program)]
    if missing:
        install = " ".join(PACKAGES[program] for program in missing)
        raise UnavailableError(
            f"cannot run a guest: expected {_quoted(missing)} on the path, got none\n\n"
            f"hint: apt-get install --no-install-recommends {install}"
        )
    found = Kernel(FOLDER / "vmlinuz", FOLDER / "initramfs.cpio")
    if not found.image.exists():
        FOLDER.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            _fetch(Path(folder), found)
    return found


def archive(root: Path) -> bytes:
    """Every file below `root` as an archive that the kernel unpacks; archives can be joined."""
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    command = ["cpio", "--create", "--format=newc", "--owner=0:0", "--quiet"]
    return subprocess.run(
        command, cwd=root, input=names.encode(), stdout=subprocess.PIPE, check=True
    ).stdout


def _fetch(folder: Path, wanted: Kernel) -> None:
    """Makes both files of `wanted`, the image last: where it is, the other one is, too."""
    if not shutil.which("apt-get"):
        raise UnavailableError(
            "cannot fetch a guest's kernel: expected Debian's `apt-get`, got none"
        )
    apt = _backports(folder / "apt")
    depends = _output(folder, "apt-cache", *apt, "depends", "linux-image-amd64")
    newest = re.search(r"Depends: (linux-image-\S+)", depends)
    if not newest:
        raise UnavailableError("cannot fetch a guest's kernel: apt knows no `linux-image-amd64`")
    unpacked = _unpack(folder, newest[1], apt)
    root = folder / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(next(_unpack(folder, "busybox-static").glob("**/bin/busybox")), root / "bin")
    _copy_modules(unpacked, root / "modules")
    wanted.initramfs.write_bytes(archive(root))
    os.replace(next(unpacked.glob("boot/vmlinuz-*")), wanted.image)


def _backports(folder: Path) -> list[str]:
    """Options by which apt knows only the backports of this Debian; its lists go to `folder`."""
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "stable")
    (folder / "lists/partial").mkdir(parents=True)
    (folder / "cache/archives/partial").mkdir(parents=True)
    sources = folder / "sources.list"
    sources.write_text(f"deb [signed-by={KEYS}] {MIRROR} {release}-backports main\n")
    settings = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": folder / "lists",
        "Dir::Cache": folder / "cache",
    }
    apt = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    _output(folder, "apt-get", *apt, "update")
    return apt


def _unpack(folder: Path, package: str, apt: Sequence[str] = ()) -> Path:
    """Downloads a package by an apt of these options; the folder that its files are in then."""
    _output(folder, "apt-get", *apt, "download", package)
    [file] = folder.glob(f"{package}_*.deb")
    _output(folder, "dpkg-deb", "--extract", str(file), package)
    return folder / package


def _output(folder: Path, *command: str) -> str:
    """What a command of apt or dpkg prints in `folder`, in English."""
    english = os.environ | {"LC_ALL": "C"}
    done = subprocess.run(
        command, cwd=folder, env=english, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise UnavailableError(
            f"cannot fetch a guest's kernel: {_quoted([' '.join(command)])} failed\n"
            f"{done.stderr}\nhint: apt-get update"
        )
    return done.stdout


def _copy_modules(unpacked: Path, to: Path) -> None:
    files = {_module_name(file): file for file in unpacked.rglob("*.ko*")}
    order = list(dict.fromkeys(name for wanted in MODULES for name in _load_order(wanted, files)))
    to.mkdir()
    for name in order:
        (to / name).write_bytes(_read_module(files[name]))
    (to / "order").write_text("".join(f"{name}\n" for name in order))


def _load_order(name: str, files: dict[str, Path]) -> Iterator[str]:
    """A module, after those that it says to depend on."""
    if name not in files:
        return
    depends = re.search(rb"\0depends=([^\0]*)\0", _read_module(files[name]))
    for other in depends[1].decode().split(",") if depends else []:
        yield from _load_order(other.replace("-", "_"), files)
    yield name


def _read_module(file: Path) -> bytes:
    content = file.read_bytes()
    return lzma.decompress(content) if file.suffix == ".xz" else content


def _module_name(file: Path) -> str:
    return file.name.partition(".")[0].replace("-", "_")


def _quoted(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
