"""Ids that are text: a graph has names, takes them for ids, and gives them back."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import numpy as np
import pytest

import tiergraph as tg
import tiergraph.measures
from tiergraph.cli import main

PAIRS = [("ann", "bob"), ("bob", "cy d"), ("cy d", "ann"), ("éva", "東京, 日本"), ("bob", 'a "q"')]
NAMES = ["ann", "bob", "cy d", "éva", "東京, 日本", 'a "q"']


def columns():
    """The pairs as two lists."""
    src, dst = zip(*PAIRS, strict=True)
    return list(src), list(dst)


def table():
    """The pairs as a table of pyarrow."""
    pyarrow = pytest.importorskip("pyarrow")
    src, dst = columns()
    return pyarrow.table({"src": src, "dst": dst})


def csv_text():
    """The pairs as CSV writes them."""
    quoted = [[f'"{name}"'.replace('a "q"', 'a ""q""') for name in pair] for pair in PAIRS]
    return "src,dst\n" + "".join(f"{a},{b}\n" for a, b in quoted)


def sources(folder):
    """The same pairs in all the ways in which they may come."""
    src, dst = columns()
    yield "lists", (src, dst)
    yield "arrays", (np.array(src), np.array(dst))
    yield "objects", (np.array(src, object), np.array(dst, object))
    yield "pairs", list(PAIRS)
    yield "batches", iter([(src[:2], dst[:2]), (src[2:], dst[2:])])
    (folder / "pairs.csv").write_text(csv_text(), encoding="utf-8")
    yield "csv", folder / "pairs.csv"
    with gzip.open(folder / "pairs.tsv.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{a}\t{b}\n" for a, b in PAIRS if '"' not in b)
        file.write('bob\t"a ""q"""\n')
    yield "tsv.gz", folder / "pairs.tsv.gz"
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return
    yield "table", table()
    encoded = pyarrow.table(
        {
            "src": pyarrow.array(["never", *src]).dictionary_encode()[1:],
            "dst": pyarrow.array(dst, pyarrow.large_string()),
        }
    )
    yield "dictionary", encoded
    parquet.write_table(table(), folder / "pairs.parquet", row_group_size=2)
    yield "parquet", folder / "pairs.parquet"


def test_every_source_of_names_gives_one_graph(tmp_path):
    seen = []
    for kind, source in sources(tmp_path):
        path = tmp_path / f"{kind}.tg"
        stats = tg.build(source, path, ids="names")
        assert stats["vertices"] == len(NAMES), kind
        with tg.open(path) as graph:
            assert graph.names is not None
            assert graph.names[:] == NAMES, kind
            pairs = [
                (graph.names[int(a)], graph.names[int(b)])
                for src, dst in graph.edge_batches()
                for a, b in zip(src, dst, strict=True)
            ]
            assert sorted(pairs) == sorted(PAIRS), kind
        seen.append(kind)
    assert seen[:4] == ["lists", "arrays", "objects", "pairs"]
    assert len(seen) >= 7


@pytest.fixture
def named(tmp_path):
    """A graph of the pairs."""
    tg.build(columns(), tmp_path / "g.tg")
    return tg.open(tmp_path / "g.tg")


def test_names_are_found_and_read_in_parts(named):
    names = named.names
    assert len(names) == 6
    assert names[-1] == 'a "q"'
    assert names[1:3] == ["bob", "cy d"]
    assert list(names) == NAMES
    assert names.of(np.array([5, 0])) == ['a "q"', "ann"]
    assert names.find("東京, 日本") == 4
    assert names.find(["éva", "ann"]).tolist() == [3, 0]
    assert names.known(["éva", "zed", "ann", "\ud800"]) == {"éva": 3, "ann": 0}
    assert names.known([f"n{i}" for i in range(100)] + ["bob"]) == {"bob": 1}
    assert names.known([]) == {}
    with pytest.raises(IndexError, match="vertex 6 of 6"):
        names[6]
    with pytest.raises(tg.InputError, match="find vertex `zed`: expected one of the graph's 6"):
        names.find("zed")


def test_vertices_may_be_given_by_name(named):
    assert named.bfs("ann").tolist() == named.bfs(0).tolist()
    assert named.sssp("bob").tolist() == named.sssp(1).tolist()
    assert named.neighbors("bob").tolist() == [2, 5]
    ranks = named.pagerank(sources=["ann", "bob"], iterations=5)
    assert ranks.tolist() == named.pagerank(sources=[0, 1], iterations=5).tolist()
    found = named.betweenness(sources=["ann"])
    assert found.tolist() == named.betweenness(sources=[0]).tolist()
    assert next(named.random_walks(["ann"], length=2))[0, 0] == 0
    for ask in (lambda: named.bfs("zed"), lambda: named.pagerank(sources=["ann", "zed"])):
        with pytest.raises(tg.InputError, match="find vertex `zed`"):
            ask()


def test_a_graph_without_names_says_so(six):
    assert six.names is None
    with pytest.raises(tg.InputError, match="expected a graph with names"):
        six.bfs("ann")


def test_results_have_names_beside_ids(named, tmp_path):
    assert named.table(depth=named.bfs("ann"))["name"].to_pylist() == NAMES
    for suffix in (".parquet", ".arrow", ".csv"):
        out = tmp_path / f"depth{suffix}"
        command = ["bfs", named.path, "--source", "ann", "-o", str(out)]
        assert main(command) == 0
        assert read(out)["name"] == NAMES, suffix


def read(path):
    """The columns of a table in a file."""
    import pyarrow.csv
    from pyarrow import feather, parquet

    readers = {
        ".parquet": parquet.read_table,
        ".arrow": feather.read_table,
        ".csv": pyarrow.csv.read_csv,
    }
    return readers[path.suffix](path).to_pydict()


def test_the_command_line_takes_and_shows_names(named, capsys):
    assert main(["bfs", named.path, "--source", "ann", "--json"]) == 0
    top = json.loads(capsys.readouterr().out)["top"][0]
    assert (top["vertex"], top["name"]) == (2, "cy d")
    assert main(["pagerank", named.path, "--source", "ann", "--source", "bob"]) == 0
    assert "ann" in capsys.readouterr().out
    assert main(["bfs", named.path, "--source", "0"]) == 1
    assert "find vertex `0`: expected one of the graph's 6 names" in capsys.readouterr().err


def test_a_part_keeps_its_names(named, tmp_path):
    named.subgraph(["ann", "bob", "cy d"], tmp_path / "part.tg")
    with tg.open(tmp_path / "part.tg") as part:
        assert sorted(part.names) == ["ann", "bob", "cy d"]
        assert part.edges == 3


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_names_survive_an_export(named, tmp_path, suffix):
    named.export(tmp_path / f"edges{suffix}")
    tg.build(tmp_path / f"edges{suffix}", tmp_path / "again.tg", ids="names")
    with tg.open(tmp_path / "again.tg") as again:
        assert sorted(again.names) == sorted(NAMES)
        names = again.names[:]
        pairs = [
            (names[a], names[b])
            for src, dst in again.edge_batches()
            for a, b in zip(src.tolist(), dst.tolist(), strict=True)
        ]
        assert sorted(pairs) == sorted(PAIRS)


def test_exports_that_cannot_hold_names_are_refused(tmp_path):
    tg.build((["a\nb"], ["c"]), tmp_path / "g.tg")
    with tg.open(tmp_path / "g.tg") as graph:
        with pytest.raises(tg.InputError, match="names of one line"):
            graph.export(tmp_path / "g.csv")
        with pytest.raises(tg.InputError, match=r"`\.csv` or `\.parquet`, for names"):
            graph.export(tmp_path / "g.txt")
    assert not list(tmp_path.glob("*.csv"))


def test_networkx_has_names_as_nodes(named):
    networkx = pytest.importorskip("networkx")
    assert sorted(named.to_networkx().edges()) == sorted(PAIRS)
    ranks = networkx.pagerank(named, backend="tiergraph")
    assert set(ranks) == set(NAMES)
    lengths = networkx.single_source_shortest_path_length(named, "ann", backend="tiergraph")
    assert lengths == {"ann": 0, "bob": 1, "cy d": 2, 'a "q"': 2}


def test_values_of_edges_go_with_names(tmp_path):
    values = np.arange(5)
    for kind, source in sources(tmp_path):
        if kind == "batches":
            continue
        path = tmp_path / f"{kind}.tg"
        stats = tg.build(source, path, ids="names", edge_values={"at": values})
        assert stats["edge_values"] == {"at": "i64"} or "at" in stats["edge_values"], kind


def test_values_of_edges_are_added_to_names_later(tmp_path):
    values = np.arange(5, dtype=np.int64) * 10
    for kind, source in sources(tmp_path):
        built, added = (tmp_path / f"{kind} {how}.tg" for how in ("built", "added"))
        given = list(source) if kind == "batches" else source
        tg.build(given, built, ids="names", layouts="both", edge_values={"at": values})
        tg.build(given, added, ids="names", layouts="both")
        with pytest.raises(tg.InputError, match=r"every|edges"):
            tg.add_edge_values(added, ([NAMES[0]], [NAMES[1]]), values={"at": [1]})
        assert tg.add_edge_values(added, given, values={"at": values})["edge_values"] == {
            "at": "i64"
        }
        files = sorted(path.name for path in (built / "edges").iterdir())
        assert files == sorted(path.name for path in (added / "edges").iterdir()), kind
        for name in files:
            same = (built / "edges" / name).read_bytes() == (added / "edges" / name).read_bytes()
            assert same or name.endswith(".rows"), (kind, name)


def test_values_of_edges_of_other_names_are_refused_and_nothing_is_added(named):
    src, dst = columns()
    with pytest.raises(tg.InputError, match=r"vertex `zoe`: expected one of the graph's 6 names"):
        tg.add_edge_values(named.path, ([*src[:-1], "zoe"], dst), values={"at": np.arange(5)})
    with pytest.raises(tg.BudgetError, match="names of vertices"):
        tg.add_edge_values(named.path, (src, dst), values={"at": np.arange(5)}, memory=1000)
    assert tg.open(named.path).info()["edge_values"] == {}


def test_measures_take_names(named):
    assert tg.measures.similar(named, "ann") == tg.measures.similar(named, 0)
    walk = tg.measures.random_walk_with_restart
    assert walk(named, "ann", top=3) == walk(named, 0, top=3)


@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        (([1, 2], ["a", "b"]), {}, "all integers, or all text, got both"),
        ((["a", 1], ["b", "c"]), {}, "expected text, as the ids before it"),
        ((["a"], ["b"]), {"ids": "map"}, "ids='map'`: expected integers, got text"),
        (([1], [2]), {"ids": "names"}, "ids='names'`: expected text, got integers"),
        ((["a\ud800"], ["b"]), {}, "use the id"),
    ],
)
def test_ids_of_other_kinds_are_refused(tmp_path, source, options, expected):
    if isinstance(source[0][0], str) and isinstance(source[0][-1], int):
        source = tuple(np.array(column, object) for column in source)
    with pytest.raises(tg.InputError, match=expected):
        tg.build(source, tmp_path / "g.tg", **options)
    assert not (tmp_path / "g.tg").exists()


def test_columns_of_two_kinds_are_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    mixed = pyarrow.table({"src": ["a"], "dst": [1]})
    with pytest.raises(tg.InputError, match="`Table:src`: expected integers"):
        tg.build(mixed, tmp_path / "g.tg")
    missing = pyarrow.table({"src": ["a", None], "dst": ["b", "c"]})
    with pytest.raises(tg.InputError, match="no missing values"):
        tg.build(missing, tmp_path / "g.tg")


def test_more_names_than_the_memory_holds_are_refused(tmp_path):
    names = [f"{i:0300}" for i in range(40_000)]
    with pytest.raises(tg.BudgetError, match="the names of vertices"):
        tg.build((names[:-1], names[1:]), tmp_path / "g.tg", memory="40MiB")
    assert not (tmp_path / "g.tg").exists()


def components_of(found):
    """Sets of what belongs together."""
    rows = found.table().to_pydict()
    sets: dict = {}
    for vertex, component in zip(rows["vertex"], rows["component"], strict=True):
        sets.setdefault(component, set()).add(vertex)
    return sets


def test_components_of_names_are_called_by_the_first(tmp_path):
    expected = {'a "q"': {"ann", "bob", "cy d", 'a "q"'}, "éva": {"éva", "東京, 日本"}}
    for kind, source in sources(tmp_path):
        text = kind in ("csv", "tsv.gz")
        found = tg.components(source, ids="names" if text else None)
        assert components_of(found) == expected, kind
        assert (found.pairs, found.components, found.largest, len(found)) == (5, 2, 4, 6), kind


def test_components_of_integers_are_wcc_of_the_graph(tmp_path):
    rng = np.random.default_rng(5)
    src, dst = rng.integers(0, 2**63, (2, 300))[:, rng.integers(0, 300, 400)] | 1
    tg.build((src, dst), tmp_path / "g.tg", ids="map")
    with tg.open(tmp_path / "g.tg") as graph:
        expected = dict(zip(graph.ids.tolist(), graph.wcc().tolist(), strict=True))
    np.savetxt(tmp_path / "pairs.txt", np.stack([src, dst], 1), fmt="%d")
    for source in ((src, dst), tmp_path / "pairs.txt"):
        found = tg.components(source)
        mine = found.table().to_pydict()
        assert dict(zip(mine["vertex"], mine["component"], strict=True)) == expected
        for suffix in (".parquet", ".csv", ".npy"):
            found.write(str(tmp_path / f"out{suffix}"))
        written = np.load(tmp_path / "out.npy")
        assert dict(written.tolist()) == expected


def test_isolated_vertices_of_a_file_are_components_of_their_own(tmp_path):
    (tmp_path / "a.adj").write_text("1 2\n2 1\n9\n")
    found = tg.components(tmp_path / "a.adj", format="adjacency")
    assert components_of(found) == {1: {1, 2}, 9: {9}}
    (tmp_path / "a.graph-txt").write_text("4\n1\n\n\n\n")
    found = tg.components(tmp_path / "a.graph-txt")
    assert components_of(found) == {0: {0, 1}, 2: {2}, 3: {3}}
    assert found.pairs == 1


def test_components_on_the_command_line(tmp_path):
    def run(*arguments, given=None):
        return subprocess.run(
            [sys.executable, "-m", "tiergraph", "components", *map(str, arguments)],
            input=given,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    out = tmp_path / "out.csv"
    piped = run("-", "--ids", "names", "-o", out, "--json", given=csv_text())
    assert piped.returncode == 0, piped.stderr
    assert json.loads(piped.stdout)["components"] == 2
    assert '"bob","a ""q"""' in out.read_text(encoding="utf-8")
    wrong = run(tmp_path / "none.csv")
    assert wrong.returncode == 1
    assert "cannot read" in wrong.stderr
    refused = run("-", "-o", tmp_path / "out.npy", "--ids", "names", given="a b\n")
    assert "expected a file of texts, got one of numbers" in refused.stderr
    # Before anything is read.
    refused = run(tmp_path / "none.csv", "-o", tmp_path / "out.npy", "--ids", "names")
    assert "expected a file of texts, got one of numbers" in refused.stderr
    assert "`.csv` hold names" in refused.stderr


def test_components_keep_within_their_memory():
    src = np.arange(2_000_000)
    with pytest.raises(tg.BudgetError):
        tg.components((src, src + 1), memory="40MiB")
    assert tg.components((src, src + 1), memory="160MiB").components == 1


def test_files_by_pattern_packed_and_through_pipes(tmp_path):
    for number in range(3):
        with gzip.open(tmp_path / f"part-{number}.csv.gz", "wt") as file:
            file.write(f"src,dst\n{number},{number + 1}\n")
    stats = tg.build(tmp_path / "part-*.csv.gz", tmp_path / "all.tg")
    assert (stats["vertices"], stats["edges"]) == (4, 3)
    command = [sys.executable, "-m", "tiergraph", "build", "-", str(tmp_path / "pipe.tg")]
    packed = gzip.compress(b"0 1\n1 2\n2 3\n")
    subprocess.run(command, input=packed, check=True, capture_output=True)
    with tg.open(tmp_path / "pipe.tg") as piped, tg.open(tmp_path / "all.tg") as whole:
        assert piped.edges == 3
        assert piped.bfs(0).tolist() == whole.bfs(0).tolist() == [0, 1, 2, 3]
    with pytest.raises(tg.InputError, match="expected a file, or a pattern of files, got none"):
        tg.build(tmp_path / "none-*.csv", tmp_path / "none.tg")
    other = subprocess.run(
        [*command[:-1], str(tmp_path / "no.tg"), "--format", "npy"],
        input=b"",
        capture_output=True,
        check=False,
    )
    assert b"expected a file, for the format `npy`, got a pipe" in other.stderr
