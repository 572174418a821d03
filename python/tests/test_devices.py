"""What a machine without a GPU says, and that it goes on."""

from __future__ import annotations

import numpy as np
import pytest

import tiergraph as tg


def has_gpu() -> bool:
    try:
        return bool(tg.cuda_devices())
    except tg.DeviceError:
        return False


without_gpu = pytest.mark.skipif(has_gpu(), reason="there is a GPU here: test_gpu.py uses it")


@without_gpu
def test_no_gpu_is_a_clear_error_and_the_cpu_goes_on(tmp_path, edges):
    tg.build(edges, tmp_path / "g.tg", ids="map")
    with pytest.raises(tg.DeviceError, match=r'hint: .*`device="cpu"`'):
        tg.open(tmp_path / "g.tg", device="cuda")
    assert tg.open(tmp_path / "g.tg").bfs(10)[0] == 0


@without_gpu
def test_auto_takes_the_cpu(six):
    graph = tg.open(six.path, device="auto")
    graph.wcc()
    assert graph.last_run["device"] == "cpu"
    assert "CUDA" in graph.last_run["device_why"]


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", ""])
def test_unknown_devices_are_refused(six, device):
    with pytest.raises(tg.InputError, match="`cpu`, `cuda`, `cuda:N` or `auto`"):
        tg.open(six.path, device=device)


def test_unknown_transfers_are_refused(six):
    with pytest.raises(tg.InputError, match="one of `async`, `sync`, `direct`"):
        tg.open(six.path, transfers="maybe")


@pytest.mark.parametrize(
    ("name", "value"),
    [("device_memory", "1GiB"), ("transfers", "sync"), ("device_residency", False)],
)
def test_options_of_gpus_are_refused_on_the_cpu(six, name, value):
    with pytest.raises(tg.InputError, match='a GPU to run on, got `device="cpu"`') as refused:
        tg.open(six.path, **{name: value})
    assert str(refused.value).startswith(f"cannot use `{name}=")


@without_gpu
def test_options_of_gpus_wait_for_one(six):
    with tg.open(six.path, device="auto", device_memory="1GiB") as graph:
        np.testing.assert_array_equal(graph.wcc(), six.wcc())


def test_a_modelled_drive_is_refused_where_nothing_holds_reads_back(six):
    with pytest.raises(tg.InputError, match="nothing holds back what cuFile reads"):
        tg.open(six.path, device="cuda", transfers="direct", modelled_bandwidth="1MiB")


def test_a_modelled_drive_says_so(six):
    graph = tg.open(six.path, modelled_bandwidth="1MiB")
    np.testing.assert_array_equal(graph.wcc(), six.wcc())
    assert graph.last_run["io_engine"] == "modelled"
    assert "modelled" in graph.last_run["io_engine_why"]
