"""Straight lines of steps: what runs without a branch in between, and where each event stands in its ring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import lcm

from ..program.expr import Affine, Expr, conjuncts
from ..program.poly import Atom, Poly
from ..roles.model import Advance, Arrive, Elect, Expect, If, Items, Role, Step, Tma, Wait, walk

ORDINAL = "item.ordinal"  # what an item loop binds to an item's number among those of its CTA

Event = Arrive | Expect | Tma | Wait


@dataclass(frozen=True)
class Placed:
    """An event, the parts of its barrier that it may meet, and its ring position counted from the start of the line."""

    event: Event
    part: Poly
    position: Poly

    @property
    def key(self) -> tuple[str, Poly, Poly]:
        return self.event.barrier, self.part, self.position


def lines(steps: tuple[Step, ...], wg: int, number: int | None = None) -> Iterator[tuple[Step, ...]]:
    """The step list and every nested one, for warpgroup `wg` of the role and, if given, the CTA's item `number`. Elected blocks
    belong to the line around them, and so do branches that depend on these two alone."""
    yield from _lines(steps, {"wg": wg}, number)


def _lines(steps: tuple[Step, ...], env: Mapping[str, int], number: int | None) -> Iterator[tuple[Step, ...]]:
    flat = tuple(_flat(steps, env))
    yield flat
    for s in flat:
        bound = {ORDINAL: number} if isinstance(s, Items) and s.counted and number is not None else {}
        for block in s.blocks():
            yield from _lines(block, {**env, **bound}, number)


def _flat(steps: tuple[Step, ...], env: Mapping[str, int]) -> Iterator[Step]:
    for s in steps:
        if isinstance(s, Elect):
            yield from _flat(s.body, env)
        elif isinstance(s, If) and (taken := decided(s.cond, env)) is not None:
            yield from _flat(s.then if taken else s.other, env)
        else:
            yield s


def decided(cond: Expr, env: Mapping[str, int]) -> bool | None:
    """A condition on known integers; None if it depends on more."""
    parts = [_part(p, env) for p in conjuncts(cond)]
    if False in parts:
        return False
    return None if None in parts else True


def _part(e: Expr, env: Mapping[str, int]) -> bool | None:
    if not isinstance(e, Affine) or not e.poly.symbols() <= env.keys():
        return None
    return e.poly.evaluate(env) >= 0


def rounds(roles: tuple[Role, ...]) -> int:
    """After how many items of a CTA the branches that depend on an item's number come round again."""
    every = [s for r in roles for s in walk(r.steps)]
    conditions = [p for s in every if isinstance(s, If) for p in conjuncts(s.cond)]
    polys = [p.poly for p in conditions if isinstance(p, Affine) and ORDINAL in p.poly.symbols()]
    return lcm(1, *(m for p in polys for m in moduli(p)))


def moduli(p: Poly) -> Iterator[int]:
    """What a polynomial takes remainders by."""
    for factor in (f for m, _ in p.terms for f in m):
        if isinstance(factor, Atom):
            if factor.op == "mod" and factor.args[1].constant:
                yield factor.args[1].constant
            for a in factor.args:
                yield from moduli(a)


def events(line: tuple[Step, ...], wg: int) -> list[Placed]:
    """The barrier events of one line, in order."""
    advanced: dict[str, Poly] = {}
    out = []
    for s in line:
        if isinstance(s, Advance):
            advanced[s.ring] = advanced.get(s.ring, Poly()) + s.stages
        if isinstance(s, Event):
            part = s.barrier_part if isinstance(s, Tma) else s.part
            at = advanced.get(s.slot.ring, Poly()) - s.slot.lag
            out.append(Placed(s, part.substitute({"wg": wg}), at))
    return out


def warpgroups(roles: tuple[Role, ...]) -> Iterator[tuple[Role, int]]:
    """Every warpgroup: its role, and its ordinal within it."""
    for role in roles:
        for wg in range(role.count):
            yield role, wg
