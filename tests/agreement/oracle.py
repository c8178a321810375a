"""What the simulator says of a random program at several sizes and orders, and what NumPy says the numbers are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tests.agreement.programs import COLS, ROWS
from tests.agreement.shapes import Shape
from tests.sim.copying import Copying
from wgdsl.diagnostics.model import WgError
from wgdsl.diagnostics.sim import Fault
from wgdsl.roles.model import RoleProgram
from wgdsl.sim import simulate_unchecked


@dataclass(frozen=True, kw_only=True)
class Size:
    """`items` work items on `sms` CTAs, of at most `tiles` tiles each. `short`: the last one has rows for one warpgroup."""

    items: int
    tiles: int
    sms: int = 1
    short: bool = False

    def dims(self, warpgroups: int) -> dict[str, int]:
        rows = ROWS * warpgroups * (self.items - 1) + 20 if self.short else ROWS * warpgroups * self.items - 5
        return {"M": rows, "K": COLS * self.tiles - (3 if self.tiles else 0)}


SIZES = (
    Size(items=1, tiles=1),
    Size(items=3, tiles=2, short=True),
    Size(items=2, tiles=0),
    Size(items=1, tiles=7),
    Size(items=5, tiles=1, sms=2),
    Size(items=4, tiles=3),
    Size(items=1, tiles=6, short=True),
    Size(items=2, tiles=5),
)
SEEDS = (None, 1, 2)


def inputs(program: RoleProgram, dims: dict[str, int]) -> dict[str, np.ndarray]:
    """Small integers, so that every sum is exact."""
    k = program.kernels[0]
    shapes = {t.name: tuple(x.evaluate(dims) for x in t.shape) for t in k.tensors if not t.written}
    return {n: np.random.default_rng(len(n) + ord(n[-1])).integers(-2, 3, x).astype(np.float16) for n, x in shapes.items()}


def run(program: RoleProgram, warpgroups: int, size: Size, seed: int | None = None) -> np.ndarray:
    """C. Raises WgError for a fault."""
    dims = size.dims(warpgroups)
    out = simulate_unchecked(program, inputs(program, dims), {}, dims, sms=size.sms, seed=seed, limit=20_000)
    return np.asarray(out["C"], dtype=np.float64)


def fault(program: RoleProgram, warpgroups: int, sizes=SIZES, seeds=SEEDS) -> Fault | None:
    """The first fault at any size in any order."""
    for seed in seeds:
        for size in sizes:
            try:
                run(program, warpgroups, size, seed)
            except WgError as e:
                (problem,) = e.problems
                assert isinstance(problem, Fault), problem
                return problem
    return None


def expected(s: Shape | Copying, program: RoleProgram, size: Size) -> np.ndarray:
    """C in float64."""
    dims = size.dims(s.warpgroups)
    arrays = {n: x.astype(np.float64) for n, x in inputs(program, dims).items()}
    out = np.zeros((dims["M"], COLS))
    for start in range(0, dims["M"], ROWS):
        rows = slice(start, start + ROWS)
        item, g = divmod(start // ROWS, s.warpgroups)
        for t in _live(s, size.tiles, item, g):
            out[rows] += _tile(s, arrays, rows, slice(COLS * t, COLS * (t + 1)))
    return out


def _live(s: Shape | Copying, tiles: int, item: int, g: int) -> Iterator[int]:
    n = min(tiles, item + 1) if s.trips == "item" else tiles
    live = {"loops": n - g, "item": min(n, item + 1)}.get(s.skip, n)
    yield from range(g, n) if s.skip == "branch" else range(live)


def _tile(s: Shape | Copying, arrays: dict[str, np.ndarray], rows: slice, cols: slice) -> np.ndarray:
    """What one tile of each ring adds. Columns past the end are zeros."""
    if not s.chain:
        left = [arrays[f"A{r}"][rows, cols] if x.pair else arrays["Q"][rows] for r, x in enumerate(s.rings)]
        return sum(a @ _wide(arrays[f"B{r}"][:, cols], a.shape[1]).T for r, a in enumerate(left))  # type: ignore[return-value]
    scores = arrays["Q"][rows] @ _wide(arrays["B0"][:, cols], COLS).T / 2
    return scores.astype(np.float16).astype(np.float64) @ _wide(arrays["B1"][:, cols], COLS).T


def _wide(x: np.ndarray, cols: int) -> np.ndarray:
    return np.pad(x, ((0, 0), (0, max(0, cols - x.shape[1]))))[:, :cols]
