"""`tiergraph bench gpu` says what a GPU and the link to it give, and what plans need of that."""

from __future__ import annotations

import json

import pytest
from gpu_graphs import needs_gpu

import tiergraph as tg
from tiergraph.cli import main

SMALL = ["bench", "gpu", "--table", "1MiB", "--seconds", "0.001"]


@needs_gpu
def test_speeds_are_measured_and_a_part_of_plans(capsys):
    assert main([*SMALL, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["tiergraph"] == tg.__version__
    assert [row["row_bytes"] for row in said["rows"]] == [512, 1024, 2048, 4096]
    speeds = [said["copy_to_device"], said["fill_device"], said["submission_seconds"]]
    speeds += [row[key] for row in said["rows"] for key in ("from_host", "from_device")]
    assert all(speed > 0 for speed in speeds)
    assert said["part"]["link_bytes_per_second"] == round(said["rows"][-1]["from_host"])


@needs_gpu
def test_the_part_it_prints_is_one(capsys, tmp_path):
    assert main(SMALL) == 0
    out = capsys.readouterr().out
    assert "rows of 4096 bytes" in out
    rest = "\ndollars = 1\ndrive_slots = 1\nwatts = 1\n[gpus.x]\nname = 'x'\ndollars = 0\n"
    rest += "source = 'x'\n"
    parts = tmp_path / "parts.toml"
    parts.write_text("dollars_per_kwh = 0.1\n" + out[out.index("[machines.here]") :] + rest)
    job = {"batch_size": 1, "drive_bytes": 4096, "drive_reads": 1, "host_bytes": 0}
    job |= {"train_seconds": 1.0, "is_on_gpu": True}
    assert tg.plan(job, machine="here", gpu="x", drive="p5510", parts=parts).best.drives == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [(["--device", "cpu"], "`cuda` or `cuda:N`"), (["--table", "4KiB"], "1MiB or more")],
)
def test_what_is_no_gpu_or_no_table_is_refused(given, said, capsys):
    assert main([*SMALL, *given]) == 1
    assert said in capsys.readouterr().err
