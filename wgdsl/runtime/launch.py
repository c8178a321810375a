"""One launch: arguments in their buffer, grid, stream.

In: a kernel of the role program, its module, and the arrays and numbers of a call.  Out: a `Launch` that can be run again and
again on any stream. Nothing in it changes once it is made, so threads may share it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.runtime import GridTooLarge, NegativeStride
from ..diagnostics.tools import NeedsProbeCall
from ..roles.model import PROBE, Kernel, Param, TensorMap
from ..targets.tma import TMA
from .arrays import ArrayView, contiguous
from .bind import LIMIT, Bound
from .cuda import checked, driver
from .module import Module
from .tensor_map import ArrayRule, encode, map_problem, placeholder

_SCALARS = {"f32": ctypes.c_float, "i32": ctypes.c_int32, "i64": ctypes.c_int64, "bool": ctypes.c_int32}


@dataclass(frozen=True)
class Launch:
    """`arguments` keeps alive what `pointers` points to. `blocks` is 0 if there is nothing to do."""

    function: Any
    blocks: int
    threads: int
    shared: int
    pointers: Any
    arguments: tuple[Any, ...]
    name: str

    def run(self, stream: int) -> None:
        """Enqueue on a stream (its handle). The device's context must be current."""
        if not self.blocks:
            return
        result = driver().cuLaunchKernel(
            self.function, self.blocks, 1, 1, self.threads, 1, 1, self.shared, stream, ctypes.addressof(self.pointers), 0
        )
        if int(result[0]):
            checked(result, "cuLaunchKernel", f"{self.name}: {self.blocks} x {self.threads} threads, {self.shared} bytes")


def work_items(kernel: Kernel, dims: Mapping[str, int]) -> int:
    """How many work items the call has."""
    return prod(max(0, axis.blocks.evaluate(dims)) for axis in kernel.grid.axes)


def prepare(
    kernel: Kernel, module: Module, views: Mapping[str, ArrayView], bound: Bound, device: int, multiprocessors: int
) -> Launch:
    """Everything of a launch but its stream. Raises WgError (WG06xx) for arrays that the kernel can't reach."""
    total = work_items(kernel, bound.dims)
    blocks = min(total, multiprocessors) if kernel.grid.persistent else total
    if total > LIMIT:  # also the items of a persistent grid are numbered in 32 bits
        axes = tuple(f"{a.index}: {a.blocks.evaluate(bound.dims)}" for a in kernel.grid.axes)
        raise WgError(GridTooLarge(total=total, axes=axes))
    if not total:
        return Launch(None, 0, kernel.threads, module.shared, None, (), kernel.name)
    unheld = tuple(t.removesuffix(PROBE) for t in (x.name for x in kernel.tensors) if t.endswith(PROBE) and t not in views)
    if unheld:
        raise WgError(NeedsProbeCall(names=unheld))
    make = _Arguments(kernel, views, bound)
    arguments = tuple(make.value(p) for p in kernel.params)
    pointers = (ctypes.c_void_p * len(arguments))(*(_address(a) for a in arguments))
    return Launch(module.function(device), blocks, kernel.threads, module.shared, pointers, arguments, kernel.name)


def refusals(kernel: Kernel, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[ArrayRule]:
    """Why dense arrays of these shapes can't be launched on: the tensor maps that don't fit and that nothing stands in for."""
    flagged = {p.tensor for p in kernel.params if p.kind == "flag"}
    for m in kernel.maps:
        if m.tensor in flagged:
            continue
        shape = shapes[m.tensor]
        problem = map_problem(m, ArrayView(0, shape, contiguous(shape), m.dtype.name, 0, "numpy"))
        if problem is not None:
            yield problem


def _address(argument: Any) -> int:
    return argument.getPtr() if hasattr(argument, "getPtr") else ctypes.addressof(argument)


class _Arguments:
    """The value of each parameter, as an object that owns its bytes."""

    def __init__(self, kernel: Kernel, views: Mapping[str, ArrayView], bound: Bound):
        self.kernel, self.views, self.bound = kernel, views, bound
        self.spare = next((v.pointer for v in views.values() if v.pointer), 0)

    def value(self, p: Param) -> Any:
        return getattr(self, f"_{p.kind}")(p)

    def _map(self, p: Param) -> Any:
        m = self.kernel.map(p.name)
        view = self.views[m.tensor]
        if 0 in view.shape or self._unreachable(m):  # nothing to read, or a flag makes the kernel store another way
            return placeholder(m, self.spare)
        return encode(m, view, self.bound.dims)

    def _unreachable(self, m: TensorMap) -> bool:
        """Whether a result that may be stored in another way has to be: the array suits no map, or its rows end inside one of
        the granules in which a bulk store writes (what lies behind the row would be overwritten)."""
        if not any(q.kind == "flag" and q.tensor == m.tensor for q in self.kernel.params):
            return False
        view = self.views[m.tensor]
        row = view.shape[m.dims[0].axis] * m.dtype.nbytes
        return row % TMA.store_granule != 0 or map_problem(m, view) is not None

    def _pointer(self, p: Param) -> Any:
        return ctypes.c_uint64(self.views[p.tensor or p.name].pointer)

    def _stride(self, p: Param) -> Any:
        assert p.tensor is not None and p.axis is not None
        v = self.views[p.tensor]
        if v.strides[p.axis] < 0 and v.shape[p.axis] > 1 and 0 not in v.shape:
            raise WgError(NegativeStride(name=p.tensor, axis=p.axis, stride=v.strides[p.axis]))
        return ctypes.c_int64(v.strides[p.axis])

    def _dim(self, p: Param) -> Any:
        return ctypes.c_int32(self.bound.dims[p.name])

    def _scalar(self, p: Param) -> Any:
        return _SCALARS[p.dtype.name if p.dtype else "f32"](self.bound.scalars[p.name])

    def _flag(self, p: Param) -> Any:
        maps = [m for m in self.kernel.maps if m.tensor == p.tensor]
        return ctypes.c_int32(not any(self._unreachable(m) for m in maps))
