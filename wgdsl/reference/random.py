"""Random arrays for the inputs of a program.

In: a graph, its dims, a seed.  Out: arrays in the declared types.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..foundation.dtypes import DType
from ..program.expr import loads
from ..program.graph import Input, ProgramGraph
from ..program.poly import elements
from .shapes import solve_dims


def random_inputs(graph: ProgramGraph, dims: Mapping[str, int], seed: int = 0) -> dict[str, np.ndarray]:
    """One array for each tensor input, in its declared dtype: standard normal, or its exponential where elements are assumed to
    be positive; integers 0 to 9; truth values by halves. Offsets that are assumed to increase share out the axis that they are
    for.

    dims: free ones, or computed ones from which they follow (H and G for R).
    """
    values = solve_dims(graph, {}, dims)
    rng = np.random.default_rng(seed)
    arrays = {n.name: _array(rng, tuple(p.evaluate(values) for p in n.shape), n.dtype) for n in graph.inputs}
    arrays |= {name: np.exp(arrays[name].astype(np.float64)).astype(arrays[name].dtype) for name in sorted(graph.positive)}
    return arrays | {name: _offsets(graph, name, len(arrays[name]), values, rng) for name in sorted(graph.increasing)}


def _offsets(graph: ProgramGraph, name: str, count: int, dims: Mapping[str, int], rng: np.random.Generator) -> np.ndarray:
    """Where each of count - 1 sequences begins, and the last one ends: some are empty, none is longer than its index."""
    total, longest = _shared_out(graph, name, dims)
    cuts = np.sort(rng.integers(0, total + 1, max(count - 2, 0)))
    lengths = np.diff(np.concatenate([[0], cuts, [total]])[:count])
    for _ in range(len(lengths)):
        over = np.maximum(lengths - longest, 0)
        lengths = lengths - over
        lengths[np.argmin(lengths)] += over.sum()
    return np.concatenate([[0], np.cumsum(np.minimum(lengths, longest))])[:count].astype(np.int32)


def _shared_out(graph: ProgramGraph, name: str, dims: Mapping[str, int]) -> tuple[int, int]:
    """How long the axis is in which these offsets are, and how long a sequence may be."""
    loads_of = [(graph.by_name[x.tensor], x.access) for n in graph.nodes for e in n.exprs() for x in loads(e)]
    places = [(n.shape, access) for n, access in loads_of if isinstance(n, Input)]
    places += [(o.shape, o.access) for o in graph.outputs]
    for shape, access in places:
        for extent, p in zip(shape, access, strict=True):
            if any(a.tensor == name for a in elements(p)):
                indices = [graph.extents[i].evaluate(dims) for i in graph.extents if (c := p.coefficient(i)) and c.constant]
                return extent.evaluate(dims), min(indices, default=1)
    return 0, 0


def _array(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    if dtype.kind == "bool":
        return rng.random(shape) < 0.5
    if dtype.kind == "int":
        return rng.integers(0, 10, shape).astype(dtype.numpy())
    return rng.standard_normal(shape).astype(dtype.numpy())
