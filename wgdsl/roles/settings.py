"""What an explicit form is fixed for: the options, types and dims behind its `with`.

In: the form and its program.  Out: settings by kind; and what conflicts with those of a caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..diagnostics.model import Problem, WgError
from ..diagnostics.roles import NothingOfThatName, NotOfThisKind, SettingFixed
from ..program.graph import ProgramGraph
from ..syntax import ast
from ..syntax.lines import Explicit


def settings_text(graph: ProgramGraph) -> dict[str, object]:
    """Everything that a graph is fixed for: what stands behind `with`."""
    return {**graph.fixed, **{name: str(t) for name, t in graph.types.items()}, **graph.options}


def settings_of(form: Explicit, program: ast.Program) -> dict[str, dict[str, Any]]:
    """kind (options, types, dims) -> name -> value. Raises WgError for what the program doesn't have."""
    kinds = _kinds(program)
    out: dict[str, dict[str, Any]] = {"options": {}, "types": {}, "dims": {}}
    problems: list[Problem] = []
    for s in form.settings:
        if s.name not in kinds:
            what = f"option, type or dim of `{program.name}`"
            problems.append(NothingOfThatName(span=s.span, what=what, name=s.name, known=tuple(kinds)))
        elif kinds[s.name] == "dims" and not s.value.isdigit():
            problems.append(NotOfThisKind(span=s.span, found=s.value, wanted="size of a dim"))
        else:
            out[kinds[s.name]][s.name] = int(s.value) if kinds[s.name] == "dims" else s.value
    if problems:
        raise WgError(problems)
    return out


def conflicts(form: Explicit, own: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]) -> list[Problem]:
    """The settings of a caller that the form isn't made for."""
    fixed = {name: value for kind in own.values() for name, value in kind.items()}
    spans = {s.name: s.span for s in form.settings}
    return [
        SettingFixed(
            span=spans.get(name, _head(form)),
            name=name,
            given=_text(value),
            fixed=_text(fixed[name]) if name in fixed else "not fixed",
        )
        for name, value in given.items()
        if name not in fixed or _text(fixed[name]) != _text(value)
    ]


def _kinds(program: ast.Program) -> dict[str, str]:
    out: dict[str, str] = {}
    for d in program.items:
        if isinstance(d, ast.OptionDecl | ast.TypeDecl):
            out[d.name] = "options" if isinstance(d, ast.OptionDecl) else "types"
        if isinstance(d, ast.DimsDecl):
            out |= {name: "dims" for name, _ in d.entries}
    return out


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _head(form: Explicit) -> Any:
    return form.settings[0].span if form.settings else form.span
