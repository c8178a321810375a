"""Options, types and dims: what the program offers, and what the caller chose.

In: the declarations and the caller's choices.  Out: entries of the context. A choice that the program doesn't offer is
refused, with what it does offer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..diagnostics.analyse import BadDim, BadOption, BadType, NotConstant, UnknownName
from ..foundation.dtypes import DTYPES, DType
from ..foundation.source import Span
from ..program.poly import Poly
from ..program.text import spelled
from ..syntax import ast
from ..syntax.options import coerced, expected
from .context import Context, Option
from .expressions import Expressions
from .problems import Problems, nearest, refuse
from .scope import Env, NoTensors


class Choices:
    def __init__(self, context: Context, problems: Problems):
        self.context = context
        self.problems = problems
        self.expressions = Expressions(context, NoTensors())

    def options(self, decls: Iterable[ast.OptionDecl], given: Mapping[str, object]) -> None:
        decls = list(decls)
        self._refuse_others("option", given, [d.name for d in decls])
        for d in decls:
            with self.problems.collect():
                self.context.declare(d.name, "option", d.span)
                self.context.options[d.name] = self._option(d, {})
                # A choice that is refused leaves the default: nothing that mentions the name is wrong for it.
                if d.name in given:
                    self.context.options[d.name] = self._option(d, given)

    def _refuse_others(self, what: str, given: Iterable[str], names: list[str]) -> None:
        for name in given:
            if name not in names:
                self.problems.add(UnknownName(what=what, name=name, near=nearest(name, names), known=tuple(names)))

    def _option(self, d: ast.OptionDecl, given: Mapping[str, object]) -> Option:
        if d.choices and all(isinstance(c, ast.Name) for c in d.choices):
            return self._enumeration(d, given)
        choices = tuple(self._constant(c, f"a choice of option `{d.name}`") for c in d.choices)
        default = self._constant(d.default, f"option `{d.name}`") if d.default is not None else choices[0]
        value = _coerced(d, given[d.name], default) if d.name in given else default
        if choices and value not in choices:
            some = "one of " + ", ".join(map(spelled, choices))
            refuse(BadOption(span=d.span, option=d.name, expected=some, got=f"`{spelled(value)}`"))
        return Option(value=value)

    def _enumeration(self, d: ast.OptionDecl, given: Mapping[str, object]) -> Option:
        choices = tuple(c.id for c in d.choices if isinstance(c, ast.Name))
        default = d.default.id if isinstance(d.default, ast.Name) else choices[0]
        value = given.get(d.name, default)
        if value not in choices:
            some = "one of " + ", ".join(choices)
            refuse(BadOption(span=d.span, option=d.name, expected=some, got=f"`{value}`"))
        return Option(value=str(value), choices=choices)

    def _constant(self, e: ast.Expr, what: str) -> bool | int | float:
        value = self.expressions.value(e, Env()).constant
        if value is None:
            refuse(NotConstant(span=e.span, what=what))
        return value

    def types(self, decls: Iterable[ast.TypeDecl], given: Mapping[str, str]) -> None:
        decls = list(decls)
        self._refuse_others("type", given, [d.name for d in decls])
        for d in decls:
            with self.problems.collect():
                self.context.declare(d.name, "type", d.span)
                self.context.types[d.name] = _type(d, d.choices[0])
                if d.name in given:
                    self.context.types[d.name] = _type(d, str(given[d.name]))

    def dims(self, decls: Iterable[ast.DimsDecl], given: Mapping[str, int]) -> None:
        computed: dict[str, Span | None] = {}
        for d in decls:
            for name, formula in d.entries:
                with self.problems.collect():
                    self.context.declare(name, "dim", d.span)
                    if formula is not None:
                        self.context.dims[name] = self.expressions.poly(formula, Env(raw=True), f"dim `{name}`")
                        computed[name] = d.span
                self.context.dims.setdefault(name, Poly.of(name))
        with self.problems.collect():
            self.context.fixed = self._fixed(given)
        for name, span in computed.items():
            if name in given and name in self.context.dims:
                with self.problems.collect():
                    self._fix_computed(name, given[name], span)

    def _fixed(self, given: Mapping[str, int]) -> dict[str, int]:
        fixed: dict[str, int] = {}
        for name, value in given.items():
            if name not in self.context.dims:
                known = tuple(self.context.dims)
                refuse(UnknownName(what="dim", name=name, near=nearest(name, known), known=known))
            if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 0:
                refuse(
                    BadDim(
                        span=self.context.names[name][1], dim=name, why=f"can't be fixed at {value!r}", cure="an integer >= 0"
                    )
                )
            if self.context.dims[name].bare == name:
                fixed[name] = value.__index__()
        return fixed

    def _fix_computed(self, name: str, value: int, span: Span | None) -> None:
        """H = 32 where `H = G * R` and G is 8: R is 4."""
        c = self.context
        formula = c.settle(c.dims[name])
        if formula.constant is not None:
            if formula.constant != value:
                why = f"is {c.dims[name]} = {formula.constant}, but fixed at {value}"
                refuse(BadDim(span=span, dim=name, why=why, cure="fix only the dims in its formula"))
            return
        unknown = sorted(formula.symbols())
        factor = formula.coefficient(unknown[0]) if len(unknown) == 1 else None
        if factor is None or not factor.constant:
            refuse(
                BadDim(span=span, dim=name, why=f"{value} doesn't determine {c.dims[name]}", cure="fix the dims in its formula")
            )
        rest = value - (formula.without(unknown).constant or 0)
        if rest % factor.constant or rest // factor.constant < 0:
            refuse(BadDim(span=span, dim=name, why=f"{value} = {formula} has no whole solution", cure="check the head counts"))
        c.fixed = {**c.fixed, unknown[0]: rest // factor.constant}


def _coerced(d: ast.OptionDecl, given: object, default: bool | int | float) -> bool | int | float:
    """The caller's value in the type of the default."""
    value = coerced(given, default)
    if value is None:
        refuse(BadOption(span=d.span, option=d.name, expected=expected(default), got=f"`{spelled(given)}`"))
    return value


def _type(d: ast.TypeDecl, name: str) -> DType:
    for choice in d.choices:
        if choice not in DTYPES:
            refuse(UnknownName(span=d.span, what="type", name=choice, near=nearest(choice, DTYPES), known=tuple(DTYPES)))
    if name not in d.choices:
        refuse(BadType(span=d.span, name=d.name, expected=d.choices, got=f"`{name}`"))
    return DTYPES[name]
