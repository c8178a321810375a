"""Checked calls of the CUDA driver, and what the machine has.

Every call goes through `checked`, which raises `CudaError` with the call's name, the code and what was being done.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..diagnostics.model import EnvironmentFault
from ..targets.choice import Gpu

CURE = "run it in the simulator (device='sim', or `--device sim`), or on a machine with an NVIDIA GPU and its driver"

LIBRARY = "libcuda.so.1"
OLDEST = 12000  # CUDA 12.0: cuLibraryLoadData
NO_DEVICE = ("CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_INVALID_DEVICE")


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
    except ImportError as e:
        raise EnvironmentFault(f"the CUDA bindings can't be imported: {e}", "pip install cuda-bindings") from e
    try:
        checked(bindings.cuInit(0), "cuInit")
        count = checked(bindings.cuDeviceGetCount(), "cuDeviceGetCount")
        version = checked(bindings.cuDriverGetVersion(), "cuDriverGetVersion")
    except CudaError as e:
        raise EnvironmentFault(*_unready(e)) from e
    except RuntimeError as e:
        raise EnvironmentFault(f"no CUDA driver on this machine ({_first_line(e)})", CURE) from e
    if not count:
        raise EnvironmentFault("no CUDA device on this machine", CURE)
    if version < OLDEST:
        told = f"the driver of this machine is of CUDA {_dotted(version)}; loading a kernel takes one of {_dotted(OLDEST)}"
        raise EnvironmentFault(told, "update the NVIDIA driver")
    return bindings


def _unready(e: CudaError) -> tuple[str, str]:
    """What it means that the driver doesn't start, and what to do."""
    if e.code in NO_DEVICE:
        return f"the CUDA driver finds no GPU ({e})", f"{CURE}; CUDA_VISIBLE_DEVICES may hide it"
    if e.code == "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH":
        return f"the CUDA driver's library and its kernel module are of different versions ({e})", "restart the machine"
    return f"the CUDA driver of this machine doesn't start ({e})", CURE


def _first_line(e: Exception) -> str:
    return str(e).splitlines()[0] if str(e) else type(e).__name__


def gpu() -> Gpu | None:
    """The GPU that a launch would take now; None without one. No context is made for it, and a machine without the driver's
    library isn't made to import the bindings."""
    if not _started and not _library():
        return None
    try:
        return _gpu(current_device())
    except EnvironmentFault:
        return None


@cache
def _library() -> bool:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True


@cache
def _gpu(ordinal: int) -> Gpu:
    d = driver()
    handle = checked(d.cuDeviceGet(ordinal), "cuDeviceGet", f"device {ordinal}")
    return Gpu(name=_name(d, handle), capability=_capability(d, handle))


def _name(d: Any, handle: Any) -> str:
    return checked(d.cuDeviceGetName(96, handle), "cuDeviceGetName").split(b"\0")[0].decode()


def _attribute(d: Any, handle: Any, name: str) -> int:
    key = getattr(d.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    return checked(d.cuDeviceGetAttribute(key, handle), "cuDeviceGetAttribute", name)


def _capability(d: Any, handle: Any) -> tuple[int, int]:
    return _attribute(d, handle, "COMPUTE_CAPABILITY_MAJOR"), _attribute(d, handle, "COMPUTE_CAPABILITY_MINOR")


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
        return self.gpu.target

    @property
    def gpu(self) -> Gpu:
        return Gpu(name=self.name, capability=self.capability)


@cache
def device(ordinal: int) -> Device:
    """The device of that number."""
    d = driver()
    handle = checked(d.cuDeviceGet(ordinal), "cuDeviceGet", f"device {ordinal}")
    return Device(
        ordinal=ordinal,
        name=_name(d, handle),
        capability=_capability(d, handle),
        multiprocessors=_attribute(d, handle, "MULTIPROCESSOR_COUNT"),
        shared_limit=_attribute(d, handle, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
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
    """Let this thread load modules and take memory while a stream is being captured into a graph."""
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
    return _dotted(version)


def _dotted(version: int) -> str:
    """A CUDA version as people write it: 13.0 for 13000."""
    return f"{version // 1000}.{version % 1000 // 10}"
