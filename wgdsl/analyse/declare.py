"""Declarations of a program -> `Context`.

In: the AST and what the caller chose (options, types, fixed dims).  Out: the context in which statements are read.
Options, types and dims are settled first, wherever they stand; then inputs and outputs, `index` and `require`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..diagnostics.analyse import (
    DuplicateName,
    NotBuilt,
    NotConstant,
    Recursive,
    RequireFails,
    TypeMismatch,
    UnknownName,
    UnusedIndex,
)
from ..foundation.dtypes import DTYPES, I32, DType
from ..program.expr import FALSE, TRUE, Const, Expr
from ..program.graph import ScalarInput
from ..syntax import ast
from . import values
from .chosen import Choices
from .context import Context, Tensor
from .expressions import FUNCTIONS, Expressions
from .names import axes, calls_of, cycle, left_indices
from .problems import Problems, Refused, nearest, refuse
from .scope import Env, NoTensors

RAW = Env(raw=True)


def declare(
    program: ast.Program,
    options: Mapping[str, object],
    types: Mapping[str, str],
    dims: Mapping[str, int],
    problems: Problems,
) -> Context:
    """Read every declaration; problems are collected, a refused declaration is left out."""
    context = Context()
    choices = Choices(context, problems)
    choices.options(_of(program, ast.OptionDecl), options)
    choices.types(_of(program, ast.TypeDecl), types)
    choices.dims(_of(program, ast.DimsDecl), dims)
    d = _Declarations(context, problems)
    d.functions(program)
    d.parameters(_of(program, ast.ParamDecl))
    d.indices(program)
    d.conditions(program)
    return context


def _of(program: ast.Program, kind: type) -> list:
    return [item for item in program.items if isinstance(item, kind)]


class _Declarations:
    def __init__(self, context: Context, problems: Problems):
        self.context = context
        self.problems = problems
        self.expressions = Expressions(self.context, NoTensors())

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
        found = cycle(name, {n: calls_of(d) for n, d in self.context.defs.items()})
        if not found:
            return
        self.problems.add(Recursive(span=self.context.defs[name].span, what="def", cycle=found))
        self.problems.refusals += 1
        for n in found:
            self.context.defs.pop(n, None)

    def indices(self, program: ast.Program) -> None:
        """Find every index name of the program, then read `index i < ...`."""
        for s in _of(program, ast.Statement):
            for name, span in (*left_indices(self.context, s.target), *axes(s)):
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
                self.assumed(d)

    def assumed(self, d: ast.AssumeDecl) -> None:
        """`assume cu increasing`, of an argument with one axis; `assume q positive`, of one of floats."""
        name, what = d.words[0], " ".join(d.words)
        if d.words[1:] == ("positive",):
            return self.positive(d, name, what)
        if d.words[1:] != ("increasing",):
            refuse(NotBuilt(span=d.span, what=f"`assume {what}`", cure="`assume cu increasing` is for offsets such as `cu[b]`"))
        tensor = self.context.inputs.get(name)
        if tensor is None or tensor.rank != 1 or tensor.dtype != I32:
            expected = "an argument of i32 with one axis"
            refuse(TypeMismatch(span=d.span, what=f"what `{what}` is about", expected=expected, got=f"`{name}`"))
        self.context.increasing.add(name)

    def positive(self, d: ast.AssumeDecl, name: str, what: str) -> None:
        tensor = self.context.inputs.get(name)
        if tensor is None or tensor.dtype.kind != "float":
            expected = "an argument of floats; of a scalar `require` says it"
            refuse(TypeMismatch(span=d.span, what=f"what `{what}` is about", expected=expected, got=f"`{name}`"))
        self.context.positive.add(name)


def holds(context: Context, when: ast.Expr | None) -> bool:
    """Whether a `when` holds; refused if options and fixed dims don't decide it."""
    if when is None:
        return True
    cond = Expressions(context, NoTensors()).condition(when, Env(), "`when`")
    if not isinstance(cond, Const):
        refuse(NotConstant(span=when.span, what="`when`"))
    return bool(cond.value)


def _text(e: ast.Expr) -> str:
    return e.span.text if e.span else "..."
