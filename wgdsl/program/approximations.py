"""Functions for which GPUs have an approximation, as a row each: PTX ISA, "Floating Point Instructions".

A program never names one. A schedule asks for it, and from there on the graph calls it by its own name.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from .expr import Apply, Expr, apply
from .graph import ProgramGraph, rewrite_node


@dataclass(frozen=True, kw_only=True)
class Approximation:
    """name: in graphs and role programs. bits: it may be off by 2^-bits of its value."""

    function: str
    name: str
    bits: int

    @property
    def note(self) -> str:
        """For the report."""
        return f"{self.function} to 2^-{self.bits} of its value"


ROWS = (Approximation(function="tanh", name="tanh_approx", bits=11),)  # "tanh": sm_75 and later
APPROXIMATIONS = {row.function: row for row in ROWS}


def with_approximations(graph: ProgramGraph, functions: Collection[str]) -> ProgramGraph:
    """The graph that calls the approximations of these functions."""
    if not functions:
        return graph

    def one(x: Expr) -> Expr | None:
        return apply(APPROXIMATIONS[x.fn].name, *x.args) if isinstance(x, Apply) and x.fn in functions else None

    return replace(graph, nodes=tuple(rewrite_node(n, one) for n in graph.nodes))
