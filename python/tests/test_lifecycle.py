"""Graphs and loaders are closed, forked and pickled, and go on where that makes sense."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from small_loaders import KINDS, VERTICES, build, build_hetero, everything, made, neighbors

import tiergraph as tg
from tiergraph import pyg

try:
    torch = pyg.torch()
    pyg.geometric("data")
except tg.InputError as error:
    pytest.skip(str(error), allow_module_level=True)

PATIENCE = 60
"""Seconds that a child may take: one that waits for threads that are not there takes for ever."""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return build(tmp_path_factory.mktemp("lifecycle") / "g.tg")


@pytest.fixture(scope="module")
def hetero(tmp_path_factory):
    return build_hetero(tmp_path_factory.mktemp("lifecycle") / "h.tg")


each_loader = pytest.mark.parametrize("kind", KINDS)


others: set[Path] = set()
"""Threads from before a test: Arrow's have the name of whoever began them, which may be ours."""


@pytest.fixture(autouse=True)
def note_others():
    others.clear()
    others.update(Path("/proc/self/task").iterdir())


def threads():
    """Threads of this process that the native part began in this test."""
    names = []
    for task in set(Path("/proc/self/task").iterdir()) - others:
        try:
            names.append((task / "comm").read_text().strip())
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            continue
    return [name for name in names if name.startswith("tiergraph-")]


def ended():
    """Whether all of them end: those of passes are not waited for."""
    until = time.monotonic() + PATIENCE
    while threads() and time.monotonic() < until:
        time.sleep(0.01)
    return not threads()


def files(path):
    """Files below `path` that this process has open."""
    opened = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            opened.append(os.readlink(descriptor))
        except FileNotFoundError:
            continue
    return [name for name in opened if name.startswith(str(path))]


def in_fork(work):
    """What `work` gives in a child that `os.fork` makes, which then ends as programs do."""
    sys.stdout.flush()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)
        try:
            said = pickle.dumps(work())
        except BaseException as error:
            said = pickle.dumps(f"{type(error).__name__}: {error}")
        with os.fdopen(write, "wb") as pipe:
            pipe.write(said)
        del work
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child ended with status {status}"
    return pickle.loads(said)


def test_a_closed_graph_lets_go_and_says_so(path):
    with tg.open(path, io="posix", memory="128MiB") as graph:
        assert graph.bfs(5).shape == (VERTICES,)
        features = graph.features["x"]
        assert files(path)
    assert not files(path)
    assert graph.closed
    graph.close()
    assert "closed" in repr(graph)
    ways = (
        lambda: graph.bfs(5),
        lambda: graph.ids,
        lambda: graph.vertices,
        lambda: graph.info(),
        lambda: features.read([5]),
        lambda: graph.degrees(),
        lambda: graph.labels,
    )
    for use in ways:
        with pytest.raises(tg.InputError, match=r"use the graph `.*g.tg`: .* closed\n\nhint: open"):
            use()


def test_a_dropped_graph_lets_go(path):
    graph = tg.open(path, io="posix", memory="128MiB")
    graph.wcc()
    features = graph.features
    assert files(path)
    del graph, features
    assert not files(path)
    assert ended()


def test_a_graph_is_closed_while_another_thread_computes(path):
    graph = tg.open(path, memory="128MiB")
    begun, seen = threading.Event(), []

    def compute():
        seen.append(graph.pagerank(iterations=50, progress=lambda *_: begun.set()))

    thread = threading.Thread(target=compute)
    thread.start()
    begun.wait(PATIENCE)
    graph.close()
    thread.join(PATIENCE)
    assert len(seen[0]) == VERTICES


@each_loader
def test_a_closed_loader_lets_go_and_says_so(kind, request):
    with made(kind, request, prefetch=20, io="posix") as loader:
        batches = iter(loader)
        next(batches)
        left = iter(loader)
        del left
    assert ended()
    assert not files(request.getfixturevalue(KINDS[kind][1]))
    assert list(batches) == []
    loader.close()
    for use in (loader.kept, lambda: iter(loader)):
        with pytest.raises(tg.InputError, match="closed"):
            use()


def test_a_loader_leaves_the_graph_that_it_was_given_open(path):
    graph = tg.open(path, memory="128MiB")
    neighbors(graph).close()
    assert graph.bfs(5)[0] == 0


@pytest.mark.parametrize("io", ["posix", "auto"])
def test_a_forked_graph_is_opened_again(path, io):
    graph = tg.open(path, memory="128MiB", io=io)
    expected, x = graph.bfs(5), graph.features["x"]
    rows = x.read([5, 7])

    def work():
        return graph.bfs(5), x.read([5, 7]), graph.ids[:2]

    found = in_fork(work)
    np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_array_equal(found[1], rows)
    np.testing.assert_array_equal(graph.bfs(5), expected)


def test_a_forked_child_ends_without_its_parents_threads(path):
    """What was opened is dropped in the child, too, where its threads are not."""
    held = [tg.open(path, memory="128MiB", io="posix"), neighbors(path, io="posix")]
    batches = iter(held[1])
    next(batches)
    held += [batches]

    def work():
        count = len(held)
        held.clear()
        return count

    del batches
    assert in_fork(work) == 3
    assert len(list(held[2])) == len(held[1]) - 1


@each_loader
def test_a_forked_loader_gives_the_same_batches(kind, request):
    loader = made(kind, request)
    first = everything(loader)
    running = iter(loader)
    next(running)
    loader.set_epoch(1)

    def work():
        return everything(loader)

    forked = in_fork(work)
    assert forked == everything(loader)
    assert forked != first
    refused = in_fork(lambda: next(running))
    assert refused.startswith("InputError: cannot use the batches of `epoch 1`")
    assert "hint: hand over the loader" in refused
    assert len(list(running)) == len(loader) - 1


@each_loader
def test_a_pickled_loader_gives_the_same_batches(kind, request):
    loader = made(kind, request)
    list(loader)
    copy = pickle.loads(pickle.dumps(loader))
    assert copy.epoch == loader.epoch == 1
    assert everything(copy) == everything(loader)
    assert copy.kept()["rows"] == loader.kept()["rows"]


def test_a_pickle_is_small_and_leads_to_the_graph_from_anywhere(path, tmp_path, monkeypatch):
    monkeypatch.chdir(path.parent)
    graph = tg.open("g.tg", memory="128MiB", threads=1)
    loader = neighbors(graph)
    said = pickle.dumps([graph, graph.features["x"], graph.labels, graph.splits, loader])
    assert len(said) < 5000
    hops, row = graph.bfs(5), graph.features["x"].read([5])
    monkeypatch.chdir(tmp_path)
    copy, x, labels, splits, again = pickle.loads(said)
    assert copy.path == str(path)
    np.testing.assert_array_equal(copy.bfs(5), hops)
    np.testing.assert_array_equal(x.read([5]), row)
    np.testing.assert_array_equal(labels["y"], np.arange(VERTICES) % 3)
    assert splits["train"].sum() == VERTICES // 2
    assert everything(again) == everything(loader)


def test_stores_are_pickled(path):
    stores = pytest.importorskip("tiergraph.stores").stores(path)
    features, edges = pickle.loads(pickle.dumps(stores))
    a, b = (s.get_tensor(group_name=None, attr_name="x", index=None) for s in (features, stores[0]))
    assert torch.equal(a, b)
    (row, _), (twin, _) = (
        s.get_edge_index(edge_type=None, layout="coo") for s in (edges, stores[1])
    )
    assert torch.equal(row, twin)


def test_another_graph_at_the_path_is_not_taken_for_the_one_that_was_pickled(path, tmp_path):
    tg.build((np.array([0]), np.array([1])), tmp_path / "g.tg")
    said = pickle.dumps(tg.open(tmp_path / "g.tg"))
    tg.build((np.array([0, 1]), np.array([1, 0])), tmp_path / "g.tg", overwrite=True)
    with pytest.raises(tg.InputError, match="expected the graph that it was"):
        pickle.loads(said).bfs(0)


def test_the_batches_of_an_epoch_are_not_pickled(path):
    with pytest.raises(tg.InputError, match="hint: hand over the loader"):
        pickle.dumps(iter(neighbors(path)))


def test_a_typed_graph_is_closed_and_pickled(hetero):
    with tg.open_hetero(hetero) as graph:
        copy = pickle.loads(pickle.dumps(graph))
        assert copy["a"].vertices == 50
        labels = graph["a"]
    for use in (lambda: labels.degrees(), lambda: graph["b"]):
        with pytest.raises(tg.InputError, match="closed"):
            use()


def labels_of(loader):
    """Module level, so that it can be pickled."""
    return [batch.y.tolist() for batch in loader]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_multiprocessing_take_a_loader(path, method):
    loader = neighbors(path)
    expected = labels_of(loader)
    loader.set_epoch(0)
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map_async(labels_of, [loader, loader]).get(PATIENCE)
    assert found == [expected, expected]


class Rows(torch.utils.data.Dataset):
    """Rows of features, as a dataset of PyTorch."""

    def __init__(self, graph):
        self.x, self.ids = graph.features["x"], graph.ids

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, place):
        return self.x.read(self.ids[place : place + 1])[0]


class Epoch(torch.utils.data.IterableDataset):
    """The batches of a loader, as a dataset of PyTorch."""

    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        return (batch.input_id for batch in self.loader)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_pytorch_take_graphs_and_loaders(path, method):
    graph = tg.open(path, memory="128MiB")
    expected = graph.features["x"].read(graph.ids)
    how = {"batch_size": 100, "multiprocessing_context": method, "timeout": PATIENCE}
    rows = torch.utils.data.DataLoader(Rows(graph), num_workers=2, **how)
    np.testing.assert_array_equal(torch.cat(list(rows)).numpy(), expected)
    loader = neighbors(path)
    seeds = torch.utils.data.DataLoader(Epoch(loader), num_workers=1, **how | {"batch_size": None})
    assert sorted(torch.cat(list(seeds)).tolist()) == list(range(VERTICES // 2))
