"""What is known of integers on a path: polynomials that aren't negative. Enough to see that two branches can't both be taken.

A fact is dropped when one of its symbols is bound anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..program.expr import Affine, Expr, conjuncts
from ..program.poly import Atom, Poly

Facts = frozenset[Poly]
NOTHING: Facts = frozenset()


def given(facts: Facts, *polys: Poly) -> Facts | None:
    """The facts with `poly >= 0` for each; None if that contradicts them."""
    for p in polys:
        for q in _implied(p):
            if any((total := (q + f).constant) is not None and total < 0 for f in (*facts, Poly())):
                return None
            facts |= {q}
    return facts


def taken(facts: Facts, cond: Expr, holds: bool) -> Facts | None:
    """The facts on one side of a branch."""
    parts = conjuncts(cond)
    polys = [p.poly for p in parts if isinstance(p, Affine)]
    if holds:
        return given(facts, *polys)
    return given(facts, -polys[0] - 1) if len(parts) == len(polys) == 1 else facts


def without(facts: Facts, name: str) -> Facts:
    """The facts that do not mention a symbol."""
    return frozenset(f for f in facts if name not in f.symbols())


def _implied(p: Poly) -> Iterator[Poly]:
    """p, and what follows from it: a minimum is no more than each of its arguments, a maximum no less."""
    yield p
    for monomial, c in p.terms:
        if len(monomial) != 1 or not isinstance(monomial[0], Atom):
            continue
        atom = monomial[0]
        if (atom.op == "min" and c > 0) or (atom.op == "max" and c < 0):
            rest = p - Poly(((monomial, c),))
            for arg in atom.args:
                yield from _implied(rest + arg * c)
