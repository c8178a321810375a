"""Random arrays for the inputs of a program.

In: a graph, its dims, a seed.  Out: arrays in the declared types.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..foundation.dtypes import DType
from ..program.graph import ProgramGraph
from .shapes import solve_dims


def random_inputs(graph: ProgramGraph, dims: Mapping[str, int], seed: int = 0) -> dict[str, np.ndarray]:
    """One array for each tensor input, in its declared dtype: standard normal; integers 0 to 9; truth values by halves.

    dims: free ones, or computed ones from which they follow (H and G for R).
    """
    values = solve_dims(graph, {}, dims)
    rng = np.random.default_rng(seed)
    return {n.name: _array(rng, tuple(p.evaluate(values) for p in n.shape), n.dtype) for n in graph.inputs}


def _array(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    if dtype.kind == "bool":
        return rng.random(shape) < 0.5
    if dtype.kind == "int":
        return rng.integers(0, 10, shape).astype(dtype.numpy())
    return rng.standard_normal(shape).astype(dtype.numpy())
