"""Operands that need no registers of their own: packed in place, since the tile that they come from isn't used while they live.

In: a role's steps.  Out: the names of such operands, with that tile. Measured: attention without overlap takes 24 registers
beside its two accumulators on every tile that ptxas compiles without spills; with overlap it takes the operand's too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..program.expr import Reg, walk
from ..roles.model import (
    Commit,
    Compute,
    Kernel,
    Loop,
    Mma,
    Pack,
    RegOperand,
    Role,
    Step,
    StoreGlobal,
    StoreShared,
    WaitGroup,
    Wgmma,
    Zero,
)


def packed_in_place(kernel: Kernel, role: Role) -> dict[str, str]:
    """Operand -> the tile in whose registers it can lie."""
    own = {v.name: v.over or v.name for v in kernel.values if v.role == role.name}
    scan = _Scan(own)
    for s in _unrolled(role.steps):
        scan.step(s)
    return {name: base for name, base in scan.sources.items() if name not in scan.apart}


def _unrolled(steps: tuple[Step, ...]) -> Iterator[Step]:
    """The steps in their order, loops twice: the second round begins with what the first one leaves."""
    for s in steps:
        blocks = s.blocks()
        if not blocks:
            yield s
        for block in blocks * (2 if isinstance(s, Loop) else 1):
            yield from _unrolled(block)


@dataclass
class _Scan:
    homes: Mapping[str, str]  # value -> the registers that it lives in
    sources: dict[str, str] = field(default_factory=dict)
    apart: set[str] = field(default_factory=set)
    live: set[str] = field(default_factory=set)
    issued: set[str] = field(default_factory=set)
    groups: list[set[str]] = field(default_factory=list)

    def step(self, s: Step) -> None:
        touched = {self.homes[n] for n in _touched(s) if n in self.homes}
        self.apart |= {name for name in self.live if self.sources[name] in touched}
        if isinstance(s, Pack):
            base = self.homes[s.src]
            if self.sources.setdefault(s.dst, base) != base:
                self.apart.add(s.dst)
            self.live.add(s.dst)
        elif isinstance(s, Wgmma) and isinstance(s.a, RegOperand):
            self.issued.add(s.a.value)
        elif isinstance(s, Mma) and isinstance(s.a, RegOperand):
            self.live.discard(s.a.value)
        elif isinstance(s, Commit):
            self.groups.append(self.issued)
            self.issued = set()
        elif isinstance(s, WaitGroup):
            ended = max(0, len(self.groups) - s.pending)
            self.live -= set().union(*self.groups[:ended])
            self.groups = self.groups[ended:]


def _touched(s: Step) -> Iterator[str]:
    """Tiles that a step reads or writes, but for the packing itself."""
    if isinstance(s, Wgmma | Mma):
        yield s.acc
    elif isinstance(s, Compute):
        for op in s.ops:
            yield op.dst
            yield from (x.name for e in op.exprs for x in walk(e) if isinstance(x, Reg))
    elif isinstance(s, Zero):
        yield s.value
    elif isinstance(s, StoreShared):
        yield s.src
    elif isinstance(s, StoreGlobal):
        yield from (x.name for x in walk(s.value) if isinstance(x, Reg))
