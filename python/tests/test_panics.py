"""Panics, calls from within calls, and threads that cannot be started are errors of ours."""

import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import tiergraph as tg
from tiergraph import _native


@pytest.fixture
def graph(tmp_path):
    tg.generate("rmat", tmp_path / "g.tg", scale=10, seed=1)
    return tg.open(tmp_path / "g.tg", memory="64MiB")


@pytest.mark.parametrize("place", ["call", "team", "scoped", "here"])
def test_a_panic_is_an_exception_that_asks_for_a_report(place, capfd):
    with pytest.raises(tg.InternalError, match="a panic was asked for") as caught:
        _native.panic(place)
    said = str(caught.value)
    assert "crates/py/src/panics.rs:" in said
    assert said.count("hint: ") == 1
    assert "please report" in said
    assert capfd.readouterr() == ("", "")


def test_one_panic_is_told_once():
    for _ in range(2):
        with pytest.raises(tg.InternalError) as caught:
            _native.panic("call")
        assert str(caught.value).count("asked for") == 1


def test_a_graph_used_from_its_own_progress_is_an_error(graph):
    def meddle(*_):
        graph.bfs(0)

    for run in (lambda: graph.bfs(0, progress=meddle), lambda: graph.wcc(progress=meddle)):
        with pytest.raises(tg.InputError, match="a call from within another on it"):
            run()
    assert graph.bfs(0)[0] == 0


def test_another_graph_may_be_used_meanwhile_but_not_to_come_back(graph):
    other, deepest = tg.open(graph.path, memory="64MiB"), []

    def to_other(*_):
        deepest.append(other.bfs(0)[0])

    assert graph.bfs(0, progress=to_other)[0] == 0
    assert set(deepest) == {0}

    def back(*_):
        graph.degrees()

    with pytest.raises(tg.InputError, match="call from within"):
        graph.bfs(0, progress=lambda *_: other.bfs(0, progress=back))
    assert other.bfs(0)[0] == 0


def test_a_signal_handler_that_uses_the_graph_is_an_error(graph):
    def handle(*_):
        graph.bfs(0)

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        with pytest.raises(tg.InputError, match="call from within"):
            graph.pagerank(iterations=2**31)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert graph.bfs(0)[0] == 0


def test_two_threads_take_turns(graph):
    expected, found = graph.bfs(0), []
    threads = [threading.Thread(target=lambda: found.append(graph.bfs(0))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(np.array_equal(depths, expected) for depths in found)


def test_ctrl_c_ends_a_wait_for_another_threads_call(graph):
    began, end = threading.Event(), threading.Event()

    def hold(*_):
        began.set()
        end.wait(30)

    holder = threading.Thread(target=lambda: graph.pagerank(iterations=3, progress=hold))
    holder.start()
    assert began.wait(30)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            graph.degrees()
    finally:
        signal.signal(signal.SIGALRM, before)
        end.set()
        holder.join()
    assert graph.bfs(0)[0] == 0


FEW = """
import resource, sys
import tiergraph as tg
graph = tg.open(sys.argv[1], memory="1GiB", threads=64)
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
most = held + (int(sys.argv[2]) << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
try:
    graph.pagerank(iterations=1)
    tg.generate("rmat", sys.argv[1] + ".more", scale=8, threads=64)
except tg.Error as error:
    print(type(error).__name__, error)
else:
    print("ran")
"""


@pytest.mark.parametrize("megabytes", [64, 100])
def test_threads_that_cannot_be_started_are_an_error(graph, megabytes):
    # A limit of addresses is one of threads' stacks.
    arguments = [sys.executable, "-c", FEW, graph.path, str(megabytes)]
    ended = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "panicked" not in ended.stderr
    assert ended.stdout.startswith("IoError cannot start"), ended.stdout
    assert "`threads`" in ended.stdout


def test_the_command_line_bounds_threads(graph):
    command = [sys.executable, "-m", "tiergraph", "wcc", graph.path, "--threads", "100000"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode in (1, 2)
    assert "1024" in ended.stderr
    assert "Traceback" not in ended.stderr
