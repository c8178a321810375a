"""The functions of real numbers in NumPy float64: what the names in expressions mean.

In and out: float64 arrays or numbers. NaN propagates everywhere, through `min` and `max` too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from .expr import Apply, Cast, Cmp, Const, Expr, Logic, Scalar, Select

_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


def _tanh_approx(x: np.ndarray) -> np.ndarray:
    """As far off as the chip's may be, 2^-11 of its value, to the same side everywhere: neighbours may be off alike."""
    return np.tanh(x) * (1.0 + 2.0**-11)


FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "neg": np.negative,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "tanh": np.tanh,
    "tanh_approx": _tanh_approx,
    "sigmoid": _sigmoid,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "abs": np.abs,
    "rcp": lambda x: 1.0 / x,
    "erf": _erf,
    "gelu": lambda x: 0.5 * x * _erfc(-x / math.sqrt(2.0)),
    "gelu_tanh": lambda x: 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))),
    "relu": lambda x: np.maximum(x, 0.0),
    "silu": lambda x: x * _sigmoid(x),
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "min": np.minimum,
    "max": np.maximum,
}

COMPARE: dict[str, Callable[..., np.ndarray]] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


def single(e: Expr, scalars: Mapping[str, float]) -> float:
    """The value of an expression of scalars, rounded to f32 once."""

    def leaf(x: Expr) -> float:
        assert isinstance(x, Scalar)
        return scalars[x.name]

    with np.errstate(all="ignore"):
        return float(np.float32(number(e, leaf)))


def number(e: Expr, leaf: Callable[[Expr], float]) -> float:
    """The value of an expression whose leaves other than constants `leaf` gives."""
    with np.errstate(all="ignore"):
        return float(_number(e, leaf))


def _number(e: Expr, leaf: Callable[[Expr], float]):
    if isinstance(e, Const):
        return e.value
    parts = [_number(c, leaf) for c in e.children()]
    if isinstance(e, Apply):
        return FUNCTIONS[e.fn](*map(np.float64, parts))
    if isinstance(e, Cmp):
        return COMPARE[e.op](*parts)
    if isinstance(e, Select):
        return parts[1] if parts[0] else parts[2]
    if isinstance(e, Logic):
        return not parts[0] if e.op == "not" else {"and": all, "or": any}[e.op](parts)
    return parts[0] if isinstance(e, Cast) else leaf(e)
