"""How many operations a program asks for: of its products, on the elements that exist.

In: the program graph and the sizes of a call.  Out: floating-point operations, two for each element of a product.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from ..program.expr import Affine, Apply, Expr, Load, conjunction, conjuncts, indices_of, loads
from ..program.graph import Domain, ProgramGraph, Reduce
from ..program.poly import Poly


def work(graph: ProgramGraph, dims: Mapping[str, int]) -> int:
    """The operations of every product of the program, whatever the schedule. What a predicate leaves out doesn't count."""
    return 2 * sum(_elements(graph, n, dims) for n in graph.nodes if isinstance(n, Reduce) and _is_product(n))


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


def _elements(graph: ProgramGraph, n: Reduce, dims: Mapping[str, int]) -> int:
    sizes = {i: graph.extents[i].evaluate(dims) for i in (*n.indices, *n.axes)}
    bounds = [p.poly for p in conjuncts(_used(graph, n)) if isinstance(p, Affine)]
    bounded = [i for i in sizes if any(i in b.symbols() for b in bounds)]
    rest = math.prod(size for i, size in sizes.items() if i not in bounded)
    return rest * _count({i: sizes[i] for i in bounded}, bounds, dims)


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
    axis = max(sizes, key=lambda i: sizes[i])
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
