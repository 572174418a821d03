"""Ctrl-C stops native work soon and leaves the interpreter usable; forks and waits do not hang."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

import tiergraph as tg

PROGRAM = """
import sys, tiergraph as tg
graph = tg.open(sys.argv[1])
print("running", flush=True)
try:
    graph.pagerank(iterations=10**9, tolerance=0.0)
except KeyboardInterrupt:
    print("stopped", graph.pagerank(iterations=1).size, flush=True)
"""

ENDLESS_BUILD = """
import sys, itertools, numpy as np, tiergraph as tg
def batches():
    for number in itertools.count():
        if number == 100:
            print("running", flush=True)
        yield np.arange(1000), np.arange(1000)[::-1].copy()
tg.build(batches(), sys.argv[1], memory="64MiB")
"""

FORKED = """
import os, sys, tiergraph as tg
graph = tg.open(sys.argv[1])
graph.pagerank(iterations=1)
child = os.fork()
if child == 0:
    print(graph.pagerank(iterations=1).size, flush=True)
    sys.exit()
sys.exit(os.waitpid(child, 0)[1])
"""

SLOW_ROWS = """
import sys, time, numpy as np, tiergraph as tg
def rows():
    time.sleep(1)
    yield np.zeros((8, 2), np.float32)
edges = ((np.arange(8), np.arange(8)[::-1].copy()) for _ in range(2))
print(tg.build(edges, sys.argv[1], features=rows())["edges"])
"""

PATIENCE_SECONDS = 20


@pytest.fixture
def graph(tmp_path):
    tg.generate("rmat", tmp_path / "g.tg", scale=14, seed=1)
    return tmp_path / "g.tg"


def interrupt(command):
    """Starts `command`, sends SIGINT once it says that it runs; its exit code and output."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    with process:
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return process.returncode, out, err


def heed_interrupts():
    """Shells start what runs in the background with SIGINT ignored, tests perhaps too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_a_run_raises_keyboard_interrupt_and_can_be_run_again(graph):
    code, out, _ = interrupt([sys.executable, "-c", PROGRAM, str(graph)])
    assert (code, out.split()) == (0, ["stopped", str(1 << 14)])


def test_the_command_ends_with_130(graph):
    program = (
        "import sys; from tiergraph.cli import main; print('running', flush=True); "
        "sys.exit(main(sys.argv[1:]))"
    )
    arguments = ["pagerank", str(graph), "--iterations", "1000000000", "--tolerance", "0"]
    code, _, err = interrupt([sys.executable, "-c", program, *arguments])
    assert code == 130
    assert err.strip().endswith("error: interrupted")
    assert "Traceback" not in err


def test_what_a_killed_build_left_is_removed_by_the_next(tmp_path):
    command = [sys.executable, "-c", ENDLESS_BUILD, str(tmp_path / "g.tg")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "running\n"
        left = f".g.tg.building-{process.pid}"
        assert [path.name for path in tmp_path.iterdir()] == [left]
        tg.generate("rmat", tmp_path / "g.tg", scale=8)
        assert {path.name for path in tmp_path.iterdir()} == {left, "g.tg"}, "it is being written"
        process.kill()
    assert (tmp_path / left).is_dir()
    tg.generate("rmat", tmp_path / "g.tg", scale=8, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["g.tg"]


def test_a_forked_process_opens_the_graph_again_and_ends(graph):
    command = [sys.executable, "-c", FORKED, str(graph)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert (done.returncode, done.stdout.split()) == (0, [str(1 << 14)]), done.stderr


def test_edges_that_end_before_the_first_row_comes_wait_for_it(tmp_path):
    command = [sys.executable, "-c", SLOW_ROWS, str(tmp_path / "g.tg")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert (done.returncode, done.stdout) == (0, "16\n"), done.stderr
