"""Operators on what a kernel declares: counts of barriers, stages of rings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..foundation.source import NOWHERE, Place
from ..roles.model import Buffer, Kernel, Ring
from ..targets.choice import TARGETS
from ..targets.mbarrier import MBARRIER_BYTES
from .model import Variant
from .paths import held, refilled

ALIGNED = 1024  # bytes: where a tile of any swizzle may begin


def other_counts(kernel: Kernel) -> Iterator[Variant]:
    """Each barrier made for one arrival more, or one less."""
    for k, b in enumerate(kernel.barriers):
        for by in (1, -1):
            if b.count + by > 0:
                changed = (*kernel.barriers[:k], replace(b, count=b.count + by), *kernel.barriers[k + 1 :])
                yield Variant(
                    kernel=replace(kernel, barriers=changed),
                    event=f"barrier {b.name} count {b.count}",
                    what=f"its count {by:+d}",
                    place=_place(kernel, kernel.ring(b.ring)),
                )


def too_small(kernel: Kernel) -> Iterator[Variant]:
    """Rings with one stage less than a role holds at once. It then waits for a fill that waits for it, or copies over what it
    has still to read."""
    for ring in kernel.rings:
        least = held(kernel, ring)
        if refilled(kernel, ring) and 1 < least <= ring.stages and not _shared(kernel, ring):
            yield _resized(kernel, ring, least - 1)


def smaller(kernel: Kernel) -> Iterator[Variant]:
    """Rings with one stage less, where that is what their roles hold at once, or more."""
    for ring in kernel.rings:
        if refilled(kernel, ring) and held(kernel, ring) < ring.stages and not _shared(kernel, ring):
            yield _resized(kernel, ring, ring.stages - 1)


def larger(kernel: Kernel) -> Iterator[Variant]:
    """Rings with one stage more, where shared memory has room for it."""
    for ring in kernel.rings:
        if refilled(kernel, ring) and not _shared(kernel, ring):
            out = _resized(kernel, ring, ring.stages + 1)
            target = TARGETS[kernel.target]
            if target.shared_bytes(out.kernel.shared_bytes) <= target.shared_limit:
                yield out


def _shared(kernel: Kernel, ring: Ring) -> bool:
    """Whether a buffer of the ring lies over another, or under one: its stages are then the other's affair too."""
    over = {b.name: b.over for b in kernel.buffers}
    return any(over[b] is not None or b in over.values() for b in ring.buffers)


def _resized(kernel: Kernel, ring: Ring, stages: int) -> Variant:
    """The ring, its buffers and its barriers with other stages, and shared memory laid out anew."""
    of = lambda xs: tuple(replace(x, stages=stages) if x.ring == ring.name else x for x in xs)  # noqa: E731
    rings = tuple(replace(r, stages=stages) if r is ring else r for r in kernel.rings)
    new = laid_out(replace(kernel, rings=rings, buffers=of(kernel.buffers), barriers=of(kernel.barriers)))
    what = f"{stages} stage{'s' if stages > 1 else ''}"
    return Variant(kernel=new, event=f"ring {ring.name} stages {ring.stages}", what=what, place=_place(kernel, ring))


def laid_out(kernel: Kernel) -> Kernel:
    """The kernel with its buffers one behind the other, barriers behind them; a buffer over another follows that one."""
    at, moved = 0, {}
    for b in kernel.buffers:
        if b.over is None:
            moved[b.name] = b.offset - at
            at = -(-(at + b.total_bytes) // ALIGNED) * ALIGNED
    by = {b.name: moved[_bottom(kernel, b)] for b in kernel.buffers}
    buffers = tuple(replace(b, offset=b.offset - by[b.name]) for b in kernel.buffers)
    barriers = []
    for x in kernel.barriers:
        barriers.append(replace(x, offset=at))
        at += MBARRIER_BYTES * x.parts * x.stages
    return replace(kernel, buffers=buffers, barriers=tuple(barriers), shared_bytes=at)


def _bottom(kernel: Kernel, b: Buffer) -> str:
    return b.name if b.over is None else _bottom(kernel, kernel.buffer(b.over))


def _place(kernel: Kernel, ring: Ring) -> Place:
    spans = (kernel.buffer(b).span for b in ring.buffers)
    return next((s.place for s in spans if s is not None), NOWHERE)
