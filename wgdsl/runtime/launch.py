"""One launch: arguments in their buffer, grid, stream.

In: a kernel of the role program, its module, and the arrays and numbers of a call.  Out: a `Template`, which makes the `Launch`
for arrays of the same layout at any address; that can be run again and again on any stream. Nothing in either changes once it
is made, so threads may share them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.runtime import GridTooLarge, NegativeStride
from ..diagnostics.tools import NeedsProbeCall
from ..roles.model import COUNTERS, PROBE, Kernel, Param, TensorMap
from ..targets.tma import TMA
from .arrays import ArrayView, contiguous
from .bind import LIMIT, Bound
from .cuda import CudaError, Device, checked, driver
from .module import Module
from .tensor_map import ArrayRule, Encoder, encoded, encoder_of, map_problem, placeholder, refused

_LAUNCHES = count()  # what tells counters of launches that may overlap apart
_SCALARS = {"f32": ctypes.c_float, "i32": ctypes.c_int32, "i64": ctypes.c_int64, "bool": ctypes.c_int32}

Moving = Callable[[Sequence[int]], Any]  # the addresses of all arrays -> an argument


@dataclass(frozen=True)
class Launch:
    """`address` is that of `pointers`, and `arguments` keeps alive what they point to. `enqueue`: the driver's call."""

    enqueue: Callable[..., tuple[Any, ...]]
    function: Any
    blocks: int
    threads: int
    shared: int
    address: int
    pointers: Any
    arguments: tuple[Any, ...]
    name: str

    def run(self, stream: int) -> None:
        """Enqueue on a stream (its handle). The device's context must be current."""
        result = self.enqueue(self.function, self.blocks, 1, 1, self.threads, 1, 1, self.shared, stream, self.address, 0)
        if result[0]:
            checked(result, "cuLaunchKernel", f"{self.name}: {self.blocks} x {self.threads} threads, {self.shared} bytes")


@dataclass(frozen=True)
class Template:
    """A launch but for the addresses of its arrays. `moving` makes the arguments in which they stand, by position."""

    function: Any
    blocks: int
    threads: int
    shared: int
    arguments: tuple[Any, ...]
    moving: tuple[tuple[int, Moving], ...]
    name: str

    def at(self, pointers: Sequence[int]) -> Launch:
        """The launch for arrays at these addresses, in the order of the views that the template was made from."""
        arguments = list(self.arguments)
        for k, make in self.moving:
            arguments[k] = make(pointers)
        places = (ctypes.c_void_p * len(arguments))(*map(_address, arguments))
        return Launch(
            enqueue=driver().cuLaunchKernel,
            function=self.function,
            blocks=self.blocks,
            threads=self.threads,
            shared=self.shared,
            address=ctypes.addressof(places),
            pointers=places,
            arguments=tuple(arguments),
            name=self.name,
        )


def work_items(kernel: Kernel, dims: Mapping[str, int]) -> int:
    """How many work items the call has."""
    return prod(max(0, axis.blocks.evaluate(dims)) for axis in kernel.grid.axes)


def template(kernel: Kernel, module: Module, views: Mapping[str, ArrayView], bound: Bound, device: Device) -> Template | None:
    """All of a launch that the layout of the arrays decides; None if there is nothing to do. Of the addresses in `views` only
    the place within 16 bytes counts. Raises WgError (WG06xx) for arrays that the kernel can't reach.
    """
    total = work_items(kernel, bound.dims)
    blocks = min(total, device.multiprocessors) if kernel.grid.persistent else total
    if total > LIMIT:  # also the items of a persistent grid are numbered in 32 bits
        axes = tuple(f"{a.index}: {a.blocks.evaluate(bound.dims)}" for a in kernel.grid.axes)
        raise WgError(GridTooLarge(total=total, axes=axes))
    if not total:
        return None
    unheld = tuple(t.removesuffix(PROBE) for t in (x.name for x in kernel.tensors) if t.endswith(PROBE) and t not in views)
    if unheld:
        raise WgError(NeedsProbeCall(names=unheld))
    make = _Arguments(kernel, views, bound)
    values = [make.value(p) for p in kernel.params]
    moving = tuple((k, v) for k, v in enumerate(values) if isinstance(v, MOVING))
    return Template(module.function(device.ordinal), blocks, kernel.threads, module.shared, tuple(values), moving, kernel.name)


def refusals(kernel: Kernel, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[ArrayRule]:
    """Why dense arrays of these shapes can't be launched on: the tensor maps that don't fit and that nothing stands in for."""
    flagged = {p.tensor for p in kernel.params if p.kind == "flag"}
    for m in kernel.maps:
        if m.tensor in flagged or m.tensor not in shapes:  # another way to store, or memory that the run time lays out
            continue
        shape = shapes[m.tensor]
        problem = map_problem(m, ArrayView(0, shape, contiguous(shape), m.dtype.name, 0, "numpy"))
        if problem is not None:
            yield problem


def _address(argument: Any) -> int:
    return argument.getPtr() if hasattr(argument, "getPtr") else ctypes.addressof(argument)


@dataclass(frozen=True)
class _Address:
    """Where an array lies. `at`: its number among the arrays."""

    at: int

    def __call__(self, pointers: Sequence[int]) -> Any:
        return ctypes.c_uint64(pointers[self.at])


@dataclass(frozen=True)
class _Descriptor:
    """The tensor map of an array."""

    at: int
    map: TensorMap
    view: ArrayView
    encoder: Encoder

    def __call__(self, pointers: Sequence[int]) -> Any:
        try:
            return encoded(self.encoder, pointers[self.at])
        except CudaError as e:
            raise refused(self.map, self.view, self.encoder.geometry, e) from e


@dataclass(frozen=True)
class _Placeholder:
    """A tensor map that isn't used, at the address of some array."""

    encoder: Encoder

    def __call__(self, pointers: Sequence[int]) -> Any:
        somewhere = next((p for p in pointers if p), 0)
        return encoded(self.encoder, somewhere - somewhere % TMA.global_alignment)


@dataclass(frozen=True)
class _Counter:
    """A counter that no other arrays' launch has, since those may run at the same time."""

    def __call__(self, pointers: Sequence[int]) -> Any:
        return ctypes.c_int32(next(_LAUNCHES) % COUNTERS)


MOVING = _Address | _Descriptor | _Placeholder | _Counter


class _Arguments:
    """The value of each parameter, as an object that owns its bytes or makes such a one from the addresses."""

    def __init__(self, kernel: Kernel, views: Mapping[str, ArrayView], bound: Bound):
        self.kernel, self.views, self.bound = kernel, views, bound
        self.places = {name: k for k, name in enumerate(views)}

    def value(self, p: Param) -> Any:
        return getattr(self, f"_{p.kind}")(p)

    def _map(self, p: Param) -> Any:
        m = self.kernel.map(p.name)
        view = self.views[m.tensor]
        if 0 in view.shape or self._unreachable(m):  # nothing to read, or a flag makes the kernel store another way
            return _Placeholder(placeholder(m))
        return _Descriptor(self.places[m.tensor], m, view, encoder_of(m, view, self.bound.dims))

    def _unreachable(self, m: TensorMap) -> bool:
        """Whether a result that may be stored in another way has to be: the array suits no map, or its rows end inside one of
        the granules in which a bulk store writes (what lies behind the row would be overwritten)."""
        if not any(q.kind == "flag" and q.tensor == m.tensor for q in self.kernel.params):
            return False
        view = self.views[m.tensor]
        row = view.shape[m.dims[0].axis] * m.dtype.nbytes
        return row % TMA.store_granule != 0 or map_problem(m, view) is not None

    def _pointer(self, p: Param) -> Any:
        return _Address(self.places[p.tensor or p.name])

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

    def _counter(self, p: Param) -> Any:
        return _Counter()

    def _flag(self, p: Param) -> Any:
        maps = [m for m in self.kernel.maps if m.tensor == p.tensor]
        return ctypes.c_int32(not any(self._unreachable(m) for m in maps))
