"""Arrivals that nobody hears: no wait of any role, on any path, comes to their phase or to a later one.

Positions in rings are known between bounds. Loops and branches on plain numbers are followed round by round; of others nothing
is known but that positions never go back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from ..program.expr import Affine, Expr, conjuncts
from ..program.poly import Poly
from ..roles import model as m
from ..roles.model import Kernel, Role, Step
from .model import Path
from .sites import sites

MOST = 64  # rounds of a loop that are followed one by one

Known = Mapping[str, int]  # integers that are plain numbers
At = Mapping[str, tuple[int, float]]  # each ring -> the least and the most of the role's position


def unheard(kernel: Kernel, role: int) -> frozenset[Path]:
    """The paths of the arrivals of role number `role` that no wait comes to, whatever the sizes."""
    walks = [_Walk(kernel, r) for r in kernel.roles]
    latest = {b.name: max(w.waits.get(b.name, -inf) for w in walks) for b in kernel.barriers}
    arrivals = ((path, s) for path, s in sites(kernel.roles[role].steps) if isinstance(s, m.Arrive))
    return frozenset(path for path, s in arrivals if walks[role].arrivals.get(path, inf) > latest[s.barrier])


@dataclass
class _Walk:
    """`arrivals`: the least position at which an arrival is made; `waits`: the last one whose phase a barrier is awaited in."""

    kernel: Kernel
    role: Role
    arrivals: dict[Path, float] = field(default_factory=dict)
    waits: dict[str, float] = field(default_factory=dict)
    leaving: list[At] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.block(self.role.steps, (), {r.name: (0, 0) for r in self.kernel.rings}, {})

    def block(self, steps: tuple[Step, ...], prefix: Path, at: At, known: Known) -> At:
        for k, s in enumerate(steps):
            at = self.step(s, (*prefix, k), at, known)
            if isinstance(s, m.Let):
                value = _number(s.value, known)
                known = _without(known, s.name) if value is None else {**known, s.name: value}
        return at

    def step(self, s: Step, path: Path, at: At, known: Known) -> At:
        if isinstance(s, m.Advance):
            return self.advance(s, at, known)
        if isinstance(s, m.If):
            return self.branch(s, path, at, known)
        if isinstance(s, m.Loop):
            return self.loop(s, path, at, known)
        if isinstance(s, m.Items):
            return self.items(s, path, at, known)
        if isinstance(s, m.Elect):
            return self.block(s.body, (*path, 0), at, known)
        if isinstance(s, m.Leave):
            self.leaving.append(at)
        elif isinstance(s, m.Arrive):
            least = at[s.slot.ring][0] - s.slot.lag
            self.arrivals[path] = min(self.arrivals.get(path, inf), least)
        elif isinstance(s, m.Wait):
            before = self.kernel.ring(s.slot.ring).stages if s.flip else 0
            most = at[s.slot.ring][1] - s.slot.lag - before
            self.waits[s.barrier] = max(self.waits.get(s.barrier, -inf), most)
        return at

    def advance(self, s: m.Advance, at: At, known: Known) -> At:
        (least, most), by = at[s.ring], _number(s.stages, known)
        return {**at, s.ring: (least, inf) if by is None else (least + by, most + by)}

    def branch(self, s: m.If, path: Path, at: At, known: Known) -> At:
        holds = _holds(s.cond, known)
        taken = [(n, b) for n, b in enumerate((s.then, s.other)) if holds is None or holds == (n == 0)]
        return _either(*(self.block(b, (*path, n), at, known) for n, b in taken))

    def loop(self, s: m.Loop, path: Path, at: At, known: Known) -> At:
        start, stop = _number(s.start, known), _number(s.stop, known)
        if start is None or stop is None or len(range(start, stop, s.step)) > MOST:
            return self.again(s.body, path, at, _without(known, s.var))
        for k in range(start, stop, s.step):
            at = self.block(s.body, (*path, 0), at, {**known, s.var: k})
        return at

    def items(self, s: m.Items, path: Path, at: At, known: Known) -> At:
        once = not self.kernel.grid.persistent  # a CTA has one item
        after = self.block(s.body, (*path, 0), at, known) if once else self.again(s.body, path, at, known)
        return _either(after, *self.leaving)

    def again(self, body: tuple[Step, ...], path: Path, at: At, known: Known) -> At:
        """Any number of rounds: a position that one round moves may end anywhere behind."""
        after = self.block(body, (*path, 0), at, known)
        at = {ring: (least, inf if after[ring] != (least, most) else most) for ring, (least, most) in at.items()}
        self.block(body, (*path, 0), at, known)
        return at


def _number(p: Poly, known: Known) -> int | None:
    return p.evaluate(known) if p.symbols() <= known.keys() else None


def _holds(cond: Expr, known: Known) -> bool | None:
    """A condition on plain numbers; None if it asks for more."""
    parts = [_number(p.poly, known) if isinstance(p, Affine) else None for p in conjuncts(cond)]
    if any(x is not None and x < 0 for x in parts):
        return False
    return None if None in parts else True


def _either(*ways: At) -> At:
    return {ring: (min(w[ring][0] for w in ways), max(w[ring][1] for w in ways)) for ring in ways[0]}


def _without(known: Known, name: str) -> Known:
    return {k: v for k, v in known.items() if k != name}
