"""A torch made of Python, with as much of a tensor as a call looks at. Its memory is a number."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace

import pytest

from wgdsl.runtime import arrays, streams, torch_call, torch_guard
from wgdsl.runtime.arrays import contiguous

STRIDED, SPARSE = "torch.strided", "torch.sparse_coo"


@dataclass(frozen=True)
class Place:
    type: str
    index: int | None = None


@dataclass(eq=False)
class Tensor:
    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] = ()
    dtype: str = "torch.float16"
    device: Place = Place("cuda", 0)
    requires_grad: bool = False
    layout: str = STRIDED
    negative: bool = False
    is_nested: bool = False

    def __post_init__(self):
        self.strides = self.strides or contiguous(self.shape)

    def data_ptr(self) -> int:
        if self.layout != STRIDED:
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
        return self.pointer

    def stride(self) -> tuple[int, ...]:
        return self.strides

    def is_contiguous(self) -> bool:
        dense = zip(self.shape, self.strides, contiguous(self.shape), strict=True)
        return 0 in self.shape or all(n == 1 or mine == wanted for n, mine, wanted in dense)

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def get_device(self) -> int:
        return -1 if self.device.index is None else self.device.index

    def is_neg(self) -> bool:
        return self.negative


class Parameter(Tensor):
    pass


@dataclass
class Torch:
    """`streams`: the current stream of each device. `grad`: whether grad mode is on. `made`: tensors that a call allocated.
    `quick`: whether there is torch's quick allocation; it takes `current`, the device that torch holds for the current one."""

    streams: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 0})
    grad: bool = True
    made: list[Tensor] = field(default_factory=list)
    quick: bool = False
    current: int = 0
    base: int = 1 << 40

    def empty_strided(self, shape, strides, dtype, device):
        self.made.append(Tensor(self.base + (len(self.made) << 20), shape, strides, dtype, device))
        return self.made[-1]

    def _empty_strided_cuda(self, shape, strides, dtype):
        return self.empty_strided(shape, strides, dtype, Place("cuda", self.current))

    def module(self) -> ModuleType:
        inside: dict[str, object] = {"_cuda_getCurrentRawStream": lambda device: self.streams[device]}
        if self.quick:
            inside["_dynamo"] = SimpleNamespace(guards=SimpleNamespace(_empty_strided_cuda=self._empty_strided_cuda))
        torch = ModuleType("torch")
        contents = dict(
            Tensor=Tensor,
            nn=SimpleNamespace(Parameter=Parameter),
            strided=STRIDED,
            is_grad_enabled=lambda: self.grad,
            device=Place,
            empty_strided=self.empty_strided,
            _C=SimpleNamespace(**inside),
            **{name: f"torch.{name}" for name in ("float16", "float32", "bfloat16", "int32", "int64", "bool")},
        )
        torch.__dict__.update(contents)
        return torch


@contextmanager
def installed(monkeypatch: pytest.MonkeyPatch, quick: bool = False):
    """The stand-in in torch's place."""
    caches = (torch_call.plain, streams.torch_stream, torch_guard._trusted, arrays.torch_dtype_name)
    torch = Torch(quick=quick)
    monkeypatch.setitem(sys.modules, "torch", torch.module())
    for c in caches:
        c.cache_clear()
    yield torch
    for c in caches:
        c.cache_clear()
