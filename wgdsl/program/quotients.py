"""quotients: integer polynomials whose quotients by plain numbers are taken as far as they go.

`(min(8 * i + 128, 8 * M) - 1) / 8` is `min(i + 16, M) - 1`: the quotient of the least is the least of the quotients, and what
is a multiple of the divisor leaves it.
"""

from __future__ import annotations

from math import gcd

from .poly import Atom, Poly, floordiv, maximum, minimum

_EXTREMES = {"min": minimum, "max": maximum}


def settled(p: Poly) -> Poly:
    """The same value, with no quotient that could be simpler."""
    out = Poly()
    for factors, c in p.terms:
        term = Poly.of(c)
        for f in factors:
            term = term * (_atom(f) if isinstance(f, Atom) else Poly((((f,), 1),)))
        out = out + term
    return out


def _atom(a: Atom) -> Poly:
    args = tuple(map(settled, a.args))
    if a.op in _EXTREMES:
        return _EXTREMES[a.op](*args)
    by = args[1].constant
    return quotient(args[0], by) if a.op == "floordiv" and by is not None and by > 0 else Poly((((Atom(a.op, args),), 1),))


def quotient(p: Poly, by: int) -> Poly:
    """A sum divided by a positive number, rounded down."""
    inside = _of_extreme(p, by)
    if inside is not None:
        return inside
    whole = Poly(tuple((m, c // by) for m, c in p.terms if m and c % by == 0))
    rest = p - whole * by
    common = gcd(by, *(c for m, c in rest.terms if m))
    if common == by:
        return whole + rest.number // by
    shrunk = Poly(tuple((m, c // common) for m, c in rest.terms if m)) + rest.number // common
    return whole + floordiv(shrunk, by // common)


def _of_extreme(p: Poly, by: int) -> Poly | None:
    """The quotient of a least or a largest, as that of quotients; None unless all of them come out even but for a constant."""
    found = [(f, m) for m, c in p.terms if c == 1 and len(m) == 1 and isinstance(f := m[0], Atom) and f.op in _EXTREMES]
    if len(found) != 1:
        return None
    f, m = found[0]
    sums = [a + p - Poly(((m, 1),)) for a in f.args]
    if any(c % by for s in sums for factors, c in s.terms if factors):
        return None
    parts = [quotient(s, by) for s in sums]
    beside = parts[-1].number  # a dim then stands alone, as it does without quotients
    return _EXTREMES[f.op](*(x - beside for x in parts)) + beside
