"""Hopper: the limits of one SM and one CTA, and the engines that a schedule may name."""

from __future__ import annotations

from dataclasses import dataclass

from .registers import WARPGROUP


@dataclass(frozen=True, kw_only=True)
class Target:
    """One architecture. `shared_limit`: bytes that a CTA may ask for; `shared_slack`: how many of them go into aligning
    the base by hand; `threads`: of a CTA, at most; `products` and `copies`: engines by the names that schedules use."""

    name: str
    shared_sm: int
    shared_reserved: int
    shared_limit: int
    shared_alignment: int
    shared_slack: int
    named_barriers: int
    threads: int
    products: tuple[str, ...]
    copies: tuple[str, ...]

    def __post_init__(self):
        assert self.shared_limit == self.shared_sm - self.shared_reserved
        assert self.shared_slack == self.shared_alignment and self.threads % WARPGROUP == 0


SM_90A = Target(
    name="sm_90a",
    shared_sm=228 * 1024,
    shared_reserved=1024,
    shared_limit=232448,
    shared_alignment=1024,
    shared_slack=1024,
    named_barriers=16,
    threads=1024,
    products=("wgmma",),
    copies=("tma",),
)
