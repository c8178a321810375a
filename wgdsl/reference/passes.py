"""Cutting an evaluation into passes, so that no box of elements grows too large.

In: a graph and the range of each index.  Out: smaller ranges for indices that every node has, one pass after the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product

from ..program.expr import loads
from ..program.graph import Input, Node, ProgramGraph
from .boxes import Range

BUDGET = 2**23  # elements of a box that is evaluated at once


def passes(graph: ProgramGraph, ranges: Mapping[str, Range]) -> Iterator[dict[str, Range]]:
    """Ranges for the shared indices such that no node's box exceeds the budget (if they can do it), all combinations."""
    nodes = [n for n in graph.nodes if not isinstance(n, Input)]
    size = max((math.prod(hi - lo for lo, hi in (ranges[i] for i in n.indices)) for n in nodes), default=0)
    pieces: dict[str, list[Range]] = {}
    for i in _shared(graph, nodes):
        length = ranges[i][1] - ranges[i][0]
        if size <= BUDGET or length <= 1:
            continue
        step = max(1, length * BUDGET // size)
        pieces[i] = list(cut_range(ranges[i], step))
        size = size * step // length
    for choice in product(*pieces.values()):
        yield dict(zip(pieces, choice, strict=True))


def _shared(graph: ProgramGraph, nodes: list[Node]) -> list[str]:
    """Indices of every node that loads of nodes pass on unchanged: no value of one is needed for another."""
    shared = [i for i in nodes[0].indices if all(i in n.indices for n in nodes)] if nodes else []
    for n in nodes:
        for x in (x for e in n.exprs() for x in loads(e)):
            source = graph.by_name[x.tensor]
            if not isinstance(source, Input):
                shared = [i for i in shared if x.access[source.indices.index(i)].bare == i]
    return shared


def cut_range(whole: Range, step: int) -> Iterator[Range]:
    """A range of indices in pieces of `step`."""
    for lo in range(*whole, step):
        yield lo, min(lo + step, whole[1])
