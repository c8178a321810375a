"""Proofs of integer inequalities over index boxes: what `i + N - M >= 0` needs to be certain.

In: a polynomial, the extent of each index (index in [0, extent)), and facts (polynomials that are >= 0).  Out: True only
if it is >= 0 for every value; dims are >= 0, and >= 1 where an extent of the box vanishes with them (an empty box holds
for anything). Incomplete on purpose: False means "not proven".
"""

from __future__ import annotations

from collections.abc import Mapping

from ..program.poly import Atom, Poly, Symbol

Box = Mapping[str, Poly]


def proven(p: Poly, box: Box, facts: tuple[Poly, ...] = (), depth: int = 2) -> bool:
    """Whether p >= 0 everywhere in the box, given the facts (each used at most once, with factor 1)."""
    if any(e.constant == 0 for e in box.values()) or _at_least_zero(p, box):
        return True
    if depth == 0:
        return False
    return any(proven(p - f, box, facts[:n] + facts[n + 1 :], depth - 1) for n, f in enumerate(facts))


def positive_dims(box: Box) -> frozenset[str]:
    """Dims that are >= 1 unless the box is empty: the factors of extents that are a single product."""
    found: set[str] = set()
    for extent in box.values():
        if len(extent.terms) == 1:
            found.update(f.name for f in extent.terms[0][0] if isinstance(f, Symbol))
    return frozenset(found)


def _at_least_zero(p: Poly, box: Box) -> bool:
    for m, c in p.terms:
        for f in m:
            if isinstance(f, Atom):
                return len(m) == 1 and _without_atom(p, f, c, box)
    return _lowest_is_nonnegative(p, box)


def _without_atom(p: Poly, atom: Atom, c: int, box: Box) -> bool:
    """The atom stands alone with coefficient c: replace it by what bounds it."""
    rest = p - Poly((((atom,), c),))
    if atom.op in ("min", "max"):
        every = (atom.op == "min") == (c > 0)
        return (all if every else any)(_at_least_zero(rest + a * c, box) for a in atom.args)
    a, b = atom.args
    if not proven(b - 1, box, depth=0):
        return False
    if atom.op == "mod":  # 0 <= a % b <= b - 1
        return _at_least_zero(rest if c > 0 else rest + (b - 1) * c, box)
    if c == 1:  # floor(a / b) >= -rest  <=>  a >= -rest * b
        return _at_least_zero(a + rest * b, box)
    if c == -1:  # floor(a / b) <= rest  <=>  a <= rest * b + b - 1
        return _at_least_zero(rest * b + b - 1 - a, box)
    return _at_least_zero((a - b + 1) * c + rest * b if c > 0 else a * c + rest * b, box)


def _lowest_is_nonnegative(p: Poly, box: Box) -> bool:
    """Put in 0 or extent - 1 for each index whose coefficient has a sign; then look at the dims."""
    while left := [n for n in box if n in p.symbols()]:
        ends = {n: end for n in left if (end := _lowest(p, n, box)) is not None}
        if not ends:
            return False
        name = next(iter(ends))
        p = p.substitute({name: ends[name]})
    shifted = p.substitute({d: Poly.of(d) + 1 for d in positive_dims(box)})
    return all(c > 0 for _, c in shifted.terms)


def _lowest(p: Poly, name: str, box: Box) -> Poly | None:
    """The value of an index at which p is lowest; None if its coefficient's sign isn't plain."""
    factor = p.coefficient(name)
    if factor is None:
        return None
    if all(c > 0 for _, c in factor.terms):
        return Poly()
    return box[name] - 1 if all(c < 0 for _, c in factor.terms) else None
