"""settle: a schedule with its options chosen and every number in it a literal.

In: a schedule without `extends`, the caller's options for it, and what its program has settled.  Out: the same schedule in
which tile sizes, ring depths, counts and offsets hold no name of an option or of a fixed dim. Later passes need literals only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from ..diagnostics.analyse import BadOption, UnknownName
from ..diagnostics.hints import nearest
from ..diagnostics.model import Problem, WgError
from ..diagnostics.resolve import OptionTwice
from ..foundation.source import Span
from ..syntax import ast
from ..syntax.options import OptionValue, coerced, expected
from .evaluate import Names, evaluate, number
from .known import ProgramNames

_NUMBERS: dict[type, tuple[str, ...]] = {
    ast.TileDecl: ("entries",),
    ast.RoleDecl: ("count", "registers"),
    ast.HomeDecl: ("ring", "times"),
    ast.AccumulateDecl: ("every",),
    ast.RescaleStep: ("grown_by",),
}


def settle(schedule: ast.Schedule, options: Mapping[str, object], program: ProgramNames) -> ast.Schedule:
    """The schedule with every constant a literal. Raises WgError for names without a value and options that aren't offered."""
    settler = _Settler(schedule, options, program)
    items = settler.node(schedule.items)
    if settler.problems:
        raise WgError(settler.problems)
    return replace(schedule, items=items)


def share_out(
    program: ast.Program, schedule: ast.Schedule, options: Mapping[str, object]
) -> tuple[dict[str, object], dict[str, object]]:
    """The caller's options: those of the program, and those of the schedule. Raises WgError for one that neither has."""
    theirs = {d.name for d in program.items if isinstance(d, ast.OptionDecl)}
    mine = {d.name for d in option_decls(schedule.items)}
    known = sorted(theirs | mine)
    unknown = [
        UnknownName(what="option", name=n, near=(near,) if (near := nearest(n, known)) else (), known=tuple(known))
        for n in options
        if n not in theirs | mine
    ]
    if unknown:
        raise WgError(unknown)
    return {n: v for n, v in options.items() if n in theirs}, {n: v for n, v in options.items() if n in mine}


def option_decls(items: Iterable[ast.ScheduleItem]) -> list[ast.OptionDecl]:
    """The options of a schedule, those of its kernels included."""
    out: list[ast.OptionDecl] = []
    for item in items:
        if isinstance(item, ast.OptionDecl):
            out.append(item)
        elif isinstance(item, ast.KernelDecl):
            out += option_decls(item.items)
    return out


class _Settler:
    def __init__(self, schedule: ast.Schedule, given: Mapping[str, object], program: ProgramNames):
        self.problems: list[Problem] = []
        self.values = dict(program.values)
        self.choices = dict(program.choices)
        self.open = frozenset(n for n, what in program.taken.items() if what == "dim")
        declared: dict[str, Span | None] = {}
        for d in option_decls(schedule.items):
            if d.name in declared or d.name in program.taken:
                what = program.taken.get(d.name, "option")
                self.problems.append(OptionTwice(span=d.span, name=d.name, what=what, first=declared.get(d.name)))
                continue
            declared[d.name] = d.span
            self.option(d, given)
        self.own = frozenset(declared)

    @property
    def names(self) -> Names:
        return Names(values=self.values, choices=self.choices, open=self.open - self.values.keys())

    def option(self, d: ast.OptionDecl, given: Mapping[str, object]) -> None:
        """Its value; a problem leaves it the default."""
        try:
            if d.choices and all(isinstance(c, ast.Name) and c.id not in self.values for c in d.choices):
                self.choices[d.name] = tuple(c.id for c in d.choices if isinstance(c, ast.Name))
                self.values[d.name] = self.choices[d.name][0]
            else:
                self.values[d.name] = evaluate(d.default if d.default is not None else d.choices[0], self.names)
            if d.name in given:
                self.values[d.name] = self.chosen(d, given[d.name])
        except WgError as e:
            self.problems += e.problems
            self.values.setdefault(d.name, 0)

    def chosen(self, d: ast.OptionDecl, given: object) -> OptionValue:
        return choice_of(d, given, self.values[d.name], self.names)

    def node(self, value: Any) -> Any:
        """The node, or the tuple of them, with its constants as literals."""
        if isinstance(value, tuple):
            return tuple(self.node(v) for v in value)
        if not isinstance(value, ast.Node) or isinstance(value, ast.OptionDecl):
            return value
        if isinstance(value, ast.Tuning):
            return value if value.what == "option" else replace(value, values=self.number(value.values))
        if isinstance(value, ast.Index):
            return replace(value, indices=tuple(map(self.offset, value.indices)))
        if isinstance(value, ast.StreamDecl):
            return replace(value, split_count=self.count(value.split_count))
        numbers = _NUMBERS.get(type(value), ())
        old = {f.name: getattr(value, f.name) for f in fields(value) if f.name != "span"}
        new = {n: (self.number if n in numbers else self.node)(v) for n, v in old.items()}
        return replace(value, **{n: v for n, v in new.items() if v is not old[n]})

    def number(self, value: Any) -> Any:
        """The expression, or the tuple of them, as a literal. A problem leaves it as it is."""
        if isinstance(value, tuple):
            return tuple(self.number(v) for v in value)
        if not isinstance(value, ast.Expr) or isinstance(value, ast.Number):
            return value
        try:
            return ast.Number(span=value.span, value=number(value, self.names))
        except WgError as e:
            self.problems += e.problems
            return value

    def count(self, e: ast.Expr | None) -> ast.Expr | None:
        """A number of parts: a dim that each call gives will do as well."""
        given = isinstance(e, ast.Name) and e.id in self.names.open
        return e if given else self.number(e)

    def offset(self, e: ast.Expr) -> ast.Expr:
        """The tile of a step, `j + lead`: an index, with the options put in."""
        if isinstance(e, ast.Name) and e.id in self.own:
            return self.number(e)
        if isinstance(e, ast.Binary):
            e = replace(e, left=self.offset(e.left), right=self.offset(e.right))
            literal = isinstance(e.left, ast.Number) and isinstance(e.right, ast.Number)
            return self.number(e) if literal else e
        return replace(e, operand=self.offset(e.operand)) if isinstance(e, ast.Unary) else e


def choice_of(d: ast.OptionDecl, given: object, default: OptionValue, names: Names) -> OptionValue:
    """The caller's value of an option. Raises WgError (WG0218) for one that it doesn't offer."""
    offered: tuple[OptionValue, ...] = names.choices.get(d.name) or tuple(evaluate(c, names) for c in d.choices)
    value = str(given) if isinstance(default, str) else coerced(given, default)
    if value is None or (offered and value not in offered):
        some = f"one of {', '.join(map(str, offered))}" if offered else expected(default)  # type: ignore[arg-type]
        raise WgError(BadOption(span=d.span, option=d.name, expected=some, got=f"`{given}`"))
    return value
