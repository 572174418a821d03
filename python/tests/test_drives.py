"""Raw NVMe drives, as far as any machine shows; `make nvme-test` has two drives and root."""

import json
import subprocess
import sys

import pytest

import tiergraph as tg

NOBODY = "ffff:ff:1f.7"
"""An address at which no machine has a drive."""


def test_the_drives_of_this_machine_are_listed_alike_by_both_interfaces():
    listed = subprocess.run(
        [sys.executable, "-m", "tiergraph", "drive", "list", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(listed.stdout)["drives"] == [drive._asdict() for drive in tg.nvme_drives()]


@pytest.mark.parametrize("address", ["0000:01", "x", "0000:01:00.8"])
def test_what_is_no_address_is_refused(address, tmp_path):
    with pytest.raises(tg.InputError, match="as in `0000"):
        tg.write_drives(tmp_path, [address])


def test_an_address_of_no_drive_is_refused(tmp_path):
    graph = tmp_path / "a.tg"
    tg.build((range(9), range(1, 10)), graph)
    for call in (
        lambda: tg.write_drives(graph, [NOBODY]),
        lambda: tg.release_drive(NOBODY),
        lambda: tg.open(graph, io=f"nvme:{NOBODY}"),
    ):
        with pytest.raises(tg.InputError, match=f"`{NOBODY}`.*got no device"):
            call()


@pytest.mark.parametrize(
    ("device", "got"),
    [
        ("/dev/ng4095n1", "got no device"),
        ("/dev/nvme4095n1", "`/dev/ng4095n1`.*got no device"),
        ("/dev/null", "got a device of class `mem`"),
        ("ng0n1", "such as `/dev/ng0n1`"),
    ],
)
def test_a_device_of_no_drive_is_refused(device, got, tmp_path):
    graph = tmp_path / "a.tg"
    tg.build((range(9), range(1, 10)), graph)
    with pytest.raises(tg.InputError, match=got):
        tg.open(graph, io=f"passthrough:{device}")
    with pytest.raises(tg.InputError, match=got if device.startswith("/") else "PCI address"):
        tg.write_drives(graph, [device])


def test_addresses_and_devices_together_are_refused(tmp_path):
    graph = tmp_path / "a.tg"
    tg.build((range(9), range(1, 10)), graph)
    with pytest.raises(tg.InputError, match="got some of each"):
        tg.write_drives(graph, [NOBODY, "/dev/ng0n1"])


def test_a_drive_that_is_named_twice_is_refused(tmp_path):
    graph = tmp_path / "a.tg"
    tg.build((range(9), range(1, 10)), graph)
    with pytest.raises(tg.InputError, match="each drive once"):
        tg.open(graph, io=f"nvme:{NOBODY},{NOBODY}")
    with pytest.raises(tg.InputError, match="each drive once"):
        tg.open(graph, io="passthrough:/dev/ng9n1,/dev/nvme9n1")


def test_a_command_names_its_own_commands(tmp_path):
    refused = subprocess.run(
        [sys.executable, "-m", "tiergraph", "drive", "write", str(tmp_path), NOBODY],
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert "hint: `tiergraph drive list` names them" in refused.stderr
