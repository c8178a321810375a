"""What a schedule's `probe` steps write: the arrays for it, and the tiles cut out of them.

In: a kernel with probes, and a call.  Out: tiles by name. The kernel stores a probed value into an array with an element for
each of the value's own, of the whole problem; here it gets its name back: the item's number along each axis of the grid, and
the tile's along the streamed one, all counted in tiles as a schedule does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ..diagnostics.model import WgError
from ..diagnostics.tools import NoProbe
from ..program.streamed import Streamed
from ..roles.model import PROBE, StoreGlobal, TensorArg, walk
from ..roles.model import Kernel as RoleKernel
from . import cuda
from .arrays import to_numpy
from .bind import Bound
from .staging import staged

if TYPE_CHECKING:
    from .kernel import Kernel

PLACES = ("gpu", "sim")


@dataclass(frozen=True, kw_only=True)
class Probed:
    """One probed value. `tiles`: for each axis of its array the index and the tile's extent; 0 on an axis that numbers tiles.
    `grid`: the indices that tell one item from another, in their order. `axis`: the streamed one."""

    name: str
    tensor: TensorArg
    tiles: tuple[tuple[str, int], ...]
    grid: tuple[str, ...]
    axis: str

    def keys(self, array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        """Every tile with its name; a tile that reaches beyond the array is filled up with NaN."""
        counts = [n if tile == 0 else -(-n // tile) for n, (_, tile) in zip(array.shape, self.tiles, strict=True)]
        for at in product(*map(range, counts)):
            yield self._key(at), self._tile(array, at)

    def _key(self, at: tuple[int, ...]) -> str:
        number = {index: n for (index, _), n in zip(self.tiles, at, strict=True)}
        item = ",".join(f"{i}={number[i]}" for i in self.grid if i in number)
        return f"{self.name}[{item}][{self.axis}={number[self.axis]}]"

    def _tile(self, array: np.ndarray, at: tuple[int, ...]) -> np.ndarray:
        steps = [(n, tile or 1) for n, (_, tile) in zip(at, self.tiles, strict=True)]
        out = np.full([tile for _, tile in steps], np.nan, np.float32)
        cut = array[tuple(slice(n * tile, (n + 1) * tile) for n, tile in steps)]
        out[tuple(map(slice, cut.shape))] = cut
        return out.reshape([tile for _, tile in self.tiles if tile > 1])


def probe(
    kernel: Kernel, args: tuple[Any, ...], named: Mapping[str, Any], device: str, seed: int | None = None
) -> dict[str, np.ndarray]:
    """Tiles by name, in the order of the grid. seed: of the simulator's order of events. Raises WgError (WG1009) for a
    schedule without a probe."""
    if device not in PLACES:
        raise ValueError(f"device is {device!r}; there are {', '.join(PLACES)}")
    stream = kernel.stream  # of a derived schedule of one kernel
    found = [p for k in kernel.roles.kernels for p in probes_of(k, stream.axis)] if isinstance(stream, Streamed) else []
    if not found:
        raise WgError(NoProbe(schedule=kernel.roles.schedule))
    given = kernel.interface.sort(args, named, None)
    inputs = {name: to_numpy(name, a) for name, a in given.inputs.items()}
    bound = kernel.bound(given)
    arrays = {p.tensor.name: np.full(_shape(p.tensor, bound), np.nan, np.float32) for p in found}
    if device == "gpu":
        _launched(kernel, given, inputs, arrays)
    else:
        results = kernel.forms.backends[device](inputs, bound.scalars, bound.dims, seed=seed)
        arrays = {name: results[name] for name in arrays}
    return dict(pair for p in found for pair in p.keys(arrays[p.tensor.name]))


def _shape(t: TensorArg, bound: Bound) -> tuple[int, ...]:
    return tuple(max(0, n.evaluate(bound.dims)) for n in t.shape)


def _launched(kernel: Kernel, given: Any, inputs: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Run on the current device; the arrays hold what was written then."""
    cuda.driver()
    device = cuda.current_device()
    with cuda.on_device(device), staged(device, inputs, {**kernel.host_outputs(given), **arrays}) as views:
        for launch in kernel.launches(given, views):
            launch.run(0)


def probes_of(k: RoleKernel, axis: str) -> Iterator[Probed]:
    """The probes of a kernel that streams `axis`, in the order of their arrays."""
    stores = {s.tensor: s for r in k.roles for s in walk(r.steps) if isinstance(s, StoreGlobal) and s.tensor.endswith(PROBE)}
    tiles = {a.index: a.tile for a in k.grid.axes}
    for t in k.tensors:
        if t.name in stores:
            s = stores[t.name]
            extents = {a.index: a.count for a in (s.rows, s.cols) if a is not None} | tiles
            found = tuple((a.bare, extents[a.bare]) if a.bare in extents else (axis, 0) for a in s.access)
            yield Probed(name=t.name.removesuffix(PROBE), tensor=t, tiles=found, grid=tuple(tiles), axis=axis)
