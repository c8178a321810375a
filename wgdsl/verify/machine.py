"""The protocol as a machine: memory, barriers, registers in flight, and who knows of what. No values.

It runs one canonical execution; a conflict is an access that another one should know of and doesn't, whatever the order in
which things really happen. What has not happened, or no longer matters, everybody knows of. What a warp knows is a set of bits
(`layout`): known to be complete, and `width` bits further up, for generic writes, known to be behind a proxy fence as well.
Arrivals leave their sets in a barrier's phase, waits take them up.

That one execution stands for all of them because the phases are unambiguous, which is checked on the way: who arrives knows
that the phase before is over; who waits knows that of the phase before the one it waits for; and no phase ends before some
arrival in it knows that those who waited for the phase before have passed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..targets.registers import WARPGROUP
from .layout import CLEAR, WRITE, Bits, Layout, Unit


class Rule:
    """What can be wrong with a protocol."""

    READ = "read before arrival"
    OVERWRITE = "overwritten too early"
    PROXY = "no proxy fence"
    TILE = "another tile"
    DEADLOCK = "deadlock"
    STAYS = "a role that doesn't leave"
    PHASE = "ambiguous phase"
    BAR = "generations of a named barrier"
    FLIGHT = "registers in flight"
    LEFT = "left in flight"
    FENCE = "no product fence"
    POISON = "registers without a value"
    RUNAWAY = "runs ahead"
    STATES = "too many states"


class Found(Exception):
    """A rule is broken, by the current event of a unit. `bits`: what it should have known. The rest says where."""

    def __init__(self, rule: str, unit: int, *, bits=0, atom=-1, mbarrier=-1, why="", name=""):
        super().__init__(rule)
        self.rule, self.unit, self.bits = rule, unit, bits
        self.atom, self.mbarrier, self.why, self.name = atom, mbarrier, why, name


class Tag(NamedTuple):
    """What an atom holds: the buffer, its ring, the position at which it was written, and for a work slot the item."""

    buffer: str
    ring: int
    position: int
    item: int = -1


class Product(NamedTuple):
    """Registers as bits of the role's file, and the bits of what it reads, as each holder sees its own."""

    acc: int
    operand: int
    own: tuple[int, ...]


@dataclass(eq=False)
class Machine:
    layout: Layout
    known: list[int]
    phase: list[int]
    pending: list[int]
    bytes: list[int]
    unseen: list[int]  # by mbarrier: of those who wait for its phases, as a set of holders, who hasn't passed the last one
    position: list[int]  # unit * rings + ring
    tags: list[Tag | None]
    clears: list[int]  # those of the content
    cleared: list[int]  # which rows are cleared, as the number of a choice; -1: none
    covered: list[int]  # reads that knew of such a clear
    sharing: list[int]  # of the copies of threads, those that make up the content
    arrived: list[int]  # threads at a named barrier
    waiting: list[tuple[int, ...]]
    barred: list[bool]
    open: list[tuple[Product, ...]]
    groups: list[tuple[tuple[Product, ...], ...]]
    stores: list[tuple[int, ...]]
    store_groups: list[tuple[tuple[int, ...], ...]]
    copies: list[tuple[tuple[int, ...], ...]]  # the bits of each as each holder sees its own
    copy_groups: list[tuple[tuple[tuple[int, ...], ...], ...]]
    touched: list[int]
    defined: list[int]
    item: list[int]
    made: dict[int, int] | None = field(default=None)  # bit -> event, where a run is written down
    events: int = 0

    def __post_init__(self) -> None:
        self.gathered = self.layout.holders  # in `known`: what the arrivals of a phase know
        self.last = self.gathered + len(self.layout.mbarriers)  # what those of the phase before knew
        self.bars = self.last + len(self.layout.mbarriers)

    def copy(self) -> Machine:
        return Machine(
            self.layout, self.known[:], self.phase[:], self.pending[:], self.bytes[:], self.unseen[:], self.position[:],
            self.tags[:], self.clears[:], self.cleared[:], self.covered[:], self.sharing[:], self.arrived[:], self.waiting[:],
            self.barred[:], self.open[:], self.groups[:], self.stores[:], self.store_groups[:], self.copies[:],
            self.copy_groups[:], self.touched[:],
            self.defined[:], self.item[:], self.made, self.events,
        )  # fmt: skip

    # Knowledge.
    def forget(self, bits: int) -> None:
        """Nobody knows of these any more: they happen anew."""
        keep = self.layout.every ^ (bits | bits << self.layout.width)
        self.known = [x and x & keep for x in self.known]

    def happens(self, bits: int) -> None:
        if self.made is not None:
            for k in range(bits.bit_length()):
                if bits >> k & 1:
                    self.made[k] = self.events

    def told(self, u: Unit, by_thread: bool) -> int:
        """What an arrival of the unit's warps, or of its thread, passes on."""
        first = self.known[u.holders[0]]
        if by_thread or u.single:
            return first
        second = self.known[u.holders[1]]
        near, far = self.layout.fellows.get(u.number, (0, 0))
        w = self.layout.width
        near, far = near | near << w, far | far << w
        return first | second | (second & near) << 1 | (second & far) >> 1

    # Memory.
    def read(self, u: Unit, atom: int, bits: Bits, tag: Tag, *, asynchronous: bool, holders: tuple[int, ...]) -> None:
        layout, clears = self.layout, self.clears[atom]
        if self.tags[atom] is None:
            raise Found(Rule.READ, u.number, atom=atom)
        if self.sharing[atom] != layout.copies[atom] and self.sharing[atom]:  # somebody hasn't copied its share
            raise Found(Rule.READ, u.number, bits=layout.copies[atom], atom=atom)
        writes = layout.writes[atom]
        generic = writes & layout.generic if asynchronous else 0
        for h in holders:
            known = self.known[h]
            missing = writes ^ writes & known
            unseen = generic and generic ^ generic & (known >> layout.width)
            if clears and (missing or unseen):
                excused = self._excused(atom, known >> layout.width if asynchronous else known)
                missing, unseen = missing & ~excused, unseen & ~excused
            if missing:
                raise Found(Rule.READ, u.number, bits=missing, atom=atom)
            if unseen:
                raise Found(Rule.PROXY, u.number, bits=unseen, atom=atom)
        if self.tags[atom] != tag:
            raise Found(Rule.TILE, u.number, bits=layout.writes[atom], atom=atom)
        self.forget(bits.all)
        self.covered[atom] = self.covered[atom] | bits.all if clears else 0
        self.happens(bits.all)
        if not asynchronous:
            for h, own in zip(holders, bits.own, strict=False):
                self.known[h] |= own

    def _excused(self, atom: int, seen: int) -> int:
        """Clears that a reader needn't know of: all clear the same, and it knows of those of one unit."""
        for u in self.layout.units:
            bits = self.layout.accesses.get((atom, u.number, CLEAR))
            if bits is not None and self.clears[atom] & bits.all and not bits.all & ~seen:
                return self.clears[atom]
        return 0

    def write(self, u: Unit, atom: int, kind: str, bits: Bits, tag: Tag, holders: tuple[int, ...], rows: int = -1) -> None:
        """A generic write: StoreShared (each warp its own rows), PutItem, or ClearRows."""
        need = self.layout.touches[atom]
        if kind == WRITE:
            need &= ~bits.all
        elif kind == CLEAR and self.cleared[atom] == rows:
            need &= ~(self.clears[atom] | self.covered[atom])
        for h in holders:
            if missing := need ^ need & self.known[h]:
                raise Found(Rule.OVERWRITE, u.number, bits=missing, atom=atom)
        if kind == CLEAR:
            self.forget(bits.all)
            self.clears[atom] |= bits.all
            self.cleared[atom] = rows
        else:
            self._replace(atom, bits.all, tag)
        self.happens(bits.all)
        for h, own in zip(holders, bits.own, strict=False):
            self.known[h] |= own

    def fill(self, u: Unit, atom: int, bits: int, tag: Tag, mbarrier: int) -> None:
        known, need = self.known[u.holders[0]], self.layout.touches[atom]
        if missing := need ^ need & known:
            raise Found(Rule.OVERWRITE, u.number, bits=missing, atom=atom)
        generic = need & self.layout.generic
        if generic and (missing := generic ^ generic & (known >> self.layout.width)):
            raise Found(Rule.PROXY, u.number, bits=missing, atom=atom)
        self._replace(atom, bits, tag)
        self.happens(bits)
        # who knows that the copy has arrived knows what had happened to barriers before it was issued
        self.known[self.gathered + mbarrier] |= bits | known & self.layout.control

    def copy_in(self, u: Unit, atom: int, bits: Bits, tag: Tag, holders: tuple[int, ...], moving: bool) -> None:
        """One unit's share of a copy of threads. The first one begins new content; what was before is over for everybody when
        all units have looked at it. moving: the unit advances in the ring, so that nobody reads what it copies twice to one
        position."""
        layout = self.layout
        begins = self.tags[atom] != tag or not self.sharing[atom] or bool(self.sharing[atom] & bits.all)
        if begins and moving and self.tags[atom] == tag and self.sharing[atom]:
            raise Found(Rule.OVERWRITE, u.number, bits=bits.all, atom=atom)
        need = layout.touches[atom] if begins else layout.touches[atom] & ~self.sharing[atom]
        for h in holders:
            if missing := need & ~self.known[h]:
                raise Found(Rule.OVERWRITE, u.number, bits=missing, atom=atom)
        self.forget(bits.all)
        if begins:
            self.tags[atom], self.clears[atom], self.cleared[atom], self.covered[atom] = tag, 0, -1, 0
        self.sharing[atom] = bits.all if begins else self.sharing[atom] | bits.all
        if self.sharing[atom] == layout.copies[atom]:
            old = layout.touches[atom] & ~self.sharing[atom]
            old |= old << layout.width
            self.known = [x and x | old for x in self.known]
        self.happens(bits.all)

    def _replace(self, atom: int, bits: int, tag: Tag) -> None:
        """What was done to the old content is over for everybody."""
        w, old = self.layout.width, self.layout.touches[atom]
        old, new = old | old << w, self.layout.every ^ (bits | bits << w)
        self.known = [x and (x | old) & new for x in self.known]
        self.tags[atom], self.clears[atom], self.cleared[atom], self.covered[atom] = tag, 0, -1, 0
        self.sharing[atom] = 0

    def fence(self, u: Unit) -> None:
        """What each warp has written, the asynchronous proxy sees from now on."""
        for k, h in enumerate(u.holders):
            self.known[h] |= (self.known[h] & self.layout.generics[u.number][k]) << self.layout.width

    # Mbarriers.
    def arrive(self, u: Unit, mbarrier: int, lap: int, count: int, nbytes: int, by_thread: bool) -> None:
        holders = u.holders[:1] if by_thread else u.holders
        self._conclude(mbarrier)
        self._same_phase(u, mbarrier, lap, holders, "an arrival on")
        if count > self.pending[mbarrier]:
            takes = self.layout.mbarriers[mbarrier][0].count
            raise Found(Rule.PHASE, u.number, mbarrier=mbarrier, why=f"an arrival too many: its phases take {takes}")
        self.pending[mbarrier] -= count
        self.bytes[mbarrier] += nbytes
        if (mine := self.layout.arrivals.get((mbarrier, u.number))) is not None:
            bits = mine.own[0] if len(holders) < len(u.holders) else mine.all
            self.forget(bits)
            self.happens(bits)
            for h, own in zip(holders, mine.own, strict=False):
                self.known[h] |= own
        self.known[self.gathered + mbarrier] |= self.told(u, by_thread)
        self._turn(u, mbarrier)

    def _conclude(self, mbarrier: int) -> None:
        """Who knows of every arrival of the phase before knows that it is over."""
        all_of_them, over = self.layout.arrived[mbarrier], self.layout.over[mbarrier][0]
        if all_of_them and self.pending[mbarrier] == self.layout.mbarriers[mbarrier][0].count:
            self.known = [x | over if x and x & all_of_them == all_of_them else x for x in self.known]

    def _same_phase(self, u: Unit, mbarrier: int, lap: int, holders: tuple[int, ...], what: str) -> None:
        phase = self.phase[mbarrier]
        if phase != lap:
            raise Found(Rule.PHASE, u.number, mbarrier=mbarrier, why=f"{what} phase {lap} meets phase {phase}")
        if any(not self.known[h] & self.layout.over[mbarrier][0] for h in holders):
            why = f"{what} phase {lap} may come before phase {lap - 1} is over"
            raise Found(Rule.PHASE, u.number, bits=self.layout.over[mbarrier][0], mbarrier=mbarrier, why=why)

    def copied(self, u: Unit, mbarrier: int, lap: int, nbytes: int) -> None:
        """A bulk copy's bytes, which count for the phase that goes on when they arrive."""
        self._same_phase(u, mbarrier, lap, u.holders[:1], "a copy that signals")
        self.bytes[mbarrier] -= nbytes
        if self.pending[mbarrier] == 0 and self.bytes[mbarrier] < 0:
            raise Found(Rule.PHASE, u.number, mbarrier=mbarrier, why="a copy brings more bytes than its phase expects")
        self._turn(u, mbarrier)

    def _turn(self, u: Unit, k: int) -> None:
        if self.pending[k] or self.bytes[k]:
            return
        layout = self.layout
        gathered, last = self.gathered + k, self.last + k
        waiters = layout.waiters[k]
        if missing := waiters ^ waiters & self.known[gathered]:
            why = f"phase {self.phase[k]} may be over before all have seen the end of phase {self.phase[k] - 1}"
            raise Found(Rule.PHASE, u.number, bits=missing, mbarrier=k, why=why)
        over, before = layout.over[k]
        keep, waits = layout.every ^ (over | before), layout.waits[k]
        self.known = [x and (x & keep | (x & over) << 1 | waits) for x in self.known]
        for h in layout.bystanders[k]:
            self.known[h] &= layout.every ^ before
        self.unseen[k] = layout.takers[k]
        self.known[last] = self.known[gathered] | over if self.unseen[k] else 0
        self.known[gathered] = 0
        self.happens(over)
        self.phase[k] += 1
        self.pending[k] = layout.mbarriers[k][0].count

    def passes(self, u: Unit, k: int, phase: int, holders: tuple[int, ...]) -> bool:
        """Whether a wait for the end of a phase passes."""
        now, (over, before) = self.phase[k], self.layout.over[k]
        if now < phase or now > phase + 1:
            raise Found(Rule.PHASE, u.number, mbarrier=k, why=f"a wait for the end of phase {phase} meets phase {now}")
        need = over if now == phase else before
        if now == phase and any(not self.known[h] & need for h in holders):
            self._conclude(k)
        if any(not self.known[h] & need for h in holders):
            why = f"a wait for the end of phase {phase} may come while phase {phase - 1} goes on"
            raise Found(Rule.PHASE, u.number, mbarrier=k, bits=need, why=why)
        if now == phase:
            return False
        passed, told = self.layout.passes[k, u.number], self.known[self.last + k]
        bits = passed.own[0] if len(holders) < len(u.holders) else passed.all
        told &= self.layout.every ^ bits
        self.forget(bits)
        for n, h in enumerate(holders):
            self.known[h] |= told | passed.own[n]
            self.unseen[k] &= ~(1 << h)
        if not self.unseen[k]:  # they all know
            self.known[self.last + k] = 0
        self.happens(bits)
        return True

    # Named barriers.
    def meet(self, u: Unit, j: int, threads: int, waits: bool) -> None:
        """Arrive at barrier `j`, of which all steps name so many threads."""
        bit = self.layout.bars[j]
        n = list(self.layout.bars).index(j)
        if any(not self.known[h] & bit for h in u.holders):
            raise Found(Rule.BAR, u.number, bits=bit, name=str(j), why="may arrive before the generation before is over")
        self.arrived[n] += WARPGROUP
        place = self.bars + n
        self.known[place] |= self.told(u, False)
        if waits:
            self.waiting[n] = (*self.waiting[n], u.number)
            self.barred[u.number] = True
        if self.arrived[n] > threads:
            raise Found(Rule.BAR, u.number, name=str(j), why=f"{self.arrived[n]} threads arrive in a generation of {threads}")
        if self.arrived[n] < threads:
            return
        if not self.waiting[n]:
            raise Found(Rule.BAR, u.number, name=str(j), why=f"{threads} threads arrive and none of them waits")
        self.forget(bit)
        for number in self.waiting[n]:
            self.barred[number] = False
            for h in self.layout.units[number].holders:
                self.known[h] |= self.known[place] | bit
        self.happens(bit)
        self.known[place], self.arrived[n], self.waiting[n] = 0, 0, ()

    # Products and bulk stores.
    def wait_group(self, u: Unit, pending: int) -> None:
        n = u.number
        groups = self.groups[n]
        done = groups[: max(len(groups) - pending, 0)]
        if not done:
            return
        self.groups[n] = groups[len(done) :]
        flying = [p for g in (*self.groups[n], self.open[n]) for p in g]
        for k, h in enumerate(u.holders):
            busy = 0
            for p in flying:
                busy |= p.own[k]
            for g in done:
                for p in g:
                    self.known[h] |= p.own[k] & ~busy

    def wait_store(self, u: Unit, pending: int) -> None:
        n, groups = u.number, self.store_groups[u.number]
        done = groups[: max(len(groups) - pending, 0)]
        self.store_groups[n] = groups[len(done) :]
        busy = 0
        for g in (*self.store_groups[n], self.stores[n]):
            for bit in g:
                busy |= bit
        for g in done:
            for bit in g:
                self.known[u.holders[0]] |= bit & ~busy

    def commit_copies(self, u: Unit) -> None:
        n = u.number
        self.copy_groups[n] = _counted((*self.copy_groups[n], self.copies[n]))
        self.copies[n] = ()

    def wait_copies(self, u: Unit, pending: int) -> None:
        n, groups = u.number, self.copy_groups[u.number]
        done = groups[: max(len(groups) - pending, 0)]
        self.copy_groups[n] = _counted(groups[len(done) :])
        flying = [own for g in (*self.copy_groups[n], self.copies[n]) for own in g]
        for k, h in enumerate(u.holders):
            busy = 0
            for own in flying:
                busy |= own[k]
            for g in done:
                for own in g:
                    self.known[h] |= own[k] & ~busy

    def flying(self, n: int) -> tuple[int, int]:
        """Registers of a unit that products write, and that they read."""
        acc = operand = 0
        for g in (*self.groups[n], self.open[n]):
            for p in g:
                acc |= p.acc
                operand |= p.operand
        return acc, operand


def _counted(groups: tuple[tuple[tuple[int, ...], ...], ...]) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Groups without the oldest ones that are empty, for which no wait makes a difference."""
    first = next((k for k, g in enumerate(groups) if g), len(groups))
    return groups[first:]


def start(layout: Layout, files: list[int]) -> Machine:
    """Before the first step. `files`: all registers of each unit."""
    everything = (1 << 2 * layout.width) - 1  # nothing has happened that one might not know of
    barriers, units, bars = len(layout.mbarriers), len(layout.units), len(layout.bars)
    last = [everything if takers else 0 for takers in layout.takers]
    return Machine(
        layout=layout, known=[everything] * layout.holders + [0] * barriers + last + [0] * bars, phase=[0] * barriers,
        pending=[b.count for b, _, _ in layout.mbarriers], bytes=[0] * barriers, unseen=layout.takers[:],
        position=[0] * (units * max(len(layout.rings), 1)), tags=[None] * layout.atoms, clears=[0] * layout.atoms,
        cleared=[-1] * layout.atoms, covered=[0] * layout.atoms, sharing=[0] * layout.atoms, arrived=[0] * bars,
        waiting=[()] * bars,
        barred=[False] * units, open=[()] * units, groups=[()] * units, stores=[()] * units, store_groups=[()] * units,
        copies=[()] * units, copy_groups=[()] * units,
        touched=list(files), defined=[0] * units, item=[-1] * units,
    )  # fmt: skip
