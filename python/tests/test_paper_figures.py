"""Hyperion's figures are drawn from rows that a run saved; here from made-up ones."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip(
    "matplotlib", reason="figures need matplotlib (`pip install 'tiergraph[train]'`)"
)

PAPER = Path(__file__).parents[2] / "bench" / "paper"


def io_rows():
    points = [(1, 4096), (12, 4096), (12, 512)]
    manners = [("split", 4), ("coupled", 1 << 16)]
    for (drives, row_bytes), (manner, blocks) in itertools.product(points, manners):
        rate = {"reads_per_second": drives * 7e5, "bytes_per_second": drives * 7e5 * row_bytes}
        what = {"manner": manner, "blocks": blocks, "drives": drives, "row_bytes": row_bytes}
        yield what | rate | {"iops": 750e3, "kind": "p5510", "gpu_share": 0.1}
    yield {"manner": "coupled", "blocks": 16, "drives": 12, "row_bytes": 512, "error": "none"}


def epoch_rows():
    times = {"prepare": 0.002, "train": 0.01, "together": 0.011, "apart": 0.015}
    for row_bytes, model in itertools.product((512, 4096), ("GraphSAGE", "GCN", "GAT")):
        for way in ("coupled", "gpu", "memory"):
            yield {"row_bytes": row_bytes, "model": model, "way": way, "drives": 12} | times


def placement_rows():
    names = ("unified", "GTCT", "GFCF", "GTCF", "GFCT", "share")
    for tenths, name in itertools.product((1, 5, 10), names):
        # Nothing is left to transfer where all fits.
        transactions = 0 if tenths == 10 else 1000 + len(name)
        yield {"tenths": tenths, "placement": name, "prepare": 0.01, "transactions": transactions}
    for left_out in ("no host cache", "no GPU cache", "no topology cache"):
        row = {"tenths": 5, "placement": "unified", "prepare": 0.012, "transactions": 2000}
        yield row | {"left_out": left_out}


def planner_rows():
    for host, drives in itertools.product((0.02, 0.2), (1, 4, 12)):
        row = {"figure": 14, "host": host, "drives": drives, "dollars": 45_275 + 308 * drives}
        row |= {"measured": 0.06 / drives, "predicted": 0.055 / drives, "best": 5}
        yield row | {"from_first": 0.054 / drives, "bottleneck": "drives"}
    for width in (32, 64):
        row = {"figure": 15, "width": width, "drives": 12, "bottleneck": "training"}
        yield row | {"measured": width / 1e3, "predicted": width / 1.1e3}


ROWS = {
    "hyperion_planner": planner_rows,
    "hyperion_io": io_rows,
    "hyperion_epochs": epoch_rows,
    "hyperion_pipeline": epoch_rows,
    "hyperion_placement": placement_rows,
}


def draw(name, rows, out):
    command = [sys.executable, PAPER / f"{name}.py", "--rows", rows, "--out", out]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("name", ROWS)
def test_figures_are_drawn_from_saved_rows(tmp_path, name):
    saved = tmp_path / "rows.jsonl"
    saved.write_text("".join(json.dumps(row) + "\n" for row in ROWS[name]()))
    drawn = draw(name, saved, tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("text", "why"), [("", "it has none"), ("{", "cannot draw"), (None, "No")])
def test_rows_that_cannot_be_drawn_are_told(tmp_path, text, why):
    saved = tmp_path / "rows.jsonl"
    if text is not None:
        saved.write_text(text)
    drawn = draw("hyperion_io", saved, tmp_path)
    assert drawn.returncode == 1
    assert why in drawn.stderr
    assert "Traceback" not in drawn.stderr
    assert not (tmp_path / "hyperion_io.png").exists()
