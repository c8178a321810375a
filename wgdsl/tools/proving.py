"""`wgdsl golden prove`: goldens run on a GPU, held to the project's error bar, and the record of it.

In: goldens that are what is emitted today.  Out: verdicts, and rows of `hardware.json`: a text that was right in every run gets
one, a text that was wrong in any loses the one it had.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..diagnostics.model import EnvironmentFault, WgError
from ..diagnostics.tools import StaleGolden
from ..roles.model import Kernel as RoleKernel
from ..roles.model import Tma, walk
from ..runtime.kernel import Kernel
from ..settings import numbers
from . import hardware
from .golden import State
from .judge import Verdict
from .manifest import Folder, Golden
from .running import run

GRANULE = 16  # a length that the copy engine takes for every element type
FEW = 2  # of what is not tiled: heads, batches


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What the runs of one golden gave."""

    name: str
    runs: tuple[tuple[Mapping[str, int], tuple[Verdict, ...]], ...]

    @property
    def right(self) -> bool:
        return all(v.right for _, verdicts in self.runs for v in verdicts)

    @property
    def error(self) -> float:
        return max((v.error for _, verdicts in self.runs for v in verdicts), default=0.0)

    def lines(self) -> Iterator[str]:
        for dims, verdicts in self.runs:
            yield f"{self.name}: {', '.join(f'{n}={v}' for n, v in dims.items())}"
            yield from (f"  {v}" for v in verdicts)


def prove(folder: Folder, g: Golden, state: State, card: hardware.Card | None) -> Proof:
    """Run a golden on the GPU at each of its sizes, and write down what came out. Raises EnvironmentFault without a GPU."""
    if not state.current or state.kernel is None:
        raise WgError(StaleGolden(name=g.name, state=state.kind))
    if card is None:
        what = f"golden `{g.name}` can't be proven: that takes a run on a GPU, and there is none here"
        raise EnvironmentFault(what, "run this on a machine with an NVIDIA GPU and its driver; nothing was recorded")
    proof = tried(g, state.kernel, device="gpu")
    _record(folder, state.held, proof, card)
    return proof


def tried(g: Golden, kernel: Kernel, *, device: str) -> Proof:
    """The runs of a golden, checked against float64."""
    sizes = [numbers(d) for d in g.dims] or list(sizes_of(kernel))
    done = [(dims, run(kernel, dims, device=device, seed=k, check=True).verdicts) for k, dims in enumerate(sizes)]
    return Proof(name=g.name, runs=tuple(done))


def _record(folder: Folder, text: str, proof: Proof, card: hardware.Card) -> None:
    key = hardware.digest(text)
    if not proof.right:
        hardware.merge(folder.record_path, {}, [key])
        return
    row = hardware.Record(
        kernel=proof.name,
        card=card.name,
        driver=card.driver,
        nvrtc=card.nvrtc,
        max_error=proof.error,
        runs=len(proof.runs),
        date=hardware.today(),
    )
    hardware.merge(folder.record_path, {key: row})


def sizes_of(kernel: Kernel) -> Iterator[dict[str, int]]:
    """Dims of some calls: less than a tile, a tile, somewhat more, and several, along all that is cut into tiles."""
    tiles: dict[str, int] = {}
    for k in kernel.roles.kernels:
        for dim, tile in _tiles(k):
            tiles[dim] = max(tile, tiles.get(dim, 0))
    for size in (lambda t: GRANULE, lambda t: t, lambda t: t + GRANULE, lambda t: 3 * t + 3 * GRANULE):
        yield {d: size(tiles[d]) if d in tiles else FEW for d in kernel.graph.dims}


def _tiles(k: RoleKernel) -> Iterator[tuple[str, int]]:
    """(dim, tile) of every index that steps over its extent: those of the grid, and of the copies in its loops."""
    for axis in k.grid.axes:
        if axis.tile > 1:
            yield from ((s, axis.tile) for s in k.index_extents[axis.index].symbols())
    copied = {s.buffer for r in k.roles for s in walk(r.steps) if isinstance(s, Tma)}
    for b in k.buffers:
        for index, size in ((b.rows_index, b.rows), (b.cols_index, b.cols)):
            if b.name in copied and index in k.index_extents:
                yield from ((s, size) for s in k.index_extents[index].symbols())
