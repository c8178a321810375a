"""Numbers of a call: scalar arguments, their defaults, and `require`.

In: what the caller gave, and expressions of dims and scalars.  Out: numbers in the range of their declared types.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.runtime import BadScalar
from ..foundation.dtypes import DType
from ..program.expr import COMPARE, Affine, Apply, Cast, Cmp, Const, Expr, IndexValue, Logic, Scalar, Select, indices_of, walk

Number = float | int
F32_TOO_LARGE = 2.0**128 - 2.0**103  # what rounds to infinity


def number(name: str, given: Any, dtype: DType) -> Number:
    """The value of a scalar argument, rounded to its declared type. Raises WgError (WG0614)."""
    value = _plain(name, given, dtype)
    if dtype.kind == "float":
        return rounded(name, float(value), dtype)
    if value != int(value):
        raise WgError(BadScalar(name=name, got=str(value), expected="a whole number"))
    low, high = (0, 1) if dtype.name == "bool" else (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1)
    if not low <= value <= high:
        raise WgError(BadScalar(name=name, got=str(value), expected=f"{dtype}, {low} to {high}"))
    return int(value)


def rounded(name: str, value: float, dtype: DType) -> float:
    """The nearest number of the type; one that is too large for it is refused."""
    if dtype.name != "f32" or not math.isfinite(value):
        return value
    if abs(value) >= F32_TOO_LARGE:
        raise WgError(BadScalar(name=name, got=repr(value), expected="f32, up to 3.4e38"))
    return struct.unpack("f", struct.pack("f", value))[0]


def _plain(name: str, given: Any, dtype: DType) -> Number:
    """A Python number from a number, a NumPy scalar or an array of rank 0 on the host."""
    if isinstance(given, int | float):
        if isinstance(given, float) and dtype.kind != "float" and not math.isfinite(given):
            raise WgError(BadScalar(name=name, got=repr(given), expected=f"{dtype}"))
        return given
    expected = "a number" if dtype.kind == "float" else "a whole number"
    if getattr(given, "ndim", None) != 0 or not hasattr(given, "item"):
        raise WgError(BadScalar(name=name, got=f"of type {type(given).__name__}", expected=expected))
    if getattr(getattr(given, "device", None), "type", "cpu") == "cuda":
        cure = f"pass `{name}.item()`, which waits for the GPU"
        raise WgError(BadScalar(name=name, got="a tensor on the GPU", expected=expected, cure=cure))
    value = given.item()
    if not isinstance(value, int | float):
        raise WgError(BadScalar(name=name, got=f"of type {type(given).__name__}", expected=expected))
    return value


def _ieee(fn: Callable[..., float]) -> Callable[..., float]:
    """`fn`, with IEEE results where Python raises."""

    def total(*args: float) -> float:
        try:
            return fn(*args)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return total


def _divide(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if not a or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _log(fn: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: -math.inf if x == 0 else fn(x)


_APPLY: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _divide,
    "pow": lambda a, b: a**b,
    "min": min,
    "max": max,
    "neg": lambda a: -a,
    "abs": abs,
    "exp": math.exp,
    "exp2": lambda a: 2.0**a,
    "log": _log(math.log),
    "log2": _log(math.log2),
    "tanh": math.tanh,
    "sqrt": math.sqrt,
    "rsqrt": lambda a: _divide(1.0, math.sqrt(a)),
    "rcp": lambda a: _divide(1.0, a),
    "sigmoid": lambda a: 1.0 / (1.0 + math.exp(-a)),
    "erf": math.erf,
    "relu": lambda a: max(a, 0.0),
    "silu": lambda a: a / (1.0 + math.exp(-a)),
    "gelu": lambda a: 0.5 * a * (1.0 + math.erf(a / math.sqrt(2.0))),
    "gelu_tanh": lambda a: 0.5 * a * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (a + 0.044715 * a**3))),
}


def evaluate(e: Expr, dims: Mapping[str, int], scalars: Mapping[str, Number]) -> Any:
    """The value of an expression of dims and scalars, in float64."""

    def go(x: Expr) -> Any:
        match x:
            case Const(value=value):
                return value
            case IndexValue(poly=poly):
                return poly.evaluate(dims)
            case Affine(poly=poly):
                return poly.evaluate(dims) >= 0
            case Scalar(name=name):
                return scalars[name]
            case Apply(fn=fn, args=args):
                return _ieee(_APPLY[fn])(*map(go, args))
            case Cmp(op=op, left=left, right=right):
                return COMPARE[op](go(left), go(right))
            case Logic(op=op, args=args):
                return _logic(op, [go(a) for a in args])
            case Select(cond=cond, then=then, other=other):
                return go(then) if go(cond) else go(other)
            case Cast(dtype=dtype, arg=arg):
                return int(go(arg)) if dtype.kind == "int" else rounded("a cast", float(go(arg)), dtype)
        raise TypeError(f"{type(x).__name__} can't stand in a default or a `require`")

    return go(e)


def _logic(op: str, values: list[bool]) -> bool:
    if op == "not":
        return not values[0]
    return reduce((lambda a, b: a and b) if op == "and" else (lambda a, b: a or b), values)


def names_in(e: Expr) -> frozenset[str]:
    """The dims and scalars that an expression mentions."""
    return indices_of(e) | {x.name for x in walk(e) if isinstance(x, Scalar)}
