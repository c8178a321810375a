"""mbarriers (PTX ISA: "Parallel Synchronization and Communication Instructions: mbarrier")."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class BarrierLimits:
    """One mbarrier: its bytes in shared memory, the arrivals that a phase may expect, and the bytes it may have pending."""

    nbytes: int
    count: int
    pending_bytes: int

    def __post_init__(self):
        assert self.nbytes == 8 and self.count == self.pending_bytes == (1 << 20) - 1


MBARRIER = BarrierLimits(nbytes=8, count=(1 << 20) - 1, pending_bytes=(1 << 20) - 1)
