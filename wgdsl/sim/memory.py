"""Shared memory of one CTA: tiles by panel, what each holds, and who has touched it.

A cell is one panel of one tile of one buffer. Buffers that lie over each other have cells that overlap: writing one ruins
the other. An access is ordered for an agent if the agent knows that it is complete; for a generic write that the
asynchronous proxy is to see, if the agent knows it to be fenced as well.

A warp that writes its own rows touches a band of 16 of them; a set of bands is a bit set. All else counts as touching every
band: which threads of a warpgroup read what isn't told here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ..diagnostics.sim import Fault, NotFenced, OverwrittenTooEarly, ReadTooEarly
from ..roles.model import Buffer, Kernel, Step
from .barriers import Knowledge

BAND = 16  # rows: those of one warp in a tile of 64


@dataclass(frozen=True)
class Clear:
    """The part of a `ClearRows` that one warp does: rows [start, stop)."""

    start: int
    stop: int
    warp: int


@dataclass(frozen=True)
class Share:
    """What several warps copy together, one share each: the n-th tile that each of them copies there. `warps`: how many."""

    buffer: str
    part: int
    number: int
    warps: int


@dataclass(eq=False, kw_only=True, slots=True)
class Access:
    """One agent's use of tiles. cleared: a read knew of such clears. share: it is one of those that make up a copy."""

    bit: int
    owner: Agent
    step: Step
    asynchronous: bool
    write: bool
    clear: Clear | None = None
    cleared: frozenset[Clear] = frozenset()
    share: Share | None = None

    @property
    def who(self) -> str:
        return self.owner.doing(self.step)


class Agent(Protocol):
    """What memory asks of those who use it."""

    knowledge: Knowledge

    def access(self, *, asynchronous: bool, write: bool, clear: Clear | None = None, share: Share | None = None) -> Access: ...

    def doing(self, step: Step) -> str: ...

    def fault(self, kind: type[Fault], *, step: Step | None = None, **data) -> Exception: ...


# An access, the bands that it touched and nobody has written since, and the buffer that it was meant for. The bands of a buffer
# that lies over this one may be smaller: of two that share one here, each is told from the other in its own cell.
Use = tuple[Access, int, str]


@dataclass(eq=False, kw_only=True, slots=True)
class Cell:
    """`bands`: all it has. `whole`: those whose content is there. `arrived`: shares of the copy that it is filled by."""

    buffer: str
    name: str
    low: int
    high: int
    data: np.ndarray  # [rows, panel columns], a view of its tile
    bands: int
    whole: int = 0
    lost: str = ""  # who wrote what lies over it
    writes: list[Use] = field(default_factory=list)
    reads: list[Use] = field(default_factory=list)
    overlaps: list[tuple[Cell, tuple[int, ...]]] = field(default_factory=list)  # and for each own band, theirs under it
    arrived: dict[Share, int] = field(default_factory=dict)

    def landed(self, share: Share) -> None:
        """One warp's share of a copy is there."""
        self.arrived = {share: self.arrived.get(share, 0) + 1}
        if self.arrived[share] == share.warps:
            self.whole = self.bands

    def over(self, bands: int) -> Iterator[tuple[Cell, int]]:
        """The cells that share memory with these bands, and which of their bands."""
        for cell, theirs in self.overlaps:
            under = 0
            for k, b in enumerate(theirs):
                under |= b if bands >> k & 1 else 0
            if under:
                yield cell, under


@dataclass(eq=False, kw_only=True)
class Tile:
    """One (stage, part) of a buffer; `data` is [rows, cols]. `position`: of its ring, for which threads have copied to it."""

    buffer: Buffer
    data: np.ndarray
    cells: tuple[Cell, ...]
    position: int | None = None


class SharedMemory:
    def __init__(self, kernel: Kernel):
        self.tiles = {b.name: _tiles(b) for b in kernel.buffers}
        _overlap(kernel.buffers, self.tiles)

    def tile(self, buffer: str, part: int, stage: int) -> Tile:
        """IndexError for a part or stage that the buffer lacks."""
        tiles = self.tiles[buffer]
        b = tiles[0].buffer
        if not (0 <= part < b.parts and 0 <= stage < b.stages):
            raise IndexError(f"`{buffer}` has {b.parts} parts and {b.stages} stages, no [{part}, {stage}]")
        return tiles[stage * b.parts + part]

    def read(self, agent: Agent, cells: Sequence[Cell], *, asynchronous: bool) -> Access:
        """Use the cells' content. Raises for content that isn't there yet, as far as the agent knows."""
        cleared: frozenset[Clear] = frozenset()
        for c in cells:
            cleared |= _check_read(agent, c, asynchronous)
        access = agent.access(asynchronous=asynchronous, write=False)
        access.cleared = cleared
        for c in cells:
            c.reads.append((access, c.bands, c.buffer))
        return access

    def write(
        self,
        agent: Agent,
        cells: Sequence[Cell],
        *,
        asynchronous: bool,
        bands: int = -1,
        clear: Clear | None = None,
        share: Share | None = None,
    ) -> Access:
        """Replace the content of these bands (for a clear and a share: a part of it). Raises if somebody may still need the old
        one."""
        for c in cells:
            _check_write(agent, c, c.bands & bands, asynchronous, clear, share)
        access = agent.access(asynchronous=asynchronous, write=True, clear=clear, share=share)
        for c in cells:
            touched = c.bands & bands
            if clear is not None:
                c.writes.append((access, touched, c.buffer))
            elif share is not None:
                _share(c, access, touched)
            else:
                c.writes = [*_without(c.writes, touched), (access, touched, c.buffer)]
                c.reads = _without(c.reads, touched)
                c.whole = c.whole & ~touched if asynchronous else c.whole | touched
                c.lost = ""
            for o, under in c.over(touched):
                o.writes.append((access, under, c.buffer))
                o.whole, o.lost = o.whole & ~under, access.who
        return access


def _share(c: Cell, access: Access, touched: int) -> None:
    """One warp's share of a copy; what was before is forgotten when every warp has looked at it."""
    c.writes.append((access, touched, c.buffer))
    c.whole, c.lost = c.whole & ~touched, ""
    issued = [use for use in c.writes if use[0].share == access.share]
    assert access.share is not None
    if len(issued) == access.share.warps:
        c.writes, c.reads = issued, []


def _without(uses: list[Use], bands: int) -> list[Use]:
    return [(a, left, meant) for a, touched, meant in uses if (left := touched & ~bands)]


def _tiles(b: Buffer) -> list[Tile]:
    data = np.full((b.stages * b.parts, b.rows, b.cols), np.nan, dtype=np.float32)
    return [_tile(b, k, tile) for k, tile in enumerate(data)]


def _tile(b: Buffer, number: int, data: np.ndarray) -> Tile:
    stage, part = divmod(number, b.parts)
    name = f"{b.name}[{part}, {stage}]" if b.parts > 1 else f"{b.name}[{stage}]"
    bands, size, cols = (1 << -(-b.rows // BAND)) - 1, b.panel_bytes, b.panel_cols
    starts = range(b.offset + number * b.stride, b.offset + number * b.stride + b.panels * size, size)
    cells = tuple(
        Cell(buffer=b.name, name=name, low=low, high=low + size, data=data[:, p * cols : (p + 1) * cols], bands=bands)
        for p, low in enumerate(starts)
    )
    return Tile(buffer=b, data=data, cells=cells)


def _overlap(buffers: tuple[Buffer, ...], tiles: dict[str, list[Tile]]) -> None:
    for k, a in enumerate(buffers):
        for b in buffers[k + 1 :]:
            if a.offset < b.offset + b.total_bytes and b.offset < a.offset + a.total_bytes:
                _pair(tiles[a.name], tiles[b.name])


def _pair(left: list[Tile], right: list[Tile]) -> None:
    for x in (c for t in left for c in t.cells):
        for y in (c for t in right for c in t.cells):
            if x.low < y.high and y.low < x.high:
                x.overlaps.append((y, _under(x, y)))
                y.overlaps.append((x, _under(y, x)))


def _under(x: Cell, y: Cell) -> tuple[int, ...]:
    """For each band of x, the bands of y in the same bytes."""
    theirs = list(enumerate(_band_bytes(y)))
    return tuple(sum(1 << k for k, (low, high) in theirs if low < stop and start < high) for start, stop in _band_bytes(x))


def _band_bytes(c: Cell) -> list[tuple[int, int]]:
    size = (c.high - c.low) // c.data.shape[0] * BAND
    return [(low, min(low + size, c.high)) for low in range(c.low, c.high, size)]


def _ordered(knowledge: Knowledge, a: Access, asynchronous: bool) -> bool:
    generic_write = a.write and (not a.asynchronous or a.share is not None)  # copies of threads go the way of their writes
    return bool(a.bit & (knowledge.proxied if generic_write and asynchronous else knowledge.known))


def _check_read(agent: Agent, c: Cell, asynchronous: bool) -> frozenset[Clear]:
    """Returns the clears that the reader knows."""
    knowledge = agent.knowledge
    if not c.writes:
        raise agent.fault(ReadTooEarly, tile=c.name)
    cleared = frozenset(w.clear for w, _, _ in c.writes if w.clear is not None and _ordered(knowledge, w, asynchronous))
    for w, _, _ in c.writes:
        if _ordered(knowledge, w, asynchronous) or (w.clear is not None and w.clear in cleared):
            continue
        if w.bit & knowledge.known:
            raise agent.fault(NotFenced, tile=c.name, writer=w.who)
        raise agent.fault(ReadTooEarly, tile=c.name, writer=w.who)
    if c.whole != c.bands:
        raise agent.fault(ReadTooEarly, tile=c.name, lost=c.lost)
    return cleared


def _check_write(agent: Agent, c: Cell, bands: int, asynchronous: bool, clear: Clear | None, share: Share | None) -> None:
    asynchronous = asynchronous and share is None
    for a, touched, _ in (*c.writes, *c.reads):
        if touched & bands and (share is None or a.share != share):
            _check_after(agent, c, a, asynchronous, clear)
    for o, under in c.over(bands) if c.overlaps else ():
        for a, touched, meant in (*o.writes, *o.reads):
            if touched & under and meant != c.buffer:
                _check_after(agent, o, a, asynchronous, clear)


def _check_after(agent: Agent, cell: Cell, a: Access, asynchronous: bool, clear: Clear | None) -> None:
    """A write after an access."""
    knowledge = agent.knowledge
    same_clear = clear is not None and (a.clear is not None or clear in a.cleared)  # all clears write the same zeros
    if same_clear or _ordered(knowledge, a, asynchronous):
        return
    if a.bit & knowledge.known:
        raise agent.fault(NotFenced, tile=cell.name, writer=a.who)
    raise agent.fault(OverwrittenTooEarly, tile=cell.name, other=a.who)
