"""Steps as events of the machine: one function a step type, made once for each unit and each value of what steers it.

An event is a function of the machine that returns whether the unit has to wait. Its step is run again when it may go on, so an
event that waits changes nothing; a step that arrives and then waits is two events.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NamedTuple

from ..program.expr import regs
from ..roles import model as m
from ..roles.model import Step
from ..roles.rules import box_elements
from ..targets.registers import WARPS
from .control import ROWS, At, condition, integer
from .layout import CLEAR, COPY, FILL, PRODUCT, PUT, READ, STORE, WRITE, Layout, Unit, panels_of
from .machine import Found, Machine, Product, Rule, Tag

Event = Callable[[Machine], bool]
Make = Callable[["Maker", Any, bool, At], Iterator[Event]]

MAKERS: dict[type[Step], Make] = {}


def alike(x: Any) -> Hashable:
    """What an event does: equal for events that do the same at every machine. x: an event, or what it goes by."""
    if isinstance(x, FunctionType):
        return x.__code__, tuple([alike(c.cell_contents) for c in x.__closure__ or ()])
    if isinstance(x, Touching):
        return Touching, x.maker, x.all
    if isinstance(x, list | tuple):
        return tuple([alike(y) for y in x])
    return x if isinstance(x, Hashable) else id(x)


def makes(*kinds: type[Step]):
    """Register how steps of these types become events."""

    def register(fn: Make) -> Make:
        for kind in kinds:
            if kind in MAKERS:
                raise TypeError(f"{kind.__name__} has two meanings")
            MAKERS[kind] = fn
        return fn

    return register


class Maker:
    """What the events of one unit have in common."""

    def __init__(self, layout: Layout, unit: Unit):
        self.layout, self.unit, self.kernel = layout, unit, layout.kernel
        self.stages = [r.stages for r in self.kernel.rings]
        self.rings = len(self.stages)
        self.file: dict[str, int] = {}
        values = {v.name: v for v in self.kernel.values if v.role == unit.role.name}
        for name, v in values.items():
            while v.over is not None:
                v = values[v.over]
            self.file.setdefault(v.name, 1 << len(self.file))
            self.file[name] = self.file[v.name]
        self.tiles = {v.name for v in self.kernel.values if v.role == unit.role.name and v.kind == "tile"}
        self.products = self.lasting = 0  # registers of products, and those whose values a step needs from those before
        for s in unit.steps:
            if isinstance(s, m.Wgmma):
                self.products |= self.registers(*_product_values(s))
            self.lasting |= _needed(self, s)

    def events(self, s: Step, by_thread: bool, at: At) -> Iterator[Event]:
        yield from MAKERS[type(s)](self, s, by_thread, at)

    def holders(self, by_thread: bool) -> tuple[int, ...]:
        return self.unit.holders[:1] if by_thread else self.unit.holders

    def slot(self, slot: m.Slot) -> tuple[int, int, int, int]:
        """Ring, its stages, the place of the unit's position, the lag."""
        ring = self.layout.rings[slot.ring]
        return ring, self.stages[ring], self.unit.number * self.rings + ring, slot.lag

    def barrier(self, name: str, part: int, stages: int) -> int:
        return self.layout.barriers[name] + part * stages

    def registers(self, *names: str) -> int:
        out = 0
        for n in names:
            out |= self.file[n]
        return out

    def atoms(self, s: Step, buffer: str, part: int) -> list[tuple[int, ...]]:
        """The atoms of a step in its tile, stage by stage."""
        out = []
        cuts = self.layout.cuts.get(buffer, 1)
        panels = panels_of(self.kernel, s, cuts) if isinstance(s, m.Tma | m.TmaStore) else None
        for stage in range(self.kernel.buffer(buffer).stages):
            tile = self.layout.tiles[buffer, part, stage]
            chosen = tile if panels is None or len(tile) == 1 else [tile[p] for p in panels]
            out.append(tuple(dict.fromkeys(a for piece in chosen for a in piece)))
        return out


@makes(m.Read)
def read(k: Maker, s: m.Read, by_thread: bool, at: At) -> Iterator[Event]:
    """What is read is bound with the item."""
    yield from ()


# Mbarriers.


@makes(m.Wait)
def wait(k: Maker, s: m.Wait, by_thread: bool, at: At) -> Iterator[Event]:
    _, n, place, lag = k.slot(s.slot)
    first, unit, holders, flip = k.barrier(s.barrier, integer(s.part)(at), n), k.unit, k.holders(by_thread), int(s.flip)

    def event(x: Machine) -> bool:
        lap, stage = divmod(x.position[place] - lag, n)
        return not x.passes(unit, first + stage, lap - flip, holders)

    yield event


@makes(m.Expect)
def expect(k: Maker, s: m.Expect, by_thread: bool, at: At) -> Iterator[Event]:
    yield _arrival(k, s, at, 1, s.nbytes, True)


@makes(m.Arrive)
def arrive(k: Maker, s: m.Arrive, by_thread: bool, at: At) -> Iterator[Event]:
    warps = s.by == "warps" and not k.unit.single
    yield _arrival(k, s, at, WARPS if s.by == "warps" else s.count, 0, not warps)


def _arrival(k: Maker, s: m.Arrive | m.Expect, at: At, count: int, nbytes: int, by_thread: bool) -> Event:
    _, n, place, lag = k.slot(s.slot)
    first, unit = k.barrier(s.barrier, integer(s.part)(at), n), k.unit

    def event(x: Machine) -> bool:
        lap, stage = divmod(x.position[place] - lag, n)
        x.arrive(unit, first + stage, lap, count, nbytes, by_thread)
        return False

    return event


@makes(m.Advance)
def advance(k: Maker, s: m.Advance, by_thread: bool, at: At) -> Iterator[Event]:
    place = k.unit.number * k.rings + k.layout.rings[s.ring]
    by = integer(s.stages)(at)

    def event(x: Machine) -> bool:
        x.position[place] += by
        return False

    yield event


# Memory.


@makes(m.Tma)
def tma(k: Maker, s: m.Tma, by_thread: bool, at: At) -> Iterator[Event]:
    ring, n, place, lag = k.slot(s.slot)
    atoms, unit = k.atoms(s, s.buffer, integer(s.part)(at)), k.unit
    first = k.barrier(s.barrier, integer(s.barrier_part)(at), n)
    x_map = k.kernel.map(s.map)
    nbytes = box_elements(x_map) * x_map.dtype.nbytes
    bits, buffer = k.layout.accesses, s.buffer

    def event(x: Machine) -> bool:
        at_position = x.position[place] - lag
        lap, stage = divmod(at_position, n)
        tag = Tag(buffer, ring, at_position)
        for a in atoms[stage]:
            x.fill(unit, a, bits[a, -1, FILL].all, tag, first + stage)
        x.copied(unit, first + stage, lap, nbytes)
        return False

    yield event


def _reading(k: Maker, s: Step, o: Any, kind: str, by_thread: bool, at: At) -> Callable[[Machine], tuple[int, ...]]:
    """Read a tile; returns the bits of the accesses as each holder sees its own."""
    ring, n, place, lag = k.slot(o.slot)
    atoms, unit, holders = k.atoms(s, o.buffer, integer(o.part)(at)), k.unit, k.holders(by_thread)
    bits, asynchronous, buffer = k.layout.accesses, kind in (PRODUCT, STORE), o.buffer

    def read(x: Machine) -> tuple[int, ...]:
        position = x.position[place] - lag
        tag = Tag(buffer, ring, position)
        own = [0] * len(unit.holders)
        for a in atoms[position % n]:
            b = bits[a, unit.number, kind]
            x.read(unit, a, b, tag, asynchronous=asynchronous, holders=holders)
            own = [y | z for y, z in zip(own, b.own, strict=True)]
        return tuple(own)

    return read


@makes(m.TmaStore)
def tma_store(k: Maker, s: m.TmaStore, by_thread: bool, at: At) -> Iterator[Event]:
    read, n = _reading(k, s, s, STORE, True, at), k.unit.number

    def event(x: Machine) -> bool:
        x.stores[n] = (*x.stores[n], read(x)[0])
        return False

    yield event


@makes(m.CommitStore)
def commit_store(k: Maker, s: m.CommitStore, by_thread: bool, at: At) -> Iterator[Event]:
    n = k.unit.number

    def event(x: Machine) -> bool:
        x.store_groups[n] = (*x.store_groups[n], x.stores[n])
        x.stores[n] = ()
        return False

    yield event


@makes(m.WaitStore)
def wait_store(k: Maker, s: m.WaitStore, by_thread: bool, at: At) -> Iterator[Event]:
    unit, pending = k.unit, s.pending

    def event(x: Machine) -> bool:
        x.wait_store(unit, pending)
        return False

    yield event


@makes(m.CopyAsync)
def copy_async(k: Maker, s: m.CopyAsync, by_thread: bool, at: At) -> Iterator[Event]:
    ring, n, place, lag = k.slot(s.slot)
    atoms, unit, holders = k.atoms(s, s.buffer, integer(s.part)(at)), k.unit, k.holders(by_thread)
    bits, buffer = k.layout.accesses, s.buffer
    moving = any(isinstance(o, m.Advance) and o.ring == s.slot.ring for o in unit.steps)

    def event(x: Machine) -> bool:
        position = x.position[place] - lag
        tag, own = Tag(buffer, ring, position), [0] * len(unit.holders)
        for a in atoms[position % n]:
            b = bits[a, unit.number, COPY]
            x.copy_in(unit, a, b, tag, holders, moving)
            own = [y | z for y, z in zip(own, b.own, strict=True)]
        x.copies[unit.number] = (*x.copies[unit.number], tuple(own))
        return False

    yield event


@makes(m.CommitCopies)
def commit_copies(k: Maker, s: m.CommitCopies, by_thread: bool, at: At) -> Iterator[Event]:
    unit = k.unit

    def event(x: Machine) -> bool:
        x.commit_copies(unit)
        return False

    yield event


@makes(m.WaitCopies)
def wait_copies(k: Maker, s: m.WaitCopies, by_thread: bool, at: At) -> Iterator[Event]:
    unit, pending = k.unit, s.pending

    def event(x: Machine) -> bool:
        x.wait_copies(unit, pending)
        return False

    yield event


@makes(m.CopyOut)
def copy_out(k: Maker, s: m.CopyOut, by_thread: bool, at: At) -> Iterator[Event]:
    read = _reading(k, s, s, READ, by_thread, at)

    def event(x: Machine) -> bool:
        read(x)
        return False

    yield event


@makes(m.ReadShared)
def read_shared(k: Maker, s: m.ReadShared, by_thread: bool, at: At) -> Iterator[Event]:
    yield Touching.of(k, use(0, k.registers(s.dst)))
    read = _reading(k, s, s, READ, by_thread, at)

    def event(x: Machine) -> bool:
        read(x)
        return False

    yield event


@makes(m.Transpose)
def transpose(k: Maker, s: m.Transpose, by_thread: bool, at: At) -> Iterator[Event]:
    read = _reading(k, s, s.read, READ, by_thread, at)

    def event(x: Machine) -> bool:
        read(x)
        return False

    yield event
    yield _written(k, s, by_thread, at)


@makes(m.StoreShared)
def store_shared(k: Maker, s: m.StoreShared, by_thread: bool, at: At) -> Iterator[Event]:
    yield Touching.of(k, use(k.registers(s.src), 0))
    yield _written(k, s, by_thread, at)


def _written(k: Maker, s: m.StoreShared | m.Transpose, by_thread: bool, at: At) -> Event:
    """Each warp its own rows of a tile."""
    ring, n, place, lag = k.slot(s.slot)
    atoms, unit, holders = k.atoms(s, s.buffer, integer(s.part)(at)), k.unit, k.holders(by_thread)
    bits, buffer = k.layout.accesses, s.buffer

    def event(x: Machine) -> bool:
        position = x.position[place] - lag
        for a in atoms[position % n]:
            x.write(unit, a, WRITE, bits[a, unit.number, WRITE], Tag(buffer, ring, position), holders)
        return False

    return event


@makes(m.ClearRows)
def clear_rows(k: Maker, s: m.ClearRows, by_thread: bool, at: At) -> Iterator[Event]:
    rows = at[ROWS](max(integer(s.start)(at), 0), min(integer(s.stop)(at), k.kernel.buffer(s.buffer).rows))
    if rows < 0:
        return
    ring, n, place, lag = k.slot(s.slot)
    atoms, unit, holders = k.atoms(s, s.buffer, integer(s.part)(at)), k.unit, k.holders(by_thread)
    bits, buffer = k.layout.accesses, s.buffer

    def event(x: Machine) -> bool:
        position = x.position[place] - lag
        for a in atoms[position % n]:
            x.write(unit, a, CLEAR, bits[a, unit.number, CLEAR], Tag(buffer, ring, position), holders, rows)
        return False

    yield event


@makes(m.PutItem)
def put_item(k: Maker, s: m.PutItem, by_thread: bool, at: At) -> Iterator[Event]:
    ring, n, place, lag = k.slot(s.slot)
    atoms, unit = k.atoms(s, s.buffer, 0), k.unit
    bits, ahead, buffer = k.layout.accesses, int(s.ahead), s.buffer

    def event(x: Machine) -> bool:
        position = x.position[place] - lag
        tag = Tag(buffer, ring, position, x.item[unit.number] + ahead)
        for a in atoms[position % n]:
            x.write(unit, a, PUT, bits[a, unit.number, PUT], tag, unit.holders[:1])
        return False

    yield event


@makes(m.TakeItem)
def take_item(k: Maker, s: m.TakeItem, by_thread: bool, at: At) -> Iterator[Event]:
    ring, n, place, lag = k.slot(s.slot)
    atoms, unit, holders = k.atoms(s, s.buffer, 0), k.unit, k.holders(by_thread)
    bits, ahead, buffer = k.layout.accesses, int(s.ahead), s.buffer

    def event(x: Machine) -> bool:
        position = x.position[place] - lag
        tag = Tag(buffer, ring, position, x.item[unit.number] + ahead)
        for a in atoms[position % n]:
            x.read(unit, a, bits[a, unit.number, READ], tag, asynchronous=False, holders=holders)
        return False

    yield event


# Products.


@makes(m.Wgmma)
def wgmma(k: Maker, s: m.Wgmma, by_thread: bool, at: At) -> Iterator[Event]:
    operands = [o for o in (s.a, s.b) if isinstance(o, m.SmemOperand)]
    reads = [_reading(k, s, o, PRODUCT, by_thread, at) for o in operands]
    acc, operand = k.registers(s.acc), k.registers(s.a.value) if isinstance(s.a, m.RegOperand) else 0
    fresh, n, holders = condition(s.zero)(at), k.unit.number, len(k.unit.holders)

    def event(x: Machine) -> bool:
        if missing := ((operand if fresh else operand | acc) & ~x.defined[n]):
            raise Found(Rule.POISON, n, name=name_of(k, missing))
        if touched := x.touched[n] & (acc | operand):
            raise Found(Rule.FENCE, n, name=name_of(k, touched))
        own = (0,) * holders
        for read in reads:
            own = tuple(a | b for a, b in zip(own, read(x), strict=True))
        x.open[n] = (*x.open[n], Product(acc, operand, own))
        x.defined[n] |= acc
        return False

    yield event


@makes(m.Mma)
def mma(k: Maker, s: m.Mma, by_thread: bool, at: At) -> Iterator[Event]:
    """A product that is done at once: the warps' own instruction on their registers, and reads of memory."""
    operand = k.registers(s.a.value) if isinstance(s.a, m.RegOperand) else 0
    acc, fresh = k.registers(s.acc), condition(s.zero)(at)
    yield Touching.of(k, Touch(acc | operand, acc, operand if fresh else operand | acc, acc))
    reads = [_reading(k, s, o, READ, by_thread, at) for o in (s.a, s.b) if isinstance(o, m.SmemOperand)]

    def event(x: Machine) -> bool:
        for read in reads:
            read(x)
        return False

    yield event


def _product_values(s: m.Wgmma | m.Mma) -> tuple[str, ...]:
    return (s.acc, s.a.value) if isinstance(s.a, m.RegOperand) else (s.acc,)


@makes(m.FenceWgmma)
def fence_wgmma(k: Maker, s: m.FenceWgmma, by_thread: bool, at: At) -> Iterator[Event]:
    n = k.unit.number

    def event(x: Machine) -> bool:
        x.touched[n] = 0
        return False

    yield event


@makes(m.Commit)
def commit(k: Maker, s: m.Commit, by_thread: bool, at: At) -> Iterator[Event]:
    n = k.unit.number

    def event(x: Machine) -> bool:
        x.groups[n] = (*x.groups[n], x.open[n])
        x.open[n] = ()
        return False

    yield event


@makes(m.WaitGroup)
def wait_group(k: Maker, s: m.WaitGroup, by_thread: bool, at: At) -> Iterator[Event]:
    unit, pending, ready = k.unit, s.pending, k.registers(*s.values)
    n = unit.number

    def event(x: Machine) -> bool:
        x.wait_group(unit, pending)
        if ready and (busy := x.flying(n)[0] & ready):
            raise Found(Rule.FLIGHT, n, name=name_of(k, busy))
        return False

    yield event


# Fences and named barriers.


@makes(m.FenceAsync)
def fence_async(k: Maker, s: m.FenceAsync, by_thread: bool, at: At) -> Iterator[Event]:
    """By one thread of a warpgroup it covers that thread's writes, and steps of a whole warpgroup need those of all."""
    unit = k.unit

    def event(x: Machine) -> bool:
        x.fence(unit)
        return False

    if not by_thread or unit.single:
        yield event


@makes(m.BarSync)
def bar_sync(k: Maker, s: m.BarSync, by_thread: bool, at: At) -> Iterator[Event]:
    unit, j, threads = k.unit, integer(s.id)(at), s.threads

    def arrives(x: Machine) -> bool:
        x.meet(unit, j, threads, waits=True)
        return False

    yield arrives
    yield lambda x: x.barred[unit.number]


@makes(m.ListTile)
def list_tile(k: Maker, s: m.ListTile, by_thread: bool, at: At) -> Iterator[Event]:
    """Warps meet, and meet again; what one stores in the list is no part of the protocol."""
    yield Touching.of(k, use(k.registers(s.some, s.every, s.count), k.registers(s.count)))
    for _ in range(2):
        yield from bar_sync(k, s, by_thread, at)


@makes(m.BarArrive)
def bar_arrive(k: Maker, s: m.BarArrive, by_thread: bool, at: At) -> Iterator[Event]:
    unit, j, threads = k.unit, integer(s.id)(at), s.threads

    def event(x: Machine) -> bool:
        x.meet(unit, j, threads, waits=False)
        return False

    yield event


# Registers.


def name_of(k: Maker, bits: int) -> str:
    """The first of the values in these registers."""
    return next(name for name, bit in k.file.items() if bit & bits)


class Touch(NamedTuple):
    """Registers that an instruction touches, those of them that it writes, those that have to hold a value before, and those
    that hold one after."""

    both: int
    writes: int
    needs: int
    makes: int


@dataclass(frozen=True, eq=False, slots=True)
class Touching:
    """The warpgroup's own instructions on its registers, one behind the other, as one event."""

    maker: Maker
    all: Touch
    touches: tuple[Touch, ...]

    @staticmethod
    def of(k: Maker, *touches: Touch) -> Touching:
        """As far as it matters to others: products have touched the registers, or later steps need their values."""
        both = writes = made = needs = 0
        parts = []
        for t in touches:
            parts.append(t._replace(needs=t.needs & ~made))
            both, writes, needs, made = both | t.both, writes | t.writes, needs | parts[-1].needs, made | t.makes
        assert not needs & ~k.lasting
        return Touching(k, Touch(both & k.products, writes & k.products, needs, made & k.lasting), tuple(parts))

    def __call__(self, x: Machine) -> bool:
        both, writes, needs, makes = self.all
        n = self.maker.unit.number
        acc, operand = x.flying(n) if x.groups[n] or x.open[n] else (0, 0)
        if acc & both or operand & writes or needs & ~x.defined[n]:
            self._raise(x, acc, operand)
        x.touched[n] |= both
        x.defined[n] |= makes
        return False

    def _raise(self, x: Machine, acc: int, operand: int) -> None:
        """The first of them that is wrong."""
        k, n = self.maker, self.maker.unit.number
        for t in self.touches:
            if busy := (acc & t.both) | (operand & t.writes):
                raise Found(Rule.FLIGHT, n, name=name_of(k, busy))
            if missing := t.needs & ~x.defined[n]:
                raise Found(Rule.POISON, n, name=name_of(k, missing))


def use(reads: int, writes: int) -> Touch:
    return Touch(reads | writes, writes, reads, writes)


@makes(m.Compute)
def compute(k: Maker, s: m.Compute, by_thread: bool, at: At) -> Iterator[Event]:
    row: list[Touch] = []
    for op in s.ops:
        used, dst = k.registers(*_read(op)), k.registers(op.dst)
        if not _scales(k, op):
            row.append(use(used, dst))
        elif used == dst:
            row.append(Touch(dst, dst, 0, 0))
        else:
            yield from _touching(k, row)
            yield from _scaling(k, used, dst)
            row = []
    yield from _touching(k, row)


def _touching(k: Maker, row: list[Touch]) -> Iterator[Event]:
    if any((event := Touching.of(k, *row)).all):
        yield event


def _read(op: Any) -> Iterator[str]:
    return (name for e in op.exprs for name in regs(e))


def _scales(k: Maker, op: Any) -> bool:
    return isinstance(op, m.MapOp) and op.dst in k.tiles and op.dst in regs(op.expr)


def _scaling(k: Maker, reads: int, dst: int) -> Iterator[Event]:
    """Rescaling what no product has written leaves it as it is, whatever by."""
    n = k.unit.number
    scale, look = Touching.of(k, use(reads, dst)), Touching.of(k, Touch(dst, dst, 0, 0))
    yield lambda x: (scale if x.defined[n] & dst else look)(x)


def _needed(k: Maker, s: Step) -> int:
    """Registers whose values a step may need from those before it."""
    if isinstance(s, m.Wgmma | m.Mma):
        return k.registers(*_product_values(s))
    if isinstance(s, m.Pack | m.Move | m.StoreShared):
        return k.registers(s.src)
    if isinstance(s, m.StoreGlobal):
        return k.registers(*regs(s.value))
    if isinstance(s, m.ListTile):
        return k.registers(s.some, s.every, s.count)
    if isinstance(s, m.Tally):
        return k.registers(s.count)
    need = made = 0
    for op in s.ops if isinstance(s, m.Compute) else ():
        used, dst = k.registers(*_read(op)), k.registers(op.dst)
        if _scales(k, op):
            need, made = need | used | dst, 0
        else:
            need, made = need | used & ~made, made | dst
    return need


@makes(m.Pack, m.Move)
def pack(k: Maker, s: m.Pack | m.Move, by_thread: bool, at: At) -> Iterator[Event]:
    yield Touching.of(k, use(k.registers(s.src), k.registers(s.dst)))


@makes(m.Zero)
def zero(k: Maker, s: m.Zero, by_thread: bool, at: At) -> Iterator[Event]:
    yield Touching.of(k, use(0, k.registers(s.value)))


@makes(m.Forget)
def forget(k: Maker, s: m.Forget, by_thread: bool, at: At) -> Iterator[Event]:
    n, value = k.unit.number, k.registers(s.value)

    def event(x: Machine) -> bool:
        if busy := x.flying(n)[0] & value:
            raise Found(Rule.FLIGHT, n, name=name_of(k, busy))
        x.defined[n] &= ~value
        return False

    yield event


@makes(m.StoreGlobal)
def store_global(k: Maker, s: m.StoreGlobal, by_thread: bool, at: At) -> Iterator[Event]:
    yield Touching.of(k, use(k.registers(*regs(s.value)), 0))


@makes(m.Classify)
def classify(k: Maker, s: m.Classify, by_thread: bool, at: At) -> Iterator[Event]:
    yield Touching.of(k, use(0, k.registers(s.some, s.every)))


@makes(m.Tally)
def tally(k: Maker, s: m.Tally, by_thread: bool, at: At) -> Iterator[Event]:
    yield Touching.of(k, use(k.registers(s.count), 0))


@makes(m.Registers, m.Fetch)
def nothing(k: Maker, s: Step, by_thread: bool, at: At) -> Iterator[Event]:
    """No part of the protocol: the pool of registers is a rule of its own, and the counter is between CTAs."""
    return iter(())


def ended(x: Machine, unit: Unit) -> None:
    """At the end of a role nothing may be in flight."""
    n = unit.number
    if x.open[n] or x.groups[n]:
        raise Found(Rule.LEFT, n, why="product")
    if x.stores[n] or x.store_groups[n]:
        raise Found(Rule.LEFT, n, why="bulk store")
    if x.copies[n] or x.copy_groups[n]:
        raise Found(Rule.LEFT, n, why="copy")
