"""Tensor maps of a call: the descriptor that the copy engine reads, for one array.

In: a `TensorMap` of the role program, the dims, and where the array lies.  Out: the driver's 128 bytes. What the engine can't
do is found before the driver is asked, and said with the argument's name, the axis, the bytes and the rule.
"""

from __future__ import annotations

from ctypes import string_at
from functools import lru_cache
from typing import Any, NamedTuple

from ..diagnostics.model import WgError
from ..diagnostics.runtime import BaseRule, InnerStride, MapRefused, StrideRule, WholeGroups
from ..roles.model import TensorMap
from ..targets.tma import TMA
from .arrays import ArrayView
from .cuda import CudaError, checked, driver

ArrayRule = InnerStride | BaseRule | StrideRule

_TYPES = {
    "f32": "FLOAT32",
    "f16": "FLOAT16",
    "bf16": "BFLOAT16",
    "e4m3": "UINT8",
    "e5m2": "UINT8",
    "i32": "INT32",
    "i64": "INT64",
}


class Geometry(NamedTuple):
    """What the driver is told. Extents and box in elements, strides in bytes (of all dimensions but the first)."""

    dtype: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int


class Pieces(NamedTuple):
    """How a tensor is reached 16 bytes at once: rows along `inner`, one after the other along `others`."""

    tensor: str
    nbytes: int  # of an element
    inner: int
    others: tuple[int, ...]

    def problem(self, view: ArrayView) -> ArrayRule | None:
        """Why an array can't be reached so; None if it can. An axis of one element may have any stride."""
        if 0 in view.shape:
            return None
        if view.strides[self.inner] != 1 and view.shape[self.inner] > 1:
            return InnerStride(name=self.tensor, axis=self.inner, stride=view.strides[self.inner])
        if view.pointer % TMA.global_alignment:
            return BaseRule(name=self.tensor, off=view.pointer % TMA.global_alignment, multiple=TMA.global_alignment)
        steps = [(axis, view.strides[axis] * self.nbytes) for axis in self.others if view.shape[axis] > 1]
        wrong = [(axis, n) for axis, n in steps if n % TMA.stride_multiple or not 0 <= n < TMA.stride]
        return StrideRule(name=self.tensor, axis=min(wrong)[0], nbytes=min(wrong)[1]) if wrong else None


def map_pieces(m: TensorMap) -> Pieces:
    """What a map asks of the array."""
    inner = m.dims[0].axis
    return Pieces(m.tensor, m.dtype.nbytes, inner, tuple([d.axis for d in m.dims[1:] if d.axis != inner]))


def map_problem(m: TensorMap, view: ArrayView) -> ArrayRule | None:
    """Why the copy engine can't reach this array; None if it can. Whether a stride may be 0 (a broadcast axis) is for the
    driver to say."""
    return map_pieces(m).problem(view)


def reach_problem(m: TensorMap, view: ArrayView, extents: tuple[int, ...]) -> WholeGroups | None:
    """Whether a map whose dimensions share an axis reaches further along it than the array does: each is clipped by itself."""
    reach: dict[int, int] = {}
    for d, extent in zip(m.dims, extents, strict=True):
        reach[d.axis] = reach.get(d.axis, 1) + (extent - 1) * d.factor
    for axis, n in reach.items():
        if n > view.shape[axis]:
            group = max(d.factor for d in m.dims if d.axis == axis)
            return WholeGroups(name=m.tensor, axis=axis, length=view.shape[axis], group=group)
    return None


def geometry(m: TensorMap, view: ArrayView, extents: tuple[int, ...]) -> Geometry:
    """Extents (of the map's dimensions) and strides. The stride of an extent of 1 is never used, and replaced by one that is
    legal."""
    size = m.dtype.nbytes
    row = _up(extents[0] * size)
    strides = [
        view.strides[d.axis] * d.factor * size if extent > 1 and view.shape[d.axis] > 1 else row
        for d, extent in zip(m.dims[1:], extents[1:], strict=True)
    ]
    return Geometry(m.dtype.name, extents, tuple(strides), m.box, m.swizzle)


class Encoder:
    """Makes the descriptors of one geometry, wherever the array lies."""

    def __init__(self, g: Geometry):
        self.geometry, number = g, driver().cuuint64_t
        kind, after = _fixed(g.dtype, g.box, g.swizzle)
        self._before, self._after = (kind, len(g.extents)), ([*map(number, g.extents)], [*map(number, g.strides)], *after)

    def encode(self, pointer: int) -> bytes:
        """The driver's descriptor. Raises CudaError."""
        made = checked(driver().cuTensorMapEncodeTiled(*self._before, pointer, *self._after), "cuTensorMapEncodeTiled")
        return string_at(made.getPtr(), TMA.map_bytes)


@lru_cache(maxsize=256)
def _fixed(dtype: str, box: tuple[int, ...], swizzle: int) -> tuple[Any, tuple[Any, ...]]:
    """The driver's words for what one map has in all calls: its type, and what comes after extents and strides."""
    d = driver()
    name = f"CU_TENSOR_MAP_SWIZZLE_{swizzle}B" if swizzle else "CU_TENSOR_MAP_SWIZZLE_NONE"
    return getattr(d.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_TYPES[dtype]}"), (
        [d.cuuint32_t(n) for n in box],
        [d.cuuint32_t(1)] * len(box),
        d.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(d.CUtensorMapSwizzle, name),
        d.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        d.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )


@lru_cache(maxsize=512)
def encoder(g: Geometry) -> Encoder:
    """The encoder of a geometry: the same one for all calls, so that they share descriptors."""
    return Encoder(g)


@lru_cache(maxsize=4096)
def encoded(e: Encoder, pointer: int) -> bytes:
    """The descriptor at an address, made once."""
    return e.encode(pointer)


def forget() -> None:
    """Drop every descriptor made so far."""
    _fixed.cache_clear()
    encoder.cache_clear()
    encoded.cache_clear()


def placeholder(m: TensorMap) -> Encoder:
    """Of a descriptor that the kernel is given but doesn't copy with: one element, at any address that exists."""
    rest = len(m.dims) - 1
    return encoder(Geometry(m.dtype.name, (1,) * (rest + 1), (_up(m.dtype.nbytes),) * rest, m.box, m.swizzle))


def encoder_of(m: TensorMap, view: ArrayView, extents: tuple[int, ...]) -> Encoder:
    """The encoder for an array that has elements. Of its address only the place within 16 bytes counts.

    Raises WgError (WG0607 to WG0609) with the argument's name.
    """
    problem = map_problem(m, view) or reach_problem(m, view, extents)
    if problem is not None:
        raise WgError(problem)
    return encoder(geometry(m, view, extents))


def refused(m: TensorMap, view: ArrayView, g: Geometry, e: CudaError) -> WgError:
    """What to say when the driver takes no such map."""
    for d in m.dims[1:]:
        if view.strides[d.axis] == 0 and view.shape[d.axis] > 1:
            return WgError(StrideRule(name=m.tensor, axis=d.axis, nbytes=0))
    what = f"extents {list(g.extents)}, strides {list(g.strides)} bytes, box {list(g.box)}, swizzle {g.swizzle}"
    return WgError(MapRefused(name=m.tensor, code_name=e.code, what=what))


def _up(nbytes: int) -> int:
    return -(-nbytes // TMA.stride_multiple) * TMA.stride_multiple
