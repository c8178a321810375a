"""What steps mean that list tiles: a condition on a tile's elements, what warps agree on, and entries of the list."""

from __future__ import annotations

import numpy as np

from ..roles import model as m
from .agent import Agent, Run
from .barriers import NamedBarrier
from .elementwise import Scope, row_indices
from .events import bar_sync
from .global_stores import claim
from .meaning import means


@means(m.Classify)
def classify(a: Agent, s: m.Classify) -> None:
    """By a warp's own rows."""
    a.need_warp()
    rows = row_indices(s.rows, a)
    exists = (rows >= 0) & (rows < a.integer(a.cta.world.extents[s.rows.index]))
    holds = np.broadcast_to(Scope(a, s.rows, s.cols).value(s.cond), (a.rows, s.cols.count))
    a.registers.write(s.some, _one((exists & holds).any()))
    a.registers.write(s.every, _one((~exists | holds).all()))


def _one(value: object) -> np.ndarray:
    return np.full((1, 1), value)


@means(m.ListTile)
def list_tile(a: Agent, s: m.ListTile) -> Run:
    """The votes of a generation are kept with the CTA: who passes the barrier reads them."""
    bar = a.cta.named.setdefault(a.integer(s.id), NamedBarrier(id=a.integer(s.id)))
    votes = a.cta.votes.setdefault((bar.id, bar.generation), [])
    votes.append((a.registers.flag(s.some), a.registers.flag(s.every)))
    yield from bar_sync(a, s)
    some, every = any(x for x, _ in votes), all(y for _, y in votes)
    yield from bar_sync(a, s)
    if not some:
        return
    count = a.registers.count(s.count) + 1
    a.registers.write(s.count, _one(count))
    _store(a, s.tensor, [*map(a.integer, s.access), count], 2 * a.integer(s.tile) + every)


@means(m.Tally)
def tally(a: Agent, s: m.Tally) -> None:
    a.need_warp()
    _store(a, s.tensor, [*map(a.integer, s.access)], a.registers.count(s.count))


def _store(a: Agent, tensor: str, place: list[int], value: int) -> None:
    """By one thread of the role."""
    if a.ordinal == 0 and a.warp == 0:
        claim(a, tensor, [_one(n) for n in place], _one(True), clipped=False, add=False)(_one(value))
