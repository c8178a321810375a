"""Expressions over boxes of indices.

In: an expression and the order of its indices.  Out: a `Part`: the value and where it exists, both with one axis for
each index (length 1 where it doesn't matter). What doesn't exist holds any number: it is never multiplied away, only
selected away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from ..program.expr import Affine, Apply, Cast, Cmp, Const, Expr, IndexValue, Load, Logic, Scalar, Select
from ..program.functions import COMPARE, FUNCTIONS
from ..program.poly import Atom, Factor, Poly, elements
from .stored import rounded

Range = tuple[int, int]


@dataclass(frozen=True)
class Part:
    """`exists` is None where everything exists; `astray` marks positions whose access left its array (None: nowhere).

    `starts`: of a stored node, the index values of its first element.
    """

    value: np.ndarray
    exists: np.ndarray | None = None
    astray: np.ndarray | None = None
    starts: tuple[int, ...] = ()

    def strays(self) -> bool:
        """Whether an element that exists was read outside its array."""
        return self.astray is not None and bool(np.any(both(self.astray, self.exists)))


@dataclass
class Boxes:
    """What a run knows: dims, scalars, the range of each index in this pass, and the nodes evaluated so far."""

    dims: Mapping[str, int]
    scalars: Mapping[str, float]
    ranges: dict[str, Range]
    stored: dict[str, Part]

    def extents(self, order: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(self.ranges[i][1] - self.ranges[i][0] for i in order)

    def positions(self, p: Poly, order: tuple[str, ...]) -> np.ndarray:
        """The values of a polynomial over the box."""
        total: np.ndarray = np.zeros((1,) * len(order), np.int64)
        for monomial, c in p.terms:
            term: np.ndarray = np.full((1,) * len(order), c, np.int64)
            for f in monomial:
                term = term * self._factor(f, order)
            total = total + term
        return total

    def _factor(self, f: Factor, order: tuple[str, ...]) -> np.ndarray:
        if isinstance(f, Atom) and f.op == "element":
            found = self._gather(Load(tensor=f.tensor, access=f.args), self.stored[f.tensor], (0,) * len(f.args), order)
            return np.maximum(found.value.astype(np.int64), 0)  # an offset below 0 counts as 0
        if isinstance(f, Atom):
            return _INTEGER[f.op](*(self.positions(a, order) for a in f.args))
        if f.name not in order:
            return np.asarray(self.dims[f.name])
        shape = [1] * len(order)
        shape[order.index(f.name)] = -1
        return np.arange(*self.ranges[f.name], dtype=np.int64).reshape(shape)

    def part(self, e: Expr, order: tuple[str, ...]) -> Part:
        if isinstance(e, Load):
            return self.load(e, order)
        if isinstance(e, Const | IndexValue | Scalar | Affine):
            return Part(self._leaf(e, order))
        parts = [self.part(c, order) for c in e.children()]
        value = _combined(e, [p.value for p in parts])
        return Part(value, both(*(p.exists for p in parts)), either(*(p.astray for p in parts)))

    def _leaf(self, e: Const | IndexValue | Scalar | Affine, order: tuple[str, ...]) -> np.ndarray:
        if isinstance(e, Affine):
            return self.positions(e.poly, order) >= 0
        if isinstance(e, IndexValue):
            return self.positions(e.poly, order).astype(np.float64)
        number = self.scalars[e.name] if isinstance(e, Scalar) else e.value
        return np.full((1,) * len(order), number, bool if isinstance(number, bool) else np.float64)

    def load(self, x: Load, order: tuple[str, ...]) -> Part:
        """Elements of an input or an earlier node at the access map."""
        source = self.stored[x.tensor]
        starts = source.starts or (0,) * len(x.access)
        names = [p.bare for p in x.access]
        if len(set(names)) == len(names) and all(n in order for n in names):
            window = [(self.ranges[n][0] - s, self.ranges[n][1] - s) for n, s in zip(names, starts, strict=True) if n]
            if all(lo >= 0 and hi <= size for (lo, hi), size in zip(window, source.value.shape, strict=True)):
                exists = None if source.exists is None else _window(source.exists, names, window, order)
                return Part(_window(source.value, names, window, order), exists)
        return self._gather(x, source, starts, order)

    def _gather(self, x: Load, source: Part, starts: tuple[int, ...], order: tuple[str, ...]) -> Part:
        """What an element says is outside of the array reads 0; any other place there is astray."""
        where = [self.positions(p, order) - s for p, s in zip(x.access, starts, strict=True)]
        out = [(p, _outside(w, n)) for p, w, n in zip(x.access, where, source.value.shape, strict=True)]
        astray = either(*(o for p, o in out if not any(elements(p))))
        nothing = either(*(o for p, o in out if any(elements(p))))
        if 0 in source.value.shape:  # nothing to read: only an empty box, or positions that don't exist
            shape = np.broadcast_shapes(*(w.shape for w in where))
            return Part(np.zeros(shape, source.value.dtype), astray=None if nothing is not None else np.ones(shape, bool))
        at = tuple(np.clip(w, 0, n - 1) for w, n in zip(where, source.value.shape, strict=True))
        value = source.value[at] if nothing is None else np.where(nothing, 0, source.value[at])
        return Part(value, source.exists[at] if source.exists is not None else None, astray)


_INTEGER = {
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "min": lambda *a: reduce(np.minimum, a),
    "max": lambda *a: reduce(np.maximum, a),
}


def _combined(e: Expr, args: list[np.ndarray]) -> np.ndarray:
    if isinstance(e, Apply):
        return FUNCTIONS[e.fn](*args)
    if isinstance(e, Cmp):
        return COMPARE[e.op](*args)
    if isinstance(e, Select):
        return np.where(args[0].astype(bool), args[1], args[2])
    if isinstance(e, Cast):
        return rounded(args[0], e.dtype)
    if isinstance(e, Logic) and e.op == "not":
        return ~args[0].astype(bool)
    if isinstance(e, Logic):
        out = args[0].astype(bool)
        for a in args[1:]:
            out = out & a.astype(bool) if e.op == "and" else out | a.astype(bool)
        return out
    raise NotImplementedError(f"the reference doesn't know {type(e).__name__}")


def both(*masks: np.ndarray | None) -> np.ndarray | None:
    """Where all masks hold; None means everywhere."""
    out = None
    for m in masks:
        out = m if out is None else out if m is None else out & m
    return out


def either(*masks: np.ndarray | None) -> np.ndarray | None:
    """Where some mask holds; None means nowhere."""
    out = None
    for m in masks:
        out = m if out is None else out if m is None else out | m
    return out


def _outside(where: np.ndarray, size: int) -> np.ndarray | None:
    if not where.size or (where.min() >= 0 and where.max() < size):
        return None
    return (where < 0) | (where >= size)


def _window(array: np.ndarray, names: list[str | None], window: list[Range], order: tuple[str, ...]) -> np.ndarray:
    """A slice of an array whose axes are bare indices, with its axes brought into the order of the box."""
    cut = array[tuple(slice(lo, hi) for lo, hi in window)]
    cut = cut.transpose([names.index(n) for n in order if n in names])
    return cut[tuple(slice(None) if n in names else None for n in order)]
