"""Straight lines of steps: what runs without a branch in between, and where each event stands in its ring."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..program.expr import Affine, Expr, conjuncts
from ..program.poly import Poly
from ..roles.model import Advance, Arrive, Elect, Expect, If, Role, Step, Tma, Wait

Event = Arrive | Expect | Tma | Wait


@dataclass(frozen=True)
class Placed:
    """An event, the parts of its barrier that it may meet, and its ring position counted from the start of the line."""

    event: Event
    part: Poly
    position: int

    @property
    def key(self) -> tuple[str, Poly, int]:
        return self.event.barrier, self.part, self.position


def lines(steps: tuple[Step, ...], wg: int) -> Iterator[tuple[Step, ...]]:
    """The step list and every nested one, for warpgroup `wg` of the role. Elected blocks belong to the line around them, and
    so do branches that depend on the warpgroup alone."""
    flat = tuple(_flat(steps, wg))
    yield flat
    for s in flat:
        for block in s.blocks():
            yield from lines(block, wg)


def _flat(steps: tuple[Step, ...], wg: int) -> Iterator[Step]:
    for s in steps:
        if isinstance(s, Elect):
            yield from _flat(s.body, wg)
        elif isinstance(s, If) and (taken := decided(s.cond, wg)) is not None:
            yield from _flat(s.then if taken else s.other, wg)
        else:
            yield s


def decided(cond: Expr, wg: int) -> bool | None:
    """A condition on the warpgroup alone; None if it depends on more."""
    parts = [_part(p, wg) for p in conjuncts(cond)]
    if False in parts:
        return False
    return None if None in parts else True


def _part(e: Expr, wg: int) -> bool | None:
    if not isinstance(e, Affine) or not e.poly.symbols() <= {"wg"}:
        return None
    return e.poly.evaluate({"wg": wg}) >= 0


def events(line: tuple[Step, ...], wg: int) -> list[Placed]:
    """The barrier events of one line, in order."""
    advanced: dict[str, int] = {}
    out = []
    for s in line:
        if isinstance(s, Advance):
            advanced[s.ring] = advanced.get(s.ring, 0) + 1
        if isinstance(s, Event):
            part = s.barrier_part if isinstance(s, Tma) else s.part
            at = advanced.get(s.slot.ring, 0) - s.slot.lag
            out.append(Placed(s, part.substitute({"wg": wg}), at))
    return out


def warpgroups(roles: tuple[Role, ...]) -> Iterator[tuple[Role, int]]:
    """Every warpgroup: its role, and its ordinal within it."""
    for role in roles:
        for wg in range(role.count):
            yield role, wg
