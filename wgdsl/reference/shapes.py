"""Dims of a call from the shapes of its arrays.

In: a program graph, shapes, and dims that the caller passes.  Out: the value of every dim, computed ones too.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..program.graph import ProgramGraph
from ..program.poly import Poly

Equation = tuple[str, Poly, int]  # what it says in words, left side, value


def solve_dims(
    graph: ProgramGraph, shapes: Mapping[str, tuple[int, ...]], given: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Every dim of the graph, the computed and the fixed too.

    shapes: of any inputs and outputs, by name.  given: dims that are in no shape, or any others.
    Raises ValueError if they disagree, have no whole solution or leave a dim open.
    """
    given = dict(given or {})
    values = {**graph.fixed, **{n: int(v) for n, v in given.items() if n in graph.dims}}
    equations = _equations(graph, shapes, given)
    while _solve_one(equations, values):
        pass
    for text, left, value in equations:
        found = left.substitute(values).constant
        if found is not None and found != value:
            raise ValueError(f"`{graph.name}`: {text} is {value}, but {_explained(left, values)} = {found}")
    _settle_open(graph, equations, values)
    return {**values, **{n: p.evaluate(values) for n, p in graph.derived.items()}}


def _equations(graph: ProgramGraph, shapes: Mapping[str, tuple[int, ...]], given: Mapping[str, int]) -> list[Equation]:
    declared = {n.name: n.shape for n in graph.inputs} | {n.tensor: n.shape for n in graph.outputs}
    out: list[Equation] = []
    for name, shape in shapes.items():
        if name not in declared:
            raise ValueError(f"`{graph.name}` has no tensor `{name}`; it has {', '.join(declared)}")
        if len(shape) != len(declared[name]):
            raise ValueError(f"`{name}` has {len(declared[name])} axes, but the array has {len(shape)}")
        out += [(f"axis {k} of `{name}`", p, n) for k, (p, n) in enumerate(zip(declared[name], shape, strict=True))]
    for name, value in given.items():
        if name in graph.fixed and graph.fixed[name] != value:
            raise ValueError(f"dim `{name}` is compiled as {graph.fixed[name]}, but {value} is given")
        if name not in {*graph.dims, *graph.derived, *graph.fixed}:
            raise ValueError(f"`{graph.name}` has no dim `{name}`")
    return out + [(f"dim `{n}`", p, given[n]) for n, p in graph.derived.items() if n in given]


def _solve_one(equations: list[Equation], values: dict[str, int]) -> bool:
    """Solve the first equation that has one linear unknown. True if there was one."""
    for text, left, value in equations:
        p = left.substitute(values)
        unknown = tuple(p.symbols())
        factor = p.coefficient(unknown[0]) if len(unknown) == 1 else None
        if factor is None or not factor.constant:
            continue
        rest = value - (p.without(unknown).constant or 0)
        if rest % factor.constant or rest // factor.constant < 0:
            raise ValueError(f"{text} is {value}, but {_explained(left, values)} is that for no whole `{unknown[0]}`")
        values[unknown[0]] = rest // factor.constant
        return True
    return False


def _explained(p: Poly, values: Mapping[str, int]) -> str:
    known = ", ".join(f"{n} = {values[n]}" for n in sorted(p.symbols()) if n in values)
    return f"{p}" + (f" with {known}" if known else "")


def _settle_open(graph: ProgramGraph, equations: list[Equation], values: dict[str, int]) -> None:
    """A dim whose every factor is 0 (R of G * R with no heads) may be anything: it is 1. Others must be given."""
    for name in graph.dims:
        if name in values:
            continue
        inside = [p for _, p, _ in equations if name in p.symbols()]
        if not inside or any(name in p.substitute(values).symbols() for p in inside):
            raise ValueError(f"dim `{name}` of `{graph.name}` does not follow from the shapes: give it")
        values[name] = 1
