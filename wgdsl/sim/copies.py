"""What copies mean: bulk loads and stores, the copies of threads, and the groups of those that their agent waits for."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..diagnostics.sim import IllFormed, OverwrittenTooEarly
from ..roles import model as m
from ..targets.registers import WARPS
from ..targets.swizzle import CHUNK
from .agent import Agent
from .elementwise import column_indices
from .events import WARP
from .flight import Copy, Load, Store
from .global_stores import claim
from .integers import Integer, value_of
from .meaning import means
from .memory import BAND, Cell, Share
from .results import shares
from .tensors import Box


def _box(a: Agent, s: m.Tma | m.TmaStore) -> tuple[Box, tuple[Cell, ...], m.Buffer]:
    """The elements of a copy, the panels they fill, and the buffer."""
    world = a.cta.world
    tensor_map, buffer = world.maps[s.map], world.buffers[s.buffer]
    extents = tuple(a.integer(d.extent) for d in tensor_map.dims)
    box = world.box(tensor_map, tuple(a.integer(c) for c in s.coords), extents)
    rows, rest = divmod(box.count, buffer.panel_cols)
    panels = max(rows // buffer.rows, 1)
    fits = not rest and tensor_map.box[0] == buffer.panel_cols and s.panel + panels <= buffer.panels
    fits = fits and (rows < buffer.rows or rows % buffer.rows == 0)
    fits = fits and (not isinstance(s, m.Tma) or s.parts == 1 or rows * s.parts == buffer.rows)
    if not fits or tensor_map.swizzle != buffer.swizzle or tensor_map.dtype != buffer.dtype:
        raise a.fault(IllFormed, why=f"the box of map `{s.map}` doesn't fit the panels of `{s.buffer}`")
    return box, a.tile(s.buffer, s.part, s.slot).cells[s.panel : s.panel + panels], buffer


@means(m.Tma)
def tma(a: Agent, s: m.Tma) -> None:
    a.need_thread()
    box, cells, buffer = _box(a, s)
    barrier, lap = a.mbarrier(s.barrier, s.barrier_part, s.slot)
    rows = buffer.rows // s.parts
    row = s.rows_part * rows
    bands = -1 if s.parts == 1 else ((1 << rows // BAND) - 1) << row // BAND
    access = a.cta.memory.write(a, cells, asynchronous=True, bands=bands)
    for c in cells:
        c.data[row : row + rows] = np.nan
    world, source = a.cta.world, a.cta.world.maps[s.map].tensor
    a.cta.loads.append(
        Load(
            agent=a,
            step=s,
            access=access,
            cells=cells,
            values=lambda: world.loaded(source, box).reshape(len(cells), -1, buffer.panel_cols),
            barrier=barrier,
            phase=lap,
            nbytes=box.count * buffer.dtype.nbytes,
            row=row,
            bands=bands,
        )
    )


@means(m.TmaStore)
def tma_store(a: Agent, s: m.TmaStore) -> None:
    a.need_thread()
    box, cells, _ = _box(a, s)
    access = a.cta.memory.read(a, cells, asynchronous=True)
    put = claim(a, a.cta.world.maps[s.map].tensor, box.access, box.inside, clipped=True, add=s.add)
    store = Store(agent=a, step=s, access=access, write=partial(_write, put, cells, box.inside.shape))
    a.cta.stores.append(store)
    a.open_stores.append(store)


def _write(put, cells: tuple[Cell, ...], shape: tuple[int, ...]) -> None:
    rows = int(np.prod(shape)) // (len(cells) * cells[0].data.shape[1])
    put(np.stack([c.data[:rows] for c in cells]).reshape(shape))


@means(m.CommitStore)
def commit_store(a: Agent, s: m.CommitStore) -> None:
    a.need_thread()
    a.store_groups.append(a.open_stores)
    a.open_stores = []


@means(m.WaitStore)
def wait_store(a: Agent, s: m.WaitStore) -> None:
    a.need_thread()
    while len(a.store_groups) > s.pending:
        for store in a.store_groups.pop(0):
            if not store.done:
                a.cta.complete(store)
            a.finished(store.access)


@means(m.CopyAsync)
def copy_async(a: Agent, s: m.CopyAsync) -> None:
    """The warp's share: chunks of 16 bytes in turn, counted row by row, by all threads of the role."""
    a.need_warp()
    assert a.warp is not None
    tile = a.tile(s.buffer, s.part, s.slot)
    if (s.rows.count, s.cols.count) != (tile.buffer.rows, tile.buffer.cols):
        raise a.fault(IllFormed, why=f"{s.rows.count} x {s.cols.count} elements don't fit a tile of `{s.buffer}`")
    warps = WARPS * a.role.count
    mine = shares(tile.buffer, CHUNK // tile.buffer.dtype.nbytes, WARP * warps) == WARPS * a.ordinal + a.warp
    where, position = (s.buffer, a.integer(s.part)), a.positions[s.slot.ring] - s.slot.lag
    times, last = a.filled.get(where, (0, -1))
    if position == last and a.advances(s.slot.ring):  # nobody reads what was there
        raise a.fault(OverwrittenTooEarly, tile=tile.cells[0].name, other=a.doing(s))
    a.filled[where] = times + 1, position
    share = Share(*where, times, warps)
    access = a.cta.memory.write(a, tile.cells, asynchronous=True, share=share)
    tile.data[mine], tile.position = np.nan, position
    env: dict[str, Integer] = {
        **a.env,
        s.rows.index: column_indices(s.rows, a.env).T,
        s.cols.index: column_indices(s.cols, a.env),
    }
    at, source = [value_of(p, env) for p in s.access], a.tensors[s.tensor]

    def write() -> None:
        tile.data[mine] = np.broadcast_to(source.load(at), tile.data.shape)[mine]
        for c in tile.cells:
            c.landed(share)

    copy = Copy(agent=a, step=s, access=access, write=write)
    a.cta.stores.append(copy)
    a.open_copies.append(copy)


@means(m.CommitCopies)
def commit_copies(a: Agent, s: m.CommitCopies) -> None:
    a.need_warp()
    a.copy_groups.append(a.open_copies)
    a.open_copies = []


@means(m.WaitCopies)
def wait_copies(a: Agent, s: m.WaitCopies) -> None:
    a.need_warp()
    while len(a.copy_groups) > s.pending:
        for copy in a.copy_groups.pop(0):
            if not copy.done:
                a.cta.complete(copy)
            a.finished(copy.access)
