"""What a guest with two NVMe drives checks: graphs on raw drives, from writing to being given back.

Runs in the guest (`make nvme-test`), as root. Everything that is read from the drives, by this
process and past the kernel, must equal what the files give, bit for bit.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import tiergraph as tg
from tiergraph import pyg

ADDRESSES = ["0000:01:00.0", "0000:02:00.0"]
"""Of a drive of 512-byte blocks, and of one of 4,096-byte blocks and small commands."""
GRAPH = Path("/tmp/checked.tg")
OTHER = Path("/tmp/other.tg")

T = TypeVar("T")

READING = """
import sys, time
import tiergraph as tg
graph = tg.open(sys.argv[1], io=sys.argv[2])
print(graph.bfs(0).sum(), flush=True)
time.sleep(60)
"""


def main() -> None:
    """Runs every check, and says which have passed and how long they took."""
    make_graphs()
    for check in (
        drives_are_listed,
        drives_in_use_are_refused,
        drives_that_hold_something_are_refused,
        what_is_no_drive_is_refused,
        users_without_rights_are_refused,
        results_from_each_drive_equal_those_from_files,
        results_from_both_drives_equal_those_from_files,
        batches_from_drives_equal_those_from_files,
        other_graphs_are_refused,
        drives_are_given_back_when_a_process_is_ended,
        drives_are_recovered_when_everything_was_killed,
    ):
        began = time.monotonic()
        check()
        print(f"passed: {check.__name__} ({time.monotonic() - began:.1f} s)", flush=True)


def make_graphs() -> None:
    """A graph with features, in small blocks, and another one."""
    random = np.random.default_rng(7)
    edges = (random.integers(0, 3000, 40_000), random.integers(0, 3000, 40_000))
    features = random.random((3000, 96), dtype=np.float32)
    tg.build(edges, GRAPH, features={"x": features}, vertices=3000, block_bytes="64KiB")
    tg.build((edges[0][:100], edges[1][:100]), OTHER, ids="map")


def drivers() -> list[str]:
    """Who has each drive."""
    return [drive.driver for drive in tg.nvme_drives()]


def refused(call: Callable[[], object], *words: str) -> None:
    """Checks that a call is refused, with a message that has these words."""
    message = ""
    try:
        call()
    except tg.Error as error:
        message = str(error)
    for word in words:
        assert word in message, f"expected {word!r} in: {message}"


def run(*command: str) -> None:
    """Runs a program that must succeed."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def drives_are_listed() -> None:
    """The drives are known by address, model, size and driver."""
    found = tg.nvme_drives()
    assert [drive.address for drive in found] == ADDRESSES, found
    assert [drive.driver for drive in found] == ["nvme"] * 2, found
    assert all(drive.bytes == 256 << 20 and len(drive.devices) == 1 for drive in found), found


def drives_in_use_are_refused() -> None:
    """A drive with a mounted file system stays with the kernel, forced or not."""
    device = f"/dev/{tg.nvme_drives()[1].devices[0]}"
    run("mkfs.ext4", "-q", device)
    run("mount", device, "/mnt")
    try:
        words = (ADDRESSES[1], "nothing uses", "unmount")
        refused(lambda: tg.write_drives(GRAPH, ADDRESSES), *words)
        refused(lambda: tg.write_drives(GRAPH, ADDRESSES, force=True), *words)
        assert device in str(tg.nvme_drives()[1].why_not)
        assert drivers() == ["nvme"] * 2
    finally:
        run("umount", "/mnt")


def drives_that_hold_something_are_refused() -> None:
    """A file system or a partition table is kept unless the caller forces it."""
    refused(lambda: tg.write_drives(GRAPH, ADDRESSES[1:]), "an empty drive", "force=True")
    run("mount", device_of(ADDRESSES[1]), "/mnt")
    run("umount", "/mnt")
    with open(device_of(ADDRESSES[0]), "r+b") as first:
        first.seek(510)
        first.write(b"\x55\xaa")
    refused(lambda: tg.write_drives(GRAPH, ADDRESSES[:1]), "an empty drive", "force=True")


def device_of(address: str) -> str:
    """The block device of a drive, once the kernel has it again."""
    return f"/dev/{within(5, lambda: drive_at(address).devices)[0]}"


def drive_at(address: str) -> tg.NvmeDrive:
    """The drive at an address."""
    return next(drive for drive in tg.nvme_drives() if drive.address == address)


def within(seconds: float, ask: Callable[[], T]) -> T:
    """What `ask` gives, as soon as that is true, and at last after some time."""
    until = time.monotonic() + seconds
    while not (answer := ask()) and time.monotonic() < until:
        time.sleep(0.05)
    return answer


def what_is_no_drive_is_refused() -> None:
    """Addresses of nothing, of another device and of no form are told apart."""
    refused(lambda: tg.open(GRAPH, io="nvme:0000:77:00.0"), "no device")
    refused(lambda: tg.open(GRAPH, io="nvme:0000:00:00.0"), "class")
    refused(lambda: tg.open(GRAPH, io="nvme:here"), "0000:01:00.0")


def users_without_rights_are_refused() -> None:
    """A user that is not root is told so."""
    os.seteuid(65534)
    try:
        refused(lambda: tg.write_drives(GRAPH, ADDRESSES), ADDRESSES[0], "only root")
    finally:
        os.seteuid(0)
    assert drivers() == ["nvme"] * 2


def results(io: str) -> list[NDArray[Any]]:
    """What algorithms give by an engine, from small memory, so that passes read again."""
    with tg.open(GRAPH, io=io, threads=2, memory="40MiB") as graph:
        answers = [graph.pagerank(iterations=3), graph.wcc(), graph.bfs(0)]
        if io.startswith("nvme"):
            assert graph.last_run["io_engine"] == "nvme", graph.last_run
    return answers


def same_results(addresses: list[str]) -> None:
    """Checks that drives give what files do, and are given back."""
    expected = results("posix")
    for found, answer in zip(results(f"nvme:{','.join(addresses)}"), expected, strict=True):
        np.testing.assert_array_equal(found, answer)
    assert within(5, lambda: drivers() == ["nvme"] * 2), drivers()


def results_from_each_drive_equal_those_from_files() -> None:
    """PageRank, components and breadth-first search, from one drive of each kind."""
    for address in ADDRESSES:
        written = tg.write_drives(GRAPH, [address], force=True)
        assert written > 1 << 20, written
        refused(partial(tg.write_drives, GRAPH, [address]), "got a graph")
        same_results([address])


def results_from_both_drives_equal_those_from_files() -> None:
    """The same from both drives together, named in either order."""
    tg.write_drives(GRAPH, ADDRESSES, force=True)
    same_results(ADDRESSES)
    same_results(ADDRESSES[::-1])
    refused(lambda: tg.open(GRAPH, io=f"nvme:{ADDRESSES[0]}"), "written together")


def batches_from_drives_equal_those_from_files() -> None:
    """An epoch of sampled batches with their features."""
    drives = epoch(f"nvme:{','.join(ADDRESSES)}")
    files = epoch("posix")
    assert len(drives) == len(files) > 5
    for found, expected in zip(drives, files, strict=True):
        for name in expected:
            np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def epoch(io: str) -> list[dict[str, NDArray[Any]]]:
    """Every batch of an epoch, as arrays by name.

    The loader makes plain objects of arrays here, not PyG's of tensors: in a machine that is
    emulated, importing PyTorch takes longer than everything else.
    """
    torch = SimpleNamespace(from_numpy=lambda array: array)
    geometric = SimpleNamespace(Data=SimpleNamespace)
    names = ("n_id", "e_id", "edge_index", "x")
    with (
        patch.object(pyg, "torch", lambda: torch),
        patch.object(pyg, "geometric", lambda _: geometric),
    ):
        loader = tg.NeighborLoader(
            GRAPH,
            [5, 5],
            batch_size=400,
            shuffle=True,
            seed=3,
            memory="60MiB",
            io=io,
            rank=0,
            world_size=1,
        )
        with loader:
            return [{name: getattr(batch, name).copy() for name in names} for batch in loader]


def other_graphs_are_refused() -> None:
    """Drives with one graph are not read for another."""
    refused(lambda: tg.open(OTHER, io=f"nvme:{','.join(ADDRESSES)}"), "of build", "write_drives")
    assert within(5, lambda: drivers() == ["nvme"] * 2), drivers()


def reading() -> subprocess.Popen[str]:
    """A process that has both drives."""
    io = f"nvme:{','.join(ADDRESSES)}"
    command = [sys.executable, "-c", READING, str(GRAPH), io]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline().strip().lstrip("-").isdigit()
    assert drivers() == ["vfio-pci"] * 2, drivers()
    return process


def drives_are_given_back_when_a_process_is_ended() -> None:
    """By a signal that can be caught, and by one that cannot."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        process = reading()
        process.send_signal(number)
        process.wait()
        assert within(10, lambda: drivers() == ["nvme"] * 2), drivers()


def drives_are_recovered_when_everything_was_killed() -> None:
    """Without its keepers a killed process leaves the drives, and the next one reads them."""
    process = reading()
    for keeper in keepers():
        os.kill(keeper, signal.SIGKILL)
    process.kill()
    process.wait()
    time.sleep(1)
    assert drivers() == ["vfio-pci"] * 2, drivers()
    expected = results("posix")
    for found, answer in zip(results(f"nvme:{','.join(ADDRESSES)}"), expected, strict=True):
        np.testing.assert_array_equal(found, answer)
    for address in ADDRESSES:
        tg.release_drive(address)
    assert within(5, lambda: drivers() == ["nvme"] * 2), drivers()


def keepers() -> list[int]:
    """The processes that would give drives back."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            command = (process / "cmdline").read_bytes()
            if b"tiergraph-keeper" in command:
                found.append(int(process.name))
    assert len(found) == 2, found
    return found


if __name__ == "__main__":
    main()
