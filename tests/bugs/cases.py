"""Reading and running the files of this folder: `bNN_*.wg` hold one mistake each, `right_*.wg` what it should have been."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.sim.test_shipped import close
from wgdsl.driver import Journal, Settings, find, written
from wgdsl.program.graph import ProgramGraph
from wgdsl.reference.evaluate import evaluate
from wgdsl.roles.model import RoleProgram
from wgdsl.sim import simulate_unchecked
from wgdsl.targets.choice import Wanted

HERE = Path(__file__).parent
# M, N, K: no tile, one, as many as the ring has stages, more; rows for one warpgroup only; several items of a CTA.
SIZES = ((40, 16, 8), (200, 40, 0), (128, 16, 16), (129, 24, 17), (200, 40, 40), (300, 24, 100))
SEEDS = (None, 1, 2, 3)


def file(name: str) -> Path:
    return HERE / f"{name}.wg"


def form(name: str) -> tuple[ProgramGraph, RoleProgram]:
    """The program of an explicit form and its role program, which no check has seen."""
    found = find(file(name), wanted=Wanted(named="sm_90a"))
    graph, _, roles = written(found, Settings(), Journal())
    return graph, roles


def inputs(graph: ProgramGraph, size: tuple[int, int, int]) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    dims = {d: n for d, n in zip(("M", "N", "K"), size, strict=True) if d in graph.dims}
    shapes = {x.name: tuple(extent.evaluate(dims) for extent in x.shape) for x in graph.inputs}
    values = np.random.default_rng(7)
    return {n: values.uniform(-1, 1, shape).astype(np.float16) for n, shape in shapes.items()}, dims


def run(graph: ProgramGraph, roles: RoleProgram, size: tuple[int, int, int], seed: int | None = None) -> None:
    """Simulate, and compare with float64. Raises WgError for a fault."""
    arrays, dims = inputs(graph, size)
    got = simulate_unchecked(roles, arrays, {}, dims, seed=seed)
    exact = evaluate(graph, arrays, {}, dims)
    rounded = evaluate(graph, arrays, {}, dims, round_operands=True)
    for name, e in exact.items():
        close(name, np.asarray(got[name], dtype=np.float64), e, rounded[name])
