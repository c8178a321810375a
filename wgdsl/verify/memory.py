"""Shared memory: the total against the target's limit, alignment, and that only what is declared to overlap does."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics.budget import Share
from ..diagnostics.model import Problem
from ..diagnostics.verify import SharedLayout, SharedMemory
from ..roles.model import Barrier, Buffer, Kernel
from ..roles.shares import share_of
from ..targets.choice import TARGETS
from ..targets.mbarrier import MBARRIER_BYTES
from ..targets.tma import TMA


def memory_problems(kernel: Kernel) -> Iterator[Problem]:
    """Shared memory beyond the target's limit, out of alignment, or overlapping undeclared."""
    yield from _total(kernel)
    yield from _layout(kernel)


def _total(kernel: Kernel) -> Iterator[SharedMemory]:
    target = TARGETS[kernel.target]
    if target.shared_bytes(kernel.shared_bytes) <= target.shared_limit:
        return
    largest = max((b for b in kernel.buffers if b.over is None), key=lambda b: b.total_bytes, default=None)
    yield SharedMemory(
        span=largest.span if largest else None,
        limit=target.shared_limit,
        shares=tuple(_shares(kernel)),
        target=kernel.target,
    )


def _shares(kernel: Kernel) -> Iterator[Share]:
    """Every byte of the total, by name."""
    for b in kernel.buffers:
        yield share_of(b)
    count = sum(b.parts * b.stages for b in kernel.barriers)
    if count:
        yield Share(name="barriers", amount=count * MBARRIER_BYTES, detail=f"{count} x {MBARRIER_BYTES}")
    named = sum(b.total_bytes for b in kernel.buffers if b.over is None) + count * MBARRIER_BYTES
    if kernel.shared_bytes > named:
        yield Share(name="gaps between them", amount=kernel.shared_bytes - named)
    slack = TARGETS[kernel.target].shared_slack
    if slack:
        yield Share(name="alignment of the base", amount=slack)


def _size(b: Barrier) -> int:
    return MBARRIER_BYTES * b.parts * b.stages


def _layout(kernel: Kernel) -> Iterator[SharedLayout]:
    ranges = [(b, b.offset, b.offset + b.total_bytes) for b in kernel.buffers]
    ranges += [(b, b.offset, b.offset + _size(b)) for b in kernel.barriers]
    for k, (a, low, high) in enumerate(ranges):
        align = _alignment(a)
        step = a.stride if isinstance(a, Buffer) else align
        if low % align or step % align:
            yield SharedLayout(span=_span(a), what=a.name, why=f"doesn't start on a multiple of {align} bytes")
        if isinstance(a, Buffer) and a.stride < a.tile_bytes:
            yield SharedLayout(span=a.span, what=a.name, why=f"has tiles of {a.tile_bytes} bytes, {a.stride} bytes apart")
        if high > kernel.shared_bytes:
            why = f"ends at {high}, the kernel asks for {kernel.shared_bytes} bytes"
            yield SharedLayout(span=_span(a), what=a.name, why=why)
        for b, low_b, high_b in ranges[k + 1 :]:
            if low < high_b and low_b < high and not _may_share(a, b):
                yield SharedLayout(span=_span(a), what=a.name, why=f"overlaps `{b.name}` and isn't declared to")


def _alignment(x: Buffer | Barrier) -> int:
    """A swizzled tile starts on a swizzle atom; others where a bulk copy may, on every target."""
    if isinstance(x, Barrier):
        return MBARRIER_BYTES
    return TMA.shared_alignment if x.swizzle else TMA.unswizzled_alignment


def _span(x: Buffer | Barrier):
    return x.span if isinstance(x, Buffer) else None


def _may_share(a: Buffer | Barrier, b: Buffer | Barrier) -> bool:
    return isinstance(a, Buffer) and isinstance(b, Buffer) and (a.over == b.name or b.over == a.name)
