"""One launch: arguments in their memory, grid, stream.

In: a kernel of the role program, its module, and the arrays and numbers of a call.  Out: a `Template`, which makes the `Launch`
for arrays of the same layout at any address; that can be run again and again on any stream. Nothing in either changes once it
is made, so threads may share them.

What doesn't depend on the call is worked out once for each kernel (`Launcher`). The arguments of a launch are one piece of
memory: the driver reads them at each launch, and pieces that lie apart would have to be fetched one by one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from math import prod
from struct import Struct
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.runtime import GridTooLarge, NegativeStride
from ..diagnostics.tools import NeedsProbeCall
from ..program.poly import compiled
from ..roles.items import divisors, multiplier, sections
from ..roles.model import COUNTERS, PROBE, CopyAsync, CopyOut, Kernel, Param, walk
from ..targets.tma import TMA
from .arrays import ArrayView, contiguous
from .bind import LIMIT, Bound
from .cuda import CudaError, Device, checked, driver
from .module import Module
from .tensor_map import ArrayRule, Encoder, Pieces, encoded, encoder_of, map_pieces, placeholder, refused

GEOMETRIES = 512  # of arrays that a kernel remembers

_LAUNCHES = count()  # what tells counters of launches that may overlap apart
_MOVING = ("map", "pointer", "counter")  # parameters that the layout doesn't decide, in their order in memory
_FORMATS = {"f32": "f4x", "i32": "i4x", "i64": "q", "bool": "i4x"}  # all of 8 bytes
_DIVISOR = Struct("=iII4x")  # as `struct Divisor` of the text


@dataclass(slots=True)
class Launch:
    """`enqueue`: the driver's call but for stream and arguments. `address` is that of the arguments' table in `memory`."""

    enqueue: Callable[[Any, int, int], tuple[Any, ...]]
    address: int
    memory: Any
    what: str

    def run(self, stream: int) -> None:
        """Enqueue on a stream (its handle). The device's context must be current."""
        result = self.enqueue(stream, self.address, 0)
        if result[0]:
            self.failed(result)

    def failed(self, result: tuple[Any, ...]) -> None:
        """Raise what the driver said."""
        checked(result, "cuLaunchKernel", self.what)


@dataclass(slots=True)
class _Map:
    """A tensor map of a template. `at`: the array's number among the views; None if the kernel doesn't copy with the map."""

    number: int
    at: int | None
    encoder: Encoder
    view: ArrayView


@dataclass(slots=True)
class Template:
    """A launch but for the addresses of its arrays. `arrays`: the numbers of those whose addresses are arguments."""

    launcher: Launcher
    enqueue: Callable[[Any, int, int], tuple[Any, ...]]
    maps: list[_Map]
    arrays: list[int]
    fixed: list[Any]
    what: str

    def at(self, pointers: Sequence[int]) -> Launch:
        """The launch for arrays at these addresses, in the order of the views that the template was made from."""
        packing = self.launcher.packing
        memory = packing.memory()
        start = ctypes.addressof(memory)
        skip = -start % TMA.map_alignment
        base = start + skip
        moving = [*self._encoded(pointers), *[pointers[k] for k in self.arrays], *self.launcher.counters()]
        packing.write(memory, skip, *moving, *self.fixed, *[base + place for place in packing.places])
        return Launch(self.enqueue, base + packing.table, memory, self.what)

    def _encoded(self, pointers: Sequence[int]) -> list[bytes]:
        somewhere = next(filter(None, pointers), 0) // TMA.global_alignment * TMA.global_alignment
        done: list[bytes] = []
        try:
            for m in self.maps:
                done.append(encoded(m.encoder, somewhere if m.at is None else pointers[m.at]))
        except CudaError as e:
            m = self.maps[len(done)]
            raise refused(self.launcher.kernel.maps[m.number], m.view, m.encoder.geometry, e) from e
        return done


class _Packing:
    """Where the arguments of a kernel lie in a launch's memory: tensor maps, what else moves, what doesn't, and the table of
    their addresses that the driver is given."""

    def __init__(self, kernel: Kernel):
        maps = sum(p.kind == "map" for p in kernel.params)
        moving = [k for kind in _MOVING for k, p in enumerate(kernel.params) if p.kind == kind]
        order = moving + [k for k, p in enumerate(kernel.params) if p.kind not in _MOVING]
        sizes = [TMA.map_bytes] * maps + [_DIVISOR.size if kernel.params[k].kind == "divisor" else 8 for k in order[maps:]]
        starts = {k: sum(sizes[:n]) for n, k in enumerate(order)}
        self.places = [starts[k] for k in range(len(order))]
        self.table = sum(sizes)
        fixed = "".join(map(_format, (kernel.params[k] for k in order[len(moving) :])))
        struct = Struct(f"={f'{TMA.map_bytes}s' * maps}{'Q' * (len(moving) - maps)}{fixed}{len(order)}Q")
        self.write = struct.pack_into
        self.memory: Callable[[], Any] = ctypes.c_char * (struct.size + TMA.map_alignment)


def _format(p: Param) -> str:
    if p.kind in ("scalar", "number"):
        return _FORMATS[p.dtype.name if p.dtype else "f32"]
    if p.kind == "divisor":
        return f"{_DIVISOR.size}s"
    return "q" if p.kind == "stride" else "i4x"


class Launcher:
    """One kernel, ready to make templates."""

    def __init__(self, kernel: Kernel):
        self.kernel, self.packing = kernel, _Packing(kernel)
        self._numbers = {m.name: k for k, m in enumerate(kernel.maps)}
        flagged = {p.tensor for p in kernel.params if p.kind == "flag"}
        self._flagged = [k for k, m in enumerate(kernel.maps) if m.tensor in flagged]
        pieces = list(in_pieces(kernel))
        self._pieces = [p for p in pieces if p.tensor not in flagged]
        self._stored = {p.tensor: p for p in [*pieces, *map(map_pieces, kernel.maps)] if p.tensor in flagged}
        self._counters = range(sum(p.kind == "counter" for p in kernel.params))
        self._maps = [p.name for p in kernel.params if p.kind == "map"]
        self._pointers = [p.tensor or p.name for p in kernel.params if p.kind == "pointer"]
        self._probes = [t.name for t in kernel.tensors if t.name.endswith(PROBE)]
        self._fixed = [p for p in kernel.params if p.kind not in _MOVING]
        # items are numbered in 32 bits; among sections, as if each were whole
        self._most = LIMIT if sections(kernel.grid) is None else LIMIT // 2
        known = divisors(kernel.grid)
        self._divisors = {p.name: compiled([known[p.name]]) for p in kernel.params if p.kind == "divisor"}
        self._blocks = compiled(axis.blocks for axis in kernel.grid.axes)
        self._extents = [compiled(d.extent for d in m.dims) for m in kernel.maps]
        kinds = [(m.dtype, tuple((d.axis, d.factor) for d in m.dims), m.box, m.swizzle) for m in kernel.maps]
        self._alike = [kinds.index(kind) for kind in kinds]  # the first map that differs in names alone: keys and values
        self._encoder = lru_cache(maxsize=GEOMETRIES)(self._new_encoder)
        self._unreachable = lru_cache(maxsize=GEOMETRIES)(self._is_unreachable)

    def counters(self) -> list[int]:
        """Counters that no other arrays' launch has, since those may run at the same time."""
        return [next(_LAUNCHES) % COUNTERS for _ in self._counters]

    def template(self, module: Module, views: Mapping[str, ArrayView], bound: Bound, device: Device) -> Template | None:
        """All of a launch that the layout of the arrays decides; None if there is nothing to do. Of the addresses in `views`
        only the place within 16 bytes counts. Raises WgError (WG06xx) for arrays that the kernel can't reach.
        """
        blocks = self._grid(bound, device)
        if not blocks:
            return None
        unheld = tuple([name.removesuffix(PROBE) for name in self._probes if name not in views])
        if unheld:
            raise WgError(NeedsProbeCall(names=unheld))
        for p in self._pieces:
            problem = p.problem(views[p.tensor])
            if problem is not None:
                raise WgError(problem)
        places = {name: k for k, name in enumerate(views)}
        maps = [self._map(self._numbers[name], views, places, bound.dims) for name in self._maps]
        fixed = [self._value(p, views, bound) for p in self._fixed]
        threads, shared, function = self.kernel.threads, module.shared, module.function(device.ordinal)
        enqueue = partial(driver().cuLaunchKernel, function, blocks, 1, 1, threads, 1, 1, shared)
        what = f"{self.kernel.name}: {blocks} x {threads} threads, {shared} bytes"
        return Template(self, enqueue, maps, [places[name] for name in self._pointers], fixed, what)

    def _grid(self, bound: Bound, device: Device) -> int:
        """How many thread blocks there are."""
        blocks = self._blocks(bound.dims)
        total = prod(max(0, n) for n in blocks)
        if total > self._most:
            axes = tuple(f"{axis.index}: {n}" for axis, n in zip(self.kernel.grid.axes, blocks, strict=True))
            raise WgError(GridTooLarge(total=total, axes=axes, limit=self._most))
        return min(total, device.multiprocessors * self.kernel.resident) if self.kernel.grid.persistent else total

    def _map(self, number: int, views: Mapping[str, ArrayView], places: Mapping[str, int], dims: Mapping[str, int]) -> _Map:
        """A map; one that isn't used where there is nothing to read, or where a flag makes the kernel store another way."""
        m = self.kernel.maps[number]
        view = views[m.tensor]
        if 0 in view.shape or (number in self._flagged and self._unreachable(m.tensor, view)):
            return _Map(number, None, placeholder(m), view)
        extents = self._extents[number](dims)
        encoder = self._encoder(self._alike[number], view, extents) or encoder_of(m, view, extents)
        return _Map(number, places[m.tensor], encoder, view)

    def _new_encoder(self, number: int, view: ArrayView, extents: tuple[int, ...]) -> Encoder | None:
        try:
            return encoder_of(self.kernel.maps[number], view, extents)
        except WgError:  # it names the first of the maps that are alike
            return None

    def _is_unreachable(self, tensor: str, view: ArrayView) -> bool:
        """Whether a result that may be stored in another way has to be: the array can't be reached 16 bytes at once, or its
        rows end inside such a piece (what lies behind the row would be overwritten)."""
        p = self._stored[tensor]
        row = view.shape[p.inner] * p.nbytes
        return row % TMA.store_granule != 0 or p.problem(view) is not None

    def _value(self, p: Param, views: Mapping[str, ArrayView], bound: Bound) -> Any:
        """The value of a parameter that the layout decides."""
        if p.kind == "stride":
            return _stride(p, views)
        if p.kind == "dim":
            return bound.dims[p.name]
        if p.kind == "scalar":
            return bound.scalars[p.name]
        if p.kind == "divisor":
            (divisor,) = self._divisors[p.name](bound.dims)
            return _DIVISOR.pack(divisor, *multiplier(divisor))
        if p.value is not None:
            from ..program.functions import single  # needs numpy, which an import of wgdsl leaves for later

            return single(p.value, bound.scalars)
        tensor = p.tensor or p.name
        return int(not self._unreachable(tensor, views[tensor]))


def _stride(p: Param, views: Mapping[str, ArrayView]) -> int:
    assert p.tensor is not None and p.axis is not None
    v = views[p.tensor]
    stride = v.strides[p.axis]
    if stride < 0 and v.shape[p.axis] > 1 and 0 not in v.shape:
        raise WgError(NegativeStride(name=p.tensor, axis=p.axis, stride=stride))
    return stride


def refusals(kernel: Kernel, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[ArrayRule]:
    """Why dense arrays of these shapes can't be launched on: the tensor maps that don't fit and that nothing stands in for."""
    flagged = {p.tensor for p in kernel.params if p.kind == "flag"}
    for p in (*map(map_pieces, kernel.maps), *in_pieces(kernel)):
        if p.tensor in flagged or p.tensor not in shapes:  # another way to store, or memory that the run time lays out
            continue
        shape = shapes[p.tensor]
        problem = p.problem(ArrayView(0, shape, contiguous(shape), kernel.tensor(p.tensor).dtype.name, 0, "numpy"))
        if problem is not None:
            yield problem


def in_pieces(kernel: Kernel) -> Iterator[Pieces]:
    """The tensors that threads copy 16 bytes at once."""
    found: dict[Pieces, None] = {}
    for s in (s for role in kernel.roles for s in walk(role.steps)):
        if isinstance(s, CopyAsync) or (isinstance(s, CopyOut) and s.wide):
            inner = next(k for k, p in enumerate(s.access) if p.bare == s.cols.index)
            others = tuple([k for k in range(len(s.access)) if k != inner])
            found[Pieces(s.tensor, kernel.tensor(s.tensor).dtype.nbytes, inner, others)] = None
    yield from found
