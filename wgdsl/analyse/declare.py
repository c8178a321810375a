"""Declarations of a program -> `Context`.

In: the AST and what the caller chose (options, types, fixed dims).  Out: the context in which statements are read.
Options, types and dims are settled first, wherever they stand; then inputs and outputs, `index` and `require`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields

from ..diagnostics.analyse import (
    BadDim,
    BadOption,
    BadType,
    DuplicateName,
    NotBuilt,
    NotConstant,
    Recursive,
    RequireFails,
    UnknownName,
    UnusedIndex,
)
from ..foundation.dtypes import DTYPES, DType
from ..foundation.source import Span
from ..program.expr import FALSE, TRUE, Const, Expr
from ..program.graph import ScalarInput
from ..program.poly import Poly
from ..syntax import ast
from . import values
from .context import Context, Option, Tensor
from .expressions import FUNCTIONS, Env, Expressions, NoTensors
from .problems import Problems, Refused, nearest, refuse

RAW = Env(raw=True)


def declare(
    program: ast.Program,
    options: Mapping[str, object],
    types: Mapping[str, str],
    dims: Mapping[str, int],
    problems: Problems,
) -> Context:
    """Read every declaration; problems are collected, a refused declaration is left out."""
    d = _Declarations(problems)
    d.options(_of(program, ast.OptionDecl), options)
    d.types(_of(program, ast.TypeDecl), types)
    d.dims(_of(program, ast.DimsDecl), dims)
    d.functions(program)
    d.parameters(_of(program, ast.ParamDecl))
    d.indices(program)
    d.conditions(program)
    return d.context


def _of(program: ast.Program, kind: type) -> list:
    return [item for item in program.items if isinstance(item, kind)]


def walk(node: ast.Node) -> Iterator[ast.Node]:
    """An AST node and everything under it, in source order."""
    stack: list[object] = [node]
    while stack:
        x = stack.pop()
        if isinstance(x, tuple):
            stack.extend(reversed(x))
        elif isinstance(x, ast.Node):
            yield x
            stack.extend(getattr(x, f.name) for f in reversed(fields(x)) if f.name != "span")


class _Declarations:
    def __init__(self, problems: Problems):
        self.context = Context()
        self.problems = problems
        self.expressions = Expressions(self.context, NoTensors())

    # ---- options

    def options(self, decls: Iterable[ast.OptionDecl], given: Mapping[str, object]) -> None:
        decls = list(decls)
        names = [d.name for d in decls]
        for name in given:
            if name not in names:
                self.problems.add(UnknownName(what="option", name=name, near=nearest(name, names), known=tuple(names)))
        for d in decls:
            with self.problems.collect():
                self.context.declare(d.name, "option", d.span)
                self.context.options[d.name] = self._option(d, given)

    def _option(self, d: ast.OptionDecl, given: Mapping[str, object]) -> Option:
        if d.choices and all(isinstance(c, ast.Name) for c in d.choices):
            return self._enumeration(d, given)
        choices = tuple(self._constant(c, f"a choice of option `{d.name}`") for c in d.choices)
        default = self._constant(d.default, f"option `{d.name}`") if d.default is not None else choices[0]
        value = _coerced(d, given[d.name], default) if d.name in given else default
        if choices and value not in choices:
            expected = "one of " + ", ".join(map(_spelled, choices))
            refuse(BadOption(span=d.span, option=d.name, expected=expected, got=f"`{_spelled(value)}`"))
        return Option(value=value)

    def _enumeration(self, d: ast.OptionDecl, given: Mapping[str, object]) -> Option:
        choices = tuple(c.id for c in d.choices if isinstance(c, ast.Name))
        default = d.default.id if isinstance(d.default, ast.Name) else choices[0]
        value = given.get(d.name, default)
        if value not in choices:
            expected = "one of " + ", ".join(choices)
            refuse(BadOption(span=d.span, option=d.name, expected=expected, got=f"`{value}`"))
        return Option(value=str(value), choices=choices)

    def _constant(self, e: ast.Expr, what: str) -> bool | int | float:
        value = self.expressions.value(e, Env()).constant
        if value is None:
            refuse(NotConstant(span=e.span, what=what))
        return value

    # ---- types

    def types(self, decls: Iterable[ast.TypeDecl], given: Mapping[str, str]) -> None:
        decls = list(decls)
        names = [d.name for d in decls]
        for name in given:
            if name not in names:
                self.problems.add(UnknownName(what="type", name=name, near=nearest(name, names), known=tuple(names)))
        for d in decls:
            with self.problems.collect():
                self.context.declare(d.name, "type", d.span)
                self.context.types[d.name] = _type(d, str(given.get(d.name, d.choices[0])))

    # ---- dims

    def dims(self, decls: Iterable[ast.DimsDecl], given: Mapping[str, int]) -> None:
        computed: dict[str, Span | None] = {}
        for d in decls:
            for name, formula in d.entries:
                with self.problems.collect():
                    self.context.declare(name, "dim", d.span)
                    if formula is not None:
                        self.context.dims[name] = self.expressions.poly(formula, RAW, f"dim `{name}`")
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

    # ---- inputs and outputs

    def parameters(self, decls: Iterable[ast.ParamDecl]) -> None:
        """Declarations of one name whose `when`s exclude each other are one argument, declared in several ways."""
        for d in decls:
            with self.problems.collect():
                if not holds(self.context, d.when):
                    if d.name not in self.context.names:
                        self.context.absent.setdefault(d.name, d.span)
                    continue
                self.context.declare(d.name, "input" if d.direction == "in" else "output", d.span)
                self.context.absent.pop(d.name, None)
                self._parameter(d)
        for name, span in self.context.absent.items():
            if name not in self.context.names:
                self.context.declare(name, "absent argument", span)

    def _parameter(self, d: ast.ParamDecl) -> None:
        c = self.context
        dtype = self._dtype(d)
        if d.shape is None and d.direction == "in":
            c.scalars[d.name] = ScalarInput(name=d.name, dtype=dtype, default=self._default(d, dtype), span=d.span)
            return
        if d.shape is None:
            refuse(NotBuilt(span=d.span, what="an output without axes", cure=f"give it one: `{d.name}: {d.dtype}[1]`"))
        if d.default is not None:
            refuse(NotBuilt(span=d.default.span, what="a default for a tensor", cure="only scalars have defaults"))
        shape = tuple(self.expressions.poly(x, RAW, "an extent") for x in d.shape)
        tensors = c.inputs if d.direction == "in" else c.outputs
        tensors[d.name] = Tensor(name=d.name, dtype=dtype, shape=shape, span=d.span)

    def _dtype(self, d: ast.ParamDecl) -> DType:
        found = self.context.types.get(d.dtype) or DTYPES.get(d.dtype)
        if found is None and self.context.names.get(d.dtype, ("",))[0] == "type":
            raise Refused
        if found is None:
            known = (*self.context.types, *DTYPES)
            refuse(UnknownName(span=d.span, what="type", name=d.dtype, near=nearest(d.dtype, known), known=known))
        return found

    def _default(self, d: ast.ParamDecl, dtype: DType) -> Expr | None:
        if d.default is None:
            return None
        value = self.expressions.value(d.default, Env())
        kinds = {"float": "int real"}.get(dtype.kind, dtype.kind)
        values.expect(value, kinds, f"the default of `{d.name}`", d.default.span)
        return values.as_real(value) if dtype.kind == "float" else value.expr

    # ---- let, def

    def functions(self, program: ast.Program) -> None:
        for d in _of(program, ast.LetDecl):
            with self.problems.collect():
                self.context.declare(d.name, "let", d.span)
                self.context.lets[d.name] = d
        for d in _of(program, ast.DefDecl):
            with self.problems.collect():
                if d.name in FUNCTIONS:
                    refuse(DuplicateName(span=d.span, name=d.name, first="built-in function"))
                self.context.declare(d.name, "def", d.span)
                self.context.defs[d.name] = d
        for name in tuple(self.context.defs):
            self._refuse_recursion(name)

    def _refuse_recursion(self, name: str) -> None:
        cycle = _cycle(name, {n: _calls(d) for n, d in self.context.defs.items()})
        if not cycle:
            return
        self.problems.add(Recursive(span=self.context.defs[name].span, what="def", cycle=cycle))
        self.problems.refusals += 1
        for n in cycle:
            self.context.defs.pop(n, None)

    # ---- indices and conditions

    def indices(self, program: ast.Program) -> None:
        """Find every index name of the program, then read `index i < ...`."""
        for s in _of(program, ast.Statement):
            for name, span in (*left_indices(self.context, s.target), *_axes(s)):
                self.context.indices.setdefault(name, span)
        for d in _of(program, ast.IndexDecl):
            for name, extent in d.entries:
                with self.problems.collect():
                    if name not in self.context.indices:
                        refuse(UnusedIndex(span=d.span, index=name))
                    self.context.extents[name] = (self.expressions.poly(extent, RAW, "an extent"), d.span)

    def conditions(self, program: ast.Program) -> None:
        for d in _of(program, ast.RequireDecl):
            with self.problems.collect():
                cond = self.expressions.condition(d.condition, Env(), "`require`")
                if cond == FALSE:
                    refuse(RequireFails(span=d.span, condition=_text(d.condition)))
                if cond != TRUE:
                    self.context.requires.append(cond)
        for d in _of(program, ast.AssumeDecl):
            with self.problems.collect():
                refuse(NotBuilt(span=d.span, what=f"`assume {' '.join(d.words)}`", cure="it serves gathered accesses"))


def holds(context: Context, when: ast.Expr | None) -> bool:
    """Whether a `when` holds; refused if options and fixed dims don't decide it."""
    if when is None:
        return True
    cond = Expressions(context, NoTensors()).condition(when, Env(), "`when`")
    if not isinstance(cond, Const):
        refuse(NotConstant(span=when.span, what="`when`"))
    return bool(cond.value)


def left_indices(context: Context, target: ast.Index) -> list[tuple[str, Span | None]]:
    """The indices that a left side binds, in the order in which they occur; a `let` stands for its expression."""
    found: dict[str, Span | None] = {}

    def visit(e: ast.Node, opening: tuple[str, ...]) -> None:
        for x in walk(e):
            if not isinstance(x, ast.Name) or x.id in opening:
                continue
            if x.id in context.lets:
                visit(context.lets[x.id].value, (*opening, x.id))
            elif x.id not in context.names:
                found.setdefault(x.id, x.span)

    for e in target.indices:
        visit(e, ())
    return list(found.items())


def _axes(s: ast.Statement) -> list[tuple[str, Span | None]]:
    return [(a, x.span) for x in walk(s) if isinstance(x, ast.Reduce) for a in x.axes]


def _calls(d: ast.DefDecl) -> tuple[str, ...]:
    return tuple(x.function for x in walk(d.body) if isinstance(x, ast.Call))


def _cycle(start: str, calls: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """A path from `start` back to itself, or ()."""
    seen: set[str] = set()
    stack: list[tuple[str, tuple[str, ...]]] = [(start, (start,))]
    while stack:
        name, path = stack.pop()
        for callee in calls.get(name, ()):
            if callee == start:
                return (*path, start)
            if callee in calls and callee not in seen:
                seen.add(callee)
                stack.append((callee, (*path, callee)))
    return ()


def _coerced(d: ast.OptionDecl, given: object, default: bool | int | float) -> bool | int | float:
    """The caller's value in the type of the default; a text (from the command line) is read as a literal."""
    value = _read(given) if isinstance(given, str) else given
    if isinstance(default, bool) and isinstance(value, bool):
        return value
    if not isinstance(default, bool) and not isinstance(value, bool):
        if isinstance(default, int) and hasattr(value, "__index__"):
            return value.__index__()  # type: ignore[union-attr]
        if isinstance(default, float) and isinstance(value, int | float) and not math.isnan(value):
            return float(value)
    expected = "true or false" if isinstance(default, bool) else "an integer" if isinstance(default, int) else "a number"
    refuse(BadOption(span=d.span, option=d.name, expected=expected, got=f"`{_spelled(given)}`"))


def _read(text: str) -> object:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for parse in (int, float):
        try:
            return parse(text)
        except ValueError:
            continue
    return text


def _spelled(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _type(d: ast.TypeDecl, name: str) -> DType:
    for choice in d.choices:
        if choice not in DTYPES:
            refuse(UnknownName(span=d.span, what="type", name=choice, near=nearest(choice, DTYPES), known=tuple(DTYPES)))
    if name not in d.choices:
        refuse(BadType(span=d.span, name=d.name, expected=d.choices, got=f"`{name}`"))
    return DTYPES[name]


def _text(e: ast.Expr) -> str:
    return e.span.text if e.span else "..."
