"""Clock and power by NVML, or why not."""

from __future__ import annotations

import ctypes

import pytest

from wgdsl.bench import gauge as module
from wgdsl.bench.gauge import Gauge, gauge


class Nvml:
    """A library of one device."""

    def __init__(self, init=0, power=0):
        self.init, self.power = init, power

    def nvmlInit_v2(self):
        return self.init

    def nvmlDeviceGetHandleByUUID(self, name, handle):
        return 0 if name == b"GPU-1234" else 6

    def nvmlDeviceGetClockInfo(self, handle, kind, value):
        value._obj.value = 1755 if kind == 1 else 0
        return 0

    def nvmlDeviceGetPowerUsage(self, handle, value):
        value._obj.value = 691_500
        return self.power


@pytest.fixture
def library(monkeypatch):
    return lambda it: monkeypatch.setattr(module.ctypes, "CDLL", it)


@pytest.mark.parametrize("uuid", ["1234", "GPU-1234"])
def test_clock_and_power(library, uuid):
    library(lambda name: Nvml())
    found = gauge(uuid)
    assert isinstance(found, Gauge) and (found.mhz(), found.watts()) == (1755.0, 691.5)


def test_what_cant_be_read_is_unknown(library):
    library(lambda name: Nvml(power=3))
    found = gauge("1234")
    assert isinstance(found, Gauge) and (found.mhz(), found.watts()) == (1755.0, None)


def missing(name):
    raise OSError(name)


@pytest.mark.parametrize(
    "it, uuid, why",
    [
        (missing, "1234", "no libnvidia-ml.so.1"),
        (lambda name: Nvml(init=9), "1234", "nvmlInit_v2: error 9"),
        (lambda name: Nvml(), "4321", "nvmlDeviceGetHandleByUUID: error 6"),
    ],
)
def test_why_there_is_none(library, it, uuid, why):
    library(it)
    assert gauge(uuid) == why


def test_the_fake_is_passed_what_ctypes_passes():
    value = ctypes.c_uint()
    assert ctypes.byref(value)._obj is value  # pyright: ignore[reportAttributeAccessIssue]
