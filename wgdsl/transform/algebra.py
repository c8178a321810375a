"""Algebra on scalar expressions: products, linear combinations, signs, limits. Pure functions, no graph walks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..program.expr import Apply, Cast, Const, Expr, IndexValue, Load, Scalar, Select, apply, const, rewrite, walk

LOG2E = math.log2(math.e)
LN2 = math.log(2.0)
ONE, ZERO = const(1.0), const(0.0)

_FOLD: dict[str, Callable[..., float]] = {
    "neg": lambda a: -a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "exp2": lambda a: 2.0**a,
    "sqrt": math.sqrt,
    "rcp": lambda a: 1.0 / a,
    "div": lambda a, b: a / b,
}


def is_number(e: Expr, value: float | None = None) -> bool:
    """Whether `e` is a numeric constant (equal to `value` if given)."""
    if not isinstance(e, Const) or isinstance(e.value, bool):
        return False
    return value is None or float(e.value) == value


def is_scalar(e: Expr) -> bool:
    """Whether the expression is the same for every element: no load, no index. Dims and scalar inputs are scalars."""
    return not any(isinstance(x, Load) or (isinstance(x, IndexValue) and x.poly.constant is None) for x in walk(e))


def simplify(e: Expr) -> Expr:
    """Bottom-up: fold constants; drop 1 *, 0 +, double negation; gather scalar factors of a product."""
    return rewrite(e, _simplify_one)


def _simplify_one(e: Expr) -> Expr | None:
    if not isinstance(e, Apply):
        return None
    if all(is_number(a) for a in e.args) and e.fn in _FOLD:
        return _folded(e)
    rule = _RULES.get(e.fn)
    return rule(*e.args) if rule else None


def _folded(e: Apply) -> Expr | None:
    try:
        return const(_FOLD[e.fn](*(float(a.value) for a in e.args)))  # type: ignore[attr-defined]
    except (ArithmeticError, ValueError):
        return None


def _mul(a: Expr, b: Expr) -> Expr | None:
    if is_number(a, 1.0):
        return b
    if is_number(b, 1.0):
        return a
    if is_number(a) or (is_scalar(a) and not is_scalar(b)):
        return simplify(apply("mul", b, a))
    # (x * k1) * k2 -> x * (k1 * k2)
    if is_scalar(b) and isinstance(a, Apply) and a.fn == "mul" and is_scalar(a.args[1]) and not is_scalar(a.args[0]):
        return apply("mul", a.args[0], simplify(apply("mul", a.args[1], b)))
    return None


def _add(a: Expr, b: Expr) -> Expr | None:
    if is_number(a, 0.0):
        return b
    return a if is_number(b, 0.0) else None


def _sub(a: Expr, b: Expr) -> Expr | None:
    if is_number(b, 0.0):
        return a
    pa, pb = _scaled(a), _scaled(b)
    # x * k - y * k -> (x - y) * k: one product fewer, and equal scores cancel exactly
    if pa and pb and pa[1] == pb[1]:
        return apply("mul", apply("sub", pa[0], pb[0]), pa[1])
    return None


def _scaled(e: Expr) -> tuple[Expr, Expr] | None:
    if isinstance(e, Apply) and e.fn == "mul" and is_scalar(e.args[1]) and not is_scalar(e.args[0]):
        return e.args[0], e.args[1]
    return None


def _neg(a: Expr) -> Expr | None:
    return a.args[0] if isinstance(a, Apply) and a.fn == "neg" else None


def _exp(a: Expr) -> Expr:
    return apply("exp2", simplify(apply("mul", a, const(LOG2E))))


def _log(a: Expr) -> Expr:
    return apply("mul", apply("log2", a), const(LN2))


_RULES = {"mul": _mul, "add": _add, "sub": _sub, "neg": _neg, "exp": _exp, "log": _log}


def factors(e: Expr) -> list[Expr]:
    """The factors of a product; a quotient contributes rcp of its divisor, unless that is a number: then it has to stay."""
    if isinstance(e, Apply) and e.fn == "mul":
        return factors(e.args[0]) + factors(e.args[1])
    if isinstance(e, Apply) and e.fn == "div" and not is_number(e.args[1]):
        return [*factors(e.args[0]), apply("rcp", e.args[1])]
    if isinstance(e, Apply) and e.fn == "neg":
        return [const(-1.0), *factors(e.args[0])]
    return [e]


def product(parts: list[Expr]) -> Expr:
    """Product of factors, left to right; 1 for none."""
    out: Expr = ONE
    for p in parts:
        out = p if is_number(out, 1.0) else apply("mul", out, p)
    return simplify(out)


def linear(e: Expr, constant: Callable[[Expr], bool] = is_scalar) -> list[tuple[Expr, Expr]]:
    """`e` as a sum of coefficient * base, the coefficients constant: scalar, unless the caller knows of more."""
    if isinstance(e, Apply) and e.fn in ("add", "sub"):
        right = linear(e.args[1], constant)
        if e.fn == "sub":
            right = [(negated(c), b) for c, b in right]
        return linear(e.args[0], constant) + right
    if isinstance(e, Apply) and e.fn == "neg":
        return [(negated(c), b) for c, b in linear(e.args[0], constant)]
    if isinstance(e, Apply) and e.fn == "mul":
        a, b = e.args
        if constant(b):
            return [(simplify(apply("mul", c, b)), x) for c, x in linear(a, constant)]
        if constant(a):
            return [(simplify(apply("mul", c, a)), x) for c, x in linear(b, constant)]
    return [(ONE, e)]


def negated(e: Expr) -> Expr:
    """`-e`, without a double minus."""
    if is_number(e):
        return const(-float(e.value))  # type: ignore[attr-defined]
    return e.args[0] if isinstance(e, Apply) and e.fn == "neg" else apply("neg", e)


def signed(e: Expr) -> tuple[bool, Expr]:
    """(whether a minus sign stands before `e`, `e` without it)."""
    if is_number(e):
        return (True, negated(e)) if float(e.value) < 0 else (False, e)  # type: ignore[attr-defined]
    if isinstance(e, Apply) and e.fn == "neg":
        return True, e.args[0]
    if isinstance(e, Apply) and e.fn == "mul":
        minus, last = signed(e.args[1])
        return minus, simplify(apply("mul", e.args[0], last)) if minus else e
    return False, e


def positive(e: Expr, known: frozenset[str]) -> bool:
    """Whether `e` > 0 is proven. `known`: inputs that are required, or assumed, to be positive."""
    if isinstance(e, Const) and not isinstance(e.value, bool):
        return float(e.value) > 0
    if isinstance(e, Scalar):
        return e.name in known
    if isinstance(e, Load):
        return e.tensor in known
    if isinstance(e, IndexValue):
        return (e.poly.constant or 0) > 0
    if isinstance(e, Apply) and e.fn in ("exp", "exp2"):
        return True
    if isinstance(e, Apply) and e.fn in ("mul", "div", "add", "rcp", "sqrt", "rsqrt"):
        return all(positive(a, known) for a in e.args)
    return False


@dataclass(frozen=True)
class Finite:
    """Abstract value of `limit`: some finite number."""


BOUNDED = frozenset({"add", "sub", "mul", "neg", "tanh", "tanh_approx", "sigmoid", "abs", "relu", "gelu", "gelu_tanh", "silu"})


def always_finite(e: Expr, products: frozenset[str]) -> bool:
    """Whether `e` is finite whenever the products that it loads are."""
    if isinstance(e, Load):
        return e.tensor in products
    if isinstance(e, Const):
        return math.isfinite(e.value)
    if isinstance(e, Scalar | IndexValue):
        return True
    return isinstance(e, Apply) and e.fn in BOUNDED and all(always_finite(a, products) for a in e.args)


def limit(e: Expr, at: Mapping[str, float], known: frozenset[str]) -> float | Finite | None:
    """The value of `e` where the loads named in `at` have those values (possibly infinite) and every other load is some
    finite number. None: not determined."""
    if isinstance(e, Load):
        return at.get(e.tensor, Finite())
    if isinstance(e, Const):
        return float(e.value)
    if is_scalar(e):
        return Finite()
    if isinstance(e, Cast):
        return limit(e.arg, at, known)
    if isinstance(e, Select) or not isinstance(e, Apply):
        return None
    args = [limit(a, at, known) for a in e.args]
    return _limit_of(e, args, known)


def _limit_of(e: Apply, args: list, known: frozenset[str]) -> float | Finite | None:
    if any(a is None for a in args):
        return None
    if all(isinstance(a, Finite) for a in args):
        return Finite()
    if e.fn in ("add", "sub"):
        a, b = args
        inf = a if isinstance(a, float) and math.isinf(a) else None
        if inf is not None and isinstance(b, Finite):
            return inf
        if isinstance(b, float) and math.isinf(b) and isinstance(a, Finite):
            return b if e.fn == "add" else -b
    if e.fn == "mul":
        for x, other in ((0, 1), (1, 0)):
            value = args[x]
            if isinstance(value, float) and math.isinf(value) and positive(e.args[other], known):
                return value
            partner = args[other]
            if value == 0.0 and (isinstance(partner, Finite) or math.isfinite(partner)):
                return 0.0
    if e.fn == "neg" and isinstance(args[0], float):
        return -args[0]
    if e.fn == "exp2" and args[0] == -math.inf:
        return 0.0
    if e.fn in ("log", "log2") and args[0] == 0.0:
        return -math.inf
    if e.fn == "add" and args[0] == args[1] == -math.inf:
        return -math.inf
    return None
