"""What a machine without a GPU, or with a driver that isn't ready, is told; with bindings that answer as they would there."""

from __future__ import annotations

from enum import IntEnum

import pytest

from wgdsl.diagnostics.model import EnvironmentFault
from wgdsl.runtime import cuda

bindings = pytest.importorskip("cuda.bindings.driver")


class Code(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803
    CUDA_ERROR_SYSTEM_NOT_READY = 802


@pytest.fixture
def machine(monkeypatch):
    """Makes the bindings answer: the code of cuInit, how many devices there are, the version of the driver."""

    def make(code: Code = Code.CUDA_SUCCESS, devices: int = 1, version: int = 13000) -> None:
        monkeypatch.setattr(bindings, "cuInit", lambda flags: (code,))
        monkeypatch.setattr(bindings, "cuDeviceGetCount", lambda: (Code.CUDA_SUCCESS, devices))
        monkeypatch.setattr(bindings, "cuDriverGetVersion", lambda: (Code.CUDA_SUCCESS, version))

    return make


def fault() -> str:
    with pytest.raises(EnvironmentFault) as e:
        cuda._start()
    return str(e.value)


def test_a_driver_that_finds_no_gpu(machine):
    machine(Code.CUDA_ERROR_NO_DEVICE)
    said = fault()
    assert "the CUDA driver finds no GPU (cuInit failed with CUDA_ERROR_NO_DEVICE)" in said
    assert "device='sim'" in said and "CUDA_VISIBLE_DEVICES may hide it" in said
    machine(devices=0)
    assert "no CUDA device on this machine" in fault()


def test_a_driver_half_of_which_was_updated(machine):
    machine(Code.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
    said = fault()
    assert "library and its kernel module are of different versions" in said and "help: restart the machine" in said


def test_a_driver_that_doesn_t_start(machine):
    machine(Code.CUDA_ERROR_SYSTEM_NOT_READY)
    assert "doesn't start (cuInit failed with CUDA_ERROR_SYSTEM_NOT_READY)" in fault()


def test_no_driver(monkeypatch):
    def missing(flags: int):
        raise RuntimeError("libcuda.so.1 was searched in /a\nand in /b")

    monkeypatch.setattr(bindings, "cuInit", missing)
    assert "no CUDA driver on this machine (libcuda.so.1 was searched in /a)" in fault()


def test_a_driver_that_is_too_old(machine):
    machine(version=11080)
    said = fault()
    assert "the driver of this machine is of CUDA 11.8; loading a kernel takes one of 12.0" in said
    assert "help: update the NVIDIA driver" in said


def test_which_gpu_there_is(machine, monkeypatch):
    """Asked without a context; and not at all where there is no driver's library."""
    monkeypatch.setattr(cuda, "_library", lambda: False)
    monkeypatch.setattr(cuda, "_started", [])
    assert cuda.gpu() is None
    monkeypatch.setattr(cuda, "_library", lambda: True)
    machine(Code.CUDA_ERROR_NO_DEVICE)
    assert cuda.gpu() is None, "a machine whose driver isn't ready compiles as one without"
    machine()
    attributes = {"MAJOR": 8, "MINOR": 6}
    monkeypatch.setattr(bindings, "cuCtxGetCurrent", lambda: (Code.CUDA_SUCCESS, 0))
    monkeypatch.setattr(bindings, "cuDeviceGet", lambda n: (Code.CUDA_SUCCESS, n))
    monkeypatch.setattr(bindings, "cuDeviceGetName", lambda size, handle: (Code.CUDA_SUCCESS, b"RTX\0\0"))
    monkeypatch.setattr(
        bindings, "cuDeviceGetAttribute", lambda key, handle: (Code.CUDA_SUCCESS, attributes[key.name.rsplit("_", 1)[1]])
    )
    cuda._gpu.cache_clear()
    found = cuda.gpu()
    cuda._gpu.cache_clear()
    assert found is not None and (found.name, found.target) == ("RTX", "sm_86")
