"""canonicalise: program graph -> program graph, one normal form for all ways of writing the same maths.

- exp and log become exp2 and log2, with the constant folded into the scale;
- factors that don't depend on a reduction's axes leave it (through `max` only where they are proven positive); the
  result keeps the reduction's rule: it is the identity where nothing was reduced;
- guards that only restate that rule (`select(l == 0, 0, x / l)`) are dropped, and put back where a factor left;
- products of earlier values are not nodes of their own but are written into their readers;
- the place of an extreme is a minimum over the places at which the operand equals that extreme;
- nodes that compute the same thing are shared.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..program.expr import (
    TRUE,
    Affine,
    Apply,
    Cmp,
    Const,
    Expr,
    IndexValue,
    Load,
    Scalar,
    Select,
    apply,
    conjunction,
    conjuncts,
    const,
    indices_of,
    map_polys,
    polys_of,
    rewrite,
    substitute_indices,
    walk,
)
from ..program.graph import IDENTITY, Domain, Input, Map, Node, Output, ProgramGraph, Reduce
from ..program.poly import Poly
from .algebra import factors, is_number, is_scalar, limit, positive, product, simplify

ARG = {"argmax": "max", "argmin": "min"}
NOWHERE = const(float("inf"))  # the place of what isn't there
MOST_FACTORS = 8  # of a product that is repeated in its readers rather than stored
GUARDED = "guarded_rcp"  # 1/x, and the whole product is 0 where x is 0; lives only inside this pass


def positive_inputs(graph: ProgramGraph) -> frozenset[str]:
    """Scalars that the program requires to be greater than 0, and tensors whose elements it assumes to be."""
    found = set(graph.positive)
    for r in graph.requires:
        for c in conjuncts(r):
            if isinstance(c, Cmp) and c.op == "gt" and isinstance(c.left, Scalar) and _is_zero(c.right):
                found.add(c.left.name)
            if isinstance(c, Cmp) and c.op == "lt" and isinstance(c.right, Scalar) and _is_zero(c.left):
                found.add(c.right.name)
    return frozenset(found)


def _is_zero(e: Expr) -> bool:
    return is_number(e, 0.0) or (isinstance(e, IndexValue) and e.poly.constant == 0)


def canonicalise(graph: ProgramGraph) -> ProgramGraph:
    """The normal form. Node names of the input survive where their value does; `aliases` maps the others."""
    pass_ = _Pass(graph, positive_inputs(graph))
    for node in graph.nodes:
        pass_.visit(node)
    return replace(graph, nodes=_used(pass_.nodes), aliases=pass_.aliases())


def _used(nodes: list[Node]) -> tuple[Node, ...]:
    """Without nodes that no output needs; inputs stay, they are arguments."""
    needed: set[str] = set()
    for n in reversed(nodes):
        if isinstance(n, Output | Input) or n.name in needed:
            needed.add(n.name)
            needed.update(x.tensor for e in n.exprs() for x in walk(e) if isinstance(x, Load))
    return tuple(n for n in nodes if n.name in needed)


@dataclass
class _Pass:
    graph: ProgramGraph
    positives: frozenset[str]
    nodes: list[Node] = field(default_factory=list)
    by_name: dict[str, Node] = field(default_factory=dict)
    replaced: dict[str, tuple[tuple[str, ...], Expr]] = field(default_factory=dict)
    shared: dict[tuple, tuple[str, list[str]]] = field(default_factory=dict)

    def visit(self, node: Node) -> None:
        if isinstance(node, Input):
            return self.keep(node)
        if isinstance(node, Output):
            value = expand_guards(self.read(node.value))
            other = None if node.otherwise is None else self.read(node.otherwise)
            return self.keep(replace(node, value=value, otherwise=other))
        if isinstance(node, Domain):
            return self.domain(node)
        if isinstance(node, Reduce):
            return self.reduce(node)
        assert isinstance(node, Map)
        return self.map(node.name, node, self.read(node.body))

    def map(self, name: str, node: Node, body: Expr) -> None:
        if self.transparent(body):
            self.replaced[name] = (node.indices, body)
            return
        body = expand_guards(body)
        self.share(Map(name=name, indices=node.indices, dtype=node.dtype, span=node.span, body=body), [])

    def domain(self, node: Domain) -> None:
        body, predicate = self.read(node.body), self.read(node.predicate)
        if predicate == TRUE:
            return self.map(node.name, node, body)
        if node.otherwise is not None:
            # with `else` it exists everywhere: a choice of values, not a restriction, and not one of what it is made of
            inside = conjunction(self.domain_of(body), self.domain_of(predicate), predicate)
            chosen = Select(cond=self.bare(inside), then=self.bare(body), other=self.read(node.otherwise))
            return self.map(node.name, node, chosen)
        outer, inner = self.split(body, lambda f: is_scalar(f) or (isinstance(f, Load) and positive(f, self.positives)))
        kept = replace(node, body=expand_guards(product(inner)), predicate=expand_guards(predicate))
        self.share(kept, outer)

    def domain_of(self, e: Expr) -> Expr:
        return replace(self.graph, nodes=tuple(self.nodes)).domain_of(e)

    def bare(self, e: Expr) -> Expr:
        """The same value wherever that exists, of tensors that exist everywhere: others are written out."""

        def one(x: Expr) -> Expr | None:
            if not isinstance(x, Load) or self.domain_of(x) == TRUE:
                return None
            node = self.by_name[x.tensor]
            assert isinstance(node, Map | Domain)
            return substitute_indices(self.bare(node.body), dict(zip(node.indices, x.access, strict=True)))

        return simplify(rewrite(e, one))

    def reduce(self, node: Reduce) -> None:
        body = self.read(node.body)
        if node.op in ARG:
            return self.place(node, body)
        axes = frozenset(node.axes)
        if node.op == "sum":
            outer, inner = self.split(body, lambda f: not indices_of(f) & axes)
        elif node.op in ("max", "min"):
            outer, inner = self.split(body, lambda f: not indices_of(f) & axes and positive(f, self.positives))
        else:
            outer, inner = [], [body]
        if not inner:
            outer, inner = [], [body]
        kept = replace(node, body=expand_guards(product(inner)))
        self.share(kept, [_guard(f) for f in outer])

    def place(self, node: Reduce, body: Expr) -> None:
        """argmin[n] x, the smallest place of the extreme among numbers: v = min[n] x without NaN, then min[n] of the places
        where x equals v. If there is none, all are NaN: then the first place that exists, or -1."""
        op, (axis,), inside = ARG[node.op], node.axes, (*node.indices, *node.axes)
        _, inner = self.split(body, lambda f: positive(f, self.positives) and is_scalar(f))
        x = product(inner)
        if not isinstance(x, Load):
            self.share(_operand_map(node, "arg", inside, expand_guards(x)), [])
            x = self.read(_whole(f"{node.name}.arg", inside))
        nothing = const(float(IDENTITY[op]))
        numbers = Select(cond=Cmp(op="eq", left=x, right=x), then=x, other=nothing)
        value = self.least(node, "value", op, numbers)
        here = Select(cond=Cmp(op="eq", left=x, right=value), then=IndexValue(poly=Poly.of(axis)), other=NOWHERE)
        first = self.least(node, "first", "min", here)
        self.replaced[node.name] = (node.indices, Select(cond=_is_nowhere(first), then=self.start(node, x), other=first))

    def start(self, node: Reduce, x: Expr) -> Expr:
        """The first place along a reduction's axis that exists, or -1."""
        (axis,), inside = node.axes, (*node.indices, *node.axes)
        domain = self.domain_of(x)
        if domain == TRUE:
            return Select(cond=Affine(poly=self.graph.extents[axis] - 1), then=const(0.0), other=const(-1.0))
        there = Domain(
            name=f"{node.name}.there", indices=inside, span=node.span, body=IndexValue(poly=Poly.of(axis)), predicate=domain
        )
        self.share(there, [])
        least = self.least(node, "start", "min", self.read(_whole(there.name, inside)))
        return Select(cond=_is_nowhere(least), then=const(-1.0), other=least)

    def least(self, node: Reduce, part: str, op: str, body: Expr) -> Expr:
        """An extreme that belongs to a reduction, over the same axes."""
        made = Reduce(name=f"{node.name}.{part}", indices=node.indices, span=node.span, op=op, axes=node.axes, body=body)
        self.share(made, [])
        return self.read(_whole(made.name, node.indices))

    def split(self, body: Expr, leaves) -> tuple[list[Expr], list[Expr]]:
        parts = factors(body)
        if len(parts) == 1:
            return [], parts
        return [f for f in parts if leaves(f)], [f for f in parts if not leaves(f)]

    # Reading through replaced names.
    def read(self, e: Expr) -> Expr:
        e = rewrite(e, self.open)
        e = simplify(rewrite(e, self.unguard))
        e = rewrite(e, self.unscale)
        e = simplify(rewrite(e, self.unguard_exponent))
        return rewrite(e, self.gather)

    def open(self, e: Expr) -> Expr | None:
        if not isinstance(e, Load) or e.tensor not in self.replaced:
            return None
        indices, body = self.replaced[e.tensor]
        return substitute_indices(body, dict(zip(indices, e.access, strict=True)))

    def transparent(self, body: Expr) -> bool:
        """A product of loads, scalars and reciprocals: cheaper to repeat than to store."""

        def plain(f: Expr) -> bool:
            if isinstance(f, Apply) and f.fn in ("rcp", GUARDED):
                f = f.args[0]
            return isinstance(f, Load) or is_scalar(f)

        parts = factors(body)
        return len(parts) <= MOST_FACTORS and all(plain(f) for f in parts)

    def keep(self, node: Node) -> None:
        self.nodes.append(node)
        self.by_name[node.name] = node

    def share(self, node: Map | Domain | Reduce, outer: list[Expr]) -> None:
        """Keep the node, or find its twin; its name now reads as `outer` factors times it."""
        key, order = self.key(node)
        if key in self.shared:
            name, other = self.shared[key]
            rename = dict(zip(other, order, strict=True))
            twin = self.by_name[name]
            load: Expr = Load(tensor=name, access=tuple(Poly.of(rename[i]) for i in twin.indices))
        else:
            self.keep(node)
            self.shared[key] = (node.name, order)
            load = Load(tensor=node.name, access=tuple(Poly.of(i) for i in node.indices))
        if outer or load.tensor != node.name:
            self.replaced[node.name] = (node.indices, product([load, *outer]))

    def key(self, node: Map | Domain | Reduce) -> tuple[tuple, list[str]]:
        """The node up to the names of its indices, and those in the order that the key numbers them."""
        axes = node.axes if isinstance(node, Reduce) else ()
        order: list[str] = []
        for e in node.exprs():
            for x in walk(e):
                for p in polys_of(x):
                    order += [s for s in sorted(p.symbols()) if s in (*node.indices, *axes) and s not in order]
        order += [i for i in (*node.indices, *axes) if i not in order]
        names = {s: Poly.of(f"${k}") for k, s in enumerate(order)}
        texts = tuple(str(map_polys(substitute_indices(e, names), Poly.in_order)) for e in node.exprs())
        extents = tuple(str(self.graph.extents[s]) for s in order)
        op = (node.op, tuple(str(names[a]) for a in axes)) if isinstance(node, Reduce) else ()
        return (node.kind, op, texts, extents, node.dtype, len(node.indices)), order

    # Guards that restate the rule of empty reductions.
    def unguard(self, e: Expr) -> Expr | None:
        guarded = self.guard_of(e)
        if guarded is None:
            return None
        assert isinstance(e, Select)
        parts = factors(e.other)
        if _is_zero(e.then) and apply("rcp", guarded) in parts:
            return product([apply(GUARDED, guarded) if f == apply("rcp", guarded) else f for f in parts])
        found = [x for x in walk(e.other) if isinstance(x, Load)]
        empty = {x.tensor: value for x in found if (value := self.identity(x)) is not None}
        at_empty = limit(e.other, empty, self.positives)
        if isinstance(e.then, Const) and isinstance(at_empty, float) and at_empty == float(e.then.value):
            return e.other
        return None

    def unscale(self, e: Expr) -> Expr | None:
        """x * c == y * c with c > 0, which is x == y; so for every comparison."""
        if not isinstance(e, Cmp):
            return None
        left, right = factors(e.left), factors(e.right)
        before = len(left)
        for f in tuple(left):
            if f in right and min(len(left), len(right)) > 1 and positive(f, self.positives):
                left.remove(f)
                right.remove(f)
        return None if len(left) == before else replace(e, left=product(left), right=product(right))

    def unguard_exponent(self, e: Expr) -> Expr | None:
        """exp2(x - select(m == -inf, 0, m)): the streamed form guards its running maximum itself."""
        if not (isinstance(e, Apply) and e.fn == "exp2"):
            return None

        def one(x: Expr) -> Expr | None:
            guarded = self.guard_of(x)
            if guarded is None or not isinstance(x, Select) or not _is_zero(x.then):
                return None
            return x.other if guarded in walk(x.other) else None

        return simplify(rewrite(e, one))

    def gather(self, e: Expr) -> Expr | None:
        """exp2((x * f - y * f) * c), f an element of a positive input, which is exp2((x - y) * (f * c)), as for scalars."""
        if not (isinstance(e, Apply) and e.fn == "exp2"):
            return None
        parts = factors(e.args[0])
        differences = [p for p in parts if isinstance(p, Apply) and p.fn == "sub"]
        if len(differences) != 1:
            return None
        left, right = (factors(a) for a in differences[0].args)
        shared = [f for f in left if f in right]
        scaled = any(isinstance(f, Load) and positive(f, self.positives) for f in shared)
        if not scaled or min(len(left), len(right)) == len(shared):
            return None
        x, y = (product([f for f in side if f not in shared]) for side in (left, right))
        others = [p for p in parts if p is not differences[0]]
        return apply("exp2", apply("mul", apply("sub", x, y), product([*shared, *others])))

    def guard_of(self, e: Expr) -> Load | None:
        """The reduction r in `select(r == identity, ...)`, possibly scaled by positive factors."""
        if not (isinstance(e, Select) and isinstance(e.cond, Cmp) and e.cond.op == "eq"):
            return None
        left, right = e.cond.left, e.cond.right
        found = [f for f in factors(left) if isinstance(f, Load) and not positive(f, self.positives)]
        if len(found) != 1 or not all(f is found[0] or positive(f, self.positives) for f in factors(left)):
            return None
        value = self.identity(found[0])
        if value is None or not isinstance(right, Const | IndexValue):
            return None
        at = right.value if isinstance(right, Const) else right.poly.constant
        return found[0] if at is not None and float(at) == value else None

    def identity(self, x: Load) -> float | None:
        node = self.by_name.get(x.tensor)
        return IDENTITY[node.op] if isinstance(node, Reduce) else None

    def aliases(self) -> dict[str, str]:
        """Statement name -> the node that stands for it: the load of highest rank in what it reads as, or what is written of
        as far as a `where` says."""
        out = {}
        stored = {x.tensor for o in self.nodes if isinstance(o, Output) for x in walk(o.value) if isinstance(x, Load)}
        written = {n.name: n.body for n in self.nodes if isinstance(n, Domain) and n.name in stored}
        for name, body in (*((name, body) for name, (_, body) in self.replaced.items()), *written.items()):
            found = [x for x in walk(body) if isinstance(x, Load)]
            if found:
                out[name] = max(found, key=lambda x: len(self.by_name[x.tensor].indices or x.access)).tensor
        return out


def _operand_map(node: Reduce, part: str, indices: tuple[str, ...], body: Expr) -> Map:
    """The operand of a reduction as a node of its own."""
    return Map(name=f"{node.name}.{part}", indices=indices, span=node.span, body=body)


def _whole(name: str, indices: tuple[str, ...]) -> Load:
    return Load(tensor=name, access=tuple(Poly.of(i) for i in indices))


def _is_nowhere(e: Expr) -> Expr:
    return Cmp(op="eq", left=e, right=NOWHERE)


def _guard(f: Expr) -> Expr:
    """A factor that leaves a reduction: its reciprocal must not turn the empty result into NaN."""
    if isinstance(f, Apply) and f.fn == "rcp" and not is_scalar(f):
        return apply(GUARDED, f.args[0])
    return f


def expand_guards(e: Expr) -> Expr:
    """Write `guarded_rcp` out: select(x == 0, 0, rest * rcp(x))."""
    parts = factors(e)
    guarded = [f.args[0] for f in parts if isinstance(f, Apply) and f.fn == GUARDED]
    if not guarded:
        return e.map_children(expand_guards)
    plain = [apply("rcp", f.args[0]) if isinstance(f, Apply) and f.fn == GUARDED else f for f in parts]
    out = product([p.map_children(expand_guards) for p in plain])
    for x in guarded:
        out = Select(cond=Cmp(op="eq", left=x, right=const(0.0)), then=const(0.0), other=out)
    return out
