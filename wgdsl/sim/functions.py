"""Scalar functions on float32 arrays, as the chip computes them up to the last bits."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Array = np.ndarray
_erf = np.frompyfunc(math.erf, 1, 1)
_erfc = np.frompyfunc(math.erfc, 1, 1)


def erf(x: Array) -> Array:
    """The error function."""
    return np.asarray(_erf(x), dtype=np.float32)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return np.float32(1) / (np.float32(1) + np.exp(-x))


def gelu(x: Array) -> Array:
    """x / 2 * (1 + erf(x / sqrt(2))), by the complement of erf."""
    return np.float32(0.5) * x * np.asarray(_erfc(x * np.float32(-math.sqrt(0.5))), dtype=np.float32)


def tanh_approx(x: Array) -> Array:
    """tanh, as far off as tanh.approx.f32 may be: by 2^-11 of its value, which is a value of 11 bits."""
    bits, power = np.frexp(np.tanh(x))
    return np.ldexp(np.rint(bits * np.float32(2**11)) / np.float32(2**11), power)


def gelu_tanh(x: Array) -> Array:
    """gelu with the error function replaced by a tanh."""
    inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x * x * x)
    return np.float32(0.5) * x * (np.float32(1) + np.tanh(inner))


def power(x: Array, n: int) -> Array:
    """x ** n as products: of the reciprocal where n is negative."""
    b = x if n > 0 else np.float32(1) / x
    square = b * b
    return {1: b, 2: square, 3: square * b, 4: square * square}[abs(n)]


# NaN propagates everywhere, through min and max too: the chip takes min.NaN and max.NaN.
FUNCTIONS: dict[str, Callable[..., Array]] = {
    "neg": np.negative,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "tanh": np.tanh,
    "tanh_approx": tanh_approx,
    "sigmoid": sigmoid,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: np.float32(1) / np.sqrt(x),
    "abs": np.abs,
    "rcp": lambda x: np.float32(1) / x,
    "erf": erf,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu": lambda x: np.maximum(x, np.float32(0)),
    "silu": lambda x: x * sigmoid(x),
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "min": np.minimum,
    "max": np.maximum,
}

COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}

# op of a row reduction -> how two shares are joined
REDUCTIONS: dict[str, np.ufunc] = {"sum": np.add, "max": np.maximum, "min": np.minimum}
