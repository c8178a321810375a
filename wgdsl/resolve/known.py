"""What the constants of a schedule may name of its program.

In: a program's AST and its analysed graph.  Out: `ProgramNames`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..program.graph import ProgramGraph
from ..syntax import ast
from ..syntax.options import OptionValue


@dataclass(frozen=True, kw_only=True)
class ProgramNames:
    """What a schedule may know of its program. `values`: options and dims that are fixed; `choices`: of enumerations;
    `taken`: every name that it declares or binds -> what it is (option, dim, index, ...)."""

    values: Mapping[str, OptionValue] = field(default_factory=dict)
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    taken: Mapping[str, str] = field(default_factory=dict)


def program_names(program: ast.Program, graph: ProgramGraph) -> ProgramNames:
    """Options with their values, dims as far as they are fixed, and every name that is taken."""
    decls = [d for d in program.items if isinstance(d, ast.OptionDecl)]
    enumerations = {d.name: tuple(c.id for c in d.choices if isinstance(c, ast.Name)) for d in decls}
    computed = {n: p.constant for n, p in graph.derived.items() if p.constant is not None}
    taken = dict.fromkeys(graph.extents, "index") | dict.fromkeys((*graph.dims, *graph.derived, *graph.fixed), "dim")
    return ProgramNames(
        values={**graph.options, **graph.fixed, **computed},  # type: ignore[arg-type]
        choices={n: c for n, c in enumerations.items() if c},
        taken=taken | dict.fromkeys(graph.options, "option"),
    )
