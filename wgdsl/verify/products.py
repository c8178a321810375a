"""Products: fenced before they start, committed, and awaited before their registers are touched or their role ends.

A role's steps are walked with the set of states that may stand before each: both sides of a branch, none and several rounds
of a loop, as far as the facts of the path allow. Some paths that remain can't be taken all the same. So a step on a product's
registers is reported if the product is in flight on some path to it and complete on none; the closure proves the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..diagnostics.model import Problem
from ..diagnostics.verify import NeverAwaited, NoProductFence, TouchedInFlight
from ..program.expr import regs
from ..program.poly import Poly
from ..roles import model as m
from ..roles.model import Kernel, Role, Step
from ..roles.text import op_text, step_text
from .facts import NOTHING, Facts, given, taken, without

ROUNDS = 8  # after which a loop's states must repeat
MANY = 64  # states


@dataclass(frozen=True)
class State:
    """Products by number in the role; `touched`: registers used by the warpgroup since the last fence."""

    touched: frozenset[str]
    issued: frozenset[int] = frozenset()  # not committed
    groups: tuple[frozenset[int], ...] = ()
    done: frozenset[int] = frozenset()
    facts: Facts = NOTHING

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
    """Products without a fence, and steps on registers of a product in flight."""
    for role in kernel.roles:
        yield from _Walk(kernel, role).problems()


class _Walk:
    def __init__(self, kernel: Kernel, role: Role):
        self.kernel, self.role = kernel, role
        self.values = {v.name: v for v in kernel.values if v.role == role.name}
        self.products: list[m.Wgmma] = []
        self.numbers: dict[int, int] = {}
        self.found: dict[tuple[str, int], Problem] = {}  # one of a kind for each product: the rest follows from it

    def problems(self) -> Iterator[Problem]:
        states = {State(touched=frozenset(self.owner(v) for v in self.values))}
        states = self.walk(self.role.steps, states)
        for n in self.in_flight(states):
            committed = all(n not in s.issued for s in states)
            p = self.products[n]
            if ("touched", n) not in self.found:
                problem = NeverAwaited(span=p.span, product=self.text(p), role=self.role.name, committed=committed)
                self.found["left", n] = problem
        yield from self.found.values()

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
            return few(self.walk(s.then, branch(s, states, True)) | self.walk(s.other, branch(s, states, False)))
        if isinstance(s, m.Let):
            return {replace(x, facts=without(x.facts, s.name)) for x in states}
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
        """None, one and more rounds. Every round of an item binds its integers anew."""
        if isinstance(s, m.Items):
            states = {replace(x, facts=NOTHING) for x in states}
            seen, enter, leave = set(states), Poly(), Poly()
        else:
            trips = s.stop - s.start
            seen = known(states, -trips)
            states, enter, leave = known(states, trips - 1), s.stop - 1 - Poly.of(s.var), trips
        for _ in range(ROUNDS):
            states = self.walk(s.body, known(states, enter))
            states = few({replace(x, facts=self.after_round(s, x.facts)) for x in known(states, leave)})
            if states <= seen or self.at_most_once(s):
                break
            seen |= states
        return few(seen | states)

    @staticmethod
    def after_round(s: m.Loop | m.Items, facts: Facts) -> Facts:
        return NOTHING if isinstance(s, m.Items) else without(facts, s.var)

    @staticmethod
    def at_most_once(s: m.Loop | m.Items) -> bool:
        if isinstance(s, m.Items):
            return False
        trips = (s.stop - s.start).constant
        return trips is not None and trips <= 1

    def product(self, s: m.Wgmma, states: set[State]) -> set[State]:
        n = self.number(s)
        used = {s.acc} | ({s.a.value} if isinstance(s.a, m.RegOperand) else set())
        for name in sorted(used):
            if all(self.owner(name) in x.touched for x in states):
                self.found.setdefault(("fence", n), NoProductFence(span=s.span, value=name, product=self.text(s)))
        return {replace(x, issued=x.issued | {n}, done=x.done - {n}) for x in states}

    def wait(self, s: m.WaitGroup, states: set[State]) -> set[State]:
        after = {waited(x, s.pending) for x in states}
        for name in s.values:
            self.clash(s, Touch(frozenset({self.owner(name)}), frozenset(), self.text(s)), after)
        return after

    @staticmethod
    def in_flight(states: set[State]) -> list[int]:
        """Products in flight on some path, and complete on none."""
        flying = frozenset().union(*(x.flying for x in states))
        return sorted(flying - frozenset().union(*(x.done - x.flying for x in states)))

    def touches(self, s: Step) -> Iterator[Touch]:
        if isinstance(s, m.Compute):
            for op in s.ops:
                yield self.op(op)
        elif isinstance(s, m.Pack | m.Move):
            yield self.of(s, reads=(s.src,), writes=(s.dst,))
        elif isinstance(s, m.Zero | m.Forget):
            yield self.of(s, writes=(s.value,))
        elif isinstance(s, m.StoreShared):
            yield self.of(s, reads=(s.src,))
        elif isinstance(s, m.StoreGlobal):
            yield self.of(s, reads=tuple(regs(s.value)))

    def of(self, s: Step, reads: tuple[str, ...] = (), writes: tuple[str, ...] = ()) -> Touch:
        return Touch(frozenset(map(self.owner, reads)), frozenset(map(self.owner, writes)), self.text(s))

    def op(self, op: m.Op) -> Touch:
        reads = frozenset(self.owner(r) for e in op.exprs for r in regs(e))
        return Touch(reads, frozenset({self.owner(op.dst)}), op_text(op))

    def touch(self, s: Step, t: Touch, states: set[State]) -> set[State]:
        self.clash(s, t, states)
        return {replace(x, touched=x.touched | t.reads | t.writes) for x in states}

    def clash(self, s: Step, t: Touch, states: set[State]) -> None:
        for n in self.in_flight(states):
            p = self.products[n]
            operand = {self.owner(p.a.value)} & t.writes if isinstance(p.a, m.RegOperand) else set()
            for value in sorted(({self.owner(p.acc)} & (t.reads | t.writes)) | operand):
                problem = TouchedInFlight(span=s.span, value=value, step=t.text, product=self.text(p), issued=p.span)
                self.found.setdefault(("touched", n), problem)


def known(states: set[State], poly: Poly) -> set[State]:
    """The states in which `poly >= 0` may hold, with that fact."""
    return {replace(x, facts=facts) for x in states if (facts := given(x.facts, poly)) is not None}


def branch(s: m.If, states: set[State], holds: bool) -> set[State]:
    """The states in which one side of a branch may be taken, with what that says."""
    return {replace(x, facts=facts) for x in states if (facts := taken(x.facts, s.cond, holds)) is not None}


def few(states: set[State]) -> set[State]:
    """Forget how the states came about if they are many."""
    return states if len(states) <= MANY else {replace(x, facts=NOTHING) for x in states}


def waited(x: State, pending: int) -> State:
    """After a wait_group: the oldest groups are complete."""
    split = max(len(x.groups) - pending, 0)
    return replace(x, groups=x.groups[split:], done=x.done.union(*x.groups[:split]))
