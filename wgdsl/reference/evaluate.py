"""The reference evaluator: any program graph in NumPy float64.

In: a program graph, arrays and scalars.  Out: float64 arrays of its outputs. Programs mean what docs/language.md says: a
reduction runs over the part that exists, over nothing it is its identity, and what is hidden never leaks, NaN included.
Nodes are evaluated one after the other on dense boxes; large ones in passes over indices that all nodes share.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from ..program.approximations import with_approximations
from ..program.expr import Const, Expr, loads
from ..program.graph import IDENTITY, Domain, Input, Map, Node, Output, ProgramGraph, Reduce
from ..program.rules import covers
from .boxes import Boxes, Part
from .passes import BUDGET, cut_range, passes
from .products import multiplied, position
from .rounding import with_rounded_operands
from .shapes import solve_dims
from .stored import rounded


def evaluate(
    graph: ProgramGraph,
    arrays: Mapping[str, np.ndarray],
    scalars: Mapping[str, float] | None = None,
    dims: Mapping[str, int] | None = None,
    *,
    round_operands: bool = False,
    approximated: Collection[str] = (),
) -> dict[str, np.ndarray]:
    """The outputs of a program, float64, by tensor name.

    arrays: every input; an output too, if elements that the program doesn't write should keep what they hold (else 0).
    dims: those that are in no shape.  round_operands: what the error bar compares with: an operand that the program
    computes and multiplies with an input of 16 or 8 bits is rounded to that type, and outputs to theirs; products with
    inputs of 8 bits are summed up with as few bits as the matrix engine takes; functions that are `approximated` are as far
    off as their approximations may be.
    Raises ValueError for wrong shapes, missing inputs or scalars, and `require`s that don't hold.
    """
    arrays = {name: np.asarray(a) for name, a in arrays.items()}
    missing = [n.name for n in graph.inputs if n.name not in arrays]
    if missing:
        raise ValueError(f"`{graph.name}` needs input {', '.join(missing)}")
    values = solve_dims(graph, {name: a.shape for name, a in arrays.items()}, dims)
    with np.errstate(all="ignore"):
        known = _scalars(graph, values, scalars or {})
        near = with_approximations(with_rounded_operands(graph), approximated) if round_operands else graph
        run = _Run(near, values, arrays, known, short_sums=round_operands)
        outputs = run.all()
    if not round_operands:
        return outputs
    return {o.tensor: rounded(outputs[o.tensor], o.dtype) for o in graph.outputs}


def _scalars(graph: ProgramGraph, dims: Mapping[str, int], given: Mapping[str, float]) -> dict[str, float]:
    unknown = set(given) - {s.name for s in graph.scalars}
    if unknown:
        raise ValueError(f"`{graph.name}` has no scalar {', '.join(sorted(unknown))}")
    out: dict[str, float] = {}
    boxes = Boxes(dims, out, {}, {})
    for s in graph.scalars:
        if s.name not in given and s.default is None:
            raise ValueError(f"`{graph.name}` needs scalar `{s.name}`")
        out[s.name] = float(given[s.name]) if s.name in given else float(boxes.part(_known(s.default), ()).value)
    for e in graph.requires:
        if not boxes.part(e, ()).value:
            raise ValueError(f"`{graph.name}` requires {e}")
    return out


def _known(e: Expr | None) -> Expr:
    assert e is not None
    return e


class _Run:
    """One evaluation: the nodes in order, once for each pass."""

    def __init__(
        self,
        graph: ProgramGraph,
        dims: Mapping[str, int],
        arrays: Mapping[str, np.ndarray],
        scalars: Mapping[str, float],
        *,
        short_sums: bool,
    ):
        """short_sums: products of 8-bit inputs are summed up as the matrix engine does."""
        self.graph, self.short_sums = graph, short_sums
        ranges = {i: (0, max(p.evaluate(dims), 0)) for i, p in graph.extents.items()}
        self.boxes = Boxes(dims, scalars, ranges, {n.name: Part(_float64(arrays[n.name])) for n in graph.inputs})
        self.outputs: dict[str, np.ndarray] = {}
        for o in graph.outputs:
            shape = tuple(p.evaluate(dims) for p in o.shape)
            self.outputs[o.tensor] = np.array(arrays.get(o.tensor, np.zeros(shape)), np.float64)

    def all(self) -> dict[str, np.ndarray]:
        for ranges in passes(self.graph, dict(self.boxes.ranges)):
            self.boxes.ranges.update(ranges)
            for node in self.graph.nodes:
                if isinstance(node, Output):
                    self._store(node)
                elif not isinstance(node, Input):
                    self._keep(node)
        return self.outputs

    def _keep(self, node: Node) -> None:
        part = self._evaluated(node)
        starts = tuple(self.boxes.ranges[i][0] for i in node.indices)
        self.boxes.stored[node.name] = replace(self._checked(node, part), starts=starts)

    def _checked(self, node: Node, part: Part) -> Part:
        if part.strays():
            raise IndexError(f"`{self.graph.name}`: {node.name} reads outside a tensor")
        return part

    def _evaluated(self, node: Node) -> Part:
        if isinstance(node, Map):
            return self._full(self.boxes.part(node.body, node.indices), node.indices)
        if isinstance(node, Domain):
            return self._full(self._restricted(node), node.indices)
        assert isinstance(node, Reduce)
        product = self._contract(node) if node.is_contract else None
        return Part(self._in_pieces(node) if product is None else product)

    def _full(self, part: Part, order: tuple[str, ...]) -> Part:
        """Every axis at its extent."""
        shape = self.boxes.extents(order)
        exists = None if part.exists is None else np.broadcast_to(part.exists, shape)
        astray = None if part.astray is None else np.broadcast_to(part.astray, shape)
        return Part(np.broadcast_to(part.value, shape), exists, astray)

    def _restricted(self, node: Domain) -> Part:
        body, inside = self.boxes.part(node.body, node.indices), self.boxes.part(node.predicate, node.indices)
        self._checked(node, inside)
        truth = inside.value.astype(bool)
        exists = truth if body.exists is None else truth & body.exists
        exists = exists if inside.exists is None else exists & inside.exists
        if node.otherwise is None:
            return Part(body.value, exists, body.astray)
        other = self._checked(node, self.boxes.part(node.otherwise, node.indices))
        self._checked(node, Part(body.value, exists, body.astray))
        return Part(np.where(exists, body.value, other.value))

    def _in_pieces(self, node: Reduce) -> np.ndarray:
        """A reduction whose box (indices and axes) may be too large: cut along its longest index."""
        sizes = self.boxes.extents(node.indices)
        box, longest = math.prod(sizes) * math.prod(self.boxes.extents(node.axes)), max(sizes, default=1)
        if box <= BUDGET or longest == 1:
            return self._reduce(node)
        cut = node.indices[sizes.index(longest)]
        whole, pieces = self.boxes.ranges[cut], []
        for piece in cut_range(whole, max(1, longest * BUDGET // box)):
            self.boxes.ranges[cut] = piece
            pieces.append(self._in_pieces(node))
        self.boxes.ranges[cut] = whole
        return np.concatenate(pieces, axis=node.indices.index(cut))

    def _reduce(self, node: Reduce) -> np.ndarray:
        order = (*node.indices, *node.axes)
        part = self._checked(node, self._full(self.boxes.part(node.body, order), order))
        if node.op.startswith("arg"):
            return position(part, node.op)
        identity, axes = IDENTITY[node.op], tuple(range(len(node.indices), len(order)))
        seen = part.value if part.exists is None else np.where(part.exists, part.value, identity)
        if node.op == "sum":
            return seen.sum(axis=axes)
        return (np.max if node.op == "max" else np.min)(seen, axis=axes, initial=identity)

    def _contract(self, node: Reduce) -> np.ndarray | None:
        """A sum of products by matrix multiplication; None if something that isn't finite takes part.

        With finite numbers only, 0 in the place of what doesn't exist is exact; 0 * NaN would not be.
        """
        operands = []
        for x in loads(node.body):
            inside = frozenset().union(*(p.symbols() for p in x.access))
            order = tuple(i for i in (*node.indices, *node.axes) if i in inside)
            part = self._full(self.boxes.load(x, order), order)
            value = part.value if part.exists is None else np.where(part.exists, part.value, 0.0)
            if part.astray is not None or not np.isfinite(value).all():
                return None
            operands.append((value, order))
        (a, a_order), (b, b_order) = operands
        short = self.short_sums and any(self._is_short(x.tensor) for x in loads(node.body))
        return multiplied(a, a_order, b, b_order, node.indices, self.boxes.extents(node.indices), short)

    def _is_short(self, tensor: str) -> bool:
        """Whether products with it are summed up with few bits: those of inputs of 8-bit floats."""
        node = self.graph.by_name[tensor]
        return isinstance(node, Input) and node.dtype.largest is not None

    def _store(self, node: Output) -> None:
        """Write the value; where it doesn't exist `otherwise`, or nothing if the left side isn't the whole array. What elements
        place outside of the array isn't written."""
        part = self._checked(node, self._full(self.boxes.part(node.value, node.indices), node.indices))
        target = self.outputs[node.tensor]
        at = [np.broadcast_to(self.boxes.positions(p, node.indices), part.value.shape) for p in node.access]
        if part.exists is None:
            target[tuple(at)] = part.value
        elif covers(self.graph, node):
            other = self.boxes.part(node.otherwise or Const(value=0.0), node.indices)
            target[tuple(at)] = np.where(part.exists, part.value, other.value)
        else:
            inside = np.logical_and.reduce([part.exists, *(p < n for p, n in zip(at, target.shape, strict=True))])
            target[tuple(p[inside] for p in at)] = part.value[inside]


def _float64(a: np.ndarray) -> np.ndarray:
    return a if a.dtype == bool else a.astype(np.float64)
