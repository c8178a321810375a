"""Letters: what one work item can be, as far as the protocol goes.

In: a kernel.  Out: items with concrete dims, integers that are read, and indices, one for each way in which the roles can go
through an item none of whose stretches is longer than `cap` rounds. The integers that steer the roles change where dims cross
multiples of the tiles, so dims, and what is read, are tried on, before and behind these; what an item does is told by the
values of those integers, for all of them at once on arrays. Longer stretches repeat what shorter ones do, which the closure
makes sure of (`stretches` says what one is).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ..program.poly import Atom, Poly
from ..roles import model as m
from ..roles.model import Kernel, Step
from .control import conditions, decisive, holds, integers, items_of, polys_in, steering
from .enough import enough
from .machine import Found, Rule
from .sizes import Sizes
from .stretches import Parts, Rounds, Stretch

ALL = 250_000  # combinations of dims up to which all are looked at
TRIES = 1_000_000  # combinations of dims and indices that are looked at
LOOKAHEAD = 64  # rounds of a loop in which a value is told apart that depends on its variable
FEWER = 16  # of each, if it depends on those of several loops
LONGEST = 4000  # rounds of a loop in an item that is tried
TWICE = 2  # is how often rounds that come round again have to be seen
FOLLOWS, BEGUN, ORDINAL = "item.follows", "item.begun", "item.ordinal"


@dataclass(frozen=True, eq=False)
class Letter:
    """An item: its free dims with the integers that are read, and the grid's indices, tiled ones by their first element."""

    dims: Mapping[str, int]
    indices: Mapping[str, int]
    trips: int  # rounds of its longest stretch
    stretches: tuple[Stretch, ...] = ()


def letters(kernel: Kernel, cap: int) -> list[Letter]:
    """The smallest item of each kind, short ones first."""
    space, far = _Space(kernel), reach(kernel)
    many, parts = 0, None
    while parts is None or len(parts.places) >= many:  # so many stretches of full length, one behind the other
        many = len(parts.places) + 1 if parts is not None else 1
        bound = space.samples(max(many * cap, 2 * far))
        columns, branches, rounds = space.behaviour(bound)
        parts = Parts(rounds, far)
    trips = parts.longest()
    fits = np.flatnonzero(trips <= cap)
    fits = fits[np.argsort(space.size(bound)[fits], kind="stable")]
    if not columns:
        chosen = fits[:1]
    else:
        kinds = _kinds([c[fits] for c in _different(columns, trips.shape)], len(fits))
        chosen = fits[np.sort(np.unique(kinds, return_index=True)[1])]
    lengths = [np.minimum(n, cap) for n in parts.lengths()]
    chosen = np.concatenate([chosen, _only_longer([*branches, *lengths] if branches else [], trips, fits)])
    if len(chosen) and parts.end[chosen].max() > LONGEST:
        raise Found(
            Rule.STATES,
            0,
            name=f"{LONGEST} rounds in an item to be tried",
            why=f"branches that are taken only beyond {LONGEST} rounds of a loop",
        )
    return [space.letter(bound, k, int(trips[k]), s) for k, s in zip(chosen.tolist(), parts.stretches(chosen), strict=True)]


def _only_longer(branches: list[Any], trips: np.ndarray, fits: np.ndarray) -> np.ndarray:
    """The shortest item of each choice of branches, with stretches as long, that none within the cap makes."""
    if not branches or not len(trips):
        return np.zeros(0, dtype=np.int64)
    kinds = _kinds(_different(branches, trips.shape), len(trips))
    rest = np.flatnonzero(~np.isin(kinds, np.unique(kinds[fits])))
    rest = rest[np.argsort(trips[rest], kind="stable")]
    return rest[np.sort(np.unique(kinds[rest], return_index=True)[1])]


def _product(values: list[np.ndarray]) -> np.ndarray:
    """[len(values), combinations]: every combination of values."""
    table = np.indices([len(v) for v in values]).reshape(len(values), prod(map(len, values)))
    return np.stack([v[t] for v, t in zip(values, table, strict=True)]) if values else np.zeros((0, 1), dtype=np.int64)


def _different(columns: list[Any], shape: tuple[int, ...]) -> list[np.ndarray]:
    """Each of the columns once."""
    found: dict[tuple[int, int], list[np.ndarray]] = {}
    for c in (np.broadcast_to(c, shape) for c in columns):
        like = found.setdefault((int(c.sum()), int(c[::2].sum())), [])
        if not any(np.array_equal(c, x) for x in like):
            like.append(c)
    return [c for like in found.values() for c in like]


def _kinds(columns: list[np.ndarray], length: int) -> np.ndarray:
    """A number for each row, the same for equal ones."""
    key, room = np.zeros(length, dtype=np.int64), 1
    for column in columns if length else ():
        low, high = int(column.min()), int(column.max())
        if room * (high - low + 1) >= 2**62:
            _, key = np.unique(key, return_inverse=True)
            room = int(key.max()) + 1
        key, room = key * (high - low + 1) + (column - low), room * (high - low + 1)
    return key


class _Space:
    """The symbols that steer a kernel, and what they may be."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.axes = {f"{a.index}.lo" if a.tile > 1 else a.index: a for a in kernel.grid.axes}
        self.items = [(r, items) for r in kernel.roles if (items := items_of(r)) is not None]
        steps = [s for _, items in self.items for s in m.walk(items.body)]
        self.polys = [p for s in steps for p in ((*steering(s), s.value) if isinstance(s, m.Let) else steering(s))]
        lets = [(s.name, s.value) for s in steps if isinstance(s, m.Let)]
        self.reads = {s.name: s for s in steps if isinstance(s, m.Read)}
        free = free_dims(kernel) | self.reads.keys()
        self.sizes = Sizes(self.polys, lets, self.axes, free)
        needed = self._needed()
        self.indices = [name for name in self.axes if name in needed]
        blocks = {s for name in self.indices for s in self.axes[name].blocks.symbols()}
        self.dims = sorted((needed | blocks) & free)
        self.others = sorted(free - set(self.dims))
        steers = [p for s in steps if not isinstance(s, m.Let) for p in steering(s)]
        named = {name: [v for n, v in lets if n == name] for name, _ in lets if name in needed}
        most = {"wg": max((r.count for r in kernel.roles), default=1) - 1}
        tiled = (name for name in self.indices if self.axes[name].tile > 1)
        self.enough = {name: enough(self.axes[name], name, steers, named, most) for name in tiled}

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
        table = self._table(cap)
        bound: dict[str, Any] = dict(zip(self.dims, table, strict=True)) | dict.fromkeys(self.others, 1)
        bound[""] = np.zeros(table.shape[1], dtype=np.int64)
        for name in self.indices:
            bound = self._with_blocks(bound, name)
        return bound | {name: 0 for name in self.axes if name not in self.indices}

    def _table(self, cap: int) -> np.ndarray:
        """The sizes of the dims, a row each: all combinations, or if these are too many those of one dim's sizes with whole
        tiles of the others, dim by dim."""
        fine, coarse = ([np.array(self._sizes_of(x, cap, c)) for x in self.dims] for c in (False, True))
        if prod(map(len, fine)) <= ALL:
            return _product(fine)
        mixed = [[*coarse[:k], fine[k], *coarse[k + 1 :]] for k in range(len(fine))]
        if sum(prod(map(len, values)) for values in mixed) > TRIES:
            every = ", ".join(f"`{x}`" for x in self.dims)
            raise Found(Rule.STATES, 0, name=f"{TRIES} combinations of dims to be tried", why=f"the sizes of {every}")
        table = np.concatenate([_product(values) for values in mixed], axis=1)
        return table[:, np.unique(_kinds([*table], table.shape[1]), return_index=True)[1]]

    def _sizes_of(self, x: str, cap: int, coarse: bool) -> list[int]:
        """Of a dim, or of an integer that is read, which may be negative."""
        sizes = self.sizes.of(x, cap, self._splits(), coarse)
        if x not in self.reads:
            return sizes
        low, high = self.reads[x].low.constant, self.reads[x].high.constant
        signed = sizes if low is not None and low >= 0 else [*(-n for n in sizes), *sizes]
        return sorted({min(max(n, low if low is not None else n), high if high is not None else n) for n in signed})

    def _splits(self) -> int:
        """Over how many items of a split stream the tiles are shared out: the blocks of an axis of fixed size that steers."""
        fixed = [self.axes[n].blocks.constant for n in self.indices]
        return int(np.prod([n for n in fixed if n] or [1]))

    def _with_blocks(self, bound: dict[str, Any], name: str) -> dict[str, Any]:
        """Each entry once for each block of an axis that is to be looked at."""
        axis, which = self.axes[name], self.enough.get(name, "all")
        every = np.maximum(np.broadcast_to(integers(axis.blocks)(bound), bound[""].shape), 0)
        blocks = every if which == "all" else np.minimum(every, 1)
        if int(blocks.sum()) > 4 * TRIES:
            raise Found(Rule.STATES, 0, name=f"{4 * TRIES} items to be tried", why=f"the items of a launch, by `{name}`")
        rows = np.repeat(np.arange(len(blocks)), blocks)
        first = np.repeat(np.cumsum(blocks) - blocks - (every - 1 if which == "last" else 0), blocks)
        out = {k: v[rows] if isinstance(v, np.ndarray) else v for k, v in bound.items()}
        return out | {name: (np.arange(len(rows)) - first) * axis.tile}

    def behaviour(self, bound: Mapping[str, Any]) -> tuple[list[Any], list[Any], Rounds]:
        """What steers the roles, a column each; which of it are branches that no loop variable decides; and how their rounds
        go."""
        columns: list[Any] = []
        branches: list[Any] = []
        rounds = Rounds(len(bound[""]))
        nexts = {m.NEXT + name: bound[name] for name in self.axes}
        for role, items in self.items:
            for wg in range(role.count):
                at = {**bound, **nexts, "wg": wg, FOLLOWS: 1, BEGUN: 0, ORDINAL: 0}
                rounds.place = 0
                for column, alone in _Columns(self.kernel, rounds).of(items.body, at):
                    if isinstance(column, np.ndarray):
                        columns.append(column)
                        branches += [column] if alone else []
        return columns, branches, rounds

    def size(self, bound: Mapping[str, Any]) -> np.ndarray:
        return reduce(np.add, (abs(bound[name]) for name in (*self.dims, *self.indices)), bound[""])

    def letter(self, bound: Mapping[str, Any], k: int, trips: int, stretches: tuple[Stretch, ...]) -> Letter:
        def at(name: str) -> int:
            v = bound[name]
            return int(v[k]) if isinstance(v, np.ndarray) else v

        dims = {name: at(name) for name in (*self.dims, *self.others)}
        return Letter(dims, {name: at(name) for name in self.axes}, trips, stretches)


@dataclass(eq=False)
class _Columns:
    """Decisive values of a role's steps. `loops`: the variables that stand at their first value, with their steps; `lets`: what
    is bound in a loop and depends on those; `runs`: how often the outermost loop does."""

    kernel: Kernel
    rounds: Rounds
    loops: dict[str, int] = field(default_factory=dict)
    lets: dict[str, Poly] = field(default_factory=dict)
    runs: Any = 0

    def of(self, steps: tuple[Step, ...], at: dict[str, Any], taken: Any = True) -> Iterator[tuple[Any, bool]]:
        """Each value of the steps, and whether it is that of a branch that no loop variable decides. taken: where the steps
        are run at all."""
        for s in steps:
            if isinstance(s, m.Let):
                self._bind(s, at)
            elif isinstance(s, m.Loop):
                yield from self._loop(s, at, taken)
                continue
            elif isinstance(s, m.ClearRows):
                start, stop, rows = s.start, s.stop, self.kernel.buffer(s.buffer).rows
                there = lambda at: np.maximum(integers(start)(at), 0) < np.minimum(integers(stop)(at), rows)  # noqa: E731, B023
                yield from ((v, False) for v in self._rounds(start.symbols() | stop.symbols(), there, at))
            elif isinstance(s, m.If | m.Wgmma | m.Mma):
                for p in (p for c in conditions(s) for p in polys_in(c)):
                    alone = not p.symbols() & (self.loops.keys() | self.lets.keys())
                    yield from ((v, alone) for v in self._compared(p, at))
            else:
                yield from ((v, False) for p in decisive(s) if p.constant is None for v in self._value(p, at))
            if isinstance(s, m.If) and not self.loops:
                yield from self._branches(s, at, taken)
                continue
            for block in s.blocks():
                yield from self.of(block, at, taken)

    def _branches(self, s: m.If, at: dict[str, Any], taken: Any) -> Iterator[tuple[Any, bool]]:
        """Both branches begin at the same round; a flag may take either."""
        sure = holds(s.cond, at)
        begun = self.rounds.place
        yield from self.of(s.then, at, taken if sure is None else taken & sure)
        ended, self.rounds.place = self.rounds.place, begun
        yield from self.of(s.other, at, taken if sure is None else taken & np.logical_not(sure))
        self.rounds.place = np.maximum(self.rounds.place, ended)

    def _bind(self, s: m.Let, at: dict[str, Any]) -> None:
        at[s.name] = integers(s.value)(at)
        value = s.value.substitute(self.lets)
        self.lets.pop(s.name, None)
        if value.symbols() & self.loops.keys():
            self.lets[s.name] = value

    def _loop(self, s: m.Loop, at: dict[str, Any], taken: Any) -> Iterator[tuple[Any, bool]]:
        start, stop = integers(s.start)(at), integers(s.stop)(at)
        runs = np.maximum(stop - start, 0) // s.step + (np.maximum(stop - start, 0) % s.step > 0)
        yield from ((v, False) for v in self._value(s.start, at))
        yield runs, False
        if (s.start.symbols() | s.stop.symbols()) & (self.loops.keys() | self.lets.keys()):
            yield from ((v, False) for v in self._value(s.stop, at))
        at[s.var] = start
        outermost = not self.loops
        if outermost:
            self.runs = runs * taken
        lets, self.loops[s.var] = dict(self.lets), s.step
        yield from self.of(s.body, at, taken)
        del self.loops[s.var]
        self.lets = lets
        self.rounds.loop(self.runs if outermost else runs * taken, s.step, outermost=outermost)

    def _value(self, p: Poly, at: dict[str, Any]) -> Iterator[Any]:
        """An integer in all rounds: in the first one, where that says what it is in the others."""
        p = p.substitute(self.lets)
        if slopes(p, p.symbols() & self.loops.keys()) is not None:
            yield integers(p)(at)
        else:
            yield from self._rounds(p.symbols(), integers(p), at)

    def _compared(self, p: Poly, at: dict[str, Any]) -> Iterator[Any]:
        """Whether an integer is at least 0, in all rounds."""
        p = p.substitute(self.lets) if p.symbols() & self.lets.keys() else p
        found = slopes(p, p.symbols() & self.loops.keys())
        if found is None:
            values = [*self._rounds(p.symbols(), lambda at: np.clip(integers(p)(at), -1, 0), at)]
            if len(self.loops) == 1:
                self.rounds.changed(values, self.runs, *self.loops.values())
            yield from values
        elif found and len(self.loops) == 1:
            yield self.rounds.crossed(integers(p)(at), found[0], self.runs, *self.loops.values())
        else:
            far = LOOKAHEAD * sum(map(abs, found))
            yield np.clip(integers(p)(at), -far if any(a > 0 for a in found) else -1, far if any(a < 0 for a in found) else 0)

    def _rounds(self, symbols: frozenset[str], value: Callable[[dict[str, Any]], Any], at: dict[str, Any]) -> Iterator[Any]:
        """A value round by round."""
        inner = [x for x in self.loops if x in symbols or any(n in symbols and x in p.symbols() for n, p in self.lets.items())]
        if not inner:
            yield value(at)
            return
        many = LOOKAHEAD if len(inner) == 1 else FEWER
        for rounds in product(range(many), repeat=len(inner)):
            now = at | {x: at[x] + n * self.loops[x] for x, n in zip(inner, rounds, strict=True)}
            yield value(now | {name: integers(p)(now) for name, p in self.lets.items()})


def slopes(p: Poly, variables: Iterable[str]) -> list[int] | None:
    """By how much an integer grows with each of the variables; None if that isn't always the same."""
    found = [c.constant if (c := p.coefficient(x)) is not None else None for x in variables]
    known = [c for c in found if c is not None]
    return known if len(known) == len(found) else None


def reach(kernel: Kernel) -> int:
    """From which round of a loop on constants in its conditions make no difference to what rounds do."""
    out = 0
    for role in kernel.roles:
        if (items := items_of(role)) is not None:
            out = max([out, *_reaches(items.body, {}, {})])
    return out


def _reaches(steps: tuple[Step, ...], loops: dict[str, int], lets: dict[str, Poly]) -> Iterator[int]:
    for s in steps:
        if isinstance(s, m.Let):
            lets = {**lets, s.name: s.value.substitute(lets)}
        polys = steering(s) if loops and not isinstance(s, m.Loop) else ()
        for p in (p.substitute({k: v for k, v in lets.items() if v.symbols() & loops.keys()}) for p in polys):
            if variables := p.symbols() & loops.keys():
                slope = min([abs(a) for a in slopes(p, variables) or [1] if a] or [1])
                yield -(-_offset(p) // slope) + max(loops[x] for x in variables)
                yield from (TWICE * _period(a) for a in _remainders(p) if a.args[0].symbols() & variables)
        inner = {**loops, s.var: _offset(s.start)} if isinstance(s, m.Loop) else loops
        for block in s.blocks():
            yield from _reaches(block, inner, lets)


def _remainders(p: Poly) -> Iterator[Atom]:
    for a in (f for monomial, _ in p.terms for f in monomial if isinstance(f, Atom)):
        if a.op == "mod":
            yield a
        for x in a.args:
            yield from _remainders(x)


def _period(a: Atom) -> int:
    """After how many rounds a remainder is what it was; a quotient makes it so many times longer."""
    inner = [_period(f) for x in a.args for monomial, _ in x.terms for f in monomial if isinstance(f, Atom)]
    return (a.args[1].constant or 1 if a.op in ("mod", "floordiv") else 1) * max(inner, default=1)


def _offset(p: Poly) -> int:
    """How far constants move an integer."""
    out = 0
    for monomial, c in p.terms:
        if not monomial:
            out += abs(c)
        for a in (f for f in monomial if isinstance(f, Atom)):
            parts = [_offset(x) for x in a.args]
            out += abs(c) * (-(-parts[0] // max(parts[1], 1)) if a.op == "floordiv" else 0 if a.op == "mod" else max(parts))
    return out


def free_dims(kernel: Kernel) -> set[str]:
    """The dims that a call gives."""
    shapes = {x for t in kernel.tensors for p in t.shape for x in p.symbols()}
    blocks = {x for a in kernel.grid.axes for x in a.blocks.symbols()}
    return shapes | blocks | {p.name for p in kernel.params if p.kind == "dim"}
