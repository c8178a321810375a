"""Integer polynomials and uniform conditions at given symbols; an axis index may stand for an array of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from ..program.expr import Affine, Const, Expr, Logic, Scalar
from ..program.poly import Factor, Poly, Symbol, elements_name

Integer = Any  # int, or an int64 array that broadcasts over rows and columns
Env = Mapping[str, Integer]


def _least(*a: Integer) -> Integer:
    return min(a) if all(type(x) is int for x in a) else reduce(np.minimum, a)


def _greatest(*a: Integer) -> Integer:
    return max(a) if all(type(x) is int for x in a) else reduce(np.maximum, a)


_NAMES = {"min": _least, "max": _greatest}
_INFIX = {"floordiv": "//", "mod": "%"}


def value_of(p: Poly, env: Env) -> Integer:
    """The polynomial's value; division and remainder floor. KeyError for a symbol that nothing binds."""
    return compiled(p)(env)


@lru_cache(8192)
def compiled(p: Poly) -> Callable[[Env], Integer]:
    """The polynomial as a function: it is evaluated at every step."""
    return eval(f"lambda e: {_text(p)}", dict(_NAMES))


def _text(p: Poly) -> str:
    terms = [" * ".join([str(c), *map(_factor, monomial)]) for monomial, c in p.terms]
    return f"({' + '.join(terms) or '0'})"


def _factor(f: Factor) -> str:
    if isinstance(f, Symbol):
        return f"e[{f.name!r}]"
    args = [_text(a) for a in f.args]
    if f.op == "element":
        return f"e[{elements_name(f.tensor)!r}]({', '.join(args)})"
    return f"({args[0]} {_INFIX[f.op]} {args[1]})" if f.op in _INFIX else f"{f.op}({', '.join(args)})"


def holds(cond: Expr, env: Env, scalars: Mapping[str, float]) -> bool:
    """A uniform condition: an `Affine`, a flag, a bool, or a combination of them."""
    if isinstance(cond, Const):
        return bool(cond.value)
    if isinstance(cond, Affine):
        return bool(value_of(cond.poly, env) >= 0)
    if isinstance(cond, Scalar):
        return bool(scalars[cond.name])
    if isinstance(cond, Logic):
        parts = [holds(a, env, scalars) for a in cond.args]
        return not parts[0] if cond.op == "not" else all(parts) if cond.op == "and" else any(parts)
    raise TypeError(f"{type(cond).__name__} is no uniform condition")
