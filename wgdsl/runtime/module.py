"""Cubins on devices: a library is loaded once, its functions once for each device.

In: a cubin and the kernel's needs.  Out: the function to launch on a device.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from ..diagnostics.model import EnvironmentFault, WgError
from ..diagnostics.runtime import WrongGpu
from .cuda import CudaError, Device, checked, driver, driver_version, on_device, relaxed_capture


@dataclass
class Module:
    """One cubin with one entry function. `shared` is the dynamic shared memory of a launch, in bytes."""

    cubin: bytes
    entry: str
    target: str
    shared: int
    compiler: str = ""  # NVRTC's version, for the message when the driver is too old for it
    _library: Any = None
    _functions: dict[int, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def function(self, device: int) -> Any:
        """The loaded function on a device; the device's context must be current or become so here."""
        found = self._functions.get(device)
        if found is not None:
            return found
        with self._lock, on_device(device) as dev, relaxed_capture():
            if device not in self._functions:
                self._functions[device] = self._load(dev)
            return self._functions[device]

    def _load(self, dev: Device) -> Any:
        if dev.target != self.target and not _runs(self.target, dev.capability):
            raise WgError(WrongGpu(target=self.target, device=dev.name, has=dev.target))
        d, what = driver(), f"kernel {self.entry} on {dev.name}"
        if self._library is None:
            self._library = self._loaded(d, what)
        kernel = checked(d.cuLibraryGetKernel(self._library, self.entry.encode()), "cuLibraryGetKernel", what)
        function = checked(d.cuKernelGetFunction(kernel), "cuKernelGetFunction", what)
        attribute = d.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        doing = f"{what}: {self.shared} bytes of shared memory, of {dev.shared_limit}"
        checked(d.cuFuncSetAttribute(function, attribute, self.shared), "cuFuncSetAttribute", doing)
        return function

    def _loaded(self, d: Any, what: str) -> Any:
        try:
            return checked(d.cuLibraryLoadData(self.cubin, [], [], 0, [], [], 0), "cuLibraryLoadData", what)
        except CudaError as e:
            made = f"compiled by NVRTC {self.compiler} for {self.target}" if self.compiler else f"for {self.target}"
            message = f"the driver (CUDA {driver_version()}) can't load {what}, {made}: {e.code}"
            raise EnvironmentFault(message, "update the driver, or install an NVRTC of the driver's CUDA version") from e


def _runs(target: str, capability: tuple[int, int]) -> bool:
    """Whether a cubin without architecture-specific features runs: same major, and a minor that is no later."""
    digits = target.removeprefix("sm_")
    if not digits.isdigit():
        return False
    return int(digits[:-1]) == capability[0] and int(digits[-1]) <= capability[1]
