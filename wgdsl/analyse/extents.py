"""Extents of indices.

In: every access of the program with fixed dims still by name, and what `index i < ...` declares.  Out: index -> extent.
An index has the extent of the one dim at which it stands bare; an index that stands only in a compound such as `g * R + r`
at an axis of extent `G * R` has its mixed-radix extent: the next larger coefficient over its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..diagnostics.analyse import ExtentConflict, ExtentUnknown
from ..foundation.source import Span
from ..program.poly import Monomial, Poly
from .context import Context
from .problems import Problems
from .scope import Use


@dataclass(frozen=True)
class _Known:
    extent: Poly
    span: Span | None
    declared: bool = False


def infer_extents(context: Context, uses: Iterable[Use], indices: Iterable[str], problems: Problems) -> dict[str, Poly]:
    """The extent of each of `indices`, fixed dims put in, in the given order. Problems are collected."""
    indices = tuple(indices)
    known = {n: _Known(p, span, declared=True) for n, (p, span) in context.extents.items()}
    places = [(use, axis) for use in uses for axis in range(len(use.raw))]
    while _bare(context, places, known, indices) or _mixed(places, known, indices):
        pass
    _refuse_conflicts(context, places, known, problems)
    for name in indices:
        if name not in known:
            problems.add(ExtentUnknown(span=context.indices.get(name), index=name))
    return {n: context.settle(known[n].extent) for n in indices if n in known}


def _axis_extent(use: Use, axis: int, known: dict[str, _Known]) -> Poly | None:
    if use.tensor.indices is None:
        return use.tensor.shape[axis]
    entry = known.get(use.tensor.indices[axis])
    return entry.extent if entry else None


def _bare(context: Context, places: list[tuple[Use, int]], known: dict[str, _Known], indices: tuple[str, ...]) -> bool:
    """One round over the places where an index stands alone. True if something was learnt."""
    before = len(known)
    for use, axis in places:
        name = use.raw[axis].bare
        extent = _axis_extent(use, axis, known)
        if name in indices and name not in known and extent is not None:
            known[name] = _Known(extent, use.spans[axis])
    return len(known) > before


def _refuse_conflicts(context: Context, places: list[tuple[Use, int]], known: dict[str, _Known], problems: Problems) -> None:
    told: set[str] = set()
    for use, axis in places:
        name = use.raw[axis].bare
        extent = _axis_extent(use, axis, known)
        if name is None or name not in known or extent is None or known[name].declared or name in told:
            continue
        first, second = context.settle(known[name].extent), context.settle(extent)
        if first != second:
            told.add(name)
            problems.add(
                ExtentConflict(
                    span=use.spans[axis], index=name, first=str(first), second=str(second), first_span=known[name].span
                )
            )


def _mixed(places: list[tuple[Use, int]], known: dict[str, _Known], indices: tuple[str, ...]) -> bool:
    """The first index that a compound determines. True if there was one."""
    for use, axis in places:
        extent = _axis_extent(use, axis, known)
        p = use.raw[axis]
        inside = [n for n in indices if n in p.symbols()]
        if extent is None or len(inside) < 2 or p.without(inside).terms:
            continue
        factors = {n: p.coefficient(n) for n in inside}
        for name in inside:
            found = _radix(name, factors, extent) if name not in known else None
            if found is not None:
                known[name] = _Known(found, use.spans[axis])
                return True
    return False


def _radix(name: str, factors: dict[str, Poly | None], extent: Poly) -> Poly | None:
    """The smallest coefficient that is a multiple of this index's (else the axis), divided by it."""
    own, others = factors[name], [f for n, f in factors.items() if n != name]
    if own is None:
        return None
    larger: list[Poly] = []
    for f in others:
        if f is None or f == own:
            return None
        if quotient(f, own) is not None:
            larger.append(f)
        elif quotient(own, f) is None:
            return None
    for f in larger:
        if all(quotient(g, f) is not None for g in larger):
            return quotient(f, own)
    return None if larger else quotient(extent, own)


def quotient(a: Poly, b: Poly) -> Poly | None:
    """a / b where b is one product that divides every term of a; else None."""
    if len(b.terms) != 1:
        return None
    (below, c), out = b.terms[0], Poly()
    for m, k in a.terms:
        rest = _cancelled(m, below)
        if rest is None or k % c:
            return None
        out = out + Poly(((rest, k // c),))
    return out


def _cancelled(m: Monomial, below: Monomial) -> Monomial | None:
    rest = list(m)
    for f in below:
        if f not in rest:
            return None
        rest.remove(f)
    return tuple(rest)
