import json

import numpy as np
import pytest
from test_graph import RUN_KEYS

import tiergraph as tg
from tiergraph.cli import main


@pytest.fixture
def graph(tmp_path):
    """A generated, weighted graph."""
    path = tmp_path / "g.tg"
    arguments = ["generate", "rmat", str(path), "--scale", "10", "--edge-factor", "8"]
    assert main([*arguments, "--seed", "1", "--weights", "unit", "--json"]) == 0
    return str(path)


@pytest.fixture
def call(capfd):
    """Runs the command and returns its exit code, stdout and stderr."""

    def run(*arguments):
        capfd.readouterr()
        code = main([str(a) for a in arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return run


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (["pagerank", "--iterations", "3"], {"top"}),
        (["wcc"], {"components", "largest_component", "largest"}),
        (["bfs", "--source", "0"], {"source", "reached", "depth"}),
        (["sssp", "--source", "0"], {"source", "reached", "distance"}),
    ],
)
def test_json_is_one_object_with_everything_measured(call, graph, arguments, keys):
    code, out, _ = call(arguments[0], graph, *arguments[1:], "--memory", "256MiB", "--json")
    assert code == 0
    assert out.count("\n") == 1
    run = json.loads(out)
    assert set(run) >= RUN_KEYS | keys
    assert run["algorithm"] == arguments[0]
    assert run["vertices"] == 1024
    assert isinstance(run["seconds"], float)
    assert isinstance(run["bytes_read"], int)


def test_ceiling_adds_the_ceiling(call, graph):
    _, out, _ = call("wcc", graph, "--json", "--ceiling")
    assert json.loads(out)["read_ceiling"] > 0


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".parquet"])
def test_results_are_written_with_ids(call, graph, tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"depths{suffix}"
    code, _, err = call("bfs", graph, "--source", "0", "-o", path)
    assert (code, err.count("error")) == (0, 0)
    assert path.stat().st_size > 1024
    if suffix == ".npy":
        table = np.load(path)
        assert table["depth"][table["vertex"] == 0] == 0


def test_results_are_on_stdout_and_figures_on_stderr(call, graph):
    code, out, err = call("pagerank", graph, "--iterations", "3", "--top", "4")
    assert code == 0
    assert len(out.splitlines()) == 5
    assert "bytes_read" in err
    assert "bytes_read" not in out


def test_trace_is_written(call, graph, tmp_path):
    path = tmp_path / "run.json"
    assert call("wcc", graph, "--trace", path)[0] == 0
    assert json.loads(path.read_text())["traceEvents"]


def test_info_says_bytes_per_edge(call, graph):
    _, out, _ = call("info", graph, "--json")
    info = json.loads(out)
    assert info["vertices"] == 1024
    assert info["bytes_per_edge"]
    assert "bytes_per_edge" in call("info", graph)[1]


def test_verify_finds_a_flipped_bit(call, graph, tmp_path):
    assert call("verify", graph, "--json")[0] == 0
    (blocks,) = (tmp_path / "g.tg").glob("tiles.blocks*")
    damaged = bytearray(blocks.read_bytes())
    damaged[200] ^= 1
    blocks.write_bytes(damaged)
    code, out, err = call("verify", graph)
    assert code == 1
    assert "tiles.blocks" in out
    assert "1 places are damaged" in err
    code, out, _ = call("verify", graph, "--json")
    assert (code, len(json.loads(out)["damage"])) == (1, 1)


def test_build_prints_counts(call, tmp_path):
    edges = tmp_path / "edges.txt"
    edges.write_text("5 7\n7 9\n")
    code, out, _ = call("build", edges, tmp_path / "b.tg", "--ids", "map", "--json")
    stats = json.loads(out)
    assert code == 0
    assert (stats["vertices"], stats["edges"]) == (3, 2)


def test_bench_io_measures_and_says_what_plans_need(call, graph, tmp_path):
    code, out, _ = call(
        "bench", "io", graph, "--io", "posix", "--block-size", "64KiB", "--depth", "1,4",
        "--seconds", "0.05", "--json",
    )  # fmt: skip
    said = json.loads(out)
    rows, part = said["measured"], said["part"]
    assert code == 0
    assert said["tiergraph"] == tg.__version__
    assert [row["depth"] for row in rows] == [1, 4]
    assert set(rows[0]) >= {"engine", "block_bytes", "depth", "bandwidth", "iops"}
    assert part["reads_per_second"] == {"65536": round(max(row["iops"] for row in rows))}
    code, out, _ = call(
        "bench", "io", graph, "--io", "posix", "--block-size", "64KiB", "--depth", "1",
        "--seconds", "0.05",
    )  # fmt: skip
    drive = out[out.index("[drives.here]") :] + "dollars = 100\n"
    rest = """
        dollars_per_kwh = 0.1
        [machines.x]
        name = "x"
        dollars = 1
        drive_slots = 1
        link_bytes_per_second = 1e9
        watts = 1
        source = "x"
        [gpus.none]
        name = "x"
        dollars = 0
        source = "x"
        """
    (tmp_path / "parts.toml").write_text(rest + drive)
    job = {"batch_size": 1, "drive_bytes": 65536, "drive_reads": 1, "host_bytes": 0}
    job |= {"train_seconds": 1.0, "is_on_gpu": False}
    plan = tg.plan(job, machine="x", gpu="none", drive="here", parts=tmp_path / "parts.toml")
    assert plan.best.drive == "here"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["info", "none.tg"], "expected a graph directory"),
        (["build", "none.txt", "out.tg"], "none.txt"),
        (["bfs", "GRAPH", "--source", "99999"], "99999"),
        (["wcc", "GRAPH", "-o", "out.xlsx"], "expected a file name in"),
        (["wcc", "GRAPH", "--memory", "a lot"], "cannot read the size `a lot`"),
        (["wcc", "GRAPH", "--memory", "1KiB"], "cannot "),
    ],
)
def test_errors_are_one_message_and_exit_code_1(
    call, graph, tmp_path, monkeypatch, arguments, said
):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*[graph if a == "GRAPH" else a for a in arguments])
    assert (code, out) == (1, "")
    assert err.startswith("error: cannot ")
    assert said in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["pagerank"],
        ["fly"],
        ["bfs", "g.tg"],
        ["wcc", "g.tg", "--top", "-1"],
        ["wcc", "g.tg", "--no"],
    ],
)
def test_wrong_usage_is_exit_code_2(call, arguments):
    code, _, err = call(*arguments)
    assert code == 2
    assert "Usage" in err


def test_help_lists_the_commands(call):
    code, out, _ = call("--help")
    assert code == 0
    for command in [
        "generate",
        "build",
        "info",
        "verify",
        "pagerank",
        "wcc",
        "bfs",
        "sssp",
        "bench",
        "demo",
    ]:
        assert command in out


def test_demo_runs_everything_and_shows_it(call, tmp_path):
    code, out, _ = call("demo", "--scale", "12", "-C", tmp_path / "demo.tg", "--memory", "64MiB")
    assert code == 0
    for word in ("pagerank", "wcc", "bfs", "sssp", "ceiling", "peak RSS", "The highest PageRanks"):
        assert word in out


def test_notes_are_lines_on_stderr_and_in_the_json(call, tmp_path):
    edges = tmp_path / "edges.txt"
    edges.write_text("0 1\n1 0\n1 2\n2 1\n")
    code, out, err = call("build", edges, tmp_path / "g.tg", "--undirected", "--json")
    assert code == 0
    (note,) = json.loads(out)["notes"]
    assert note.endswith("`--dedup` keeps one of each")
    assert f"note: {note}\n" in err
    _, out, err = call("build", edges, tmp_path / "h.tg", "--undirected")
    assert "note: " in err
    assert "note" not in out


def test_the_version_and_completion_are_there(call):
    assert call("--version")[1] == f"tiergraph {tg.__version__}\n"
    assert "--install-completion" in call("--help")[1]


@pytest.mark.parametrize(
    "arguments",
    [["info"], ["pagerank"], ["wcc"], ["bfs", "--source", "1"], ["sssp", "--source", "1"]],
)
def test_tables_are_for_people(call, graph, arguments):
    code, out, err = call(arguments[0], graph, *arguments[1:])
    assert code == 0
    assert "{" not in out + err, "a dictionary"
    if arguments[0] != "info":
        assert len(out.splitlines()) == 11, "a header, and ten vertices or components"


def test_info_and_wcc_show_how_many_there_are_of_each_size(call, graph):
    opened = tg.open(graph)
    digits = [int(degree).bit_length() for degree in opened.degrees("in")]
    assert opened.degree_histogram("in") == np.bincount(digits).tolist()
    out = call("info", graph)[1]
    lines = [line.split() for line in out.splitlines()]
    assert ["in-degree", "vertices"] in lines
    zero = f"{digits.count(0):,}"
    assert any(line[:2] == ["0", zero] and line[2].startswith("█") for line in lines[-20:] if line)
    assert (
        json.loads(call("info", graph, "--json")[1])["degrees"]["in"]
        == np.bincount(digits).tolist()
    )
    err = call("wcc", graph)[2]
    assert ["vertices", "components"] in [line.split() for line in err.splitlines()]


def test_a_path_without_its_suffix_is_asked_about(call, graph):
    code, _, err = call("wcc", graph.removesuffix(".tg"))
    assert code == 1
    assert f"hint: did you mean `{graph}`?" in err
