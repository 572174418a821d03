"""The demo's training: it runs and draws where PyTorch is, and says why it does not elsewhere."""

from __future__ import annotations

import pytest

import tiergraph as tg
from tiergraph import pyg
from tiergraph.cli.demo import training


def test_without_pytorch_it_says_what_to_do(monkeypatch, tmp_path, capsys):
    def missing(module):
        raise tg.InputError.of("use PyTorch and PyG", got=f"no {module}", hint="pip install torch")

    monkeypatch.setattr(training, "geometric", missing)
    training.train(10, tmp_path / "demo.tg")
    out = capsys.readouterr().out
    assert "Training is skipped" in out
    assert "make demo TRAIN=1" in out
    assert list(tmp_path.iterdir()) == []


def test_it_trains_and_draws(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    try:
        pyg.geometric("nn")
    except tg.InputError as error:
        pytest.skip(str(error))
    training.train(10, tmp_path / "demo.tg")
    assert "accuracy" in capsys.readouterr().out
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
