"""AST expression -> typed value.

In: an expression and the scope it stands in.  Out: a `Value`; on the way every access is recorded, and every reduction
inside the expression becomes a node of its own (through `Sink`). `def` and `let` are put in where they are used; options
and fixed dims fold, and the dead side of `and`, `or` and `select` is not looked at.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from ..diagnostics.analyse import (
    Absent,
    AxisMissing,
    AxisTaken,
    NotBuilt,
    Recursive,
    TypeMismatch,
    UnboundIndex,
    UnknownName,
    WrongArguments,
    WrongRank,
)
from ..foundation.dtypes import DTYPES, F32, I32, DType
from ..foundation.source import Span
from ..program.expr import FALSE, TRUE, Cmp, Const, Expr, Load, Scalar, Select, apply, conjunction, disjunction, indices_of
from ..program.poly import Poly
from ..program.predicates import negation
from ..syntax import ast
from . import logic, values
from .context import Context, Tensor
from .names import walk
from .problems import Refused, nearest, refuse
from .scope import Env, NoTensors, Sink, Use
from .values import Value, integer, real, truth

REDUCTIONS = ("sum", "max", "min", "argmax", "argmin")
FUNCTIONS = (*values.UNARY, *values.EXTREMES, *values.CASTS, "select")
NEG_INF = Const(value=float("-inf"))
ZERO = Const(value=0.0)


class Expressions:
    def __init__(self, context: Context, sink: Sink):
        self.context = context
        self.sink = sink

    def value(self, e: ast.Expr, env: Env) -> Value:
        """The typed value of an expression. Refuses with WG02xx."""
        match e:
            case ast.Number():
                return values.literal(e.value, e.text, e.span)
            case ast.Bool():
                return truth(e.value)
            case ast.Name():
                return self._name(e, env)
            case ast.Index():
                return self._access(e, env)
            case ast.Call():
                return self._call(e, env)
            case ast.Unary():
                return self._unary(e, env)
            case ast.Binary():
                return self._binary(e, env)
            case ast.Compare():
                return self._compare(e, env)
            case ast.Reduce():
                return self._reduce(e, env)
        raise AssertionError(type(e))

    def condition(self, e: ast.Expr, env: Env, what: str) -> Expr:
        """The predicate of `where`, `when`, `require`, `select`."""
        return values.expect(self.value(e, env), "bool", what, e.span, "compare it: `... != 0`").expr

    def poly(self, e: ast.Expr, env: Env, what: str) -> Poly:
        """An integer expression of indices, dims and options."""
        return values.as_poly(self.value(e, env), what, e.span)

    def _name(self, e: ast.Name, env: Env) -> Value:
        c, name = self.context, e.id
        if name in env.params:
            return env.params[name]
        if name in c.options:
            return self._option(e)
        if name in c.dims:
            return integer(c.dims[name] if env.raw else c.settle(c.dims[name]))
        if name in c.scalars:
            return values.of_argument(Scalar(name=name), c.scalars[name].dtype)
        if name in c.lets:
            return self._let(e, env)
        if name in env.indices:
            return integer(Poly.of(name))
        return self._not_a_value(e, env)

    def _option(self, e: ast.Name) -> Value:
        option = self.context.options[e.id]
        if isinstance(option.value, str):
            cure = f"compare it: `{e.id} == {option.choices[0]}`"
            refuse(TypeMismatch(span=e.span, what="a value", expected="a number", got=f"the enumeration `{e.id}`", cure=cure))
        return values.of_constant(option.value)

    def _let(self, e: ast.Name, env: Env) -> Value:
        if e.id in env.opening:
            cycle = (*env.opening[env.opening.index(e.id) :], e.id)
            refuse(Recursive(span=e.span, what="let", cycle=cycle))
        value = self.value(self.context.lets[e.id].value, replace(env, opening=(*env.opening, e.id), params={}))
        return values.expect(value, "int", f"`let {e.id}`", self.context.lets[e.id].span)

    def _not_a_value(self, e: ast.Name, env: Env) -> Value:
        c, name = self.context, e.id
        tensor = self.sink.tensor(name, e.span)
        if tensor is not None:
            refuse(_rank(tensor, 0, e.span))
        if name in c.absent:
            refuse(Absent(span=e.span, name=name, declared=c.absent[name]))
        if name in c.names:
            self._not_that(e.span, "a value", "a number", name)
        known = (*env.params, *env.indices, *c.names)
        if name in c.indices or (env.in_access and not nearest(name, known)):
            refuse(UnboundIndex(span=e.span, name=name, bound=env.indices, in_where=env.in_where))
        refuse(UnknownName(span=e.span, what="name", name=name, near=nearest(name, known), known=known))

    def _access(self, e: ast.Index, env: Env) -> Value:
        tensor = self._tensor(e.base, len(e.indices))
        if tensor.rank != len(e.indices):
            refuse(_rank(tensor, len(e.indices), e.span))
        chosen = self._chosen(tensor, e, env)
        if chosen is not None:
            return self._element(tensor, e, chosen, env)
        use = self.use(tensor, e.indices, env)
        self.sink.used(use)
        found = Load(tensor=tensor.name, access=use.access)
        return (values.of_argument if tensor.indices is None else values.of_dtype)(found, tensor.dtype)

    def _chosen(self, tensor: Tensor, e: ast.Index, env: Env) -> int | None:
        """The axis of a computed tensor along which a number that is no polynomial chooses the element; None if none does."""
        if tensor.indices is None:
            return None
        for k, i in enumerate(e.indices):
            v = self.value(i, replace(env, in_access=True)) if any(isinstance(x, ast.Index) for x in walk(i)) else None
            if v is not None and v.kind == "int" and (v.poly is None or v.read):
                return k
        return None

    def _element(self, tensor: Tensor, e: ast.Index, k: int, env: Env) -> Value:
        """`X[i, t[i]]` of a tensor that the program computes: sum[n] select(n == t[i], X[i,n], 0) along its own index. Where
        that element doesn't exist it is 0."""
        assert tensor.indices is not None
        axis = tensor.indices[k]
        if axis in env.indices:
            cure = f"`{axis}` is the index of `{tensor.name}` along which it is chosen: use another name for the one here"
            refuse(NotBuilt(span=e.span, what=f"an element of `{tensor.name}` chosen where `{axis}` is bound", cure=cure))
        place, inner = self.value(e.indices[k], env), env.bind((axis,))
        here = (*e.indices[:k], ast.Name(id=axis, span=e.indices[k].span), *e.indices[k + 1 :])
        value = self._access(replace(e, indices=here), inner)
        at = logic.compare("==", integer(Poly.of(axis)), place, e.span)
        body = values.choose(at, value, values.of_constant(0), e.span)
        dtype = I32 if body.kind == "int" else F32
        return values.of_dtype(self.sink.reduction("sum", (axis,), body.expr, dtype, inner.order), dtype)

    def use(self, tensor: Tensor, indices: tuple[ast.Expr, ...], env: Env) -> Use:
        """The access map of one place. Fixed dims are put in; `raw` keeps them."""
        inside = replace(env, in_access=True)
        return Use(
            tensor=tensor,
            access=tuple(self.poly(i, inside, values.PLACE) for i in indices),
            raw=tuple(self.poly(i, replace(inside, raw=True), values.PLACE) for i in indices),
            spans=tuple(i.span for i in indices),
        )

    def _tensor(self, base: ast.Name, got: int) -> Tensor:
        c, name = self.context, base.id
        tensor = self.sink.tensor(name, base.span)
        if tensor is not None:
            return tensor
        if name in c.absent:
            refuse(Absent(span=base.span, name=name, declared=c.absent[name]))
        if name in c.scalars:
            refuse(WrongRank(span=base.span, tensor=name, expected=0, got=got, form=name, declared=c.scalars[name].span))
        if name in c.names:
            self._not_that(base.span, "what is indexed", "a tensor", name)
        known = (*c.inputs, *c.outputs)
        refuse(UnknownName(span=base.span, what="tensor", name=name, near=nearest(name, known), known=known))

    def _not_that(self, span: Span | None, what: str, expected: str, name: str) -> NoReturn:
        """A declared name of the wrong sort; if its declaration was refused, nothing new to say."""
        sort = self.context.names[name][0]
        c = self.context
        if sort not in ("dim", "def") and name not in {*c.inputs, *c.outputs, *c.lets, *c.options, *c.types}:
            raise Refused
        refuse(TypeMismatch(span=span, what=what, expected=expected, got=f"the {sort} `{name}`"))

    def _unary(self, e: ast.Unary, env: Env) -> Value:
        if e.op == "-":
            return values.negative(self.value(e.operand, env), e.span)
        return truth(negation(self.condition(e.operand, env, "the operand of `not`")))

    def _binary(self, e: ast.Binary, env: Env) -> Value:
        if e.op not in ("and", "or"):
            return values.arithmetic(e.op, self.value(e.left, env), self.value(e.right, env), e.span)
        left = self.condition(e.left, env, f"an operand of `{e.op}`")
        if left == (FALSE if e.op == "and" else TRUE):
            return truth(left)
        right = self.condition(e.right, env, f"an operand of `{e.op}`")
        return truth((conjunction if e.op == "and" else disjunction)(left, right))

    def _compare(self, e: ast.Compare, env: Env) -> Value:
        for side in e.operands:
            if isinstance(side, ast.Name) and side.id not in env.params and self._is_enumeration(side.id):
                return self._compare_choice(e, side)
        operands = [self.value(x, env) for x in e.operands]
        links = zip(e.ops, operands, operands[1:], strict=False)
        return truth(conjunction(*(logic.compare(op, a, b, e.span).expr for op, a, b in links)))

    def _is_enumeration(self, name: str) -> bool:
        return name in self.context.options and bool(self.context.options[name].choices)

    def _compare_choice(self, e: ast.Compare, side: ast.Name) -> Value:
        """`act == gelu`: option values are a namespace of their own."""
        option = self.context.options[side.id]
        other = e.operands[1] if e.operands[0] is side else e.operands[0]
        if len(e.ops) != 1 or e.ops[0] not in ("==", "!=") or not isinstance(other, ast.Name):
            got = "another comparison"
            refuse(TypeMismatch(span=e.span, what=f"option `{side.id}`", expected="compared with == or !=", got=got))
        if other.id not in option.choices:
            near = nearest(other.id, option.choices)
            refuse(
                UnknownName(
                    span=other.span, what=f"value of option `{side.id}`", name=other.id, near=near, known=option.choices
                )
            )
        return truth((option.value == other.id) == (e.ops[0] == "=="))

    def _call(self, e: ast.Call, env: Env) -> Value:
        if e.function in self.context.defs:
            return self._inline(e, env)
        if e.function == "select":
            return self._select(e, env)
        casts = {**{n: DTYPES[n] for n in values.CASTS}, **self.context.types}
        if e.function not in FUNCTIONS and e.function not in casts:
            if self.context.names.get(e.function, ("",))[0] == "def":
                raise Refused  # a recursive one
            known = (*self.context.defs, *FUNCTIONS, *self.context.types)
            refuse(UnknownName(span=e.span, what="function", name=e.function, near=nearest(e.function, known)))
        least, most = (2, 99) if e.function in values.EXTREMES else (1, 1)
        if not least <= len(e.arguments) <= most:
            expected = "1 argument" if most == 1 else "2 or more arguments"
            refuse(WrongArguments(span=e.span, function=e.function, expected=expected, got=len(e.arguments)))
        args = tuple(self.value(a, env) for a in e.arguments)
        if e.function in casts:
            return values.cast(casts[e.function], args[0], e.span)
        return values.function(e.function, args, e.span)

    def _select(self, e: ast.Call, env: Env) -> Value:
        if len(e.arguments) != 3:
            refuse(WrongArguments(span=e.span, function="select", expected="3 arguments", got=len(e.arguments)))
        cond = self.condition(e.arguments[0], env, "the condition of `select`")
        if isinstance(cond, Const):
            return self.value(e.arguments[1 if cond.value else 2], env)
        then, other = (self.value(a, env) for a in e.arguments[1:])
        return values.choose(truth(cond), then, other, e.span)

    def _inline(self, e: ast.Call, env: Env) -> Value:
        d = self.context.defs[e.function]
        if len(d.parameters) != len(e.arguments):
            n = len(d.parameters)
            expected = f"{n} argument{'' if n == 1 else 's'}"
            refuse(WrongArguments(span=e.span, function=e.function, expected=expected, got=len(e.arguments)))
        params = dict(zip(d.parameters, (self.value(a, env) for a in e.arguments), strict=True))
        return self.value(d.body, replace(env, indices=(), params=params, opening=(*env.opening, d.name)))

    def _reduce(self, e: ast.Reduce, env: Env) -> Value:
        if isinstance(self.sink, NoTensors):
            refuse(NotBuilt(span=e.span, what="a reduction outside a statement", cure="define a tensor by it"))
        if e.op == "softmax":
            return self._softmax(e, env)
        inner = self.bound(e, env)
        if e.op == "logsumexp":
            return self._logsumexp(e, inner)
        body, dtype = self.operand(e, inner)
        load = self.sink.reduction(e.op, e.axes, body, dtype, inner.order)
        return values.of_dtype(load, dtype)

    def bound(self, e: ast.Reduce, env: Env) -> Env:
        """The scope inside a reduction that binds its axes."""
        self._distinct(e)
        for axis in e.axes:
            if axis in env.indices:
                cure = f"rename the axis: `{axis}` of the reduction is another index than the one outside"
                refuse(AxisTaken(span=e.span, axis=axis, why="already bound outside this reduction", cure=cure))
            if axis in self.context.names:
                why = f"already the name of a {self.context.names[axis][0]}"
                refuse(AxisTaken(span=e.span, axis=axis, why=why, cure="rename the axis"))
        return env.bind(e.axes)

    def _distinct(self, e: ast.Reduce) -> None:
        for n, axis in enumerate(e.axes):
            if axis in e.axes[:n]:
                refuse(AxisTaken(span=e.span, axis=axis, why="named twice", cure="name each axis once"))

    def operand(self, e: ast.Reduce, inner: Env) -> tuple[Expr, DType]:
        """What a plain reduction reduces, and the type of its result."""
        if e.op not in REDUCTIONS:
            near = nearest(e.op, (*REDUCTIONS, "softmax", "logsumexp"))
            refuse(UnknownName(span=e.span, what="reduction", name=e.op, near=near))
        body = self.value(e.operand, inner)
        values.expect(body, "int real", f"the operand of `{e.op}`", e.operand.span, "count with `select(condition, 1, 0)`")
        self._occur(e, body.expr)
        if not e.op.startswith("arg"):
            return body.expr, body.dtype
        if len(e.axes) != 1:
            refuse(NotBuilt(span=e.span, what=f"`{e.op}` over several axes", cure="its result is one index"))
        return body.expr, I32

    def _occur(self, e: ast.Reduce, body: Expr) -> None:
        for axis in e.axes:
            if axis not in indices_of(body):
                refuse(AxisMissing(span=e.span, axis=axis, op=e.op))

    def _softmax(self, e: ast.Reduce, env: Env) -> Value:
        self._distinct(e)
        for axis in e.axes:
            if axis not in env.indices:
                cure = f"softmax keeps its axis: bind `{axis}` on the left side or in a reduction around it"
                refuse(AxisTaken(span=e.span, axis=axis, why="not bound here", cure=cure))
        _, exp, total = self._stable(e, env)
        quotient = apply("div", exp, total)
        return real(Select(cond=Cmp(op="eq", left=total, right=ZERO), then=ZERO, other=quotient))

    def _logsumexp(self, e: ast.Reduce, inner: Env) -> Value:
        top, _, total = self._stable(e, inner)
        value = apply("add", top, apply("log", total))
        return real(Select(cond=Cmp(op="eq", left=total, right=ZERO), then=NEG_INF, other=value))

    def _stable(self, e: ast.Reduce, env: Env) -> tuple[Expr, Expr, Expr]:
        """Row maximum, exp(x - maximum), and its sum. A row of which every element is -inf counts as empty."""
        x = values.expect(self.value(e.operand, env), "int real", f"the operand of `{e.op}`", e.operand.span)
        self._occur(e, x.expr)
        body = values.as_real(x)
        if not isinstance(body, Load):
            body = self.sink.part("arg", body, env.order)
        top = self.sink.reduction("max", e.axes, body, F32, env.order)
        shift = Select(cond=Cmp(op="eq", left=top, right=NEG_INF), then=ZERO, other=top)
        exp = self.sink.part("exp", apply("exp", apply("sub", body, shift)), env.order)
        return top, exp, self.sink.reduction("sum", e.axes, exp, F32, env.order)


def _rank(tensor: Tensor, got: int, span: Span | None) -> WrongRank:
    return WrongRank(span=span, tensor=tensor.name, expected=tensor.rank, got=got, form=tensor.form, declared=tensor.span)
