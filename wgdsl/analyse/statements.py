"""Statements -> nodes.

In: the declared context and the statements.  Out: nodes in definition order, and every access for the later checks.
A statement becomes a Reduce, Domain or Map under the tensor's name; reductions inside it become nodes named after it
(`O.sum`, `P.max`). An output gets `<tensor>.out`; its value is inlined unless it reduces, has a `where`, or is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..diagnostics.analyse import (
    BadElse,
    BadTarget,
    DefinedTwice,
    DuplicateName,
    NoStatement,
    NotBuilt,
    TooDeep,
    TypeMismatch,
    UsedEarly,
    WrongRank,
)
from ..foundation.dtypes import F32, DType
from ..foundation.source import Span
from ..program.expr import TRUE, Expr, Load, conjunction, indices_of
from ..program.graph import Domain, Input, Map, Node, Output, ProgramGraph, Reduce
from ..program.poly import Poly
from ..syntax import ast
from .context import Context, Tensor
from .expressions import REDUCTIONS, Expressions
from .names import left_indices, walk
from .problems import Problems, Refused, refuse
from .scope import Env, Use
from .values import PHRASES, Value, as_real, expect

MAX_DEPTH = 200  # of an expression; later passes walk it recursively

# What stands in the way: a state that products of the same iteration read and accumulate needs a home in shared memory.
RECURRENCE = (
    "sum over the earlier elements instead, each with its own factor: `sum[j] x[j] * decay ** (i - j)` where `j <= i`; a step "
    "from one element to the next would need a state that one product writes and another reads"
)


@dataclass(kw_only=True)
class Result:
    """What the statements gave. `statements`: node name -> its statement; `spans`: (node, load) -> where it is written."""

    nodes: list[Node] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    statements: dict[str, ast.Statement] = field(default_factory=dict)
    spans: dict[tuple[str, Load], tuple[Span | None, ...]] = field(default_factory=dict)


def build_nodes(context: Context, live: list[ast.Statement], problems: Problems) -> Result:
    """The nodes of the statements that the options leave."""
    builder = _Builder(context, live)
    for s in live:
        with problems.collect():
            builder.statement(s)
    return builder.result


def live_statements(
    context: Context, statements: Iterable[ast.Statement], holds: Callable[[ast.Expr | None], bool], problems: Problems
) -> list[ast.Statement]:
    """One statement for each tensor: those whose output is absent or whose `when` is false are dropped."""
    chosen: dict[str, ast.Statement] = {}
    dropped: dict[str, Span | None] = {}
    undecided: set[str] = set()
    for s in statements:
        name = s.target.base.id
        if name in context.absent:
            continue
        refusals = problems.refusals
        with problems.collect():
            if not holds(s.when):
                dropped.setdefault(name, s.span)
            elif name in chosen:
                refuse(DefinedTwice(span=s.span, tensor=name, first=chosen[name].span))
            else:
                chosen[name] = s
        if problems.refusals > refusals:
            undecided.add(name)
    for name, tensor in context.outputs.items():
        if name not in chosen and name not in undecided:
            problems.add(NoStatement(span=tensor.span, tensor=name, dropped=dropped.get(name)))
    for name, span in dropped.items():
        if name not in chosen:
            context.absent.setdefault(name, span)
    return list(chosen.values())


class _Builder:
    """The `Sink` of expressions: finds tensors, takes nodes."""

    def __init__(self, context: Context, live: list[ast.Statement]):
        self.context = context
        self.live = {s.target.base.id: s for s in live}
        self.read_again = _read_by_others(live)
        self.expressions = Expressions(context, self)
        self.tensors: dict[str, Tensor] = dict(context.inputs)
        self.bare_outputs: set[str] = set()
        self.refused: set[str] = set()
        self.result = Result()
        for t in context.inputs.values():
            shape = tuple(map(context.settle, t.shape))
            self.result.nodes.append(Input(name=t.name, indices=(), dtype=t.dtype, shape=shape, span=t.span))
        self.current: ast.Statement | None = None
        self.written: list[Use] = []

    def tensor(self, name: str, span: Span | None) -> Tensor | None:
        if name in self.refused:
            raise Refused
        if self.current is not None and name == self.current.target.base.id:
            what = f"`{name}` defined by itself (a recurrence)"
            refuse(NotBuilt(span=span, what=what, cure=RECURRENCE, chain=self._chain(name)))
        if name in self.context.outputs and name in self.tensors and name not in self.bare_outputs:
            cure = f"define a tensor of the bare indices first, read that, and store it in `{name}`"
            refuse(NotBuilt(span=span, what=f"reading output `{name}`, whose left side isn't bare indices,", cure=cure))
        if name in self.tensors:
            return self.tensors[name]
        if name in self.live:
            refuse(UsedEarly(span=span, name=name, definition=self.live[name].span))
        if name in self.context.outputs:
            raise Refused  # never defined: told already
        return None

    def used(self, use: Use) -> None:
        self.written.append(use)

    def reduction(self, op: str, axes: tuple[str, ...], body: Expr, dtype: DType, order: tuple[str, ...]) -> Load:
        name, indices = self._fresh(op), _own(order, body, axes)
        return self._add(Reduce(name=name, indices=indices, dtype=dtype, op=op, axes=axes, body=body, span=self._span))

    def part(self, suffix: str, body: Expr, order: tuple[str, ...]) -> Load:
        return self._add(Map(name=self._fresh(suffix), indices=_own(order, body, ()), body=body, span=self._span))

    @property
    def _span(self) -> Span | None:
        return self.current.span if self.current else None

    def _fresh(self, suffix: str) -> str:
        """`P.max`, then `P.max2`, ..."""
        assert self.current is not None
        base = f"{self.current.target.base.id}.{suffix}"
        names = [base, *(f"{base}{n}" for n in range(2, 1000))]
        return next(n for n in names if n not in self.tensors)

    def _add(self, node: Node) -> Load:
        assert self.current is not None
        if any(_depth(e) > MAX_DEPTH for e in node.exprs()):
            refuse(TooDeep(span=self.current.value.span, limit=MAX_DEPTH))
        self.result.nodes.append(node)
        self.result.statements[node.name] = self.current
        if not isinstance(node, Output):
            self.tensors[node.name] = Tensor(name=node.name, dtype=node.dtype, indices=node.indices, span=node.span)
        return Load(tensor=node.name, access=tuple(Poly.of(i) for i in node.indices))

    def statement(self, s: ast.Statement) -> None:
        """Add the statement's nodes. On refusal none of them stays, and its tensor is marked."""
        self.current, self.written = s, []
        nodes, tensors = len(self.result.nodes), dict(self.tensors)
        try:
            self._statement(s, s.target.base.id)
        except Refused:
            del self.result.nodes[nodes:]
            self.tensors = tensors
            self.refused.add(s.target.base.id)
            raise
        finally:
            self.current = None
        self.result.uses += self.written
        self._locate(self.result.nodes[nodes:])

    def _statement(self, s: ast.Statement, name: str) -> None:
        self._check_target(s)
        if s.start is not None and not any(isinstance(x, ast.Index) and x.base.id == name for x in walk(s.value)):
            what = "`from` in a statement that doesn't read its own tensor"
            refuse(NotBuilt(span=s.start.span, what=what, cure="drop `from`: it is what a recurrence begins with"))
        left = tuple(n for n, _ in left_indices(self.context, s.target))
        env = Env(indices=left, order=left)
        access = self._left(s, left, env)
        predicate = self._predicate(s, env)
        output = self.context.outputs.get(name)
        value = self._value(s, name, left, env, predicate, output)
        if output is not None:
            self._store(s, output, left, access, value)

    def _chain(self, name: str) -> tuple[str, ...]:
        """The statements that need a tensor which needs itself, in words."""
        found, out = {name}, [f"`{name}` needs an earlier element of `{name}`"]
        for other in self.live.values():
            reads = [x.base.id for x in walk(other.value) if isinstance(x, ast.Index) and x.base.id in found]
            if reads and other.target.base.id not in found:
                found.add(other.target.base.id)
                out.append(f"`{other.target.base.id}` needs `{reads[0]}`")
        return tuple(out)

    def _check_target(self, s: ast.Statement) -> None:
        c, base = self.context, s.target.base
        if "." in base.id:
            refuse(BadTarget(span=base.span, tensor=base.id, why="is the name of a part", cure="use a name without a dot"))
        if base.id in c.inputs or base.id in c.scalars:
            refuse(BadTarget(span=base.span, tensor=base.id, why="is an input", cure="define a new tensor"))
        if base.id in c.names and c.names[base.id][0] == "output" and base.id not in c.outputs:
            raise Refused
        if base.id in c.names and base.id not in c.outputs:
            first, first_span = c.names[base.id]
            refuse(DuplicateName(span=base.span, name=base.id, first=first, first_span=first_span))
        if base.id in c.indices:
            refuse(DuplicateName(span=base.span, name=base.id, first="index", first_span=c.indices[base.id]))

    def _left(self, s: ast.Statement, left: tuple[str, ...], env: Env) -> tuple[Poly, ...]:
        """The left side's access map. A tensor that isn't an output has distinct bare indices."""
        name = s.target.base.id
        output = self.context.outputs.get(name)
        if output is None:
            tensor = Tensor(name=name, dtype=F32, indices=left, span=s.span)
            if tuple(getattr(i, "id", None) for i in s.target.indices) != left:
                form = f"`{name}[{','.join(left)}]`"
                cure = f"only outputs have expressions, or what a `let` names, on the left; write distinct indices: {form}"
                refuse(BadTarget(span=s.target.span, tensor=name, why="is not an output: it needs bare indices", cure=cure))
            return self.expressions.use(tensor, s.target.indices, env).access
        if output.rank != len(s.target.indices):
            got, form = len(s.target.indices), output.form
            refuse(WrongRank(span=s.target.span, tensor=name, expected=output.rank, got=got, form=form, declared=output.span))
        use = self.expressions.use(output, s.target.indices, env)
        self.written.append(use)
        if tuple(p.bare for p in use.access) == left:
            self.bare_outputs.add(name)
        return use.access

    def _predicate(self, s: ast.Statement, env: Env) -> Expr:
        if s.where is None:
            if s.otherwise is not None:
                refuse(BadElse(span=s.otherwise.span, why="stands without a `where`", cure="write `where ... else ...`"))
            return TRUE
        where = Env(indices=env.indices, order=env.order, in_where=True)
        predicate = self.expressions.condition(s.where, where, "a `where`")
        return conjunction(predicate, self._graph().domain_of(predicate))

    def _graph(self) -> ProgramGraph:
        return ProgramGraph(name="", dims=(), nodes=tuple(self.result.nodes))

    def _value(
        self, s: ast.Statement, name: str, left: tuple[str, ...], env: Env, predicate: Expr, output: Tensor | None
    ) -> Value:
        """The statement's value, as a load of its node or (an output's only) as an expression."""
        e = s.value
        if predicate == TRUE and isinstance(e, ast.Reduce) and e.op in REDUCTIONS:
            body, dtype = self.expressions.operand(e, self.expressions.bound(e, env))
            node = Reduce(name=name, indices=left, dtype=dtype, op=e.op, axes=e.axes, body=body, span=s.span)
            return _loaded(self._add(node), dtype)
        value = self.expressions.value(e, env)
        otherwise = self._otherwise(s, env, value)
        if predicate != TRUE:
            body = value.expr
            if otherwise is not None and (value.kind, otherwise.kind) == ("int", "real"):
                value, body = Value("real", as_real(value)), as_real(value)
            other = None if otherwise is None else as_real(otherwise) if value.kind == "real" else otherwise.expr
            node = Domain(
                name=name, indices=left, dtype=value.dtype, body=body, predicate=predicate, otherwise=other, span=s.span
            )
            return _loaded(self._add(node), value.dtype)
        if output is not None and name not in self.read_again:
            return value
        return _loaded(self._add(Map(name=name, indices=left, dtype=value.dtype, body=value.expr, span=s.span)), value.dtype)

    def _otherwise(self, s: ast.Statement, env: Env, value: Value) -> Value | None:
        if s.otherwise is None:
            return None
        other = self.expressions.value(s.otherwise, env)
        expect(other, "bool" if value.kind == "bool" else "int real", "the `else` value", s.otherwise.span)
        if self._graph().domain_of(other.expr) != TRUE:
            cure = "read only tensors that exist everywhere"
            refuse(BadElse(span=s.otherwise.span, why="reads a tensor that a `where` restricts", cure=cure))
        return other

    def _store(self, s: ast.Statement, output: Tensor, left: tuple[str, ...], access: tuple[Poly, ...], value: Value) -> None:
        kinds = {"float": ("int", "real"), "int": ("int",), "bool": ("bool",)}[output.dtype.kind]
        if value.kind not in kinds:
            cure = "convert with `i32(...)`" if output.dtype.kind == "int" and value.kind == "real" else ""
            expected = f"{PHRASES[kinds[-1]]}, to be stored as {output.dtype}"
            refuse(
                TypeMismatch(
                    span=s.value.span,
                    what=f"the value of `{output.name}`",
                    expected=expected,
                    got=PHRASES[value.kind],
                    cure=cure,
                )
            )
        expr = as_real(value) if output.dtype.kind == "float" else value.expr
        shape = tuple(map(self.context.settle, output.shape))
        name = f"{output.name}.out"
        node = Output(
            name=name, tensor=output.name, indices=left, dtype=output.dtype, shape=shape, access=access, value=expr, span=s.span
        )
        self._add(node)

    def _locate(self, nodes: Iterable[Node]) -> None:
        """Remember where each load of these nodes is written."""
        places = {Load(tensor=u.tensor.name, access=u.access): u.spans for u in reversed(self.written)}
        for node in nodes:
            for load, spans in places.items():
                self.result.spans[node.name, load] = spans


def _own(order: tuple[str, ...], body: Expr, axes: tuple[str, ...]) -> tuple[str, ...]:
    """The indices of a node inside a statement: what its body mentions, outermost first."""
    inside = indices_of(body)
    return tuple(i for i in order if i in inside and i not in axes)


def _depth(e: Expr) -> int:
    deepest, level = 0, [e]
    while level:
        deepest, level = deepest + 1, [c for x in level for c in x.children()]
    return deepest


def _loaded(load: Load, dtype: DType) -> Value:
    return Value({"float": "real"}.get(dtype.kind, dtype.kind), load)


def _read_by_others(live: list[ast.Statement]) -> frozenset[str]:
    """Tensors that a statement other than their own reads."""
    found: set[str] = set()
    for s in live:
        for part in (s.value, s.where, s.otherwise):
            for x in walk(part) if part is not None else ():
                if isinstance(x, ast.Index):
                    found.add(x.base.id)
    return frozenset(found)
