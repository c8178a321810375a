"""Hopper: the limits of one SM and one CTA, and the lookups that placement asks for."""

from __future__ import annotations

from dataclasses import dataclass

from .registers import launch_registers
from .swizzle import swizzle_for

__all__ = ["SM_90A", "Target", "launch_registers", "swizzle_for"]


@dataclass(frozen=True, kw_only=True)
class Target:
    """One architecture. `shared_limit`: bytes that a CTA may ask for; `shared_slack`: how many of them go into aligning
    the base by hand; `engines`: what a schedule may name."""

    name: str
    shared_sm: int
    shared_reserved: int
    shared_limit: int
    shared_alignment: int
    shared_slack: int
    named_barriers: int
    warpgroup: int
    threads: int
    engines: tuple[str, ...]

    def __post_init__(self):
        assert self.shared_limit == self.shared_sm - self.shared_reserved
        assert self.shared_slack == self.shared_alignment and self.threads % self.warpgroup == 0

    @property
    def shared_usable(self) -> int:
        """Bytes left for buffers and barriers."""
        return self.shared_limit - self.shared_slack


SM_90A = Target(
    name="sm_90a",
    shared_sm=228 * 1024,
    shared_reserved=1024,
    shared_limit=232448,
    shared_alignment=1024,
    shared_slack=1024,
    named_barriers=16,
    warpgroup=128,
    threads=1024,
    engines=("tma", "wgmma", "store"),
)
