"""The functions of real numbers in NumPy float64, and rounding to stored types.

In and out: float64 arrays. NaN propagates everywhere, through `min` and `max` too.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..foundation.dtypes import DType

_FINITE_ONLY = {"e4m3": 448.0, "e5m2": 57344.0}  # conversions saturate (PTX ISA, cvt .satfinite)
_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "neg": np.negative,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "abs": np.abs,
    "rcp": lambda x: 1.0 / x,
    "erf": _erf,
    "gelu": lambda x: 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0))),
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


def rounded(x: np.ndarray, dtype: DType) -> np.ndarray:
    """The nearest values of a stored type, as float64. Integers truncate; 8-bit floats saturate."""
    if dtype.kind == "int":
        return np.trunc(x)
    if dtype.name in _FINITE_ONLY:
        x = np.clip(x, -_FINITE_ONLY[dtype.name], _FINITE_ONLY[dtype.name])
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(x, np.float64).astype(dtype.numpy()).astype(np.float64)
