"""How many operations a program asks for: of its products, on the elements that exist.

In: the program graph and the sizes of a call, with the integers that it reads.  Out: floating-point operations, two for each
element of a product.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from ..program.expr import Affine, Apply, Cmp, Expr, Load, conjunction, conjuncts, indices_of, loads
from ..program.graph import Domain, ProgramGraph, Reduce
from ..program.poly import Poly, elements, elements_name
from ..program.predicates import compared, integral
from ..program.rules import covers


def work(graph: ProgramGraph, dims: Mapping[str, int], arrays: Mapping[str, np.ndarray] | None = None) -> int:
    """The operations of every product of the program, whatever the schedule. What a predicate leaves out doesn't count, nor
    what isn't written. arrays: those of the call; without them what tensors say leaves nothing out."""
    read = {n: a for n, a in (arrays or {}).items() if a.dtype.kind == "i"}
    at: dict[str, Any] = {**dims, **{elements_name(n): lambda *i, a=a: int(a[i]) for n, a in read.items()}}
    return 2 * sum(_elements(graph, n, at, read.keys()) for n in graph.nodes if isinstance(n, Reduce) and _is_product(n))


def _is_product(n: Reduce) -> bool:
    """A sum of a product of two loads, perhaps times or over what doesn't vary along the sum."""
    e, axes = n.body, frozenset(n.axes)
    while isinstance(e, Apply) and e.fn in ("mul", "div"):
        left, right = e.args
        if not indices_of(right) & axes:
            e = left
        elif e.fn == "mul" and not indices_of(left) & axes:
            e = right
        else:
            return n.op == "sum" and e.fn == "mul" and isinstance(left, Load) and isinstance(right, Load)
    return False


def _elements(graph: ProgramGraph, n: Reduce, dims: Mapping[str, int], read: Collection[str]) -> int:
    sizes = {i: graph.extents[i].evaluate(dims) for i in (*n.indices, *n.axes)}
    written = [graph.domain(o.name) for o in graph.outputs if not covers(graph, o)]
    used = (_used(graph, n), *(written if len(written) == len(graph.outputs) and len(set(written)) == 1 else ()))
    bounds = [p for c in conjuncts(conjunction(*used)) for p in _bounds(c, read) if not any(_foreign(p, sizes, dims))]
    bounded = [i for i in sizes if any(i in b.symbols() for b in bounds)]
    rest = math.prod(size for i, size in sizes.items() if i not in bounded)
    return rest * _count({i: sizes[i] for i in bounded}, bounds, dims)


def _bounds(e: Expr, read: Collection[str]) -> Iterator[Poly]:
    """What is at least 0 where a predicate holds."""
    if isinstance(e, Cmp) and all(x.tensor in read for x in loads(e)):
        left, right = integral(e.left), integral(e.right)
        e = e if left is None or right is None else compared(e.op, left, right)
    yield from (p.poly for p in conjuncts(e) if isinstance(p, Affine))


def _foreign(p: Poly, sizes: Mapping[str, int], dims: Mapping[str, int]) -> Iterator[str]:
    """Indices of others."""
    return (s for s in p.symbols() if s not in sizes and s not in dims)


def _used(graph: ProgramGraph, n: Reduce) -> Expr:
    """Where the product's elements exist and are used: a tensor that only one `where` reads is needed inside it alone."""
    readers = [x for x in graph.nodes if any(e.tensor == n.name for b in x.exprs() for e in loads(b))]
    own, here = graph.domain_of(n.body), tuple(Poly.of(i) for i in n.indices)
    reader = readers[0] if len(readers) == 1 else None
    if not isinstance(reader, Domain) or reader.otherwise is not None:
        return own
    there = all(e.access == here for e in loads(reader.body) if e.tensor == n.name)
    return conjunction(own, reader.predicate) if there else own


def _count(sizes: dict[str, int], bounds: list[Poly], dims: Mapping[str, int]) -> int:
    """Points of the box where every bound is at least 0: along its longest axis by arithmetic, where that is affine."""
    if not sizes:
        return 1
    inside = {s for b in bounds for a in elements(b) for x in a.args for s in x.symbols()}
    axis = max(sizes, key=lambda i: (i not in inside, sizes[i]))
    others = [i for i in sizes if i != axis]
    total = 0
    for point in itertools.product(*(range(sizes[i]) for i in others)):
        total += _along(axis, sizes[axis], bounds, {**dims, **dict(zip(others, point, strict=True))})
    return total


def _along(axis: str, size: int, bounds: list[Poly], at: Mapping[str, int]) -> int:
    low, high = 0, size  # [low, high)
    for b in bounds:
        first, slope = b.evaluate({**at, axis: 0}), b.evaluate({**at, axis: 1}) - b.evaluate({**at, axis: 0})
        if slope > 0:
            low = max(low, -(first // slope))
        elif slope < 0:
            high = min(high, first // -slope + 1)
        elif first < 0:
            return 0
    return max(0, high - low)
