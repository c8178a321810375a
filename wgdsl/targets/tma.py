"""Tensor copies: limits of maps and boxes (CUDA driver API: cuTensorMapEncodeTiled; PTX ISA: "cp.async.bulk.tensor")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .swizzle import SWIZZLES


@dataclass(frozen=True, kw_only=True)
class TmaLimits:
    """What a tensor map may say. Strides and alignments in bytes, boxes in elements.

    store_granule: a store is clipped to the innermost extent in steps of so many bytes (seen on an H200; loads are exact)."""

    rank: int
    box: int
    stride: int
    stride_multiple: int
    global_alignment: int
    shared_alignment: int
    unswizzled_alignment: int
    map_bytes: int
    map_alignment: int
    store_granule: int

    def __post_init__(self):
        assert self.global_alignment == self.stride_multiple and self.map_bytes % self.map_alignment == 0
        assert all(self.shared_alignment % s.period == 0 for s in SWIZZLES.values()), "panels keep the swizzle's phase"


TMA = TmaLimits(
    rank=5,
    box=256,
    stride=1 << 40,
    stride_multiple=16,
    global_alignment=16,
    shared_alignment=1024,
    unswizzled_alignment=128,
    map_bytes=128,
    map_alignment=64,
    store_granule=16,
)


def box_problem(box: Sequence[int], nbytes: int, swizzle: int) -> str | None:
    """Why a box cannot be copied in one instruction; None if it can."""
    if not 1 <= len(box) <= TMA.rank:
        return f"{len(box)} dimensions, of at most {TMA.rank}"
    if any(not 1 <= extent <= TMA.box for extent in box):
        return f"a box extent outside 1 .. {TMA.box}: {tuple(box)}"
    inner = box[0] * nbytes
    if inner % TMA.stride_multiple:
        return f"{inner} bytes in a row of the box, not a multiple of {TMA.stride_multiple}"
    if swizzle and inner > SWIZZLES[swizzle].span:
        return f"{inner} bytes in a row of the box, more than the swizzle's {swizzle}"
    return None
