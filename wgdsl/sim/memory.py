"""Shared memory of one CTA: tiles by panel, what each holds, and who has touched it.

A cell is one panel of one tile of one buffer. Buffers that lie over each other have cells that overlap: writing one ruins
the other. An access is ordered for an agent if the agent knows that it is complete; for a generic write that the
asynchronous proxy is to see, if the agent knows it to be fenced as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ..diagnostics.sim import Fault, NotFenced, OverwrittenTooEarly, ReadTooEarly
from ..roles.model import Buffer, Kernel, Step
from .barriers import Knowledge

Rows = tuple[int, int]  # from, to


@dataclass(eq=False, kw_only=True)
class Access:
    """One warp group's (or thread's) use of a tile. `share`: 0 for the elected thread's warp, 1 for the other three.

    rowwise: each warp touches its own rows only. clear: the rows of a `ClearRows`. cleared: a read knew of such clears.
    """

    bit: int
    owner: Agent
    step: Step
    share: int
    asynchronous: bool
    write: bool
    rowwise: bool = False
    clear: Rows | None = None
    cleared: frozenset[Rows] = frozenset()

    @property
    def who(self) -> str:
        return self.owner.doing(self.step)


class Agent(Protocol):
    """What memory asks of those who use it."""

    shares: tuple[int, ...]
    knowledge: tuple[Knowledge, Knowledge]

    def access(self, share: int, *, asynchronous: bool, write: bool, **more) -> Access: ...

    def doing(self, step: Step) -> str: ...

    def fault(self, kind: type[Fault], **data) -> Exception: ...


@dataclass(eq=False, kw_only=True)
class Cell:
    name: str
    low: int
    high: int
    data: np.ndarray  # [rows, panel columns], a view of its tile
    whole: bool = False
    lost: str = ""  # who wrote what lies over it
    writes: list[Access] = field(default_factory=list)
    reads: list[Access] = field(default_factory=list)
    overlaps: list[Cell] = field(default_factory=list)


@dataclass(eq=False, kw_only=True)
class Tile:
    """One (stage, part) of a buffer; `data` is [panels, rows, panel columns]."""

    buffer: Buffer
    data: np.ndarray
    cells: tuple[Cell, ...]

    @property
    def matrix(self) -> np.ndarray:
        """[rows, cols]"""
        return self.data.transpose(1, 0, 2).reshape(self.buffer.rows, self.buffer.cols)

    def put(self, matrix: np.ndarray) -> None:
        b = self.buffer
        self.data[:] = matrix.reshape(b.rows, b.panels, b.panel_cols).transpose(1, 0, 2)


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

    def read(self, agent: Agent, cells: Iterable[Cell], *, asynchronous: bool) -> list[Access]:
        """Use the cells' content. Raises for content that isn't there yet, as far as the agent knows."""
        cells = tuple(cells)
        accesses = []
        for share in agent.shares:
            cleared: set[Rows] = set()
            for c in cells:
                cleared |= _check_read(agent, agent.knowledge[share], c, asynchronous)
            accesses.append(agent.access(share, asynchronous=asynchronous, write=False, cleared=frozenset(cleared)))
        for c in cells:
            c.reads += accesses
        return accesses

    def write(
        self, agent: Agent, cells: Sequence[Cell], *, asynchronous: bool, rowwise: bool = False, clear: Rows | None = None
    ) -> list[Access]:
        """Replace the cells' content (for a clear: part of it). Raises if somebody may still need the old one."""
        for share in agent.shares:
            for c in cells:
                _check_write(agent, share, c, asynchronous, rowwise, clear)
        more = {"rowwise": rowwise, "clear": clear}
        accesses = [agent.access(s, asynchronous=asynchronous, write=True, **more) for s in agent.shares]
        for c in cells:
            if clear is None:
                c.writes, c.reads, c.lost = list(accesses), [], ""
                c.whole = not asynchronous
            else:
                c.writes += accesses
            for o in c.overlaps:
                o.writes += accesses
                o.whole, o.lost = False, accesses[0].who
        return accesses


def _tiles(b: Buffer) -> list[Tile]:
    out = []
    for stage in range(b.stages):
        for part in range(b.parts):
            data = np.full((b.panels, b.rows, b.panel_cols), np.nan, dtype=np.float32)
            index = f"{part}, {stage}" if b.parts > 1 else str(stage)
            start = b.offset + (stage * b.parts + part) * b.stride
            cells = tuple(
                Cell(
                    name=f"{b.name}[{index}]",
                    low=start + p * b.panel_bytes,
                    high=start + (p + 1) * b.panel_bytes,
                    data=data[p],
                )
                for p in range(b.panels)
            )
            out.append(Tile(buffer=b, data=data, cells=cells))
    return out


def _overlap(buffers: tuple[Buffer, ...], tiles: dict[str, list[Tile]]) -> None:
    for k, a in enumerate(buffers):
        for b in buffers[k + 1 :]:
            if a.offset < b.offset + b.total_bytes and b.offset < a.offset + a.total_bytes:
                _pair(tiles[a.name], tiles[b.name])


def _pair(left: list[Tile], right: list[Tile]) -> None:
    for x in (c for t in left for c in t.cells):
        for y in (c for t in right for c in t.cells):
            if x.low < y.high and y.low < x.high:
                x.overlaps.append(y)
                y.overlaps.append(x)


def _ordered(knowledge: Knowledge, a: Access, asynchronous: bool) -> bool:
    generic_write = a.write and not a.asynchronous
    return bool(a.bit & (knowledge.proxied if generic_write and asynchronous else knowledge.known))


def _check_read(agent: Agent, knowledge: Knowledge, c: Cell, asynchronous: bool) -> set[Rows]:
    """Returns the clears that the reader knows."""
    if not c.writes:
        raise agent.fault(ReadTooEarly, tile=c.name)
    cleared = {w.clear for w in c.writes if w.clear is not None and _ordered(knowledge, w, asynchronous)}
    for w in c.writes:
        if _ordered(knowledge, w, asynchronous) or (w.clear is not None and w.clear in cleared):
            continue
        if w.bit & knowledge.known:
            raise agent.fault(NotFenced, tile=c.name, writer=w.who)
        raise agent.fault(ReadTooEarly, tile=c.name, writer=w.who)
    if not c.whole:
        raise agent.fault(ReadTooEarly, tile=c.name, lost=c.lost)
    return cleared


def _check_write(agent: Agent, share: int, c: Cell, asynchronous: bool, rowwise: bool, clear: Rows | None) -> None:
    knowledge = agent.knowledge[share]
    for cell in (c, *c.overlaps):
        for a in (*cell.writes, *cell.reads):
            own_rows = rowwise and a.rowwise and a.owner is agent and cell is c
            same_clear = clear is not None and (a.clear is not None or clear in a.cleared)  # all clears write the same zeros
            if own_rows or same_clear or _ordered(knowledge, a, asynchronous):
                continue
            if a.bit & knowledge.known:
                raise agent.fault(NotFenced, tile=cell.name, writer=a.who)
            raise agent.fault(OverwrittenTooEarly, tile=cell.name, other=a.who)
