"""Form 2: the program graph.

A `ProgramGraph` holds typed nodes in definition order; `digraph()` is the networkx view whose edges carry access maps.
Every node has `indices` (its own index names, each with an extent in `extents`) and a float32 value unless `dtype` says
otherwise. The domain of a node is where its elements exist:

    Input    everything in its shape
    Map      the intersection of its operands' domains
    Domain   that, and `predicate`
    Reduce   the domain of its body, projected: a reduction runs over the part that exists; over nothing it is its identity
    Output   everything; outside the value's domain it stores `otherwise` (0)

Legality (checked by `check`): names unique; every Load names an earlier node with matching rank; every index of a body is
one of the node's indices or reduction axes; axes and indices are disjoint; extents exist for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from ..foundation.dtypes import F32, DType
from ..foundation.source import Span
from .expr import TRUE, Apply, Expr, Load, conjunction, loads, rewrite, substitute_indices
from .poly import Poly

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, kw_only=True)
class Node:
    name: str
    indices: tuple[str, ...]
    dtype: DType = F32
    span: Span | None = field(default=None, compare=False, repr=False)

    def exprs(self) -> tuple[Expr, ...]:
        return ()

    @property
    def kind(self) -> str:
        return type(self).__name__.lower()


@dataclass(frozen=True, kw_only=True)
class Input(Node):
    """A tensor argument; `indices` is empty (positions are named by the loads), `shape` has one extent per axis."""

    shape: tuple[Poly, ...]


@dataclass(frozen=True, kw_only=True)
class Map(Node):
    body: Expr

    def exprs(self):
        return (self.body,)


@dataclass(frozen=True, kw_only=True)
class Domain(Node):
    """`body` where `predicate`; outside nothing exists, or `otherwise` if given (then it exists everywhere)."""

    body: Expr
    predicate: Expr
    otherwise: Expr | None = None

    def exprs(self):
        return (self.body, self.predicate) + ((self.otherwise,) if self.otherwise is not None else ())


@dataclass(frozen=True, kw_only=True)
class Reduce(Node):
    """op over `axes` of `body`. op: sum, max, min, argmax, argmin."""

    op: str
    axes: tuple[str, ...]
    body: Expr

    def exprs(self):
        return (self.body,)

    @property
    def is_contract(self) -> bool:
        """A sum of a product of two loads: what a matrix instruction may compute."""
        b = self.body
        return self.op == "sum" and isinstance(b, Apply) and b.fn == "mul" and all(isinstance(a, Load) for a in b.args)

    @property
    def kind(self) -> str:
        return "contract" if self.is_contract else "reduce"


@dataclass(frozen=True, kw_only=True)
class Output(Node):
    """Stores `value` in `tensor` at `access` (one Poly of `indices` per axis of its shape), rounded to `dtype`."""

    tensor: str
    shape: tuple[Poly, ...]
    access: tuple[Poly, ...]
    value: Expr
    otherwise: Expr | None = None

    def exprs(self):
        return (self.value,) + ((self.otherwise,) if self.otherwise is not None else ())


N = TypeVar("N", bound=Node)
EXPRESSIONS = ("body", "predicate", "value", "otherwise")  # of nodes


def rewrite_node(node: N, fn: Callable[[Expr], Expr | None]) -> N:
    """The node with its expressions rewritten."""
    held = {f: e for f in EXPRESSIONS if (e := getattr(node, f, None)) is not None}
    return replace(node, **{f: rewrite(e, fn) for f, e in held.items()})


@dataclass(frozen=True, kw_only=True)
class ScalarInput:
    """A scalar argument. `default` is an expression of dims (IndexValue) and earlier scalars, or None (must be given)."""

    name: str
    dtype: DType = F32
    default: Expr | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


IDENTITY = {"sum": 0.0, "max": float("-inf"), "min": float("inf"), "argmax": -1, "argmin": -1}


@dataclass(frozen=True, kw_only=True)
class ProgramGraph:
    """One program with its options and types chosen.

    dims: every free dim in declaration order (H = G * R is not free: `derived` has it).  fixed: dims known at compile time.
    extents: index -> extent.  turns: an index that runs over several -> the slowest of those, and how many steps each of it is.
    requires: boolean expressions of scalars and dims that a call must satisfy.
    """

    name: str
    dims: tuple[str, ...]
    derived: Mapping[str, Poly] = field(default_factory=dict)
    fixed: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    types: Mapping[str, DType] = field(default_factory=dict)
    scalars: tuple[ScalarInput, ...] = ()
    requires: tuple[Expr, ...] = ()
    extents: Mapping[str, Poly] = field(default_factory=dict)
    turns: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()
    increasing: frozenset[str] = frozenset()  # arguments whose elements never fall, by `assume`
    positive: frozenset[str] = frozenset()  # arguments whose elements are greater than 0, by `assume`
    absent: frozenset[str] = frozenset()  # arguments that a false `when` removed
    aliases: Mapping[str, str] = field(default_factory=dict)  # a statement's name -> the node that now stands for it
    span: Span | None = field(default=None, compare=False, repr=False)

    @cached_property
    def by_name(self) -> dict[str, Node]:
        return {n.name: n for n in self.nodes}

    @property
    def inputs(self) -> tuple[Input, ...]:
        return tuple(n for n in self.nodes if isinstance(n, Input))

    @property
    def outputs(self) -> tuple[Output, ...]:
        return tuple(n for n in self.nodes if isinstance(n, Output))

    def digraph(self) -> nx.DiGraph:
        """networkx view: node attribute `node`; edge attribute `accesses` (a tuple of access maps)."""
        import networkx as nx

        g = nx.DiGraph(name=self.name)
        for n in self.nodes:
            g.add_node(n.name, node=n, kind=n.kind)
        for n in self.nodes:
            for e in n.exprs():
                for x in loads(e):
                    seen = g.edges[x.tensor, n.name]["accesses"] if g.has_edge(x.tensor, n.name) else ()
                    g.add_edge(x.tensor, n.name, accesses=(*seen, x.access))
        return g

    def domain(self, name: str) -> Expr:
        """The predicate, over the node's own indices, outside which its elements don't exist.

        Reductions always exist (their identity), so the walk stops there. Index ranges are not part of it.
        """
        node = self.by_name[name]
        if isinstance(node, Input | Reduce):
            return TRUE
        if isinstance(node, Domain) and node.otherwise is not None:
            return TRUE
        own = node.predicate if isinstance(node, Domain) else TRUE
        body = node.value if isinstance(node, Output) else node.body  # type: ignore[attr-defined]
        return conjunction(self.domain_of(body), own)

    def domain_of(self, e: Expr) -> Expr:
        """Where an expression exists: the intersection of the domains of what it loads."""
        return conjunction(*(self._at(x) for x in loads(e)))

    def _at(self, x: Load) -> Expr:
        node = self.by_name[x.tensor]
        if isinstance(node, Input):
            return TRUE
        return substitute_indices(self.domain(x.tensor), dict(zip(node.indices, x.access, strict=True)))
