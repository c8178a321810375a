"""Dims and scalars of a call, from the shapes of its arguments.

In: the program graph, shapes, and what the caller gave by name.  Out: `Bound`, or a WgError (WG06xx) that names arguments.

Each axis is an equation between the declared extent (a polynomial of dims) and the given one. An equation with one unknown
dim determines it: with `dims H = G * R` the ratio R follows from H and G. What no equation determines is a call parameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ..diagnostics.model import WgError
from ..diagnostics.runtime import (
    BadScalar,
    DimNotGiven,
    DimsDisagree,
    DimTooLarge,
    FixedDim,
    FixedExtent,
    MissingArgument,
    NoWholeRatio,
    RequireFails,
    WrongRank,
)
from ..program.expr import Expr
from ..program.graph import Input, Output, ProgramGraph
from ..program.poly import Poly
from .equations import Solve, solver
from .scalars import Number, evaluate, names_in, number, rounded

LIMIT = 2**31 - 1
REMEMBERED = 1024  # calls' shapes and numbers
SOLVERS = 64  # sets of arrays and dims that are given together; and values of a scalar's default


@dataclass(frozen=True, kw_only=True, eq=False)
class Bound:
    """Every dim (free, derived and fixed) and every scalar of one call. A binder gives the same one for the same call."""

    dims: Mapping[str, int]
    scalars: Mapping[str, Number]


@dataclass(frozen=True)
class _Axis:
    """One axis of an argument: its declared extent, with derived dims opened, and what is worked out of that once."""

    extent: Poly
    where: str
    bare: str | None
    symbols: tuple[str, ...]


class _Equation(NamedTuple):
    axis: _Axis
    value: int


def tensor_name(node: Input | Output) -> str:
    """The name under which a call passes an input, or gets an output."""
    return node.name if isinstance(node, Input) else node.tensor


def call_dims(graph: ProgramGraph) -> tuple[str, ...]:
    """Dims that occur in no input's shape: parameters of the call (unless a given output determines them)."""
    seen = {s for node in graph.inputs for extent in node.shape for s in _opened(graph, extent).symbols()}
    return tuple(d for d in graph.dims if d not in seen and d not in graph.fixed)


def shape_of(node: Input | Output, bound: Bound) -> tuple[int, ...]:
    """A tensor's extents, in elements, for the dims of a call."""
    return tuple(extent.evaluate(bound.dims) for extent in node.shape)


class Binder:
    """Solves calls of one program, and remembers some. Threads may share it."""

    def __init__(self, graph: ProgramGraph):
        self.graph = graph
        self._bound = lru_cache(maxsize=REMEMBERED)(self._bind)
        nodes = {tensor_name(n): n for n in (*graph.inputs, *graph.outputs)}
        self._axes = {name: tuple(_axes(graph, name, node)) for name, node in nodes.items()}
        self._nodes = nodes
        self._solver = lru_cache(maxsize=SOLVERS)(self._new_solver)
        self._defaults = {s.name: _remembering(s.default, graph) for s in graph.scalars if s.default is not None}
        self._requires = [(condition, _remembering(condition, graph)) for condition in graph.requires]

    def bind(self, shapes: Mapping[str, tuple[int, ...]], dims: Mapping[str, int], scalars: Mapping[str, Any]) -> Bound:
        """Solve for the dims, then evaluate the scalars and check what the program requires."""
        given = tuple([(s.name, number(s.name, scalars[s.name], s.dtype)) for s in self.graph.scalars if s.name in scalars])
        signs = tuple([math.copysign(1.0, value) for _, value in given])  # 0.0 == -0.0
        return self._bound(tuple(shapes.items()), tuple(dims.items()), given, signs)

    def _bind(self, shapes: Any, dims: Any, scalars: Any, _signs: Any) -> Bound:
        known = self._solved(shapes, dict(dims))
        bound = Bound(dims=known, scalars=self._scalars(known, dict(scalars)))
        for condition, holds in self._requires:
            if not holds(bound.dims, bound.scalars):
                values = {n: bound.scalars.get(n, known.get(n)) for n in sorted(names_in(condition))}
                raise WgError(RequireFails(condition=str(condition), values=values))
        return bound

    def _solved(self, shapes: tuple[tuple[str, tuple[int, ...]], ...], dims: dict[str, int]) -> dict[str, int]:
        """Every dim of a call."""
        graph = self.graph
        solve = self._solver(tuple([name for name, _ in shapes]), tuple(dims))
        known = {**graph.fixed, **dims}
        if solve is not None and solve([shape for _, shape in shapes], known) and 0 <= min(known.values(), default=0):
            if max(known.values(), default=0) <= LIMIT:
                return known
        solved = _Solver(graph, dims).solve(list(self._equations(dict(shapes))))
        known = {**solved, **{name: extent.evaluate(solved) for name, extent in graph.derived.items()}}
        for name, value in known.items():
            if not 0 <= value <= LIMIT:
                raise WgError(DimTooLarge(dim=name, value=value))
        return known

    def _new_solver(self, names: tuple[str, ...], given: tuple[str, ...]) -> Solve | None:
        if not self._axes.keys() >= {*names} or {*given} & self.graph.fixed.keys():
            return None
        extents = [[axis.extent for axis in self._axes[name]] for name in names]
        return solver(extents, self.graph.dims, (*self.graph.fixed, *given), self.graph.derived)

    def _scalars(self, dims: Mapping[str, int], given: Mapping[str, Number]) -> dict[str, Number]:
        out: dict[str, Number] = {}
        for s in self.graph.scalars:
            if s.name in given:
                out[s.name] = given[s.name]
            elif s.default is None:
                raise WgError(MissingArgument(name=s.name, signature=signature(self.graph)))
            else:
                value = self._defaults[s.name](dims, out)
                out[s.name] = rounded(s.name, float(value), s.dtype) if s.dtype.kind == "float" else int(value)
        return out

    def _equations(self, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[_Equation]:
        for name, axes in self._axes.items():
            shape = shapes.get(name)
            if shape is None:
                continue
            if len(shape) != len(axes):
                raise WgError(WrongRank(name=name, declared=declared(self.graph, self._nodes[name]), got=shape))
            yield from map(_Equation, axes, shape)


def _axes(graph: ProgramGraph, name: str, node: Input | Output) -> Iterator[_Axis]:
    for axis, shown in enumerate(node.shape):
        extent = _opened(graph, shown)
        yield _Axis(extent, f"{name} axis {axis}", extent.bare, tuple(sorted(extent.symbols())))


def _opened(graph: ProgramGraph, extent: Poly) -> Poly:
    return extent.substitute(graph.derived) if extent.symbols() & graph.derived.keys() else extent


def declared(graph: ProgramGraph, node: Input | Output) -> tuple[str, ...]:
    """The shape as the program writes it, derived dims by their names."""
    names = {_opened(graph, extent): name for name, extent in graph.derived.items()}
    return tuple(names.get(extent, str(extent)) for extent in node.shape)


class _Solver:
    """Substitution until nothing changes; remembers where each value came from."""

    def __init__(self, graph: ProgramGraph, given: Mapping[str, int]):
        self.graph = graph
        self.known: dict[str, int] = {**graph.fixed, **given}
        self.origin = {**dict.fromkeys(graph.fixed, "compile time"), **dict.fromkeys(given, "the call")}
        for name in given.keys() & graph.fixed.keys():
            if given[name] != graph.fixed[name]:
                raise WgError(FixedDim(dim=name, value=graph.fixed[name], got=given[name], where="the call"))
        self.any: set[str] = set()  # dims whose value no longer matters: their factor is 0

    def solve(self, equations: list[_Equation]) -> dict[str, int]:
        pending = equations
        while pending:
            left = [e for e in pending if not self._step(e)]
            if len(left) == len(pending):
                break
            pending = left
        for name in self.graph.dims:
            if name not in self.known and name not in self.any:
                raise WgError(DimNotGiven(dim=name))
        return {**dict.fromkeys(self.any, 1), **self.known}

    def _step(self, e: _Equation) -> bool:
        """Use one equation; False if it has more than one unknown."""
        axis = e.axis
        unknown = [s for s in axis.symbols if s not in self.known]
        if not unknown:
            self._compare(e, axis.extent.evaluate(self.known))
            return True
        if axis.bare is not None:
            self._learn(axis.bare, e.value, axis.where)
            return True
        rest = axis.extent.substitute(self.known)
        if rest.constant is not None:
            self._compare(e, rest.constant)
            return True
        factor = rest.coefficient(unknown[0]) if len(unknown) == 1 else None
        if factor is None or not factor.constant:
            return False
        total = e.value - (rest.without(unknown).constant or 0)
        if total < 0 or total % factor.constant:
            raise WgError(self._ratio(e, unknown[0], factor.constant))
        self._learn(unknown[0], total // factor.constant, axis.where)
        return True

    def _learn(self, name: str, value: int, where: str) -> None:
        self.known[name], self.origin[name] = value, where

    def _compare(self, e: _Equation, value: int) -> None:
        axis = e.axis
        if value == e.value:
            self.any.update(s for s in axis.symbols if s not in self.known)
            return
        if not axis.symbols:
            meant = tuple(d for d, fixed in self.graph.fixed.items() if fixed == value)
            raise WgError(FixedExtent(where=axis.where, got=e.value, expected=value, dims=meant))
        if axis.bare is not None and axis.bare in self.graph.fixed:
            raise WgError(FixedDim(dim=axis.bare, value=value, got=e.value, where=axis.where))
        known = ", ".join(f"{s} = {self.known.get(s, 'any')}" for s in axis.symbols)
        where = self.origin[axis.bare] if axis.bare else known
        raise WgError(DimsDisagree(dim=self._text(axis), value=e.value, where=axis.where, other=value, other_where=where))

    def _text(self, axis: _Axis) -> str:
        for name, extent in self.graph.derived.items():
            if _opened(self.graph, extent) == axis.extent:
                return f"{name} = {extent}"
        return str(axis.extent)

    def _ratio(self, e: _Equation, unknown: str, factor: int) -> NoWholeRatio:
        others = [s for s in e.axis.symbols if s != unknown]
        known = ", ".join(f"{s} = {self.known[s]} ({self.origin[s]})" for s in others)
        formula = self._text(e.axis)
        return NoWholeRatio(dim=unknown, formula=formula, total=e.value, where=e.axis.where, known=known, by=factor)


def _remembering(e: Expr, graph: ProgramGraph) -> Callable[[Mapping[str, int], Mapping[str, Number]], Any]:
    """`evaluate` for one expression; what it comes to is remembered if it depends on dims alone, most of which stay."""
    names = tuple(names_in(e))
    if not {*names} <= {*graph.dims, *graph.derived, *graph.fixed}:
        return lambda dims, scalars: evaluate(e, dims, scalars)
    value = lru_cache(maxsize=SOLVERS)(lambda *values: evaluate(e, dict(zip(names, values, strict=True)), {}))
    return lambda dims, scalars: value(*[dims[n] for n in names])


def whole(name: str, given: Any) -> int:
    """A dim given by name."""
    try:
        value = given.__index__()
    except (AttributeError, TypeError):
        raise WgError(BadScalar(name=name, got=f"of type {type(given).__name__}", expected="a whole number")) from None
    if not 0 <= value <= LIMIT:
        raise WgError(DimTooLarge(dim=name, value=value))
    return value


def signature(graph: ProgramGraph) -> str:
    """The call as text: `kernel(Q, K, V, scale=..., out={'O': ..., 'L': ...})`."""
    scalars = (s.name if s.default is None else f"{s.name}=..." for s in graph.scalars)
    parts = [*(n.name for n in graph.inputs), *scalars, *(f"{d}=..." for d in call_dims(graph))]
    parts.append("out={" + ", ".join(f"'{n.tensor}': ..." for n in graph.outputs) + "}")
    return f"kernel({', '.join(parts)})"
