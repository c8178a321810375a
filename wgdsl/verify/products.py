"""Products: fenced before they start, committed, and awaited before their registers are touched or their role ends.

A role's steps are walked with the set of states that may stand before each: both sides of a branch, none and several rounds
of a loop. Which branch goes with which isn't known here, so a step is reported only if it is wrong in every state in which
it is reached (in a loop: in every first-round or in every later-round state); the rest is for the closure to prove.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..diagnostics.model import Problem
from ..diagnostics.verify import NeverAwaited, NoProductFence, TouchedInFlight
from ..program.expr import regs
from ..roles import model as m
from ..roles.model import Kernel, Role, Step
from ..roles.text import op_text, step_text

ROUNDS = 8  # after which a loop's states must repeat


@dataclass(frozen=True)
class State:
    """Products by number in the role; `touched`: registers used by the warpgroup since the last fence."""

    touched: frozenset[str]
    issued: frozenset[int] = frozenset()  # not committed
    groups: tuple[frozenset[int], ...] = ()

    @property
    def flying(self) -> frozenset[int]:
        return self.issued.union(*self.groups)


@dataclass(frozen=True)
class Touch:
    """Registers that a step reads and writes, by the name of the value that owns them."""

    reads: frozenset[str]
    writes: frozenset[str]
    text: str


def product_problems(kernel: Kernel) -> Iterator[Problem]:
    for role in kernel.roles:
        yield from _Walk(kernel, role).problems()


class _Walk:
    def __init__(self, kernel: Kernel, role: Role):
        self.kernel, self.role = kernel, role
        self.values = {v.name: v for v in kernel.values if v.role == role.name}
        self.products: list[m.Wgmma] = []
        self.numbers: dict[int, int] = {}
        self.found: dict[tuple, Problem] = {}

    def problems(self) -> Iterator[Problem]:
        states = {State(touched=frozenset(self.owner(v) for v in self.values))}
        states = self.walk(self.role.steps, states)
        left = frozenset.intersection(*(s.flying for s in states)) if states else frozenset()
        for n in sorted(left):
            committed = all(n not in s.issued for s in states)
            p = self.products[n]
            self.report(p, NeverAwaited(span=p.span, product=self.text(p), role=self.role.name, committed=committed))
        yield from self.found.values()

    # ---- names
    def owner(self, name: str) -> str:
        while (over := self.values[name].over) is not None:
            name = over
        return name

    def text(self, s: Step) -> str:
        return step_text(self.kernel, s)

    def number(self, s: m.Wgmma) -> int:
        if id(s) not in self.numbers:
            self.numbers[id(s)] = len(self.products)
            self.products.append(s)
        return self.numbers[id(s)]

    def report(self, step: Step, problem: Problem) -> None:
        self.found.setdefault((id(step), type(problem)), problem)

    # ---- control
    def walk(self, steps: tuple[Step, ...], states: set[State]) -> set[State]:
        for s in steps:
            if not states:
                return states
            states = self.step(s, states)
        return states

    def step(self, s: Step, states: set[State]) -> set[State]:
        if isinstance(s, m.Loop | m.Items):
            return self.loop(s, states)
        if isinstance(s, m.If):
            return self.walk(s.then, states) | self.walk(s.other, states)
        if isinstance(s, m.Elect):
            return self.walk(s.body, states)
        if isinstance(s, m.Wgmma):
            return self.product(s, states)
        if isinstance(s, m.FenceWgmma):
            return {replace(x, touched=frozenset()) for x in states}
        if isinstance(s, m.Commit):
            return {replace(x, issued=frozenset(), groups=(*x.groups, x.issued)) for x in states}
        if isinstance(s, m.WaitGroup):
            return self.wait(s, states)
        for touch in self.touches(s):
            states = self.touch(s, touch, states)
        return states

    def loop(self, s: m.Loop | m.Items, states: set[State]) -> set[State]:
        seen = set(states)
        for _ in range(ROUNDS):
            states = self.walk(s.body, states)
            if states <= seen or self.at_most_once(s):
                break
            seen |= states
        return seen | states

    @staticmethod
    def at_most_once(s: m.Loop | m.Items) -> bool:
        if isinstance(s, m.Items):
            return False
        trips = (s.stop - s.start).constant
        return trips is not None and trips <= 1

    # ---- products
    def product(self, s: m.Wgmma, states: set[State]) -> set[State]:
        used = {s.acc} | ({s.a.value} if isinstance(s.a, m.RegOperand) else set())
        for name in sorted(used):
            if all(self.owner(name) in x.touched for x in states):
                self.report(s, NoProductFence(span=s.span, value=name, product=self.text(s)))
        n = self.number(s)
        return {replace(x, issued=x.issued | {n}) for x in states}

    def wait(self, s: m.WaitGroup, states: set[State]) -> set[State]:
        after = {replace(x, groups=x.groups[len(x.groups) - s.pending :] if s.pending else ()) for x in states}
        for name in s.values:
            self.in_flight(s, Touch(frozenset({self.owner(name)}), frozenset(), self.text(s)), after)
        return after

    # ---- registers
    def touches(self, s: Step) -> Iterator[Touch]:
        if isinstance(s, m.Compute):
            for op in s.ops:
                yield self.op(op)
        elif isinstance(s, m.Pack):
            yield self.of(s, reads=(s.src,), writes=(s.dst,))
        elif isinstance(s, m.Zero):
            yield self.of(s, writes=(s.value,))
        elif isinstance(s, m.StoreShared):
            yield self.of(s, reads=(s.src,))
        elif isinstance(s, m.StoreGlobal):
            yield self.of(s, reads=tuple(regs(s.value)))

    def of(self, s: Step, reads: tuple[str, ...] = (), writes: tuple[str, ...] = ()) -> Touch:
        return Touch(frozenset(map(self.owner, reads)), frozenset(map(self.owner, writes)), self.text(s))

    def op(self, op: m.Op) -> Touch:
        if isinstance(op, m.CompleteOp):
            both = frozenset({self.owner(op.value)})
            return Touch(both, both, op_text(op))
        exprs = (op.expr,) if isinstance(op, m.MapOp) else (op.src, *((op.start,) if op.start is not None else ()))
        reads = frozenset(self.owner(r) for e in exprs for r in regs(e))
        return Touch(reads, frozenset({self.owner(op.dst)}), op_text(op))

    def touch(self, s: Step, t: Touch, states: set[State]) -> set[State]:
        self.in_flight(s, t, states)
        return {replace(x, touched=x.touched | t.reads | t.writes) for x in states}

    def in_flight(self, s: Step, t: Touch, states: set[State]) -> None:
        common = frozenset.intersection(*(x.flying for x in states))
        for n in sorted(common):
            p = self.products[n]
            operand = {self.owner(p.a.value)} & t.writes if isinstance(p.a, m.RegOperand) else set()
            clash = ({self.owner(p.acc)} & (t.reads | t.writes)) | operand
            for value in sorted(clash):
                problem = TouchedInFlight(span=s.span, value=value, step=t.text, product=self.text(p), issued=p.span)
                self.report(s, problem)
