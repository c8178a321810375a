"""Letters: what one work item can be, as far as the protocol goes.

In: a kernel.  Out: items with concrete dims and indices, one for each way in which the roles can go through an item whose loops
run at most `cap` times. The integers that steer the roles change where dims cross multiples of the tiles, so dims are tried
on, before and behind these; what an item does is told by the values of those integers, for all of them at once on arrays.
Longer loops repeat what shorter ones do, which the closure makes sure of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import gcd
from random import Random
from typing import Any

import numpy as np

from ..program.poly import Atom, Poly
from ..roles import model as m
from ..roles.model import Kernel, Role, Step
from .control import conditions, decisive, integers, items_of, polys_in, steering

TRIES = 400_000  # combinations of dims and indices that are looked at
TILE = 8  # constants below this are no tile sizes
LOOKAHEAD = 64  # how far above 0 a value is told apart that a loop variable is taken off
BEYOND = 3  # tiles past the cap that dims go, so that other runs of tiles may stand beside a loop at its cap
FOLLOWS, BEGUN, ORDINAL = "item.follows", "item.begun", "item.ordinal"


@dataclass(frozen=True, eq=False)
class Letter:
    """`bound`: dims and grid indices."""

    dims: Mapping[str, int]
    indices: Mapping[str, int]
    trips: int  # of its longest loop


def letters(kernel: Kernel, cap: int) -> list[Letter]:
    """The smallest item of each kind, short ones first."""
    space = _Space(kernel)
    bound = space.samples(cap)
    columns, trips = space.behaviour(bound)
    fits = np.flatnonzero(trips <= cap)
    fits = fits[np.argsort(space.size(bound)[fits], kind="stable")]
    if not columns:
        chosen = fits[:1]
    else:
        table = np.stack([np.broadcast_to(c, trips.shape)[fits] for c in columns], axis=1)
        chosen = fits[np.sort(_distinct(table))]
    return [space.letter(bound, int(k), int(trips[k])) for k in chosen]


def _distinct(table: np.ndarray) -> np.ndarray:
    """The first row of each kind."""
    low, high = table.min(axis=0), table.max(axis=0)
    table = (table - low)[:, high > low]
    key, room = np.zeros(len(table), dtype=np.int64), 1
    for column, span in zip(table.T, (high - low)[high > low], strict=True):
        if room * (int(span) + 1) >= 2**62:
            _, key = np.unique(key, return_inverse=True)
            room = int(key.max()) + 1
        key, room = key * (int(span) + 1) + column, room * (int(span) + 1)
    return np.unique(key, return_index=True)[1]


class _Space:
    """The symbols that steer a kernel, and what they may be."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.axes = {f"{a.index}.lo" if a.tile > 1 else a.index: a for a in kernel.grid.axes}
        self.items = [(r, items) for r in kernel.roles if (items := items_of(r)) is not None]
        self.polys = [p for _, items in self.items for s in m.walk(items.body) for p in (*steering(s), *_lets(s))]
        needed = self._needed()
        self.indices = [name for name in self.axes if name in needed]
        blocks = {s for name in self.indices for s in self.axes[name].blocks.symbols()}
        self.dims = sorted((needed | blocks) & _free(kernel))
        self.others = sorted(_free(kernel) - set(self.dims))

    def _needed(self) -> set[str]:
        """Symbols on which decisive integers depend, through `Let`s too."""
        lets: dict[str, set[str]] = {}
        need: set[str] = set()
        for _, items in self.items:
            for s in m.walk(items.body):
                need |= {x for p in steering(s) for x in p.symbols()}
                if isinstance(s, m.Let):
                    lets.setdefault(s.name, set()).update(s.value.symbols())
        todo = list(need)
        while todo:
            for x in lets.get(todo.pop(), ()):
                if x not in need:
                    need.add(x)
                    todo.append(x)
        return {x.removeprefix(m.NEXT) for x in need}

    def samples(self, cap: int) -> dict[str, Any]:
        """Arrays of dims and indices, one entry a combination."""
        tiles = {c for p in self.polys for c in (*_divisors(p), *_factors(p)) if c >= TILE}
        tiles |= {a.tile for a in self.axes.values() if a.tile >= TILE}
        offsets = {_rounded(c) for p in self.polys for c in _constants(p) if c >= TILE - 1}
        limit = (cap + BEYOND) * max((c for p in self.polys for c in _divisors(p)), default=1) * self._splits()
        values = _around(gcd(*tiles) if tiles else 1, sorted(offsets), limit)
        choices = [values] * len(self.dims)
        count = len(values) ** len(choices)
        rows = product(*choices) if count <= TRIES else _some(choices, TRIES)
        table = np.array(list(rows), dtype=np.int64).reshape(min(count, TRIES), len(self.dims))
        bound: dict[str, Any] = {name: table[:, k] for k, name in enumerate(self.dims)} | dict.fromkeys(self.others, 1)
        bound[""] = np.zeros(len(table), dtype=np.int64)
        for name in self.indices:
            bound = self._with_blocks(bound, name)
        return bound | {name: 0 for name in self.axes if name not in self.indices}

    def _splits(self) -> int:
        """Over how many items of a split stream the tiles are shared out: the blocks of an axis of fixed size that steers."""
        fixed = [self.axes[n].blocks.constant for n in self.indices]
        return int(np.prod([n for n in fixed if n] or [1]))

    def _with_blocks(self, bound: dict[str, Any], name: str) -> dict[str, Any]:
        """Each entry once for each block of an axis."""
        axis = self.axes[name]
        blocks = np.maximum(np.broadcast_to(integers(axis.blocks)(bound), bound[""].shape), 0)
        rows = np.repeat(np.arange(len(blocks)), blocks)
        first = np.repeat(np.cumsum(blocks) - blocks, blocks)
        out = {k: v[rows] if isinstance(v, np.ndarray) else v for k, v in bound.items()}
        return out | {name: (np.arange(len(rows)) - first) * axis.tile}

    def behaviour(self, bound: Mapping[str, Any]) -> tuple[list[Any], np.ndarray]:
        """What steers the roles, a column each, and how often the longest loop runs."""
        columns: list[Any] = []
        trips = np.zeros(bound[""].shape, dtype=np.int64)
        nexts = {m.NEXT + name: bound[name] for name in self.axes}
        for role, items in self.items:
            for wg in range(role.count):
                at = {**bound, **nexts, "wg": wg, FOLLOWS: 1, BEGUN: 0, ORDINAL: 0}
                for column, loop in _columns(items.body, at, frozenset(), self._rows):
                    if isinstance(column, np.ndarray):
                        columns.append(column)
                    if loop is not None:
                        trips = np.maximum(trips, loop)
        return columns, trips

    def _rows(self, s: m.ClearRows) -> int:
        return self.kernel.buffer(s.buffer).rows

    def size(self, bound: Mapping[str, Any]) -> np.ndarray:
        return sum((bound[name] for name in (*self.dims, *self.indices)), bound[""])

    def letter(self, bound: Mapping[str, Any], k: int, trips: int) -> Letter:
        def at(name: str) -> int:
            v = bound[name]
            return int(v[k]) if isinstance(v, np.ndarray) else v

        dims = {name: at(name) for name in (*self.dims, *self.others)}
        return Letter(dims, {name: at(name) for name in self.axes}, trips)


def _columns(steps: tuple[Step, ...], at: dict[str, Any], inside: frozenset[str], rows: Any) -> Iterator[tuple[Any, Any]]:
    """Each decisive value of the steps, and for a loop how often it runs. Loop variables (`inside`) stand at their first value."""
    for s in steps:
        within = inside
        if isinstance(s, m.Let):
            at[s.name] = integers(s.value)(at)
        elif isinstance(s, m.Loop):
            start, stop = integers(s.start)(at), integers(s.stop)(at)
            runs = np.maximum(stop - start, 0) // s.step + (np.maximum(stop - start, 0) % s.step > 0)
            yield start, None
            yield runs, runs
            at[s.var], within = start, inside | {s.var}
        elif isinstance(s, m.ClearRows):
            start, stop = integers(s.start)(at), integers(s.stop)(at)
            yield np.maximum(start, 0) < np.minimum(stop, rows(s)), None
        elif isinstance(s, m.If | m.Wgmma):
            for c in conditions(s):
                for p in polys_in(c):
                    v = integers(p)(at)
                    yield np.clip(v, -1, LOOKAHEAD if p.symbols() & inside else 0), None
        else:
            for p in decisive(s):
                if p.constant is None:
                    yield integers(p)(at), None
        for block in s.blocks():
            yield from _columns(block, at, within, rows)


def _lets(s: Step) -> tuple[Poly, ...]:
    return (s.value,) if isinstance(s, m.Let) else ()


def _free(kernel: Kernel) -> set[str]:
    """The dims that a call gives."""
    shapes = {x for t in kernel.tensors for p in t.shape for x in p.symbols()}
    return shapes | {p.name for p in kernel.params if p.kind == "dim"} | {x for a in kernel.grid.axes for x in a.blocks.symbols()}


def _constants(p: Poly) -> Iterator[int]:
    """The integers that stand by themselves."""
    for monomial, c in p.terms:
        if not monomial:
            yield abs(c)
        for f in monomial:
            if isinstance(f, Atom):
                for a in f.args[: 1 if f.op == "floordiv" else None]:
                    yield from _constants(a)


def _factors(p: Poly) -> Iterator[int]:
    """The integers that symbols are multiplied by."""
    for monomial, c in p.terms:
        if monomial:
            yield abs(c)
        for f in monomial:
            if isinstance(f, Atom):
                for a in f.args:
                    yield from _factors(a)


def _rounded(c: int) -> int:
    """The tile size that a constant comes from: one less rounds a quotient up."""
    return next((k for k in (c, c + 1, c - 1) if k % TILE == 0), c)


def _divisors(p: Poly) -> Iterator[int]:
    for monomial, _ in p.terms:
        for f in monomial:
            if isinstance(f, Atom):
                if f.op == "floordiv" and f.args[1].constant:
                    yield f.args[1].constant
                for a in f.args:
                    yield from _divisors(a)


def _around(step: int, offsets: list[int], limit: int) -> list[int]:
    """Multiples of what all tile sizes are multiples of, these moved by other constants, and their neighbours: between them
    nothing changes."""
    moves = {0, *(s * c for c in offsets for s in ((1, -1) if c % step else ()))}
    limit += max(offsets, default=0)
    return sorted({k + o + d for k in range(0, limit + 1, step) for o in moves for d in (-1, 0, 1) if k + o + d >= 0} | {0, 1})


def _some(choices: list[list[int]], count: int) -> Iterator[tuple[int, ...]]:
    random = Random(0)
    for _ in range(count):
        yield tuple(random.choice(c) for c in choices)
