"""stream: program graph -> streamed graph, derived from algebra alone.

A reduction over the axis may use earlier reductions over it where its operand is f(earlier) * g(element): the state then
holds f(running) * sum of g, and is multiplied by f(new) / f(old) when they move. Where the operand counts only what equals an
extreme, it is kept while that stays, and begins anew when it moves. Where it is a sum of terms f(final results) * g(element),
each g has a state, and they come together at the end. Nothing is recognised by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..diagnostics.model import WgError
from ..diagnostics.transform import NotSeparable, NotStreamable, StreamAxisUnknown
from ..foundation.source import Span
from ..program.expr import Apply, Cmp, Expr, Load, Select, apply, const, indices_of, loads, rewrite, substitute_indices
from ..program.graph import IDENTITY, Domain, Input, Map, Node, Output, ProgramGraph, Reduce
from ..program.poly import Poly
from ..program.streamed import State, Streamed, old
from .algebra import always_finite, factors, is_scalar, limit, linear, product, signed, simplify
from .canonicalise import positive_inputs
from .started import started

MOST_TERMS = 8  # of a summand that mixes results and elements


def stream(graph: ProgramGraph, axis: str, span: Span | None = None) -> Streamed:
    """Split a canonical graph along `axis`. Raises WgError (WG0301 to WG0303) where that isn't legal."""
    reduced = sorted({a for n in graph.nodes if isinstance(n, Reduce) for a in n.axes})
    if axis not in reduced:
        raise WgError(StreamAxisUnknown(span=span, axis=axis, reduced=tuple(reduced)))
    work = _Stream(graph, axis)
    for node in work.graph.nodes:
        work.visit(node)
    return work.result()


class _Stream:
    def __init__(self, graph: ProgramGraph, axis: str):
        self.axis = axis
        self.positives = positive_inputs(graph)
        self.graph, self.starts = started(graph, axis, self.positives)
        self.tile: dict[str, Map | Domain | Reduce] = {}
        self.states: dict[str, State] = {}
        self.after: dict[str, Map | Domain] = {}
        self.folds: list[Reduce] = []
        self.outputs: list[Output] = []
        self.reader = ""  # the tensor that is being made
        self.order: list[str] = []

    def visit(self, node: Node) -> None:
        if isinstance(node, Input):
            return
        self.reader = node.tensor if isinstance(node, Output) else node.name
        if isinstance(node, Output):
            self.outputs.append(replace(node, value=self.finish(node.value)))
        elif isinstance(node, Reduce) and self.axis in node.axes:
            self.reduction(node)
        elif self.axis in node.indices:
            assert isinstance(node, Map | Domain | Reduce)
            if isinstance(node, Domain):
                self.decided(node)
            self.tile[node.name] = node
            self.order.append(node.name)
        elif isinstance(node, Map):
            self.after[node.name] = replace(node, body=self.finish(node.body))
        elif isinstance(node, Domain):
            self.after[node.name] = self.restricted(node)
        elif isinstance(node, Reduce) and self.folded(node):
            self.folds.append(replace(node, body=self.finish(node.body)))
        else:
            raise WgError(NotStreamable(span=node.span, name=node.name, why=f"it doesn't run along `{self.axis}`"))

    def folded(self, node: Reduce) -> bool:
        """Whether a reduction along another axis is one of final values, or of what needs none, beside such a one."""
        read = {x.tensor for x in loads(self.finish(node.body))}
        beside = any(f.axes == node.axes and f.indices == node.indices for f in self.folds)
        return (beside or bool(read & {*self.states, *(f.name for f in self.folds)})) and len(node.axes) == 1

    def restricted(self, node: Domain) -> Domain:
        """A restriction after the loop. Without `else` nothing is written in: the output stores 0 outside its domain."""
        body = self.finish(node.body)
        if node.otherwise is not None:
            body = Select(cond=node.predicate, then=body, other=self.finish(node.otherwise))
        return replace(node, body=body)

    def finish(self, e: Expr) -> Expr:
        """An expression after the loop: elementwise results written in, so that only states and inputs are loaded."""

        def one(x: Expr) -> Expr | None:
            if isinstance(x, Load) and x.tensor in self.after:
                node = self.after[x.tensor]
                return substitute_indices(node.body, dict(zip(node.indices, x.access, strict=True)))
            if isinstance(x, Load) and x.tensor in self.tile:
                raise WgError(self.whole(x.tensor, e))
            return None

        return rewrite(e, one)

    def whole(self, name: str, final: Expr) -> NotStreamable:
        """A value for every element of the axis that an expression wants when the pass has ended."""
        chain = [f"`{self.reader}` needs `{name}` for every `{self.axis}` when the pass has ended"]
        first = [x.tensor for x in loads(final) if x.tensor in self.states]
        needed, more = self.needed(name)
        chain += more
        summed = dict.fromkeys(a for n in needed if isinstance(r := self.tile.get(n), Reduce) for a in r.axes)
        return NotStreamable(
            span=self.tile[name].span,
            name=name,
            why="an output reads it whole",
            chain=tuple(chain),
            earlier=self.statements(needed, self.tile[name].span),
            first=tuple(s for s in self.states if s in first or s in needed),
            along=tuple(summed),
        )

    def needed(self, name: str) -> tuple[list[str], list[str]]:
        """What a value is made of, itself first, and who needs whom, in words. Inputs left out."""
        found, chain = [name], []
        for n in found:
            for x in (x for e in self.graph.by_name[n].exprs() for x in loads(e)):
                if x.tensor in found or isinstance(self.graph.by_name[x.tensor], Input):
                    continue
                found.append(x.tensor)
                along = f", along `{self.axis}`" if x.tensor in self.states else ""
                chain.append(f"`{n}` needs `{x.tensor}`{along}")
        return found, chain

    def statements(self, names: Iterable[str], here: Span | None) -> tuple[tuple[Span, str], ...]:
        """The statements of those that are results along the axis, other than the one where the problem is."""
        out: dict[Span, list[str]] = {}
        for n in names:
            span = self.graph.by_name[n].span
            if span is not None and span != here and (n in self.states or n in self.after):
                out.setdefault(span, []).append(f"`{n}`")
        return tuple((span, f"{', '.join(found)}: known when the pass has ended") for span, found in out.items())

    def decided(self, node: Domain) -> None:
        """Which elements exist is known when they come: no result along the axis decides on it."""
        read = dict.fromkeys(x.tensor for x in loads(node.predicate))
        late = [n for r in read for n in self.needed(r)[0] if n in self.states or n in self.after]
        if late:
            why = f"its `where` needs `{late[0]}`, which is known when the pass has ended"
            raise WgError(self.late(node, why, late))

    def late(self, node: Map | Domain, why: str, first: Iterable[str]) -> NotStreamable:
        """A statement along the axis that needs a result of it."""
        needed, chain = self.needed(self.reader)
        at = self.statements(needed, node.span)
        return NotStreamable(span=node.span, name=node.name, why=why, chain=tuple(chain), earlier=at, first=tuple(first))

    def reduction(self, node: Reduce) -> None:
        """A reduction along the axis: one state, or several whose sum it is once the stream has ended."""
        try:
            state = self.state(node)
        except WgError:
            terms = self.terms(node) if node.op == "sum" else None
            if terms is None:
                raise
            return self.summed(node, terms)
        self.states[node.name] = state
        self.order.append(node.name)

    def terms(self, node: Reduce) -> list[tuple[Expr, Expr]] | None:
        """The operand of a sum as terms f(final results) * g(this element), g with a state of its own; None if it is none."""
        out: dict[Expr, Expr] = {}
        domain = self.graph.domain_of(node.body)
        for parts in self.products(node.body):
            f = product([p for p in parts if self.elementless(p)])
            g = product([p for p in parts if not self.elementless(p)])
            if self.elementless(g) or self.graph.domain_of(g) != domain or not self.streams(g):
                return None
            out[g] = apply("add", out[g], f) if g in out else f
        return [(f, g) for g, f in out.items()] if 1 < len(out) <= MOST_TERMS else None

    def products(self, e: Expr) -> list[list[Expr]]:
        """An expression as a sum of products, opened only where a factor mixes results and elements. A product of two sums
        isn't opened: (x - mean) ** 2 would be a small difference of large squares."""
        if isinstance(e, Apply) and e.fn in ("add", "sub"):
            minus = [[const(-1.0), *p] for p in self.products(e.args[1])] if e.fn == "sub" else self.products(e.args[1])
            return [*self.products(e.args[0]), *minus]
        if isinstance(e, Apply) and e.fn == "neg":
            return [[const(-1.0), *p] for p in self.products(e.args[0])]
        if isinstance(e, Apply) and e.fn == "mul":
            left, right = self.products(e.args[0]), self.products(e.args[1])
            if min(len(left), len(right)) == 1:
                return [[*a, *b] for a in left for b in right]
        if isinstance(e, Load) and isinstance(node := self.tile.get(e.tensor), Map) and not self.streams(e):
            return self.products(substitute_indices(node.body, dict(zip(node.indices, e.access, strict=True))))
        return [[e]]

    def streams(self, e: Expr) -> bool:
        """Whether a sum of it has a state."""
        try:
            body = self.expand(e)
        except WgError:
            return False
        used = frozenset(n for n in self.states if _mentions(body, frozenset((n,))))
        return not used or self.state_factor(body, used) is not None

    def summed(self, node: Reduce, terms: list[tuple[Expr, Expr]]) -> None:
        """A state for each term, and the reduction made of them. Where nothing was summed a factor may be infinite."""
        total: Expr = const(0.0)
        for k, (f, g) in enumerate(terms):
            part = replace(node, name=f"{node.name}.{k}", body=g)
            same = [s.node for s in self.states.values() if replace(s.node, name=part.name, span=part.span) == part]
            if not same:
                self.reduction(part)
            read = Load(tensor=same[0].name if same else part.name, access=tuple(map(Poly.of, node.indices)))
            nothing = Cmp(op="eq", left=read, right=const(0.0))
            total = apply("add", total, Select(cond=nothing, then=const(0.0), other=apply("mul", read, f)))
        whole = Map(name=node.name, indices=node.indices, span=node.span, body=self.finish(simplify(total)))
        self.after[node.name] = whole

    def state(self, node: Reduce) -> State:
        body = self.expand(node.body)
        used = tuple(n for n in self.states if any(x.tensor == n for x in loads(body)))
        contract = self.multiplies(node)
        if not used:
            return State(node=node, start=self.starts.get(node.name), is_contract=contract)
        kept = self.kept(node, body, used)
        if kept is not None:
            factor = Select(cond=kept, then=const(1.0), other=const(0.0)) if node.op == "sum" else None
            return State(node=node, correction=factor, kept=kept, references=used, is_contract=contract)
        f = self.state_factor(body, frozenset(used))
        if f is None or node.op != "sum":
            raise WgError(self.inseparable(node, used, body))
        return State(node=node, correction=self.quotient(f, frozenset(used)), references=used, is_contract=contract)

    def multiplies(self, node: Reduce) -> bool:
        """Whether a sum is a product of matrices, one of them an input: each operand has an index that the other lacks. A
        weighted sum of a row is none."""
        if not node.is_contract:
            return False
        first, second = loads(node.body)
        one, two = (_symbols(x) & frozenset(node.indices) for x in (first, second))
        return bool(one - two and two - one) and any(
            isinstance(self.graph.by_name.get(x.tensor), Input) for x in (first, second)
        )

    def inseparable(self, node: Reduce, used: tuple[str, ...], body: Expr) -> NotSeparable:
        needed, chain = self.needed(node.name)
        at = self.statements(needed, node.span)
        return NotSeparable(span=node.span, name=node.name, first=used, summand=str(body), chain=tuple(chain), earlier=at)

    def kept(self, node: Reduce, body: Expr, used: tuple[str, ...]) -> Expr | None:
        """Under which condition old elements still count where only those do that equal the extreme of all: while it stays.
        When it moves none of them equals it, since they were all on the other side."""
        nothing = const(float(IDENTITY[node.op]))
        parts = factors(body) if node.op == "sum" else [body]
        found = [f for f in parts if _mentions(f, frozenset(used))]
        if len(found) != 1 or not isinstance(found[0], Select) or found[0].other != nothing:
            return None
        cond = found[0].cond
        if not (isinstance(cond, Cmp) and cond.op == "eq") or _mentions(found[0].then, frozenset(used)):
            return None
        for element, extreme in ((cond.left, cond.right), (cond.right, cond.left)):
            if isinstance(extreme, Load) and used == (extreme.tensor,) and self.is_extreme(extreme, element):
                return Cmp(op="eq", left=_older(extreme, frozenset(used)), right=extreme)
        return None

    def is_extreme(self, extreme: Load, element: Expr) -> bool:
        """Whether a state is the largest or the smallest of just these elements, all of them or all that are numbers."""
        node = self.states[extreme.tensor].node
        if node.op not in ("max", "min"):
            return False
        operand = substitute_indices(self.expand(node.body), dict(zip(node.indices, extreme.access, strict=True)))
        if isinstance(operand, Select) and operand.cond == Cmp(op="eq", left=element, right=element):
            return operand.then == element and operand.other == const(float(IDENTITY[node.op]))
        return operand == element

    def expand(self, e: Expr) -> Expr:
        """With the bodies of elementwise tile nodes written in; contractions and states stay loads."""

        def one(x: Expr) -> Expr | None:
            if isinstance(x, Load) and x.tensor in self.after:
                why = "it is made of reductions along the axis, and read again along it"
                raise WgError(self.late(self.after[x.tensor], why, (x.tensor,)))
            node = self.tile.get(x.tensor) if isinstance(x, Load) else None
            if node is None or isinstance(node, Reduce):
                return None
            body = self.expand(node.body)
            return substitute_indices(body, dict(zip(node.indices, x.access, strict=True)))  # type: ignore[attr-defined]

        return rewrite(e, one)

    def state_factor(self, e: Expr, states: frozenset[str]) -> list[Expr] | None:
        """The factors of `e` that depend on earlier states only; None if some factor mixes states and elements."""
        out: list[Expr] = []
        for f in factors(e):
            if not _mentions(f, states):
                continue
            if self.elementless(f):
                out.append(f)
            elif isinstance(f, Apply) and f.fn == "exp2":
                part = self.exponent(f.args[0], states)
                if part is None:
                    return None
                out.append(part)
            else:
                return None
        return out

    def elementless(self, e: Expr) -> bool:
        return self.axis not in indices_of(e)

    def constant(self, e: Expr) -> bool:
        """Whether an expression is the same for all elements of a row: a scalar, or made of elements of inputs."""
        read = [self.graph.by_name.get(x.tensor) for x in loads(e)]
        return is_scalar(e) or (bool(read) and self.elementless(e) and all(isinstance(n, Input) for n in read))

    def exponent(self, e: Expr, states: frozenset[str]) -> Expr | None:
        """exp2 of the terms of `e` that depend on states only."""
        terms = linear(e, self.constant)
        if any(_mentions(b, states) and not self.elementless(b) for _, b in terms):
            return None
        total: Expr = const(0.0)
        for c, b in terms:
            if _mentions(b, states):
                total = apply("add", total, apply("mul", b, c))
        return apply("exp2", simplify(total))

    def quotient(self, parts: list[Expr], states: frozenset[str]) -> Expr:
        """f(new) / f(old), with exponents subtracted rather than powers divided."""
        out: list[Expr] = []
        for f in parts:
            if isinstance(f, Apply) and f.fn == "exp2":
                out.append(apply("exp2", self.difference(f.args[0], states)))
            else:
                out += [f, apply("rcp", _older(f, states))]
        return product(out)

    def difference(self, e: Expr, states: frozenset[str]) -> Expr:
        """e(new) - e(old) as a sum of (base - base.old) * coefficient, turned round where that is negative."""
        total: Expr = const(0.0)
        for c, b in linear(e, self.constant):
            before = _older(b, states)
            minus, size = signed(c)
            ends = (before, b) if minus else (b, before)
            term = apply("mul", apply("sub", *ends), size)
            total = apply("add", total, term)
        return simplify(total)

    def result(self) -> Streamed:
        guarded = frozenset(
            r
            for s in self.states.values()
            for r in s.references
            if self.states[r].node.op in ("max", "min") and s.correction is not None and s.kept is None
        )
        fills, masks, masked = self.fills()
        self.predicates(len(masks) + len(masked))
        return Streamed(
            program=self.graph,
            axis=self.axis,
            tile=tuple(self.tile.values()),
            states=tuple(self.states.values()),
            order=tuple(self.order),
            outputs=tuple(self.outputs),
            guarded=guarded,
            unguarded_when_full=not self.additive_input(guarded),
            fills=fills,
            masks=masks,
            masked_states=masked,
            folds=tuple(self.folds),
        )

    def additive_input(self, guarded: frozenset[str]) -> bool:
        """Whether a score that a guarded state sees may be infinite though all products are finite: it reads a tensor
        elementwise, or goes through a function or constant that makes it so."""
        products = frozenset(n.name for n in self.tile.values() if isinstance(n, Reduce))
        return not all(always_finite(self.expand(self.states[g].node.body), products) for g in guarded)

    def fills(self) -> tuple[dict[str, float], frozenset[str], frozenset[str]]:
        """What elements outside the domain (or past the axis' extent) hold, node by node; the tile nodes where that is
        written in; the states that must mask their own operand.

        The fill is the identity of the first reduction that reads the node. Later nodes are evaluated at that fill: where
        they don't come out as what their reduction ignores, they are masked too.
        """
        fills: dict[str, float] = {}
        masks: set[str] = set()
        own: set[str] = set()
        for name in self.order:
            if name in self.states:
                if not self.ignores(self.states[name], fills):
                    self.maskable(self.states[name])
                    own.add(name)
                continue
            fill, written = self.fill(self.tile[name], fills)
            if fill is not None:
                fills[name] = fill
            if written:
                masks.add(name)
        return fills, frozenset(masks), frozenset(own)

    def predicates(self, uses: int) -> None:
        """A predicate over tile values is tested once: what it reads may be overwritten by then."""
        for n in self.tile.values():
            if isinstance(n, Domain) and loads(n.predicate) and uses > 1:
                read = {x.tensor for x in loads(n.predicate)} & set(self.tile)
                if read:
                    why = f"its `where` reads `{sorted(read)[0]}`, and more than one value is restricted by it"
                    raise WgError(NotStreamable(span=n.span, name=n.name, why=why))

    def maskable(self, s: State) -> None:
        """A product reads its operands as they are: nothing can be masked between them and the matrix engine."""
        if s.is_contract:
            why = "its operand isn't 0 outside the domain; multiply by a tensor that a `where` restricts"
            raise WgError(NotStreamable(span=s.node.span, name=s.name, why=why))

    def fill(self, node: Map | Domain | Reduce, fills: dict[str, float]) -> tuple[float | None, bool]:
        """(value outside, whether a select writes it) of one tile node."""
        wanted = self.first_identity(node.name)
        if isinstance(node, Domain):
            return (0.0 if wanted is None else wanted), True
        if isinstance(node, Map):
            value = limit(node.body, fills, self.positives)
            if isinstance(value, float) and wanted in (None, value):
                return value, False
        masked_later = any(
            isinstance(n, Domain) and any(x.tensor == node.name for x in loads(n.body)) for n in self.tile.values()
        )
        return (None, False) if masked_later or wanted is None else (wanted, True)

    def first_identity(self, name: str) -> float | None:
        """The identity of the first reduction that reads the node directly."""
        for s in self.states.values():
            if any(x.tensor == name for x in loads(s.node.body)):
                return float(IDENTITY[s.node.op])
        return None

    def ignores(self, s: State, fills: dict[str, float]) -> bool:
        """Whether elements outside the domain add nothing to the state. A zero operand is enough for a contraction: the
        other operand is zero-filled or cleared outside. Positions past the extent: an input read there gives 0."""
        body = s.node.body
        if s.is_contract:
            values = [fills.get(x.tensor) for x in loads(body)]
            inputs = [isinstance(self.graph.by_name.get(x.tensor), Input) for x in loads(body)]
            return 0.0 in values or all(inputs)
        value = limit(body, fills, self.positives)
        return value == float(IDENTITY[s.node.op])


def _symbols(x: Load) -> frozenset[str]:
    return frozenset().union(*(p.symbols() for p in x.access))


def _mentions(e: Expr, names: frozenset[str]) -> bool:
    return any(x.tensor in names for x in loads(e))


def _older(e: Expr, states: frozenset[str]) -> Expr:
    def one(x: Expr) -> Expr | None:
        if isinstance(x, Load) and x.tensor in states:
            return Load(tensor=old(x.tensor), access=x.access)
        return None

    return rewrite(e, one)
