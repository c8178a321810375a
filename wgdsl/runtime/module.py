"""Cubins on devices: a library is loaded once, its functions once for each device.

In: a cubin and the kernel's needs.  Out: the function to launch on a device.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..diagnostics.model import EnvironmentFault, WgError
from ..diagnostics.runtime import WrongGpu
from .cuda import CudaError, Device, checked, driver, driver_version, on_device, relaxed_capture
from .nvrtc import Compiled

TOO_OLD = (  # what a driver says of a binary that was made for a later one
    "CUDA_ERROR_INVALID_IMAGE",
    "CUDA_ERROR_NO_BINARY_FOR_GPU",
    "CUDA_ERROR_INVALID_PTX",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    "CUDA_ERROR_INVALID_SOURCE",
)


@dataclass
class Module:
    """One cubin with one entry function. `shared` is the dynamic shared memory of a launch, in bytes. `again` compiles the text
    for another architecture: a later one runs what an earlier one does, but not its cubin."""

    cubin: bytes
    entry: str
    target: str
    shared: int
    compiler: str = ""  # NVRTC's version, for the message when the driver is too old for it
    again: Callable[[str], Compiled] | None = None
    _libraries: dict[str, Any] = field(default_factory=dict)
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
        arch = self._arch(dev)
        if self.shared > dev.shared_limit:
            raise WgError(replace(self._refused(dev), shared=self.shared, limit=dev.shared_limit))
        d, what = driver(), f"kernel {self.entry} on {dev.name}"
        if arch not in self._libraries:
            self._libraries[arch] = self._loaded(d, what, arch)
        kernel = checked(d.cuLibraryGetKernel(self._libraries[arch], self.entry.encode()), "cuLibraryGetKernel", what)
        function = checked(d.cuKernelGetFunction(kernel), "cuKernelGetFunction", what)
        attribute = d.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        doing = f"{what}: {self.shared} bytes of shared memory, of {dev.shared_limit}"
        checked(d.cuFuncSetAttribute(function, attribute, self.shared), "cuFuncSetAttribute", doing)
        return function

    def _arch(self, dev: Device) -> str:
        """Whose code a device runs."""
        return self.target if dev.target == self.target or _runs(self.target, dev.capability) else self._later(dev)

    def global_array(self, name: str, device: int) -> tuple[int, int]:
        """Address and bytes of an array that the text declares, on a device whose context is current."""
        self.function(device)
        with on_device(device) as dev:
            library = self._libraries[self._arch(dev)]
        address, nbytes = checked(driver().cuLibraryGetGlobal(library, name.encode()), "cuLibraryGetGlobal", name)
        return int(address), int(nbytes)

    def _later(self, dev: Device) -> str:
        """The architecture of a later device that has all that this text uses."""
        if self.again is None or not _is_later(self.target, dev.capability):
            raise WgError(self._refused(dev))
        return "sm_{}{}".format(*dev.capability)

    def _refused(self, dev: Device) -> WrongGpu:
        return WrongGpu(target=self.target, device=dev.name, has=dev.target, instead=dev.gpu.best)

    def _loaded(self, d: Any, what: str, arch: str) -> Any:
        cubin = self.cubin if arch == self.target or self.again is None else self.again(arch).cubin
        try:
            return checked(d.cuLibraryLoadData(cubin, [], [], 0, [], [], 0), "cuLibraryLoadData", what)
        except CudaError as e:
            raise EnvironmentFault(*self._not_loaded(e, what, arch)) from e

    def _not_loaded(self, e: CudaError, what: str, arch: str) -> tuple[str, str]:
        """What a driver that refuses a cubin means, and what to do."""
        has, made = driver_version(), f"compiled by NVRTC {self.compiler} for {arch}" if self.compiler else f"for {arch}"
        told = f"the driver (CUDA {has}) can't load {what}, {made}: {e.code}"
        if e.code not in TOO_OLD:
            return told, ""
        if not _numbers(has) < _numbers(self.compiler):
            return told, "update the driver, or install an NVRTC of the driver's CUDA version"
        why = f"the driver is older than the compiler: CUDA {has} before CUDA {self.compiler}"
        return f"{told}\n  {why}", _cure(has, self.compiler)


def _cure(driver: str, compiler: str) -> str:
    """A driver of one major version loads what any compiler of it makes, nearly always; none of a later one."""
    newer = f"update the NVIDIA driver to one of CUDA {compiler}"
    same = driver.split(".")[0] == compiler.split(".")[0]
    return f"{newer}, or take the driver's NVRTC: pip install 'nvidia-cuda-nvrtc=={driver}.*'" if same else newer


def _numbers(version: str) -> tuple[int, ...]:
    """A version as numbers, for 12.10 is after 12.9; nothing for one that isn't known."""
    return tuple(int(n) for n in version.split(".")[:2]) if version else ()


def _is_later(target: str, capability: tuple[int, int]) -> bool:
    """Whether a device came after a target without architecture-specific features."""
    digits = target.removeprefix("sm_")
    return digits.isdigit() and capability > (int(digits[:-1]), int(digits[-1]))


def _runs(target: str, capability: tuple[int, int]) -> bool:
    """Whether a cubin without architecture-specific features runs: same major, and a minor that is no later."""
    digits = target.removeprefix("sm_")
    if not digits.isdigit():
        return False
    return int(digits[:-1]) == capability[0] and int(digits[-1]) <= capability[1]
