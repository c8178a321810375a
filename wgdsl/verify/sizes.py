"""Sizes: which sizes of a dim are tried, so that between them nothing changes in what roles do.

In: the integers that steer a kernel, and how many tiles there are to be.  Out: the sizes of each dim. What roles do changes at
multiples of what sizes are divided by, moved by the constants that stand beside them. Dims that stand together in a sum that
counts elements, such as `min(i.lo + 128, M) + N - M`, are tried at the same sizes; others each at its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import gcd

from ..program.poly import Atom, Poly, Symbol
from ..roles import model as m
from .machine import Found, Rule

TILE = 8  # constants below this are no tile sizes, unless a size is divided by them
BEYOND = 3  # tiles past the cap that dims go, so that other runs of tiles may stand beside a stretch at its cap
MOST_SIZES = 6000  # of one dim


class Sizes:
    """The sizes of the dims of a kernel. lets: what is bound, under a name perhaps several times. axes: by what its first
    element is called."""

    def __init__(self, polys: list[Poly], lets: Iterable[tuple[str, Poly]], axes: Mapping[str, m.GridAxis], dims: set[str]):
        self.polys, self.axes, self.lets = list(dict.fromkeys(polys)), axes, {}
        for name, value in dict.fromkeys(lets):
            self.lets.setdefault(name, []).append(value)
        self.names = dims | {name for name, a in axes.items() if a.tile > 1}
        self.found: dict[str, frozenset[str]] = {}
        self.nested: dict[tuple[Poly, str, frozenset[str], frozenset[str]], int] = {}
        self.sums = list(dict.fromkeys(p for q in self.polys for p in _sums(q)))
        together = [self.counted(p) for p in self.sums]
        together += [frozenset((x,)) | (a.blocks.symbols() & dims) for x, a in axes.items() if a.tile > 1]
        self.groups = {x: frozenset((x,)) for x in self.names}
        for names in together:
            joined = frozenset(y for x in names for y in self.groups[x])
            self.groups |= dict.fromkeys(joined, joined)

    def of(self, dim: str, cap: int, splits: int, coarse: bool = False) -> list[int]:
        """The sizes of a dim at which there are up to so many tiles, each shared out over so many items. coarse: whole tiles,
        and one more element, wherever else something may change."""
        group = self.groups[dim]
        own = [p for p in self.sums if self.counted(p) & group]
        divisors = {c for p in self.sums for c in _divided(p, lambda a: bool(self.counted(a) & group)) if c > 1}
        tiles = divisors | {c for p in own for c in _factors(p) if c >= TILE}
        tiles |= {a.tile for name, a in self.axes.items() if name in group and a.tile >= TILE}
        offsets = {_rounded(c) for p in own for c in _constants(p) if c >= TILE - 1}
        for p in own:
            factors = {1, *_factors(p, lambda f: bool(self.counted(Poly((((f,), 1),))) & group))}
            offsets |= {c for f in factors for k in _constants(p) if (c := k // f) > 1 and (f > 1 or k < TILE - 1)}
        divisor = max([max(divisors, default=1) * splits, *(self._nested(p, "floordiv", group) for p in self.polys)])
        again = max((self._nested(p, "mod", group) for p in self.polys), default=0)
        return _around(gcd(*tiles) if tiles else 1, sorted(offsets), (cap + BEYOND) * divisor + again, coarse)

    def counted(self, p: Poly) -> frozenset[str]:
        """The dims and first elements of tiles of which a sum counts elements: none if it counts tiles."""
        out: frozenset[str] = frozenset()
        for f in (f for monomial, _ in p.terms for f in monomial):
            if isinstance(f, Symbol):
                out |= self._named(f.name.removeprefix(m.NEXT))
            elif f.op in ("min", "max"):
                out = out.union(*map(self.counted, f.args))
        return out

    def _named(self, name: str) -> frozenset[str]:
        if name not in self.found:
            self.found[name] = frozenset()  # while its own value is looked at
            own = frozenset((name,)) if name in self.names else frozenset()
            self.found[name] = own.union(*map(self.counted, self.lets.get(name, ())))
        return self.found[name]

    def _nested(self, p: Poly, op: str, group: frozenset[str], seen: frozenset[str] = frozenset()) -> int:
        """The largest product of the numbers by which sizes of a group are divided, quotient by quotient; for `mod`, with that
        of which the remainder is taken. 0: they aren't. What is bound under one name hangs on others again and again."""
        key = p, op, group, seen
        if key not in self.nested:
            self.nested[key] = self._deepest(p, op, group, seen)
        return self.nested[key]

    def _deepest(self, p: Poly, op: str, group: frozenset[str], seen: frozenset[str]) -> int:
        out = 0
        for f in (f for monomial, _ in p.terms for f in monomial):
            if isinstance(f, Symbol):
                values = () if f.name in seen else self.lets.get(f.name, ())
                found = max((self._nested(v, op, group, seen | {f.name}) for v in values), default=0)
            elif f.op == op:
                inner = max(self._nested(f.args[0], o, group, seen) for o in ("floordiv", op))
                found = (inner or bool(self.counted(f.args[0]) & group)) * (f.args[1].constant or 1)
            else:
                found = max(self._nested(a, op, group, seen) for a in f.args)
            out = max(out, found)
        return out


def _sums(p: Poly) -> Iterator[Poly]:
    """A sum, and those that are smaller than something, divided, or compared in it."""
    yield p
    for a in (f for monomial, _ in p.terms for f in monomial if isinstance(f, Atom)):
        for x in a.args:
            yield from _sums(x)


def _divided(p: Poly, wanted: Callable[[Poly], bool]) -> Iterator[int]:
    """By what such sums are divided."""
    for a in (f for monomial, _ in p.terms for f in monomial if isinstance(f, Atom)):
        if a.op in ("floordiv", "mod") and wanted(a.args[0]):
            yield a.args[1].constant or 1


def _constants(p: Poly) -> Iterator[int]:
    """The integers that stand by themselves."""
    for monomial, c in p.terms:
        if not monomial:
            yield abs(c)
        for f in monomial:
            if isinstance(f, Atom):
                for a in f.args[: 1 if f.op == "floordiv" else None]:
                    yield from _constants(a)


def _factors(p: Poly, wanted: Callable[[Symbol | Atom], bool] = lambda f: True) -> Iterator[int]:
    """The integers that symbols are multiplied by, or only those of such symbols."""
    for monomial, c in p.terms:
        if any(map(wanted, monomial)):
            yield abs(c)
        for f in monomial:
            if isinstance(f, Atom):
                for a in f.args:
                    yield from _factors(a, wanted)


def _rounded(c: int) -> int:
    """The tile size that a constant comes from: one less rounds a quotient up."""
    return next((k for k in (c, c + 1, c - 1) if k % TILE == 0), c)


def _around(step: int, offsets: list[int], limit: int, coarse: bool) -> list[int]:
    """Multiples of what all tile sizes are multiples of, these moved by other constants, and their neighbours: between them
    nothing changes."""
    moves = {0, *(s * c for c in offsets for s in ((1, -1) if c % step else ()))}
    limit += max(offsets, default=0)
    if limit // step * len(moves) > MOST_SIZES:
        raise Found(
            Rule.STATES,
            0,
            name=f"{MOST_SIZES} sizes of a dim to be tried",
            why=f"sizes up to {limit}, which its constants ask for",
        )
    if coarse:
        return sorted({k + d for k in range(0, limit + 1, step) for d in (0, 1)})
    return sorted({k + o + d for k in range(0, limit + 1, step) for o in moves for d in (-1, 0, 1) if k + o + d >= 0} | {0, 1})
