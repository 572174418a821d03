"""What the command line cannot use: an exit code, one message of ours, and nothing left behind."""

import os
import shutil

import numpy as np
import pytest

import tiergraph as tg
from tiergraph.cli import main

USAGE, REFUSED = 2, 1
EITHER = 0
"""Typer refuses it, or we do: that depends on Typer's version."""


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A folder with a small graph and files that are sound, damaged or something else."""
    folder = tmp_path_factory.mktemp("sources")
    rng = np.random.default_rng(1)
    edges = rng.integers(0, 50, (200, 2))
    np.save(folder / "edges.npy", edges)
    np.save(folder / "x.npy", rng.normal(size=(50, 4)).astype(np.float32))
    np.save(folder / "w.npy", rng.random(200))
    np.save(folder / "text.npy", np.array(["a", "b"]))
    np.save(folder / "object.npy", np.array([{}, None]), allow_pickle=True)
    np.save(folder / "cube.npy", np.ones((2, 2, 2)))
    (folder / "edges.txt").write_text("0 1\n1 2\n2 0\n")
    (folder / "words.txt").write_text("alice bob\nbob carol\n")
    (folder / "negative.txt").write_text("0 1\n-1 2\n")
    (folder / "large.txt").write_text("0 1\n1 99999999999999999999999\n")
    (folder / "empty.txt").write_text("")
    (folder / "binary.dat").write_bytes(bytes(range(256)) * 4)
    (folder / "damaged.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff{")
    (folder / "short.npy").write_bytes((folder / "edges.npy").read_bytes()[:200])
    (folder / "damaged.npz").write_bytes(b"PK\x03\x04 and nothing else")
    (folder / "damaged.parquet").write_bytes(b"PAR1 and nothing else PAR1")
    (folder / "odd.u32").write_bytes(b"12345")
    (folder / "folder").mkdir()
    tg.build(
        (edges[:, 0], edges[:, 1]), folder / "g.tg", vertices=50, features=folder / "x.npy",
        labels=np.arange(50) % 3, splits={"train": np.arange(20)},
    )  # fmt: skip
    tg.generate("rmat", folder / "plain.tg", scale=4)
    return folder


@pytest.fixture
def call(sources, tmp_path, monkeypatch, capfd):
    """Runs the command in a folder with the sources; exit code, stderr, and what is new there."""
    shutil.copytree(sources, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")

    def run(command):
        before = files()
        capfd.readouterr()
        code = main(command.split())
        return code, capfd.readouterr().err, sorted(files() - before)

    return run


def files():
    return {os.path.join(at, name) for at, _, names in os.walk(".") for name in names}


def each(prefix, cases):
    return [(f"{prefix} {arguments}".strip(), code, said) for arguments, code, said in cases]


BUILD = each("build", [
    ("", USAGE, "Missing argument"),
    ("edges.txt", USAGE, "Missing argument"),
    ("none.txt out.tg", REFUSED, "none.txt"),
    ("folder out.tg", REFUSED, "folder"),
    ("empty.txt out.tg --format graphalytics", REFUSED, "empty.txt"),
    ("words.txt out.tg", REFUSED, "words.txt"),
    ("negative.txt out.tg", REFUSED, "negative.txt"),
    ("large.txt out.tg", REFUSED, "large.txt"),
    ("binary.dat out.tg", REFUSED, "binary.dat"),
    ("damaged.npy out.tg", REFUSED, "damaged.npy"),
    ("short.npy out.tg", REFUSED, "short.npy"),
    ("cube.npy out.tg", REFUSED, "cube.npy"),
    ("text.npy out.tg", REFUSED, "text.npy"),
    ("object.npy out.tg", REFUSED, "object.npy"),
    ("damaged.npz out.tg", REFUSED, "damaged.npz"),
    ("damaged.parquet out.tg", REFUSED, "damaged.parquet"),
    ("odd.u32 out.tg", REFUSED, "odd.u32"),
    ("edges.txt out.tg --format xml", REFUSED, "xml"),
    ("edges.txt out.tg --weights 9", REFUSED, "9"),
    ("edges.txt out.tg --weights price", REFUSED, "price"),
    ("edges.txt plain.tg", REFUSED, "hint: `--overwrite` replaces it"),
    ("edges.txt no/such/out.tg", REFUSED, "no/such"),
    ("edges.txt out.tg --memory lots", REFUSED, "cannot read the size `lots`"),
    ("edges.txt out.tg --memory -5", REFUSED, "-5"),
    ("edges.txt out.tg --memory 1KiB", REFUSED, "--memory"),
    ("edges.txt out.tg --memory 99999999999999999999999", REFUSED, "9999"),
    ("edges.txt out.tg --threads 0", USAGE, "--threads"),
    ("edges.txt out.tg --threads 100000", USAGE, "1024"),
    ("edges.txt out.tg --threads many", USAGE, "--threads"),
    ("edges.txt out.tg --ids sparse", USAGE, "--ids"),
    ("edges.txt out.tg --order hot", USAGE, "--order"),
    ("edges.txt out.tg --codec zip", USAGE, "--codec"),
    ("edges.txt out.tg --for fun", USAGE, "--for"),
    ("edges.txt out.tg --block-size 5000", REFUSED, "4096"),
    ("edges.txt out.tg --block-size 0", REFUSED, "4096"),
    ("edges.txt out.tg --block-size 8TiB", REFUSED, "4096"),
    ("edges.txt out.tg --stripe no/such,there", REFUSED, "no/such"),
    ("edges.txt out.tg --no-such-flag", USAGE, "--no-such-flag"),
    ("edges.npy out.tg --features none.npy", REFUSED, "none.npy"),
    ("edges.npy out.tg --features damaged.npy", REFUSED, "damaged.npy"),
    ("edges.npy out.tg --features damaged.parquet", REFUSED, "damaged.parquet"),
    ("edges.npy out.tg --features damaged.npz", REFUSED, "damaged.npz"),
    ("edges.npy out.tg --features w.npy", REFUSED, "w.npy"),
    ("edges.npy out.tg --features text.npy", REFUSED, "text.npy"),
    ("edges.npy out.tg --features cube.npy", REFUSED, "cube.npy"),
    ("edges.npy out.tg --features folder", REFUSED, "folder"),
    ("edges.npy out.tg --features a/b=x.npy", REFUSED, "a/b"),
    ("edges.npy out.tg --feature-dtype f64 --features x.npy", USAGE, "--feature-dtype"),
    ("edges.npy out.tg --labels none.npy", REFUSED, "none.npy"),
    ("edges.npy out.tg --labels damaged.npy", REFUSED, "damaged.npy"),
    ("edges.npy out.tg --labels w.npy", REFUSED, "w.npy"),
    ("edges.npy out.tg --split none.npz", REFUSED, "none.npz"),
    ("edges.npy out.tg --split damaged.npz", REFUSED, "damaged.npz"),
    ("edges.npy out.tg --split damaged.npy", REFUSED, "damaged.npy"),
    ("edges.npy out.tg --split w.npy", REFUSED, "w.npy"),
    ("edges.npy out.tg --edge-values w=none.npy", REFUSED, "none.npy"),
    ("edges.npy out.tg --edge-values w=damaged.npy", REFUSED, "damaged.npy"),
    ("edges.npy out.tg --edge-values w=x.npy", REFUSED, "w"),
    ("edges.npy out.tg --edge-values w=edges.npy", REFUSED, "w"),
    ("edges.npy out.tg --edge-values w=text.npy", REFUSED, "`w`"),
    ("edges.npy out.tg --edge-values w", REFUSED, "NAME=FILE"),
    ("edges.npy out.tg --edge-values =w.npy", REFUSED, "NAME=FILE"),
    ("edges.npy out.tg --edge-values w=folder", REFUSED, "folder"),
    ("edges.npy out.tg --edge-features none.npy", REFUSED, "none.npy"),
    ("edges.npy out.tg --edge-features x.npy", REFUSED, "x.npy"),
    ("edges.npy out.tg --node-times t=none.npy", REFUSED, "none.npy"),
    ("edges.npy out.tg --node-times t=w.npy", REFUSED, "integers"),
    ("edges.npy out.tg --node-times t=damaged.npy", REFUSED, "damaged.npy"),
    ("edges.npy out.tg --node-times t", REFUSED, "NAME=FILE"),
])  # fmt: skip

GENERATE = each("generate", [
    ("", USAGE, "Missing argument"),
    ("ring out.tg", USAGE, "ring"),
    ("rmat out.tg", REFUSED, "scale"),
    ("rmat out.tg --scale 0", USAGE, "--scale"),
    ("rmat out.tg --scale 41", USAGE, "--scale"),
    ("rmat out.tg --scale 4 --edge-factor 0", USAGE, "--edge-factor"),
    ("uniform out.tg --vertices 5", REFUSED, "edges"),
    ("uniform out.tg --vertices 99999999999 --edges 4", REFUSED, "9999"),
    ("sbm out.tg --vertices 5", REFUSED, "expected `--communities`"),
    ("sbm out.tg --vertices 5 --communities 9", REFUSED, "expected `--mean-degree`"),
    ("sbm out.tg --vertices 9 --communities 3 --inside 2", USAGE, "--inside"),
    ("rmat out.tg --scale 4 --seed -1", USAGE, "--seed"),
    ("rmat out.tg --scale 4 --classes 0", USAGE, "--classes"),
    ("rmat out.tg --scale 4 --seed 99999999999999999999", REFUSED, "--seed"),
    ("rmat plain.tg --scale 4", REFUSED, "`--overwrite` replaces it"),
])  # fmt: skip

RUN = [
    *each("bfs", [
        ("g.tg", USAGE, "--source"),
        ("g.tg --source", USAGE, "--source"),
        ("g.tg --source a", REFUSED, "cannot use `--source a`: expected a vertex id"),
        ("g.tg --source 1.5", REFUSED, "cannot use `--source 1.5`"),
        ("g.tg --source -1", REFUSED, "cannot use `--source -1`: expected a vertex id"),
        ("g.tg --source 50", REFUSED, "50"),
        ("g.tg --source 18446744073709551615", REFUSED, "18446744073709551615"),
        ("g.tg --source 18446744073709551616", REFUSED, "cannot use `--source 1844674407370955161"),
        ("none.tg --source 0", REFUSED, "none.tg"),
        ("edges.txt --source 0", REFUSED, "expected a graph directory, got a file"),
        ("folder --source 0", REFUSED, "expected a graph directory"),
    ]),
    *each("sssp g.tg --source", [
        ("-1", REFUSED, "`--source -1`"), ("18446744073709551616", REFUSED, "`--source 18446"),
        ("x", REFUSED, "`--source x`"), ("99", REFUSED, "99"),
    ]),
    *each("pagerank g.tg", [
        ("--iterations 0", USAGE, "--iterations"),
        ("--iterations -1", USAGE, "--iterations"),
        ("--iterations ten", USAGE, "--iterations"),
        ("--damping 1.5", USAGE, "--damping"),
        ("--damping -0.1", USAGE, "--damping"),
        ("--damping nan", EITHER, "--damping"),
        ("--tolerance -1", USAGE, "--tolerance"),
        ("--tolerance nan", EITHER, "--tolerance"),
        ("--source 50", REFUSED, "50"),
        ("--source -1", REFUSED, "`--source -1`"),
        ("--source 18446744073709551616", REFUSED, "cannot use"),
        ("--top -1", USAGE, "--top"),
    ]),
    *each("wcc g.tg", [
        ("--memory a", REFUSED, "cannot read the size `a`"),
        ("--memory -5", REFUSED, "-5"),
        ("--memory 1", REFUSED, "--memory"),
        ("--memory 100000000000000000000", REFUSED, "100000000000000000000"),
        ("--threads 0", USAGE, "--threads"),
        ("--threads -3", USAGE, "--threads"),
        ("--threads 100000", USAGE, "1024"),
        ("--threads 1.5", USAGE, "--threads"),
        ("--io mmap", REFUSED, "mmap"),
        ("--device gpu", REFUSED, "gpu"),
        ("--device cuda:-1", REFUSED, "cuda:-1"),
        ("--device cuda:99999999999", REFUSED, "`--device cuda:99999999999`"),
        ("--transfers slow", USAGE, "--transfers"),
        ("-o out.xlsx", REFUSED, "out.xlsx"),
        ("-o no/such/out.csv", REFUSED, "no/such"),
        ("--trace no/such/trace.json", REFUSED, "no/such"),
        ("--top many", USAGE, "--top"),
        ("more.tg", USAGE, "unexpected extra argument"),
    ]),
    *each("info", [
        ("", USAGE, "Missing argument"), ("none.tg", REFUSED, "none.tg"),
        ("edges.txt", REFUSED, "edges.txt"), ("folder", REFUSED, "folder"),
    ]),
    *each("verify", [
        ("", USAGE, "Missing argument"), ("none.tg", REFUSED, "none.tg"),
        ("edges.txt", REFUSED, "edges.txt"),
    ]),
    *each("features checksum", [
        ("none.tg", REFUSED, "none.tg"),
        ("plain.tg", REFUSED, "`x`"),
        ("g.tg z", REFUSED, "`z`"),
        ("g.tg --memory 1", REFUSED, "--memory"),
    ]),
    *each("features order", [
        ("none.tg", REFUSED, "none.tg"),
        ("plain.tg", REFUSED, "`x`"),
        ("g.tg z", REFUSED, "`z`"),
        ("g.tg --by size", USAGE, "--by"),
        ("g.tg --fanout a", REFUSED, "25,10"),
        ("g.tg --fanout -7", REFUSED, "-7"),
        ("g.tg --batch-size 0", USAGE, "--batch-size"),
        ("g.tg --split dev", REFUSED, "dev"),
        ("g.tg --memory 1", REFUSED, "--memory"),
        ("g.tg --io mmap", REFUSED, "mmap"),
    ]),
    *each("edges add", [
        ("", USAGE, "Missing argument"),
        ("g.tg none.npy --values w=w.npy", REFUSED, "none.npy"),
        ("g.tg edges.npy --values w=none.npy", REFUSED, "none.npy"),
        ("g.tg edges.txt --values w=w.npy", REFUSED, "w"),
        ("g.tg edges.npy --values w=x.npy", REFUSED, "w"),
        ("g.tg edges.npy --values w", REFUSED, "NAME=FILE"),
        ("g.tg edges.npy --node-times t=x.npy", REFUSED, "t"),
        ("none.tg edges.npy --values w=w.npy", REFUSED, "none.tg"),
        ("g.tg edges.npy --values a/b=w.npy", REFUSED, "a/b"),
        ("g.tg edges.npy --values w=w.npy --memory 1", REFUSED, "--memory"),
    ]),
    *each("bench io", [
        ("none", REFUSED, "none"),
        ("x.npy --io mmap --seconds 0.01", REFUSED, "mmap"),
        ("x.npy --block-size 5 --seconds 0.01", REFUSED, "4.0 KiB"),
        ("x.npy --block-size lots", REFUSED, "lots"),
        ("x.npy --depth 0 --seconds 0.01", REFUSED, "depth"),
        ("x.npy --depth many", USAGE, "--depth"),
        ("x.npy --depth -1 --seconds 0.01", REFUSED, "depth"),
        ("x.npy --seconds 0", USAGE, "--seconds"),
        ("x.npy --threads 100000", USAGE, "1024"),
        ("empty.txt --seconds 0.01", REFUSED, "empty"),
    ]),
    *each("train", [
        ("none.tg", REFUSED, "none.tg"),
        ("plain.tg", REFUSED, "`tiergraph build --features x.npy`"),
        ("g.tg --model rnn", USAGE, "--model"),
        ("g.tg --fanout a", REFUSED, "25,10"),
        ("g.tg --epochs 0", USAGE, "--epochs"),
        ("g.tg --device gpu", REFUSED, "gpu"),
        ("g.tg --memory 1", REFUSED, "--memory"),
        ("g.tg --resume", REFUSED, "--checkpoint"),
        ("g.tg --links edges.npy", REFUSED, "--task link"),
        ("g.tg --curve no/such/curve.png", REFUSED, "no/such"),
    ]),
    ("", USAGE, "Usage"),
    ("fly", USAGE, "fly"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "code", "said"), [*BUILD, *GENERATE, *RUN])
def test_it_is_refused_with_one_message_and_leaves_nothing(call, command, code, said):
    if "parquet" in command:
        pytest.importorskip("pyarrow")
    if command.startswith("train"):
        pytest.importorskip("torch_geometric")
    found, err, left = call(command)
    assert found in ((USAGE, REFUSED) if code == EITHER else (code,)), err
    assert "Traceback" not in err
    assert "panicked" not in err
    assert left == []
    if code == EITHER:
        assert said in err
    if code == REFUSED:
        assert said in err
        assert err.count("error: ") == 1, err
        assert err.count("hint: ") <= 1, err
        assert "please report" not in err
