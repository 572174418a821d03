"""Typed graphs whose edges have weights, times and features: batches follow the definition."""

from __future__ import annotations

import json
import shutil

import hetero_twin
import numpy as np
import pytest

import tiergraph as tg
from tiergraph import pyg
from tiergraph.cli import main

try:
    torch = pyg.torch()
    HeteroData = pyg.geometric("data").HeteroData
except tg.InputError as error:
    pytest.skip(str(error), allow_module_level=True)

NODES = {"paper": 500, "author": 200, "topic": 30}
WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "paper")
WRITTEN, ABOUT = ("paper", "written_by", "author"), ("paper", "about", "topic")
COVERS = ("topic", "covers", "paper")
EDGES = {WRITES: 3000, CITES: 6000, WRITTEN: 2000, ABOUT: 20_000, COVERS: 900}
"""Multigraphs; types have what `WEIGHTED`, `TIMED` and `WITH_FEATURES` say."""
WEIGHTED, TIMED, WITH_FEATURES = (WRITES, ABOUT), (CITES, ABOUT), (WRITES, CITES)
FANOUTS = [4, 3]
SEEDS = np.random.default_rng(1).permutation(NODES["paper"])[:90]
MEMORY = "256MiB"


@pytest.fixture(scope="module")
def edges():
    random = np.random.default_rng(2)
    edges = {
        t: (random.integers(0, NODES[t[0]], n), random.integers(0, NODES[t[2]], n))
        for t, n in EDGES.items()
    }
    # A hub whose values go over several pages.
    edges[ABOUT][1][:9000] = 0
    return edges


@pytest.fixture(scope="module")
def values():
    """Weights, times and features by edge type; times of papers and authors."""
    random = np.random.default_rng(3)
    return {
        "w": {t: random.choice([0, 0.5, 1, 4], EDGES[t]).astype(np.float32) for t in WEIGHTED},
        "time": {t: random.integers(-50, 50, EDGES[t]) for t in TIMED},
        "edge_attr": {
            t: random.normal(size=(EDGES[t], 3)).astype(np.float32) for t in WITH_FEATURES
        },
        "born": {name: random.integers(-50, 50, NODES[name]) for name in ("paper", "author")},
    }


def given(edges, values):
    """What `build_hetero` is told."""
    nodes = {name: {"vertices": count} for name, count in NODES.items()}
    for name, times in values["born"].items():
        nodes[name]["node_times"] = {"born": times}
    typed = {}
    for edge_type, ends in edges.items():
        columns = {name: values[name].get(edge_type) for name in ("w", "time")}
        typed[edge_type] = {
            "edges": ends,
            "edge_values": {n: column for n, column in columns.items() if column is not None},
            "edge_features": values["edge_attr"].get(edge_type),
        }
    return {"nodes": nodes, "edges": typed}


@pytest.fixture(scope="module")
def path(edges, values, tmp_path_factory):
    path = tmp_path_factory.mktemp("values") / "h.tg"
    tg.build_hetero(path, **given(edges, values))
    return path


@pytest.fixture(scope="module")
def orders(edges):
    """The user's edges in the order of arcs: by destination, source, and as they came."""
    return {t: np.lexsort((np.arange(len(s)), s, d)) for t, (s, d) in edges.items()}


def loader(path, **options):
    made = {"num_neighbors": FANOUTS, "input_nodes": ("paper", SEEDS), "batch_size": 20}
    return tg.NeighborLoader(path, **(made | {"shuffle": True, "memory": MEMORY} | options))


INPUT_TIME = np.random.default_rng(4).integers(-40, 60, len(SEEDS))
BY_TIME = {"time_attr": "time", "input_time": INPUT_TIME}
WAYS = {
    "weights": {"weight_attr": "w"},
    "disjoint": {"disjoint": True},
    "weights, disjoint": {"weight_attr": "w", "disjoint": True},
    "times": BY_TIME,
    "latest": BY_TIME | {"temporal_strategy": "last"},
    "weights and times": BY_TIME | {"weight_attr": "w"},
    "times of nodes": {"time_attr": "born"},
    "latest nodes": {"time_attr": "born", "temporal_strategy": "last", "input_time": INPUT_TIME},
}
"""By weights and times of some types, of others evenly."""


def twins_way(options, edges, values, orders):
    """The same for the twin: values by arc."""
    weights = values["w"] if "weight_attr" in options else {}
    name = options.get("time_attr")
    times = values["time"] if name == "time" else {}
    if name == "born":
        born = values["born"]
        times = {t: born[t[0]][ends[0]] for t, ends in edges.items() if t[0] in born}
    until = options.get("input_time")
    if name == "born" and until is None:
        until = values["born"]["paper"][SEEDS]
    by = {
        "weights": {t: column[orders[t]] for t, column in weights.items()},
        "times": {t: column[orders[t]] for t, column in times.items()},
        "strategy": options.get("temporal_strategy", "uniform"),
        "disjoint": "disjoint" in options or name is not None,
    }
    return by, until


@pytest.mark.parametrize(
    "how",
    [
        {"threads": 2},
        {"threads": 1, "memory": "80MiB", "window": 3, "io": "posix"},
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_batches_are_those_of_the_definition(path, edges, values, orders, way, how):
    options, seed, epoch = WAYS[way], 2**33 + 5, 3
    made = loader(path, seed=seed, **options, **how)
    made.set_epoch(epoch)
    adjacency = {t: hetero_twin.lists_of(*ends) for t, ends in edges.items()}
    fanouts = dict.fromkeys(EDGES, FANOUTS)
    by, until = twins_way(options, edges, values, orders)
    seen = []
    for number, data in enumerate(made):
        chosen = data["paper"].input_id.numpy()
        seen += chosen.tolist()
        of_seeds = None if until is None else until[chosen].tolist()
        twin = hetero_twin.By(**by, until=of_seeds)
        seeds = SEEDS[chosen].tolist()
        expected = hetero_twin.batch(
            list(NODES), adjacency, fanouts, "paper", seeds, number, seed, epoch, twin
        )
        n_id, trees, nodes, found = expected
        for name in NODES:
            assert data[name].n_id.tolist() == n_id[name]
            assert data[name].num_sampled_nodes == nodes[name]
            assert ("batch" in data[name]) == by["disjoint"]
            if by["disjoint"]:
                assert data[name].batch.tolist() == trees[name]
        for edge_type, arcs in found.items():
            store = data[edge_type]
            assert store.edge_index.tolist() == [arcs["row"], arcs["col"]]
            assert store.e_id.tolist() == numbered(orders, values, edge_type, arcs["e_id"])
            assert store.num_sampled_edges == arcs["counts"]
        if until is not None:
            assert data["paper"].seed_time.tolist() == of_seeds
    assert sorted(seen) == list(range(len(SEEDS)))


def numbered(orders, values, edge_type, arcs):
    """What `e_id` calls arcs: the user's edges, where there are values of them."""
    of_source = edge_type[0] in values["born"]
    has = of_source or any(edge_type in values[n] for n in ("w", "time", "edge_attr"))
    return orders[edge_type][arcs].tolist() if has else arcs


def test_batches_come_with_what_they_were_drawn_by(path, edges, values, orders):
    seen = 0
    for data in loader(path, **BY_TIME, weight_attr="w"):
        for edge_type, (src, dst) in edges.items():
            store = data[edge_type]
            e_id = store.e_id.numpy()
            if edge_type == COVERS:
                e_id = orders[edge_type][e_id]
            row, col = store.edge_index.numpy()
            np.testing.assert_array_equal(data[edge_type[0]].n_id.numpy()[row], src[e_id])
            np.testing.assert_array_equal(data[edge_type[2]].n_id.numpy()[col], dst[e_id])
            for name in ("w", "time", "edge_attr"):
                assert (name in store) == (edge_type in values[name])
                if edge_type in values[name]:
                    np.testing.assert_array_equal(store[name], values[name][edge_type][e_id])
            if edge_type in TIMED:
                until = data["paper"].seed_time[data[edge_type[2]].batch[col]].numpy()
                assert (store.time.numpy() <= until).all()
                seen += len(e_id)
    assert seen > 100
    data = next(iter(loader(path, time_attr="born", edge_features=None)))
    for name in NODES:
        assert ("born" in data[name]) == (name in values["born"])
    np.testing.assert_array_equal(data["paper"].born, values["born"]["paper"][data["paper"].n_id])
    assert not any("born" in data[t] or "edge_attr" in data[t] for t in EDGES)


@pytest.mark.parametrize("way", WAYS)
def test_one_type_gives_the_batches_of_an_ordinary_graph(edges, values, tmp_path, way):
    """Weights and features of papers' citations that the typed graph has not, too."""
    random = np.random.default_rng(5)
    ends, count = edges[CITES], NODES["paper"]
    columns = {"w": random.random(len(ends[0])), "time": values["time"][CITES]}
    rows, born = values["edge_attr"][CITES], {"born": values["born"]["paper"]}
    tg.build(
        ends,
        tmp_path / "o.tg",
        vertices=count,
        layouts="training",
        order="none",
        edge_values=columns,
        edge_features=rows,
        node_times=born,
    )
    one = {"edges": ends, "edge_values": columns, "edge_features": rows}
    nodes = {"paper": {"vertices": count, "node_times": born}}
    tg.build_hetero(tmp_path / "t.tg", nodes=nodes, edges={CITES: one})
    options = WAYS[way] | {"seed": 9}
    plain = loader(tmp_path / "o.tg", **options, input_nodes=SEEDS)
    typed = loader(tmp_path / "t.tg", **options, threads=1)
    for a, b in zip(typed, plain, strict=True):
        nodes, of_edges = a["paper"], a[CITES]
        for name in ("n_id", "batch", "born", "seed_time", "input_id"):
            assert (name in nodes) == (name in b), name
            assert name not in nodes or torch.equal(nodes[name], b[name])
        for name in ("edge_index", "e_id", "edge_attr", "w", "time"):
            assert (name in of_edges) == (name in b), name
            assert name not in of_edges or torch.equal(of_edges[name], b[name])


@pytest.mark.parametrize(
    ("way", "small"),
    [("weights, disjoint", "64MiB"), ("latest", "64MiB"), ("weights and times", "72MiB")],
)
def test_small_memory_reads_values_and_changes_no_batch(tmp_path, way, small):
    random, count = np.random.default_rng(7), 900_000
    typed = {}
    for edge_type in (CITES, ABOUT, COVERS):
        ends = [random.integers(0, NODES[edge_type[end]], count) for end in (0, 2)]
        columns = {"w": random.random(count), "time": random.integers(-50, 50, count)}
        typed[edge_type] = {"edges": tuple(ends), "edge_values": columns}
    typed[CITES]["edge_features"] = random.random((count, 2))
    nodes = {name: {"vertices": NODES[name]} for name in ("paper", "topic")}
    tg.build_hetero(tmp_path / "h.tg", nodes=nodes, edges=typed)
    found = []
    for memory in (small, "400MiB"):
        made = loader(tmp_path / "h.tg", **WAYS[way], memory=memory, threads=1, window=2)
        batches = [[data[t] for t in typed] for data in made]
        found.append([[(e.e_id.tolist(), e.edge_index.tolist()) for e in of] for of in batches])
        kept = made.kept()
        all_kept = kept["kept_values_bytes"] == kept["values_bytes"]
        assert (made.last_epoch["bytes_ssd_values"] == 0) == all_kept == (memory == "400MiB")
        for of in batches:
            for edge_type, edges in zip(typed, of, strict=True):
                w = typed[edge_type]["edge_values"]["w"][edges.e_id.numpy()].astype(np.float32)
                assert "w" not in edges or (edges.w.numpy() == w).all()
            rows = typed[CITES]["edge_features"][of[0].e_id.numpy()].astype(np.float32)
            assert (of[0].edge_attr.numpy() == rows).all()
    assert found[0] == found[1]


def test_seeds_of_a_type_without_times_are_given_theirs(path):
    with pytest.raises(tg.InputError, match="got one without the other"):
        loader(path, time_attr="born", input_nodes="topic")
    times = np.full(NODES["topic"], 10)
    made = loader(path, time_attr="born", input_nodes="topic", input_time=times)
    for data in made:
        assert (data["topic"].seed_time == 10).all()
        assert (data["paper"].born <= 10).all()


def test_a_source_with_more_nodes_than_its_destination_has_no_degrees(tmp_path):
    """The only type of edges: its sources have no neighbours of their own."""
    ends = np.arange(40), np.zeros(40, dtype=int)
    nodes = {"author": {"vertices": 40}, "paper": {"vertices": 1}}
    tg.build_hetero(tmp_path / "h.tg", nodes=nodes, edges={WRITES: ends})
    data = next(iter(tg.NeighborLoader(tmp_path / "h.tg", [-1], "paper", memory="128MiB")))
    assert data["author"].n_id.tolist() == list(range(40))


def test_pygs_data_brings_its_values(path, edges, values, tmp_path):
    data = HeteroData()
    for name, count in NODES.items():
        data[name].num_nodes = count
    for edge_type, ends in edges.items():
        store = data[edge_type]
        store.edge_index = torch.from_numpy(np.stack(ends))
        for name in ("w", "time", "edge_attr"):
            if edge_type in values[name]:
                store[name] = torch.from_numpy(values[name][edge_type])
    tg.build_hetero(tmp_path / "d.tg", data)
    options = BY_TIME | {"weight_attr": "w"}
    for a, b in zip(loader(path, **options), loader(tmp_path / "d.tg", **options), strict=True):
        for edge_type in set(EDGES) - {WRITTEN}:
            assert torch.equal(a[edge_type].e_id, b[edge_type].e_id)
            assert "w" not in a[edge_type] or torch.equal(a[edge_type].w, b[edge_type].w)
    for edge_type in TIMED:
        del data[edge_type].time
    data["paper"].time = torch.from_numpy(values["born"]["paper"])
    tg.build_hetero(tmp_path / "d.tg", data, overwrite=True)
    assert tg.open_hetero(tmp_path / "d.tg").node_info("paper")["node_times"] == ["time"]
    batch = next(iter(loader(tmp_path / "d.tg", time_attr="time")))
    assert torch.equal(batch["paper"].time, data["paper"].time[batch["paper"].n_id])
    tg.build_hetero(tmp_path / "d.tg", data, overwrite=True, dedup=True)
    assert tg.open_hetero(tmp_path / "d.tg").edge_info(WRITES)["edge_values"] == {}


def test_stored_values_come_in_the_types_that_have_them(path, values):
    for batch in loader(path):
        for edge_type in EDGES:
            store = batch[edge_type]
            assert "born" not in store, "times of nodes are no values of edges"
            for name in ("w", "time"):
                assert (name in store) == (edge_type in values[name])
                if name in store:
                    stored = torch.from_numpy(values[name][edge_type])
                    assert torch.equal(store[name], stored[store.e_id])
    batch = next(iter(loader(path, edge_values="w")))
    assert "w" in batch[WRITES]
    assert "time" not in batch[CITES]
    with pytest.raises(tg.InputError, match="one of time, w"):
        loader(path, edge_values="v")


def test_a_third_column_is_the_weight(edges, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    src, dst = edges[WRITES]
    weights = np.random.default_rng(6).random(len(src)).astype(np.float32)
    batches = [(src[:999], dst[:999], weights[:999]), (src[999:], dst[999:], weights[999:])]
    table = pyarrow.table({"src": src, "dst": dst, "weight": weights})
    nodes = {name: {"vertices": NODES[name]} for name in ("author", "paper")}
    for source in [(src, dst, weights), batches, table]:
        tg.build_hetero(tmp_path / "w.tg", nodes=nodes, edges={WRITES: source}, overwrite=True)
        assert tg.open_hetero(tmp_path / "w.tg").edge_info(WRITES)["edge_values"] == {
            "weight": "f32"
        }
        data = next(iter(loader(tmp_path / "w.tg", weight_attr="weight")))
        assert torch.equal(data[WRITES].weight, torch.from_numpy(weights)[data[WRITES].e_id])
        assert data[WRITES].weight.numel() > 20
    mixed = [batches[0], batches[1][:2]]
    with pytest.raises(
        tg.InputError, match="`author writes paper`: expected weights in every batch"
    ):
        tg.build_hetero(tmp_path / "m.tg", nodes=nodes, edges={WRITES: mixed})
    with pytest.raises(tg.InputError, match=r"`author writes paper`: .*read twice"):
        tg.build_hetero(tmp_path / "m.tg", nodes=nodes, edges={WRITES: iter(batches)})


def test_stripes_hold_the_blocks_and_end_with_the_graph(path, edges, values, tmp_path, capsys):
    stripes = [tmp_path / "a", tmp_path / "b"]
    for stripe in stripes:
        stripe.mkdir()
    made = given(edges, values) | {"stripe": [str(s) for s in stripes]}
    tg.build_hetero(tmp_path / "s.tg", **made, block_bytes=4096)
    rows = [list(stripe.rglob("in.rows")) for stripe in stripes]
    assert [len(files) for files in rows] == [len(NODES) + len(EDGES)] * 2
    options = BY_TIME | {"weight_attr": "w"}
    for a, b in zip(loader(tmp_path / "s.tg", **options), loader(path, **options), strict=True):
        assert all(torch.equal(a[t].e_id, b[t].e_id) for t in EDGES)
        assert torch.equal(a[CITES].edge_attr, b[CITES].edge_attr)
    assert main(["verify", str(tmp_path / "s.tg"), "--json"]) == 0
    assert not json.loads(capsys.readouterr().out.splitlines()[-1])["damage"]
    bad = made["edges"] | {WRITES: (np.array([999]), np.array([0]))}
    with pytest.raises(tg.InputError):
        tg.build_hetero(tmp_path / "x.tg", **(made | {"edges": bad}))
    assert [len(list(stripe.rglob("in.rows"))) for stripe in stripes] == [8, 8]
    tg.build((np.array([0]), np.array([1])), tmp_path / "s.tg", overwrite=True)
    assert not any(any(stripe.iterdir()) for stripe in stripes), "nothing is left behind"


def test_values_that_do_not_fit_are_refused_with_their_type(edges, values, tmp_path):
    whole = given(edges, values)

    def refused(match, **changes):
        typed = whole["edges"] | {WRITES: whole["edges"][WRITES] | changes}
        with pytest.raises(tg.InputError, match=match):
            tg.build_hetero(tmp_path / "h.tg", nodes=whole["nodes"], edges=typed)
        assert list(tmp_path.iterdir()) == [], "nothing is left behind"

    named = "`author writes paper`: "
    weights = values["w"][WRITES]
    refused(named + ".*a value for each of 3000 edges, got 2999", edge_values={"w": weights[1:]})
    refused(named + ".*a row for each of 3000", edge_features=np.ones((7, 2)))
    refused(named + ".*finite numbers, got NaN", edge_values={"w": weights * np.nan})
    refused(named + ".*got `born` in both", edge_values={"born": weights})
    refused(named + "expected a dictionary of edges, edge_values", weights=weights)
    refused(named + "expected `edges`", edges=None)
    nodes = whole["nodes"] | {"paper": {"vertices": 500, "node_times": {"born": np.arange(7)}}}
    with pytest.raises(tg.InputError, match="for each of 500 nodes of `paper`, got 7"):
        tg.build_hetero(tmp_path / "h.tg", nodes=nodes, edges=whole["edges"])


def test_damaged_values_are_told_by_their_file(path, tmp_path):
    copy = tmp_path / "copy.tg"
    shutil.copytree(path, copy)
    column = copy / "edge-3.tg" / "edges" / "in.w.f32"
    column.write_bytes(b"\xff" * column.stat().st_size)
    with pytest.raises(tg.FormatError, match=r"in\.w\.f32"):
        list(loader(copy, weight_attr="w"))
