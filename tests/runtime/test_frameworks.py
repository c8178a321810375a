"""Arrays of CuPy and JAX on a GPU, with stand-ins for both: what is launched, on which stream, and who waits."""

from __future__ import annotations

import ctypes
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace

import pytest

from tests.runtime.copying import callable_copy, pretended
from wgdsl.diagnostics.model import WgError
from wgdsl.runtime import nvrtc, tensor_map
from wgdsl.runtime.arrays import contiguous

X, Y = 1 << 34, 1 << 35


@pytest.fixture
def driver(monkeypatch):
    monkeypatch.setattr(nvrtc, "version", lambda: "13.0")
    yield pretended(monkeypatch)
    tensor_map.forget()


@pytest.fixture
def kernel(driver, tmp_path):
    return callable_copy(tmp_path)


class CupyArray:
    itemsize, dtype = 2, SimpleNamespace(name="float16")

    def __init__(self, pointer: int, shape: tuple[int, ...], device: int = 0, strides: tuple[int, ...] | None = None):
        self.data, self.shape, self.device = SimpleNamespace(ptr=pointer), shape, SimpleNamespace(id=device)
        self.strides = tuple(2 * s for s in strides or contiguous(shape))
        self.size = shape[0] * shape[1]


@dataclass
class Cupy:
    """`current`: the current device; `streams`: the current stream of each."""

    current: int = 0
    streams: dict[int, int] = field(default_factory=lambda: {0: 5, 1: 7})

    @contextmanager
    def on(self, device: int):
        before, self.current = self.current, device
        yield
        self.current = before

    def module(self) -> ModuleType:
        cupy = ModuleType("cupy")
        stream = lambda: SimpleNamespace(ptr=self.streams[self.current])  # noqa: E731
        contents = {
            "ndarray": CupyArray,
            "cuda": SimpleNamespace(Device=self.on, get_current_stream=stream),
            "empty": lambda shape, dtype: CupyArray(Y + (self.current << 30), shape, self.current),
        }
        cupy.__dict__.update(contents)
        return cupy


@pytest.fixture
def cupy(monkeypatch):
    fake = Cupy()
    monkeypatch.setitem(sys.modules, "cupy", fake.module())
    return fake


def test_cupy(kernel, driver, cupy):
    for device in (0, 1, 0, 1):
        y = kernel(CupyArray(X, (100, 64), device))
        assert isinstance(y, CupyArray) and y.device.id == device and cupy.current == 0
    mine = CupyArray(Y, (100, 64), strides=(128, 1))
    assert kernel(CupyArray(X, (100, 64)), out=mine) is mine
    assert [done["stream"] for done in driver.launches] == [5, 7, 5, 7, 5]
    assert [done["values"][2:4] for done in driver.launches] == [[Y, 64], [Y + (1 << 30), 64]] * 2 + [[Y, 128]]
    with pytest.raises(WgError, match="WG0625"):
        kernel(CupyArray(X, (100, 64)), out=CupyArray(X, (100, 64)))


class Element(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("kind", ctypes.c_int32),
        ("ordinal", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("element", Element),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Exported:
    """An array on a GPU that only DLPack can read, as one of JAX. `asked`: the streams that were to wait for it."""

    dtype = "float16"
    asked: list[int]

    def __init__(self, pointer: int, shape: tuple[int, int], kind: int = 2):
        self.kind, self.asked, self.extents = kind, [], (ctypes.c_int64 * 2)(*shape)
        tensor = DLTensor(pointer, kind, 0, 2, Element(2, 16, 1), self.extents, None, 0)
        self.managed = Managed(tensor, None, None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0

    def __dlpack__(self, *, stream=None, **_):
        self.asked.append(stream)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(self.managed), b"dltensor", None)


def test_dlpack(kernel, driver):
    """The default stream waits for what made the array, and the caller for the kernel: nobody else orders them."""
    synchronised = []
    driver._cuStreamSynchronize = lambda stream: (synchronised.append(stream), (0,))[1]
    x, y = Exported(X, (100, 64)), Exported(Y, (100, 64))
    for calls in (1, 2):
        assert kernel(x, out=y) is y
        assert len(driver.launches) == len(synchronised) == calls and set(x.asked) == {1}
    assert driver.launches[0]["values"][2:5] == [Y, 64, 100] and driver.launches[0]["stream"] == 0


def test_dlpack_of_another_kind_of_device(kernel):
    with pytest.raises(WgError, match="a device of kind 10"):
        kernel(Exported(X, (100, 64), kind=10), out=Exported(Y, (100, 64)))
