"""What a step does to registers and shared memory, seen by one role: what two steps may have in common."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from ..program.expr import regs
from ..roles import model as m
from ..roles.model import Kernel, Step
from .sites import sites

GENERIC_WRITES = (m.StoreShared, m.ClearRows, m.CopyAsync, m.Transpose)
# Of shared memory, but for products that nobody waits for at once.
ACCESSES = (
    m.StoreShared,
    m.ClearRows,
    m.CopyOut,
    m.CopyAsync,
    m.Mma,
    m.TmaStore,
    m.PutItem,
    m.TakeItem,
    m.ReadShared,
    m.Transpose,
)
SIGNALS = (m.Arrive, m.BarArrive, m.BarSync)


class Effects:
    """The steps of role number `role`. Registers go by the value that owns them, memory by the buffer that others lie over."""

    def __init__(self, kernel: Kernel, role: int):
        self.kernel, self.role = kernel, kernel.roles[role]

    @cached_property
    def owners(self) -> dict[str, str]:
        """Each value of the role -> the value whose registers it lives in."""
        over = {v.name: v.over for v in self.kernel.values if v.role == self.role.name}
        return {name: _end(name, over) for name in over}

    @cached_property
    def bases(self) -> dict[str, str]:
        """Each buffer -> the buffer whose memory it shares."""
        over = {b.name: b.over for b in self.kernel.buffers}
        return {name: _end(name, over) for name in over}

    def registers(self, s: Step) -> tuple[frozenset[str], frozenset[str]]:
        """What threads read and write themselves; a product's registers are no such thing."""
        reads, writes = _names(s)
        return frozenset(self.owners[n] for n in reads), frozenset(self.owners[n] for n in writes)

    def clash(self, a: Step, b: Step) -> bool:
        """Whether threads themselves pass a value from one step to the other, or write over one, in registers."""
        (reads, writes), (others, written) = self.registers(a), self.registers(b)
        return bool(writes & (others | written) or reads & written)

    def product(self, s: m.Wgmma) -> frozenset[str]:
        """The registers of a product: its accumulator, and its operand if that is one."""
        return frozenset(self.owners[n] for n in (s.acc, *((s.a.value,) if isinstance(s.a, m.RegOperand) else ())))

    def operands(self, s: m.Wgmma | m.Mma) -> frozenset[str]:
        """The memory that a product reads."""
        return frozenset(self.bases[x.buffer] for x in (s.a, s.b) if isinstance(x, m.SmemOperand))

    def ring_memory(self, barrier: str) -> frozenset[str]:
        """The memory that a barrier speaks for."""
        return frozenset(self.bases[b] for b in self.kernel.ring(self.kernel.barrier(barrier).ring).buffers)

    def slots(self, s: Step) -> Iterator[tuple[str, m.Slot]]:
        """(part, slot) of every stage of a ring that a step names."""
        if isinstance(s, m.Wgmma | m.Mma):
            yield from ((str(x.part), x.slot) for x in (s.a, s.b) if isinstance(x, m.SmemOperand))
        elif isinstance(slot := getattr(s, "slot", None), m.Slot):
            yield str(getattr(s, "part", "")), slot

    @cached_property
    def _passed(self) -> frozenset[int]:
        """The named barriers that somebody arrives on without waiting."""
        return self._numbers(m.BarArrive)

    def touched(self, s: Step) -> frozenset[str]:
        """The memory that a step reads or writes itself, or has copied or multiplied."""
        if isinstance(s, m.Wgmma | m.Mma):
            return self.operands(s)
        buffer = getattr(s, "buffer", None) if isinstance(s, (*ACCESSES, m.Tma)) else None
        return frozenset() if buffer is None else frozenset({self.bases[buffer]})

    @cached_property
    def private(self) -> frozenset[str]:
        """Memory that each warpgroup of this role has for itself: no other role touches it, and no step names a part of it that
        isn't the warpgroup's own."""
        every = [(r, s) for r in self.kernel.roles for _, s in sites(r.steps)]
        shared = {b for r, s in every for b in self.touched(s) if r is not self.role or str(getattr(s, "part", "")) != "wg"}
        return frozenset(self.bases.values()) - shared

    def rendezvous(self, s: Step) -> bool:
        """Whether a step is a named barrier on which everybody waits: it orders memory. On others turns are given, or warps
        agree on what they list."""
        if not isinstance(s, m.BarSync) or isinstance(s, m.ListTile):
            return False
        numbers = {s.id.substitute({"wg": w}).constant for w in range(self.role.count)}
        return not numbers & self._passed

    def _numbers(self, kind: type[m.BarSync | m.BarArrive]) -> frozenset[int]:
        every = ((r, s) for r in self.kernel.roles for _, s in sites(r.steps) if isinstance(s, kind))
        ids = (s.id.substitute({"wg": w}).constant for r, s in every for w in range(r.count))
        return frozenset(n for n in ids if n is not None)


def _end(name: str, over: dict[str, str | None]) -> str:
    while (below := over[name]) is not None:
        name = below
    return name


def _names(s: Step) -> tuple[set[str], set[str]]:
    if isinstance(s, m.Compute):
        return {n for op in s.ops for e in op.exprs for n in regs(e)}, {op.dst for op in s.ops}
    if isinstance(s, m.Mma):  # its warps' own instruction; a product of a warpgroup goes on behind their backs
        return {s.acc, *((s.a.value,) if isinstance(s.a, m.RegOperand) else ())}, {s.acc}
    if isinstance(s, m.Pack | m.Move):
        return {s.src}, {s.dst}
    if isinstance(s, m.ReadShared):
        return set(), {s.dst}
    if isinstance(s, m.Zero | m.Forget):
        return set(), {s.value}
    if isinstance(s, m.StoreShared):
        return {s.src}, set()
    if isinstance(s, m.StoreGlobal):
        return set(regs(s.value)), set()
    if isinstance(s, m.Classify):
        return set(), {s.some, s.every}
    if isinstance(s, m.ListTile):
        return {s.some, s.every, s.count}, {s.count}
    if isinstance(s, m.Tally):
        return {s.count}, set()
    return set(), set()
