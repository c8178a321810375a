"""Checked calls of the CUDA driver, and what the machine has.

Every call goes through `checked`, which raises `CudaError` with the call's name, the code and what was being done.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..diagnostics.model import EnvironmentFault

CURE = "run it in the simulator (device='sim', or `--device sim`), or on a machine with an NVIDIA GPU and its driver"


class CudaError(RuntimeError):
    """A CUDA call failed. `code` is the driver's name for it, `call` the function, `doing` what it was for."""

    def __init__(self, call: str, code: str, doing: str = ""):
        self.call, self.code, self.doing = call, code, doing
        super().__init__(f"{call} failed with {code}" + (f" ({doing})" if doing else ""))


def checked(result: tuple, call: str, doing: str = "") -> Any:
    """The values of a driver call's result; raises CudaError unless it succeeded."""
    code = result[0]
    if int(code):
        raise CudaError(call, getattr(code, "name", str(code)), doing)
    if len(result) == 2:
        return result[1]
    return result[1:] if len(result) > 2 else None


_started: list[Any] = []
_start_lock = threading.Lock()


def driver() -> Any:
    """The initialised driver bindings. Raises EnvironmentFault where there is no driver or no device."""
    if _started:
        return _started[0]
    with _start_lock:
        if not _started:
            _started.append(_start())
    return _started[0]


def _start() -> Any:
    try:
        from cuda.bindings import driver as bindings

        checked(bindings.cuInit(0), "cuInit")
        count = checked(bindings.cuDeviceGetCount(), "cuDeviceGetCount")
    except ImportError as e:
        raise EnvironmentFault(f"the CUDA bindings can't be imported: {e}", "pip install cuda-bindings") from e
    except (CudaError, RuntimeError) as e:
        raise EnvironmentFault(f"no CUDA driver on this machine ({_first_line(e)})", CURE) from e
    if not count:
        raise EnvironmentFault("no CUDA device on this machine", CURE)
    return bindings


def _first_line(e: Exception) -> str:
    return str(e).splitlines()[0] if str(e) else type(e).__name__


def available() -> bool:
    """Whether this machine has a CUDA device."""
    try:
        driver()
    except EnvironmentFault:
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class Device:
    """One GPU. `context` is its primary context, retained for the life of the process."""

    ordinal: int
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    shared_limit: int
    context: Any

    @property
    def target(self) -> str:
        """The architecture whose cubins it runs, with the specific features of Hopper."""
        major, minor = self.capability
        return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


@cache
def device(ordinal: int) -> Device:
    """The device of that number."""
    d = driver()
    handle = checked(d.cuDeviceGet(ordinal), "cuDeviceGet", f"device {ordinal}")
    names = d.CUdevice_attribute

    def attribute(name: str) -> int:
        key = getattr(names, f"CU_DEVICE_ATTRIBUTE_{name}")
        return checked(d.cuDeviceGetAttribute(key, handle), "cuDeviceGetAttribute", name)

    return Device(
        ordinal=ordinal,
        name=checked(d.cuDeviceGetName(96, handle), "cuDeviceGetName").split(b"\0")[0].decode(),
        capability=(attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR")),
        multiprocessors=attribute("MULTIPROCESSOR_COUNT"),
        shared_limit=attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        context=checked(d.cuDevicePrimaryCtxRetain(handle), "cuDevicePrimaryCtxRetain", f"device {ordinal}"),
    )


def current_device() -> int:
    """The ordinal of the calling thread's current device; 0 if it has none."""
    d = driver()
    if not int(checked(d.cuCtxGetCurrent(), "cuCtxGetCurrent")):
        return 0
    return int(checked(d.cuCtxGetDevice(), "cuCtxGetDevice"))


@contextmanager
def on_device(ordinal: int) -> Iterator[Device]:
    """Make a device's primary context current, and restore what was current."""
    d, dev = driver(), device(ordinal)
    if int(checked(d.cuCtxGetCurrent(), "cuCtxGetCurrent")) == int(dev.context):
        yield dev
        return
    checked(d.cuCtxPushCurrent(dev.context), "cuCtxPushCurrent", dev.name)
    try:
        yield dev
    finally:
        checked(d.cuCtxPopCurrent(), "cuCtxPopCurrent")


@contextmanager
def relaxed_capture() -> Iterator[None]:
    """Let this thread load modules while a stream is being captured into a graph."""
    d = driver()
    relaxed = d.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = checked(d.cuThreadExchangeStreamCaptureMode(relaxed), "cuThreadExchangeStreamCaptureMode")
    try:
        yield
    finally:
        checked(d.cuThreadExchangeStreamCaptureMode(before), "cuThreadExchangeStreamCaptureMode")


def driver_version() -> str:
    """The CUDA version of the driver, e.g. 13.0; empty where there is none."""
    try:
        version = checked(driver().cuDriverGetVersion(), "cuDriverGetVersion")
    except EnvironmentFault:
        return ""
    return f"{version // 1000}.{version % 1000 // 10}"
