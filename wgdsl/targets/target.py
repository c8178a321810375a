"""What one architecture has: the limits of an SM and a CTA, and the engines that a schedule may name."""

from __future__ import annotations

from dataclasses import dataclass

from .registers import FILE, GRANULE, LANES, WARPGROUP

PLAIN = ("f32", "f16", "bf16", "i32")  # elements that threads of every target read, write and round to
EIGHT_BITS = ("e4m3", "e5m2")  # where cvt takes them: from sm_89 on (PTX ISA: "cvt", target notes)


@dataclass(frozen=True, kw_only=True)
class Target:
    """One architecture. `family`: those that the same lowerings serve. `shared_limit`: bytes that a CTA may ask for;
    `shared_slack`: how many of them go into aligning the base by hand; `threads`: of a CTA, `sm_threads` of an SM, at most;
    `sm_ctas`: that an SM runs at once, at most (CUDA C++ Programming Guide, "Compute Capabilities"); `unit`: what a role is
    counted in; `thread_registers`: that a role may ask for, at most; `products`, `copies`, `stores`: engines by the names that
    schedules use; `matrix_stores`: whether it has stmatrix; `elements`: types that its threads load, store and round to."""

    name: str
    family: str
    shared_sm: int
    shared_reserved: int
    shared_limit: int
    shared_alignment: int
    shared_slack: int
    named_barriers: int
    threads: int
    sm_threads: int
    sm_ctas: int
    unit: str
    thread_registers: int
    products: tuple[str, ...]
    copies: tuple[str, ...]
    stores: tuple[str, ...]
    matrix_stores: bool
    elements: tuple[str, ...]

    def __post_init__(self):
        assert self.shared_limit == self.shared_sm - self.shared_reserved
        assert self.shared_slack in (0, self.shared_alignment) and self.threads % WARPGROUP == 0
        assert self.sm_threads >= self.threads

    def shared_bytes(self, used: int) -> int:
        """What a launch asks for."""
        return used + self.shared_slack if used else 0

    def resident(self, *, threads: int, registers: int, shared: int = 0) -> int:
        """CTAs that an SM holds at once. registers: of a thread at launch; a warp gets them in whole granules of its threads.
        shared: bytes that a launch asks for."""
        warps = -(-threads // LANES)
        granted = max(-(-registers // GRANULE), 1) * GRANULE * LANES * warps
        return min(
            self.sm_ctas,
            self.sm_threads // (warps * LANES),
            FILE // granted,
            self.shared_sm // (shared + self.shared_reserved),
        )
