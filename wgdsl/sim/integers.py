"""Integer polynomials and uniform conditions at given symbols; an axis index may stand for an array of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from ..program.expr import Affine, Const, Expr, Logic, Scalar
from ..program.poly import Factor, Poly, Symbol

Integer = Any  # int, or an int64 array that broadcasts over rows and columns

_OPS: dict[str, Callable[..., Integer]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": lambda *a: reduce(np.minimum, a),
    "max": lambda *a: reduce(np.maximum, a),
}


def value_of(p: Poly, env: Mapping[str, Integer]) -> Integer:
    """The polynomial's value; division and remainder floor. KeyError for a symbol that nothing binds."""
    total: Integer = 0
    for monomial, coefficient in p.terms:
        term: Integer = coefficient
        for factor in monomial:
            term = term * _factor(factor, env)
        total = total + term
    return total


def _factor(f: Factor, env: Mapping[str, Integer]) -> Integer:
    if isinstance(f, Symbol):
        return env[f.name]
    return _OPS[f.op](*(value_of(a, env) for a in f.args))


def holds(cond: Expr, env: Mapping[str, Integer], scalars: Mapping[str, float]) -> bool:
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
