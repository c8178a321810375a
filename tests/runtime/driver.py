"""A driver made of Python: it keeps every launch with the values of its arguments, and every tensor map it is asked for."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field


class Names:
    """Any enumeration: its members are their own names."""

    def __getattr__(self, name: str) -> str:
        return name


class Map:
    def __init__(self, number: int):
        self.memory = (ctypes.c_uint64 * 16)(number)

    def getPtr(self) -> int:
        return ctypes.addressof(self.memory)


@dataclass
class Driver:
    """`refuse`: call -> the code that it fails with."""

    launches: list[dict] = field(default_factory=list)
    maps: list[tuple] = field(default_factory=list)
    loads: int = 0
    shared: int = 0
    refuse: dict[str, int] = field(default_factory=dict)
    context: int = 0
    kinds: tuple[type, ...] = ()

    def __post_init__(self):
        for name in ("CUtensorMapDataType", "CUtensorMapSwizzle", "CUtensorMapInterleave", "CUtensorMapL2promotion"):
            setattr(self, name, Names())
        self.CUtensorMapFloatOOBfill = self.CUstreamCaptureMode = self.CUfunction_attribute = self.CUdevice_attribute = Names()
        self.cuuint64_t = self.cuuint32_t = self.CUstream = int

    def __getattr__(self, name: str):
        if not name.startswith("cu"):
            raise AttributeError(name)
        return lambda *args: (self.refuse[name],) if name in self.refuse else getattr(self, f"_{name}")(*args)

    def _cuLaunchKernel(self, function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra):
        pointers = ctypes.cast(parameters, ctypes.POINTER(ctypes.c_void_p))
        values = [ctypes.cast(pointers[k], ctypes.POINTER(kind))[0] for k, kind in enumerate(self.kinds)]
        self.launches.append({"blocks": gx, "threads": bx, "shared": shared, "stream": stream, "values": values})
        return (0,)

    def _cuTensorMapEncodeTiled(self, kind, rank, pointer, extents, strides, box, steps, interleave, swizzle, l2, fill):
        self.maps.append((kind, rank, pointer, tuple(extents), tuple(strides), tuple(box), tuple(steps), swizzle, l2, fill))
        return 0, Map(len(self.maps))

    def _cuLibraryLoadData(self, *_):
        self.loads += 1
        return 0, "library"

    def _cuLibraryGetKernel(self, library, name):
        return 0, name

    def _cuDriverGetVersion(self):
        return 0, 13000

    def _cuKernelGetFunction(self, kernel):
        return 0, kernel

    def _cuFuncSetAttribute(self, function, attribute, value):
        self.shared = value
        return (0,)

    def _cuThreadExchangeStreamCaptureMode(self, mode):
        return 0, mode

    def _cuCtxGetCurrent(self):
        return 0, self.context

    def _cuCtxPushCurrent(self, context):
        self.context = context
        return (0,)

    def _cuCtxPopCurrent(self):
        self.context = 0
        return 0, 0
