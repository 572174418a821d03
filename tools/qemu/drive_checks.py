"""What a guest with two NVMe drives checks: graphs on raw drives, from writing to being given back.

Runs in the guest (`make nvme-test`), as root. Everything that is read from the drives, by queue
pairs past the kernel or by commands that it passes on, must equal what the files give, bit for bit.
Given a program of tests for read engines (`tools.qemu.suite`), it passes them by passthrough.
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
        passthrough_reads_what_queue_pairs_wrote,
        passthrough_tells_what_it_cannot_read,
        users_who_may_read_a_device_read_it,
        mounted_drives_are_not_written_by_passthrough,
        engines_of_passthrough_pass_short_tests,
        completions_are_polled_where_the_driver_has_queues_for_it,
        engines_of_passthrough_pass_their_tests,
        drives_that_passthrough_wrote_are_read_in_both_ways,
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
        assert graph.last_run["io_engine"] == io.partition(":")[0], graph.last_run
    return answers


def same_results(names: list[str], way: str = "nvme") -> None:
    """Checks that drives give what files do, and are given back if they were taken."""
    expected = results("posix")
    for found, answer in zip(results(f"{way}:{','.join(names)}"), expected, strict=True):
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
    same_batches(f"nvme:{','.join(ADDRESSES)}")


def same_batches(io: str) -> None:
    """Checks that an engine gives the batches that files do."""
    drives, files = epoch(io), epoch("posix")
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


def devices() -> list[str]:
    """The character devices of the drives, in the order of their addresses."""
    return [device_of(address).replace("/nvme", "/ng") for address in ADDRESSES]


def passthrough_reads_what_queue_pairs_wrote() -> None:
    """Results and batches from drives that stay with the kernel, by interrupts."""
    both = devices()
    same_results(both, "passthrough")
    same_results([device.replace("/ng", "/nvme") for device in reversed(both)], "passthrough")
    same_batches(f"passthrough:{','.join(both)}")
    with tg.open(GRAPH, io=f"passthrough:{','.join(both)}") as graph:
        graph.bfs(0)
        why = graph.last_run["io_engine_why"]
    assert "interrupts" in why, why
    assert "no poll queues" in why or "6.6" in why, why
    assert drivers() == ["nvme"] * 2, drivers()


def passthrough_tells_what_it_cannot_read() -> None:
    """What is no drive, a part of what was written together, another graph, no rights."""
    first, both = devices()[0], ",".join(devices())
    for path, words in (
        ("/dev/ng77n1", "got no device"),
        ("/dev/null", "class `mem`"),
        (str(GRAPH), "a file or folder"),
        (device_of(ADDRESSES[0]) + "p1", "got no device"),
        (device_of(ADDRESSES[0]).removesuffix("n1"), "class `nvme`"),
        (f"{first},{device_of(ADDRESSES[0])}", "named twice"),
        (first, "written together"),
    ):
        refused(partial(tg.open, GRAPH, io=f"passthrough:{path}"), words)
    refused(lambda: tg.open(OTHER, io=f"passthrough:{both}"), "of build", "write_drives")
    os.seteuid(65534)
    try:
        refused(lambda: tg.open(GRAPH, io=f"passthrough:{both}"), first, "run as root")
        refused(lambda: tg.write_drives(GRAPH, devices()), first, "root")
    finally:
        os.seteuid(0)
    mixed = [first, ADDRESSES[1]]
    refused(lambda: tg.write_drives(GRAPH, mixed, force=True), "some of each")


def users_who_may_read_a_device_read_it() -> None:
    """From Linux 6.2 on that is all that they need; the kernel refuses them before."""
    both = devices()
    for device in both:
        os.chmod(device, 0o644)
    os.seteuid(65534)
    try:
        if kernel_version() >= (6, 2):
            same_results(both, "passthrough")
        else:
            refused(partial(results, f"passthrough:{','.join(both)}"), "CAP_SYS_ADMIN")
    finally:
        os.seteuid(0)
        for device in both:
            os.chmod(device, 0o600)


def kernel_version() -> tuple[int, ...]:
    """The first two numbers of this kernel's release."""
    return tuple(int(number) for number in os.uname().release.split(".")[:2])


def mounted_drives_are_not_written_by_passthrough() -> None:
    """A drive that something uses is refused, forced or not, and keeps what it has."""
    block = device_of(ADDRESSES[1])
    run("mkfs.ext4", "-q", "-F", block)
    run("mount", block, "/mnt")
    try:
        for force in (False, True):
            write = partial(tg.write_drives, GRAPH, devices()[1:], force=force)
            refused(write, "nothing uses", "unmount")
    finally:
        run("umount", "/mnt")
    refused(lambda: tg.write_drives(GRAPH, devices()[1:]), "an empty drive", "force=True")
    run("mount", block, "/mnt")
    run("umount", "/mnt")


def engines_of_passthrough_pass_short_tests() -> None:
    """The tests of read engines, by interrupts, but for those that write most often."""
    engines_of_passthrough_pass_their_tests("--skip=random_reads", "--skip=dropping")


def engines_of_passthrough_pass_their_tests(*options: str) -> None:
    """The tests that every read engine passes, which write to the drives."""
    if len(sys.argv) < 2:
        print("skipped: no program of tests was named", flush=True)
        return
    names = os.environ | {"TIERGRAPH_TEST_NVME_DRIVES": ",".join(devices())}
    run_tests = [sys.argv[1], "--test-threads=1", "--nocapture", *options]
    ended = subprocess.run(run_tests, env=names, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "skipped passthrough" not in ended.stdout, ended.stdout


def completions_are_polled_where_the_driver_has_queues_for_it() -> None:
    """The driver takes drives with poll queues: a ring polls, and the report says so."""
    Path("/sys/module/nvme/parameters/poll_queues").write_text("2")
    for address in ADDRESSES:
        for file in ("unbind", "bind"):
            Path(f"/sys/bus/pci/drivers/nvme/{file}").write_text(address)
    assert within(5, lambda: all(drive.devices for drive in tg.nvme_drives()))
    tg.write_drives(GRAPH, devices(), force=True)
    same_results(devices(), "passthrough")
    with tg.open(GRAPH, io=f"passthrough:{','.join(devices())}") as graph:
        graph.bfs(0)
        why = graph.last_run["io_engine_why"]
    expected = "completions are polled" if kernel_version() >= (6, 6) else "Linux 6.6 or newer"
    assert expected in why, why
    assert "not registered" not in why, why


def drives_that_passthrough_wrote_are_read_in_both_ways() -> None:
    """Each drive alone and both together, by the kernel's commands and by queue pairs."""
    for address, device in zip(ADDRESSES, devices(), strict=True):
        written = tg.write_drives(GRAPH, [device], force=True)
        assert written > 1 << 20, written
        refused(partial(tg.write_drives, GRAPH, [device]), "got a graph")
        same_results([device], "passthrough")
        if address == ADDRESSES[0]:
            same_results([address])
    tg.write_drives(GRAPH, devices(), force=True)
    same_results(devices(), "passthrough")
    same_batches(f"passthrough:{','.join(devices())}")
    same_results(ADDRESSES)


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
