"""Arrays for the inputs of a case, by what the case says of each.

`integers`: -2 to 2. `small`: a third of a normal number. `positive`: its size. `slopes`: 0 to 0.1. `lengths:N` up to somewhat
more than dim N. `ids`: rising small numbers. `places:N`: -2 to N + 1. `truth`: 0 or 1. Otherwise standard normal, or 0 to 9.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.fuzz.case import Case
from wgdsl.program.graph import ProgramGraph
from wgdsl.reference.shapes import solve_dims


def arrays(case: Case, graph: ProgramGraph, dims: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    values = solve_dims(graph, {}, dims)
    rng = np.random.default_rng(seed)
    out = {}
    for n in graph.inputs:
        shape = tuple(p.evaluate(values) for p in n.shape)
        fill = case.fills.get(n.name, "integers" if case.exact and n.dtype.kind == "float" else "")
        out[n.name] = _values(rng, shape, fill, n.dtype.kind, values).astype(n.dtype.numpy())
    return out


def _values(rng: np.random.Generator, shape: tuple[int, ...], fill: str, kind: str, dims: Mapping[str, int]) -> np.ndarray:
    what, _, dim = fill.partition(":")
    match what:
        case "integers":
            return rng.integers(-2, 3, shape)
        case "small":
            return 0.3 * rng.standard_normal(shape)
        case "positive":
            return 0.3 * abs(rng.standard_normal(shape))
        case "slopes":
            return 0.1 * rng.random(shape)
        case "lengths":
            return rng.integers(0, dims[dim] + 20, shape)
        case "ids":
            return np.sort(rng.integers(0, 4, shape), axis=-1)
        case "places":
            return rng.integers(-2, dims[dim] + 2, shape)
        case "truth":
            return rng.integers(0, 2, shape)
    if kind == "bool":
        return rng.random(shape) < 0.5
    return rng.integers(0, 10, shape) if kind == "int" else rng.standard_normal(shape)
