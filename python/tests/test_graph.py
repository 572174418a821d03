import contextlib
import json

import numpy as np
import pytest
import reference

import tiergraph as tg

IDS = [10, 20, 30, 40, 70, 90]
RUN_KEYS = {
    "algorithm",
    "graph",
    "vertices",
    "edges",
    "device",
    "io_engine",
    "threads",
    "iterations",
    "seconds",
    "seconds_per_iteration",
    "edges_per_second",
    "bytes_read",
    "read_bandwidth",
    "resident_bytes",
    "residency",
    "peak_rss_bytes",
    "converged",
}


def test_a_graph_says_what_it_is(six):
    assert (six.vertices, six.edges, six.directed, six.weighted) == (6, 6, True, True)
    assert six.ids.tolist() == IDS
    assert "6 vertices, 6 edges, directed" in repr(six)
    info = six.info()
    assert info["vertices"] == 6
    assert info["bytes_per_edge"]


def test_a_graph_has_its_vertices_as_networkxs_have_nodes(six, tmp_path):
    assert list(six) == IDS
    assert (six.number_of_nodes(), six.number_of_edges()) == (6, 6)
    assert [v in six for v in (70, np.uint64(90), 7, 91, -1, 2**64, "70", [70])] == [True] * 2 + (
        [False] * 6
    )
    tg.build([(2**53, 2**53 + 1)], tmp_path / "far.tg", ids="map")
    with tg.open(tmp_path / "far.tg") as far:
        assert [v in far for v in range(2**53 - 1, 2**53 + 3)] == [False, True, True, False]
    tg.build([(0, 2)], tmp_path / "dense.tg", ids="dense")
    with tg.open(tmp_path / "dense.tg") as dense:
        assert [v in dense for v in range(4)] == [True, True, True, False]
    tg.build([("b", "a")], tmp_path / "named.tg")
    with tg.open(tmp_path / "named.tg") as named:
        assert list(named) == ["b", "a"]
        assert [v in named for v in ("a", "b", "c", 0)] == [True, True, False, False]


def test_what_only_a_graph_in_memory_has_says_where_it_is(six, tmp_path):
    for name in ("nodes", "adj", "degree"):
        assert not hasattr(six, name)
        with pytest.raises(AttributeError, match=rf"(?s)cannot use `{name}`.*to_networkx\(\)"):
            getattr(six, name)
    with pytest.raises(AttributeError, match="no attribute 'pagernk'"):
        _ = six.pagernk
    with pytest.raises(tg.InputError, match=r"(?s)cannot build from `Graph`.*edge_batches\(\)"):
        tg.build(six, tmp_path / "again.tg")


def test_degrees_are_in_the_order_of_the_ids(six):
    assert six.degrees().tolist() == [2, 1, 2, 0, 1, 0]
    assert six.degrees("in").tolist() == [1, 1, 2, 1, 0, 1]


def test_pagerank_matches_the_serial_one(six, edges):
    ranks = six.pagerank(iterations=20)
    expected = reference.pagerank(np.array(IDS), edges[0], edges[1], 20)
    np.testing.assert_allclose(ranks, expected, rtol=1e-5)
    assert six.last_run["iterations"] == 20


def test_pagerank_stops_at_its_tolerance(six, edges):
    ranks = six.pagerank(tolerance=1e-5)
    expected = reference.pagerank(np.array(IDS), edges[0], edges[1], 200)
    assert np.abs(ranks - expected).sum() < 1e-4
    assert six.last_run["converged"] is True


@pytest.mark.parametrize("order", ["none", "degree"])
@pytest.mark.parametrize("density", [0.7, 1])
def test_pagerank_of_a_hub_adds_up(tmp_path, order, density):
    """The hub's id is the highest, so edges that are stored once are all in its row."""
    hub = 800_000
    leaves = np.flatnonzero(np.random.default_rng(7).random(hub) < density)
    edges = np.stack([np.full_like(leaves, hub), leaves], axis=1)
    tg.build(edges, tmp_path / "g.tg", vertices=hub + 1, undirected=True, order=order)
    ranks = tg.open(tmp_path / "g.tg").pagerank(iterations=1)
    of_hub = 0.15 + 0.85 * (len(leaves) + (hub - len(leaves)) / (hub + 1))
    assert ranks[hub] * (hub + 1) == pytest.approx(of_hub, rel=2e-6)


def test_personalised_pagerank_stays_where_its_sources_reach(six):
    ranks = six.pagerank(iterations=30, sources=[70])
    assert ranks[:4].max() == 0
    assert ranks.sum() == pytest.approx(1, abs=1e-5)
    assert ranks[4] > ranks[5] > 0


def test_vertices_of_a_set_are_taken(six):
    listed = six.pagerank(sources=[10, 70])
    for given in ({70, 10}, frozenset([10, 70])):
        np.testing.assert_array_equal(six.pagerank(sources=given), listed)
    walks = [next(six.random_walks(starts, length=2)) for starts in ({70, 10}, [10, 70])]
    np.testing.assert_array_equal(*walks)


def test_components_are_named_by_their_smallest_id(six):
    assert six.wcc().tolist() == [10, 10, 10, 10, 70, 70]


def test_bfs_counts_hops_and_marks_the_unreachable(six):
    assert six.bfs(10).tolist() == [0, 1, 1, 2, -1, -1]
    assert six.bfs(90).tolist() == [-1, -1, -1, -1, -1, 0]


def test_sssp_adds_weights(six, edges):
    assert six.sssp(10).tolist() == [0.0, 1.0, 2.5, 6.5, np.inf, np.inf]
    np.testing.assert_array_equal(six.sssp(20), reference.sssp(IDS, *edges, 20))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_propagate_reduces_over_in_edges(six, dtype):
    x = np.arange(1, 7, dtype=dtype)
    total = six.propagate(x)
    assert total.dtype == dtype
    assert total.tolist() == [3, 1, 3, 3, 0, 5]
    assert six.propagate(x, reduce="min").tolist() == [3, 1, 1, 3, np.inf, 5]
    assert six.propagate(x, reduce="max").tolist() == [3, 1, 2, 3, -np.inf, 5]


def test_propagate_transposed_and_weighted(six):
    x = np.arange(1, 7, dtype=np.float64)
    assert six.propagate(x, transpose=True).tolist() == [5, 3, 5, 0, 6, 0]
    assert six.propagate(x, weights=True).tolist() == [1.5, 1, 6.5, 12, 0, 5]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [None, 3])
@pytest.mark.parametrize("codec", ["packed", "raw"])
def test_propagate_keeps_nan_as_numpy_does(tmp_path, dtype, width, codec):
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 40, (2, 90))
    tg.build((src, dst), tmp_path / "g.tg", vertices=40, codec=codec)
    x = rng.normal(size=40 if width is None else (40, width)).astype(dtype)
    x[rng.random(x.shape) < 0.2] = np.nan
    operations = {"sum": (np.add, 0), "min": (np.minimum, np.inf), "max": (np.maximum, -np.inf)}
    for reduce, (operation, identity) in operations.items():
        expected = np.full_like(x, identity)
        with np.errstate(invalid="ignore"):
            operation.at(expected, dst, x[src])
        found = tg.open(tmp_path / "g.tg").propagate(x, reduce=reduce)
        np.testing.assert_allclose(found, expected, rtol=1e-4, equal_nan=True, err_msg=reduce)
        assert np.isnan(found).any()


@pytest.mark.parametrize("undirected", [False, True])
def test_propagate_takes_memory_for_the_vertices_that_there_are(tmp_path, undirected):
    tg.build(([0, 1, 2], [1, 2, 0]), tmp_path / "g.tg", undirected=undirected)
    graph = tg.open(tmp_path / "g.tg", memory="44MiB", threads=2)
    for transpose in (False, True):
        y = graph.propagate(np.ones((3, 64)), transpose=transpose)
        assert (y == (2 if undirected else 1)).all()


def test_propagate_takes_matrices(six):
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    y = six.propagate(x)
    assert y.shape == (6, 2)
    np.testing.assert_array_equal(y[:, 1], six.propagate(np.ascontiguousarray(x[:, 1])))


@pytest.mark.parametrize("x", [np.zeros(5), np.zeros((6, 1, 1))])
def test_propagate_refuses_another_shape(six, x):
    with pytest.raises(tg.InputError, match=r"expected shape \(6,\) or \(6, F\)"):
        six.propagate(x)


def test_propagate_refuses_no_values(six):
    with pytest.raises(tg.InputError, match="expected some values for each of 6 vertices"):
        six.propagate(np.zeros((6, 0)))


def test_a_run_says_where_its_time_went(six):
    six.pagerank(iterations=2)
    assert set(six.last_run) >= RUN_KEYS
    assert six.last_run["algorithm"] == "pagerank"
    assert six.last_run["graph"] == six.path
    assert "read_ceiling" not in six.last_run or six.last_run["read_ceiling"] is None


def test_the_ceiling_is_measured_where_asked(six):
    six.ceiling = True
    six.wcc()
    assert six.last_run["read_ceiling"] > 0


def test_a_trace_is_a_chrome_trace(six, tmp_path):
    six.pagerank(iterations=2, trace=tmp_path / "run.json")
    trace = json.loads((tmp_path / "run.json").read_text())
    assert trace["traceEvents"]


def test_progress_tells_stage_done_total_unit(six):
    calls = []
    six.pagerank(iterations=3, progress=lambda *call: calls.append(call))
    stage, done, total, unit = calls[-1]
    assert isinstance(stage, str)
    assert isinstance(unit, str)
    assert 0 <= done <= total or total == 0


def test_what_progress_raises_stops_the_run(six):
    def raises(*_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        six.pagerank(iterations=1000, progress=raises)


@pytest.mark.parametrize("source", [11, -1, 2**40])
@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_an_unknown_source_is_refused(six, algorithm, source):
    with pytest.raises(tg.InputError, match=str(source)):
        getattr(six, algorithm)(source)


def test_without_weights_sssp_counts_hops(tmp_path):
    tg.build((np.array([0, 1]), np.array([1, 2])), tmp_path / "g.tg")
    assert tg.open(tmp_path / "g.tg").sssp(0).tolist() == [0.0, 1.0, 2.0]


def test_propagate_by_weights_needs_weights(tmp_path):
    tg.build((np.array([0, 1]), np.array([1, 2])), tmp_path / "g.tg")
    with pytest.raises(tg.InputError, match="weight"):
        tg.open(tmp_path / "g.tg").propagate(np.ones(3), weights=True)


def test_what_is_not_a_graph_is_refused(tmp_path):
    with pytest.raises(tg.InputError, match="expected a graph directory"):
        tg.open(tmp_path / "none.tg")
    with pytest.raises(tg.InputError, match="without `manifest"):
        tg.open(tmp_path)


def test_an_unknown_engine_is_refused(six):
    with pytest.raises(tg.InputError, match="carrier-pigeon"):
        tg.open(six.path, io="carrier-pigeon")


@pytest.mark.parametrize("undirected", [False, True])
def test_unchecked_damage_ends_in_an_answer_or_an_error(tmp_path, undirected):
    rng = np.random.default_rng(7)
    path, vertices = tmp_path / "g.tg", 3000
    ends = rng.integers(0, vertices, (2, 20_000)) ** 2 // vertices
    # Vertices without an edge, so that the last tile has columns that are none.
    tg.build(tuple(ends), path, undirected=undirected, vertices=vertices + 70, block_bytes="32KiB")
    file = path / "tiles.blocks"
    sound = file.read_bytes()
    answers = 0
    for at in rng.integers(0, len(sound), 250):
        damaged = bytearray(sound)
        damaged[at] ^= 1 << int(rng.integers(0, 8))
        file.write_bytes(damaged)
        for run in (
            tg.Graph.wcc,
            lambda graph: graph.sssp(1),
            lambda graph: graph.bfs(1),
            lambda graph: graph.propagate(np.ones(graph.vertices)),
        ):
            with contextlib.suppress(tg.FormatError):
                run(tg.open(path, checksums=False, threads=1))
                answers += 1
    assert answers > 250


def test_matrices_move_between_orders_in_parts(tmp_path):
    rng = np.random.default_rng(1)
    src, dst = rng.integers(0, 300_000, (2, 600_000))  # more vertices than a chunk of the order has
    tg.build((src, dst), tmp_path / "g.tg", vertices=300_000, order="degree")
    graph = tg.open(tmp_path / "g.tg", threads=3)
    x = rng.integers(0, 9, (graph.vertices, 3)).astype(np.float32)
    expected = np.zeros_like(x)
    np.add.at(expected, dst, x[src])
    np.testing.assert_array_equal(graph.propagate(x), expected)


@pytest.mark.parametrize("order", ["degree", "none"])
def test_ids_are_found_wherever_they_are(tmp_path, order):
    # Ids and the order take several of the chunks that are read to find one.
    ids = np.sort(np.random.default_rng(4).choice(10**12, 600_000, replace=False) * 2 + 5)
    path = tmp_path / "g.tg"
    partners = np.arange(len(ids)) ^ 1
    tg.build((ids, ids[partners]), path, ids="map", order=order)
    graph = tg.open(path)
    np.testing.assert_array_equal(graph.ids, ids)
    places = [0, 1, 131_071, 131_072, 262_143, 400_000, len(ids) - 1]
    for place in places:
        hops = graph.bfs(source=int(ids[place]))
        assert hops[place] == 0
        assert hops[place ^ 1] == 1
    alone = graph.pagerank(sources=ids[places].tolist(), damping=0.0)
    assert np.flatnonzero(alone).tolist() == places
    for missing in (0, int(ids[131_071]) + 1, int(ids[-1]) + 1):
        with pytest.raises(tg.InputError, match=f"find vertex `{missing}`"):
            graph.bfs(source=missing)


@pytest.mark.parametrize("codec", ["packed", "raw"])
def test_a_run_says_which_parts_of_the_file_were_in_memory(tmp_path, codec):
    tg.generate("rmat", tmp_path / "r.tg", scale=14, block_bytes=4096, codec=codec)
    with tg.open(tmp_path / "r.tg") as graph:
        graph.pagerank(iterations=2)
        whole = graph.last_run
        # Memory for the state, the buffers, and half of the blocks.
        reserved = graph.info()["reserved_bytes"] + (1 << 22)
    assert set(whole["residency"]["host"]) == {1.0}
    assert whole["residency"]["device"] == []
    with tg.open(tmp_path / "r.tg", memory=reserved) as graph:
        graph.pagerank(iterations=2)
        some = graph.last_run
    # Checksums are compared of what was read, and not of what stayed.
    assert 0 < whole["check_seconds"] < whole["compute_seconds"]
    assert some["check_seconds"] > 0
    shares = some["residency"]["host"]
    assert len(shares) == len(whole["residency"]["host"]) <= 128
    assert 0 <= min(shares) <= max(shares) <= 1
    in_memory = sum(shares) / len(shares) * some["pass_bytes"]
    # Parts differ by a block at most.
    assert in_memory == pytest.approx(some["resident_bytes"], abs=len(shares) * 4096)
