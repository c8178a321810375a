"""A mutant beside its program in the simulator: the same results, in any order of events?

In: a kernel.  Out: a function from role programs to what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..diagnostics.model import WgError
from ..driver import simulated
from ..reference.random import random_inputs
from ..roles.model import RoleProgram, walk
from ..runtime.bind import call_dims
from ..runtime.kernel import Kernel
from .mutating import RIGHT, Simulate
from .proving import sizes_of

ADDED = 1e-2  # of the largest value: what another order of sums in memory may change, in 16 bits


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a kernel, and what comes out."""

    arrays: Mapping[str, np.ndarray]
    scalars: Mapping[str, float]
    dims: Mapping[str, int]
    results: Mapping[str, Any]


def trial(kernel: Kernel, seeds: int) -> Simulate:
    """Run a program with each of `seeds` orders of events, at sizes that fill the kernel's tiles in part."""
    calls = [_call(kernel, dims) for dims in _sizes(kernel)]
    exact = not any(getattr(s, "add", False) for k in kernel.roles.kernels for r in k.roles for s in walk(r.steps))

    def simulate(program: RoleProgram) -> str:
        for seed in range(seeds):
            wrong = _wrong(program, calls[seed % len(calls)], seed, exact)
            if wrong:
                return f"{wrong}, seed {seed}"
        return RIGHT

    return simulate


def _sizes(kernel: Kernel) -> list[dict[str, int]]:
    """Each dim once a little over a tile, once over several, its neighbours the other way round; then nothing to stream."""
    few, many = list(sizes_of(kernel))[-2:]
    mixed = [{d: (many if (k + odd) % 2 else few)[d] for k, d in enumerate(few)} for odd in (0, 1)]
    gridded = {x for k in kernel.roles.kernels for a in k.grid.axes for x in a.blocks.symbols()}
    streamed = {d for d in few if few[d] != many[d]} - gridded
    return [*mixed, {**few, **dict.fromkeys(streamed, 0)}] if streamed else mixed


def _call(kernel: Kernel, dims: Mapping[str, int]) -> Call:
    arrays = random_inputs(kernel.graph, dims)
    numbers = {name: dims[name] for name in call_dims(kernel.graph) if name in dims}
    bound = kernel.bound(kernel.interface.sort((), {**arrays, **numbers}, None))
    free = {name: bound.dims[name] for name in kernel.graph.dims}
    results = simulated(kernel.roles, arrays, bound.scalars, free)
    return Call(arrays=arrays, scalars=bound.scalars, dims=free, results=results)


def _wrong(program: RoleProgram, call: Call, seed: int, exact: bool) -> str:
    try:
        results = simulated(program, call.arrays, call.scalars, call.dims, seed)
    except WgError as e:
        return e.problems[0].code
    other = [name for name, want in call.results.items() if not _same(results[name], want, exact)]
    return f"another {', '.join(other)}" if other else ""


def _same(got: Any, want: Any, exact: bool) -> bool:
    got, want = (np.asarray(x).astype(np.float64) for x in (got, want))
    if exact:
        return np.array_equal(got, want, equal_nan=True)
    bar = ADDED * np.max(np.abs(want[np.isfinite(want)]), initial=0.0)
    return bool(np.allclose(got, want, rtol=0, atol=bar, equal_nan=True))
