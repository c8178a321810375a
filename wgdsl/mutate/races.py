"""Whether every access knows of those that it meets, in kernels whose threads copy for themselves and meet at named barriers.

A second opinion on mutants that a verifier accepts, by vector clocks. All warps are run at some sizes. What one knows is how
many steps of every other one lie behind it, and how many of its copies have landed: a wait for copies tells a warp of its own,
a barrier on which everybody waits tells each what all of them know. A tile is whole once every warp of the role has copied its
share as often as the one that reads it, to the same position of the ring.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..roles import model as m
from ..roles.model import Kernel, Role, Step
from ..targets.registers import WARPGROUP, WARPS
from .trace import trace

FOREIGN = (m.BarArrive, m.Elect, m.Tma, m.TmaStore, m.Wgmma, m.PutItem, m.TakeItem)  # then nothing is claimed

Warp = tuple[int, int, int]  # role, warpgroup, warp
Knows = Counter[tuple[str, Warp]]  # "steps" or "landed" of a warp -> how many
Tile = tuple[str, int, int]  # buffer, part, stage
Range = tuple[int, int]  # bytes of shared memory, from and to


class Race(Exception):
    """Two accesses that nothing orders, a tile that isn't whole, or warps that wait for each other."""


@dataclass(kw_only=True)
class _Warp:
    name: Warp
    role: Role
    steps: list[Step]
    next: int = 0
    at: Counter[str] = field(default_factory=Counter)  # ring positions
    knows: Knows = field(default_factory=Counter)
    open: int = 0  # copies since the last commit
    groups: list[int] = field(default_factory=list)
    met: int | None = None  # the named barrier at which it waits
    filled: Counter[Tile] = field(default_factory=Counter)
    positions: dict[Tile, int] = field(default_factory=dict)
    done: list[tuple[Step, tuple[int, ...]]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class _Access:
    """`key`, `count`: who knows so much of the warp knows of the access. `fill`: which filling of which tile a copy is part of.
    `rows`: each warp writes its own. `clears`: each warpgroup clears all that it reads itself, and others the same."""

    warp: Warp
    key: str
    count: int
    writes: bool
    fill: tuple[Tile, int] | None = None
    rows: bool = False
    clears: bool = False


def fits(kernel: Kernel) -> bool:
    """Whether the kernel is one that this looks at."""
    every = [s for r in kernel.roles for s in m.walk(r.steps)]
    copied, foreign = (any(isinstance(s, kinds) for s in every) for kinds in (m.CopyAsync, FOREIGN))
    return copied and not foreign and not kernel.barriers


def ordered_alike(kernel: Kernel, changed: Kernel, sizes: tuple[int, int], flags: bool) -> bool:
    """Whether at these sizes all warps of both kernels do the same in the same order, waits and barriers aside, and each access
    of the changed one knows of those that it meets."""
    try:
        before, after = _Run(kernel, sizes, flags), _Run(changed, sizes, flags)
    except Race:
        return False
    return all(a.done == b.done for a, b in zip(before.warps, after.warps, strict=True))


class _Run:
    def __init__(self, kernel: Kernel, sizes: tuple[int, int], flags: bool):
        self.kernel = kernel
        self.warps = [
            _Warp(name=(n, wg, w), role=r, steps=[s for _, s in trace(kernel, r, wg, sizes, flags)])
            for n, r in enumerate(kernel.roles)
            for wg in range(r.count)
            for w in range(WARPS)
        ]
        self.memory: dict[Range, list[_Access]] = defaultdict(list)
        while sum(map(self.advance, self.warps)):
            pass
        if any(w.next < len(w.steps) or w.open or w.knows["landed", w.name] < self.copies(w) for w in self.warps):
            raise Race

    def copies(self, w: _Warp) -> int:
        """How many it has issued."""
        return sum(w.filled.values())

    def advance(self, w: _Warp) -> bool:
        """Run a warp until it has to wait; whether it moved at all."""
        start = w.next
        while w.met is None and w.next < len(w.steps):
            self.step(w, w.steps[w.next])
            w.next += 1
        return w.next > start

    def step(self, w: _Warp, s: Step) -> None:
        if isinstance(s, m.Advance):
            w.at[s.ring] += s.stages.constant or 0
        elif isinstance(s, m.BarSync):
            self.meet(w, s)
        elif isinstance(s, m.CommitCopies):
            w.groups.append(w.open)
            w.open = 0
        elif isinstance(s, m.WaitCopies):
            while len(w.groups) > s.pending:
                w.knows["landed", w.name] += w.groups.pop(0)
        else:
            w.done.append((s, tuple(w.at[slot.ring] for slot in _slots(s))))
            w.knows["steps", w.name] += 1
            self.touch(w, s)

    def meet(self, w: _Warp, s: m.BarSync) -> None:
        """Who comes last tells all of what they know together."""
        w.met = s.id.substitute({"wg": w.name[1]}).constant
        there = [x for x in self.warps if x.met == w.met]
        if len(there) * WARPGROUP < s.threads * WARPS:
            return
        together: Knows = Counter()
        for x in there:
            together |= x.knows
        for x in there:
            x.knows, x.met = together.copy(), None

    # Memory.
    def touch(self, w: _Warp, s: Step) -> None:
        if isinstance(s, m.CopyAsync):
            self.copy(w, s)
        elif isinstance(s, m.Transpose):
            self.read(w, s.read)
            self.access(w, self.tile(w, s.buffer, s.part, s.slot), self.made(w, writes=True, rows=True))
        elif isinstance(s, m.StoreShared):
            self.access(w, self.tile(w, s.buffer, s.part, s.slot), self.made(w, writes=True, rows=True))
        elif isinstance(s, m.ClearRows):
            self.access(w, self.tile(w, s.buffer, s.part, s.slot), self.made(w, writes=True, clears=True))
        elif isinstance(s, m.Mma):
            for x in (x for x in (s.a, s.b) if isinstance(x, m.SmemOperand)):
                self.read(w, x)
        elif isinstance(s, m.CopyOut | m.ReadShared):
            self.read(w, s)

    def made(self, w: _Warp, *, writes: bool, rows: bool = False, clears: bool = False) -> _Access:
        count = w.knows["steps", w.name]
        return _Access(warp=w.name, key="steps", count=count, writes=writes, rows=rows, clears=clears)

    def tile(self, w: _Warp, buffer: str, part, slot: m.Slot) -> Tile:
        b = self.kernel.buffer(buffer)
        position = w.at[slot.ring] - slot.lag
        return buffer, part.substitute({"wg": w.name[1]}).constant or 0, position % b.stages

    def copy(self, w: _Warp, s: m.CopyAsync) -> None:
        tile = self.tile(w, s.buffer, s.part, s.slot)
        w.filled[tile] += 1
        w.positions[tile] = w.at[s.slot.ring] - s.slot.lag
        w.open += 1
        fill = tile, w.filled[tile]
        self.access(w, tile, _Access(warp=w.name, key="landed", count=self.copies(w), writes=True, fill=fill))

    def read(self, w: _Warp, x: m.SmemOperand | m.CopyOut | m.ReadShared) -> None:
        tile = self.tile(w, x.buffer, x.part, x.slot)
        if tile in w.filled:
            self.whole(w, tile, w.at[x.slot.ring] - x.slot.lag)
        self.access(w, tile, self.made(w, writes=False))

    def whole(self, w: _Warp, tile: Tile, position: int) -> None:
        """Every warp has copied its share of what is read."""
        fellows = (x for x in self.warps if x.name[0] == w.name[0])
        if any((x.filled[tile], x.positions.get(tile)) != (w.filled[tile], position) for x in fellows):
            raise Race

    def access(self, w: _Warp, tile: Tile, new: _Access) -> None:
        """The warp knows of every access to the same bytes that this one mustn't come before."""
        b = self.kernel.buffer(tile[0])
        start = b.offset + (tile[2] * b.parts + tile[1]) * b.stride
        for old in self.others(start, start + b.tile_bytes):
            if _meet(old, new) and w.knows[old.key, old.warp] < old.count:
                raise Race
        mine = self.memory[start, start + b.tile_bytes]
        mine[:] = [x for x in mine if _kind(x) != _kind(new)] + [new]

    def others(self, start: int, stop: int) -> Iterator[_Access]:
        for (low, high), accesses in self.memory.items():
            if low < stop and start < high:
                yield from accesses


def _kind(x: _Access) -> tuple[Warp, str, bool, bool, bool]:
    """Of accesses of one kind it is enough to remember the last."""
    return x.warp, x.key, x.writes, x.rows, x.clears


def _meet(old: _Access, new: _Access) -> bool:
    """Whether two accesses to the same bytes need an order: shares of one filling don't, nor do rows of two warps, nor what one
    warpgroup clears, and others clear and read."""
    same = old.warp[:2] == new.warp[:2]
    if not (old.writes or new.writes) or (old.rows and new.rows and same) or (old.clears and new.clears):
        return False
    if not same and ((old.clears and not new.writes) or (new.clears and not old.writes)):
        return False
    return old.fill is None or old.fill != new.fill


def _slots(s: Step) -> list[m.Slot]:
    found = (getattr(x, "slot", None) for x in (s, getattr(s, "a", None), getattr(s, "b", None)))
    return [x for x in found if isinstance(x, m.Slot)]
