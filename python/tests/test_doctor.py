"""`tiergraph doctor` says what this machine has, and what to do about the rest."""

import json
import os
import subprocess
import sys

import pytest

import tiergraph as tg


def test_everything_that_is_found_has_a_state_a_cost_and_a_way_to_get_it(tmp_path):
    findings = tg.doctor(tmp_path)
    names = [finding.name for finding in findings]
    assert names[:2] == ["io_uring", "direct reads"]
    assert len(set(names)) == len(names) == 14
    for finding in findings:
        assert all((finding.name, finding.found, finding.without, finding.hint)), finding
        assert "\n" not in finding.found
    assert os.listdir(tmp_path) == [], "it leaves nothing behind"


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    missing = tmp_path / "missing"
    found = {finding.name: finding for finding in tg.doctor(missing)}["direct reads"]
    assert not found.works
    assert "missing" in found.found


def test_the_limit_of_locked_memory_is_seen():
    code = (
        "import resource, tiergraph as tg;"
        "resource.setrlimit(resource.RLIMIT_MEMLOCK, (4096, 4096));"
        "found = {f.name: f for f in tg.doctor('/tmp')}['locked memory'];"
        "print(found.works, found.found)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False 4.0 KiB"


@pytest.mark.parametrize("as_json", [True, False])
def test_the_command_says_the_same(tmp_path, as_json):
    command = [sys.executable, "-m", "tiergraph", "doctor", str(tmp_path)]
    out = subprocess.run(
        command + ["--json"] * as_json, capture_output=True, text=True, check=True
    ).stdout
    for finding in tg.doctor(tmp_path):
        if as_json:
            same = next(f for f in json.loads(out)["findings"] if f["name"] == finding.name)
            assert same["works"] == finding.works
        else:
            assert finding.name in out
            assert finding.works or finding.hint in out
