"""Uniform conditions and integers of a role program as Python functions of what is bound: the same for one item or, on NumPy
arrays, for many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from ..program.expr import Affine, Const, Expr, Logic, Scalar
from ..program.poly import Poly, python
from ..roles import model as m
from ..roles.model import Kernel, Role, Step

At = Mapping[str, Any]
FLAG = "flag "  # before the name of a flag parameter among what is bound
ROWS = "#rows"  # among what is bound: what numbers the choices of rows that `ClearRows` clears, for all units alike

_SINGLE = {"min": min, "max": max}
_MANY = {"min": lambda *a: reduce(np.minimum, a), "max": lambda *a: reduce(np.maximum, a)}


@lru_cache(maxsize=4096)
def integer(p: Poly) -> Callable[[At], int]:
    """The value of a polynomial at what is bound. The function raises KeyError for a symbol that nothing binds."""
    known = p.constant
    return (lambda at: known) if known is not None else eval(f"lambda at: {python(p)}", _SINGLE)


@lru_cache(maxsize=4096)
def integers(p: Poly) -> Callable[[At], Any]:
    """The same for arrays of values."""
    return eval(f"lambda at: {python(p)}", _MANY)


@lru_cache(maxsize=4096)
def condition(e: Expr) -> Callable[[At], bool]:
    """Whether a uniform condition holds at what is bound."""
    return eval(f"lambda at: {_text(e)}", _SINGLE)


def _text(e: Expr) -> str:
    if isinstance(e, Const):
        return str(bool(e.value))
    if isinstance(e, Affine):
        return f"({python(e.poly)} >= 0)"
    if isinstance(e, Scalar):
        return f"bool(at[{FLAG + e.name!r}])"
    if isinstance(e, Logic):
        parts = [_text(a) for a in e.args]
        return f"(not {parts[0]})" if e.op == "not" else f"({f' {e.op} '.join(parts)})"
    raise TypeError(f"{type(e).__name__} is no uniform condition")


def holds(e: Expr, at: At) -> Any:
    """The same for arrays of values; None if a flag decides it."""
    if isinstance(e, Const):
        return bool(e.value)
    if isinstance(e, Affine):
        return integers(e.poly)(at) >= 0
    if isinstance(e, Scalar):
        return None
    if isinstance(e, Logic):
        parts = [holds(a, at) for a in e.args]
        if any(p is None for p in parts):
            return None
        return np.logical_not(parts[0]) if e.op == "not" else reduce({"and": np.logical_and, "or": np.logical_or}[e.op], parts)
    raise TypeError(f"{type(e).__name__} is no uniform condition")


def polys_in(e: Expr) -> Iterator[Poly]:
    """The integers that a uniform condition compares with 0."""
    if isinstance(e, Affine):
        yield e.poly
    elif isinstance(e, Logic):
        for a in e.args:
            yield from polys_in(a)


def flags_in(e: Expr) -> Iterator[str]:
    """The flag parameters that a uniform condition asks for."""
    if isinstance(e, Scalar):
        yield e.name
    elif isinstance(e, Logic):
        for a in e.args:
            yield from flags_in(a)


def conditions(s: Step) -> tuple[Expr, ...]:
    """The conditions by which a step is run, or starts afresh."""
    if isinstance(s, m.If):
        return (s.cond,)
    return (s.zero,) if isinstance(s, m.Wgmma | m.Mma) else ()


def decisive(s: Step) -> tuple[Poly, ...]:
    """The integers on which it depends what a step does to the protocol, its conditions apart."""
    named: tuple[Poly, ...] = ()
    if isinstance(s, m.Loop):
        named = (s.start, s.stop)
    elif isinstance(s, m.Advance):
        named = (s.stages,)
    elif isinstance(s, m.Begun):
        named = (s.value,)
    elif isinstance(s, m.ClearRows):
        named = (s.start, s.stop)
    elif isinstance(s, m.BarSync | m.BarArrive):
        named = (s.id,)
    parts = tuple(p for f in ("part", "barrier_part") if (p := getattr(s, f, None)) is not None)
    operands = tuple(o.part for f in ("a", "b") if isinstance(o := getattr(s, f, None), m.SmemOperand))
    return (*named, *parts, *operands)


def steering(s: Step) -> tuple[Poly, ...]:
    """The same with what its conditions compare."""
    return (*decisive(s), *(p for c in conditions(s) for p in polys_in(c)))


def flags_of(kernel: Kernel) -> tuple[str, ...]:
    """The flag parameters that steer the kernel, in order."""
    every = (s for r in kernel.roles for s in m.walk(r.steps))
    return tuple(dict.fromkeys(f for s in every for c in conditions(s) for f in flags_in(c)))


def outermost(steps: tuple[Step, ...], by_thread: bool) -> Iterator[tuple[Step, bool]]:
    """The steps of a list, those of elected blocks among them, each with whether one thread runs it."""
    for s in steps:
        if isinstance(s, m.Elect):
            yield from outermost(s.body, True)
        else:
            yield s, by_thread


def items_of(role: Role) -> m.Items | None:
    """The role's loop over items."""
    return next((s for s, _ in outermost(role.steps, role.elected) if isinstance(s, m.Items)), None)
