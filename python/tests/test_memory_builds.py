"""Builds in little memory: one refusal says what is enough, and that is never exceeded."""

from __future__ import annotations

import json
import re

import limits
import numpy as np
import pytest
from shapes import FILES, SHAPES, SPAN

import tiergraph as tg

OPTIONS = {
    "directed": [],
    "undirected": ["--undirected", "--for", "both", "--dedup"],
    "mapped": ["--ids", "map", "--order", "none"],
    "raw": ["--codec", "raw", "--threads", "1"],
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Makes a file of the edges of a shape, once."""
    folder = tmp_path_factory.mktemp("shapes")

    def file(shape):
        made = folder / f"{shape.__name__}.npy"
        if shape in FILES:
            return shape()
        if not made.exists():
            np.save(made, np.stack(shape(), axis=1).astype(np.uint32))
        return made

    return file


def hinted(error):
    return int(re.search(r"hint: run with `--memory (\d+)MiB` or more", error)[1]) << 20


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("shape", [*SHAPES, *FILES])
def test_what_a_build_asks_for_is_enough_and_the_limit_of_its_process(
    files, tmp_path, shape, options
):
    command = ["build", files(shape), tmp_path / "g.tg", "--overwrite", *OPTIONS[options]]
    free = 1 << 40
    # Memory that ends before the first edge, and memory that ends in the middle of them.
    for little in ("1MiB", "30MiB"):
        refused = limits.tiergraph(*command, "--memory", little, limit=free)
        if refused.code == 0:
            break
        memory = hinted(refused.err)
        limit = memory + memory // 10 + limits.loaded_bytes("tiergraph.cli")
        done = limits.tiergraph(*command, "--json", "--memory", memory, limit=limit)
        assert (done.killed, done.code) == (False, 0), f"{refused.err}\n{done.err}"
        report = json.loads(done.out)
        assert report["peak_rss_bytes"] <= limit
        assert not list(tmp_path.glob("*tmp*"))
    assert tg.open(tmp_path / "g.tg").edges > 0


@pytest.mark.parametrize("memory", [64 << 20, 96 << 20])
def test_text_larger_than_memory_is_read_in_small_pieces(tmp_path, memory):
    random = np.random.default_rng(5)
    lines = "\n".join(f"{a} {b}" for a, b in random.integers(0, 20_000, (500_000, 2)).tolist())
    with open(tmp_path / "edges.txt", "w") as file:
        for _ in range(16):
            file.write(lines + "\n")
    command = ["build", tmp_path / "edges.txt", tmp_path / "g.tg", "--json", "--memory", memory]
    limit = memory + limits.loaded_bytes("tiergraph.cli")
    done = limits.tiergraph(*command, limit=limit + memory // 10)
    assert (done.killed, done.code) == (False, 0), done.err
    report = json.loads(done.out)
    assert report["edges_read"] == 8_000_000
    assert report["peak_rss_bytes"] <= limit


def test_pushed_batches_are_looked_at_to_the_end(tmp_path):
    def batches():
        for start in range(0, SPAN, SPAN // 8):
            yield np.arange(start, start + SPAN // 8), np.arange(start, start + SPAN // 8) // 2

    with pytest.raises(tg.BudgetError) as refused:
        tg.build(batches(), tmp_path / "g.tg", memory="32MiB")
    assert not list(tmp_path.iterdir())
    report = tg.build(batches(), tmp_path / "g.tg", memory=refused.value.enough_bytes)
    assert report["edges"] == SPAN
