"""One CTA: its warpgroups as coroutines, what is in flight, and the order in which things happen.

The order is canonical: warpgroups run in the order of their roles, each until it blocks; time isn't modelled. What is
asynchronous completes as late as it can: a copy arrives only when every warpgroup is blocked, the oldest first, and a product
at the wait_group that covers it. With a seed, warpgroups and copies take turns at random instead; a right program gives the
same numbers in every order, since all that orders accesses is what their agents know.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random

import numpy as np

from ..diagnostics.model import WgError
from ..diagnostics.sim import Deadlock, Endless, Fault, IllFormed, Unfinished, Waiting, WrongBytes, WrongPhase
from ..program.poly import Poly
from ..roles.model import Kernel, Op, Role, Slot, Step
from ..roles.text import op_text, step_text
from ..targets.registers import launch_registers
from .barriers import Knowledge, MBarrier, NamedBarrier
from .integers import Integer, value_of
from .memory import Access, Cell, SharedMemory
from .registers import Product, RegisterFile
from .tensors import Tensor

WHOLE = (0, 1)  # the elected thread's warp, and the other three warps
THREAD = (0,)


class Blocked:
    """Something an agent waits for."""

    def ready(self) -> bool:
        raise NotImplementedError

    def what(self) -> str:
        raise NotImplementedError


Run = Generator[Blocked, None, None]


@dataclass(eq=False, kw_only=True)
class Copy:
    """A bulk load in flight: the panels it will fill, and the phase of the barrier that it signals."""

    agent: Agent
    step: Step
    access: Access
    cells: list[tuple[Cell, np.ndarray]]
    barrier: MBarrier
    phase: int
    nbytes: int


@dataclass(frozen=True)
class Item:
    """One work item: its number and the values of its grid indices."""

    number: int
    indices: Mapping[str, int]

    def __str__(self) -> str:
        return f"item {self.number} ({', '.join(f'{k} = {v}' for k, v in self.indices.items())})"


@dataclass(kw_only=True)
class World:
    """What all CTAs of a kernel share. `log`: who made each store, by ordinal."""

    kernel: Kernel
    dims: Mapping[str, int]
    scalars: Mapping[str, float]
    tensors: Mapping[str, Tensor]
    limit: int
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        k = self.kernel
        self.buffers = {b.name: b for b in k.buffers}
        self.rings = {r.name: r for r in k.rings}
        self.barriers = {b.name: b for b in k.barriers}
        self.maps = {m.name: m for m in k.maps}
        self.extents = {i: int(value_of(p, self.dims)) for i, p in k.index_extents.items()}


class Agent:
    """A warpgroup of a role. `shares` are those of its warps that execute the current step."""

    def __init__(self, cta: Cta, role: Role, ordinal: int):
        self.cta, self.role, self.ordinal = cta, role, ordinal
        self.name = f"{role.name} {ordinal}" if role.count > 1 else role.name
        self.env: dict[str, Integer] = {**cta.world.dims, "wg": ordinal}
        self.scalars, self.tensors = cta.world.scalars, cta.world.tensors
        self.registers = RegisterFile(self, tuple(v for v in cta.world.kernel.values if v.role == role.name))
        self.positions: dict[str, int] = dict.fromkeys(cta.world.rings, 0)
        self.shares: tuple[int, ...] = THREAD if role.elected else WHOLE
        self.knowledge = (Knowledge(), Knowledge())
        self.written = [0, 0]  # own generic writes, by share
        self.open_products: list[Product] = []
        self.groups: list[list[Product]] = []
        self.open_stores: list[Access] = []
        self.store_groups: list[list[Access]] = []
        self.held = launch_registers(cta.world.kernel.threads)
        self.item: Item | None = None
        self.leaving = False  # no item is left
        self.following: Item | None = None  # what the role knows of the item after this one, where items are joined
        self.begun = 0  # whether this item has begun that one
        self.step: Step | None = None
        self.op: Op | None = None  # the operation within the step
        self.blocked: Blocked | None = None

    def run(self, steps: tuple[Step, ...]) -> Run:
        from .steps import MEANING

        for s in steps:
            self.step = s
            self.cta.tick(self)
            waits = MEANING[type(s)](self, s)
            if waits is not None:
                yield from waits
            if self.leaving:
                return

    def execute(self) -> Run:
        """The role's steps; at its end nothing may be in flight."""
        yield from self.run(self.role.steps)
        for what in (self.open_products, *self.groups):
            for p in what:
                raise self.fault(Unfinished, step=p.step, what="this product")
        for what in (self.open_stores, *self.store_groups):
            for a in what:
                raise self.fault(Unfinished, step=a.step, what="this bulk store")

    def text(self, step: Step) -> str:
        return step_text(self.cta.world.kernel, step)

    def doing(self, step: Step) -> str:
        return f"`{self.text(step)}` of {self.name}"

    def fault(self, kind: type[Fault], *, step: Step | None = None, **data) -> WgError:
        """The error to raise for what went wrong in the current (or another) step."""
        at = step or self.step
        assert at is not None
        text = op_text(self.op) if self.op is not None and step is None else self.text(at)
        item = str(self.item) if self.item is not None else ""
        return WgError(kind(span=at.span, agent=self.name, step=text, item=item, **data))

    def integer(self, p: Poly) -> int:
        try:
            return int(value_of(p, self.env))
        except KeyError as e:
            raise self.fault(IllFormed, why=f"nothing binds the integer `{e.args[0]}`") from None

    def lap(self, slot: Slot) -> tuple[int, int]:
        """(stage, how many times the ring has gone round before it)."""
        lap, stage = divmod(self.positions[slot.ring] - slot.lag, self.cta.world.rings[slot.ring].stages)
        return stage, lap

    def mbarrier(self, name: str, part: Poly, slot: Slot) -> tuple[MBarrier, int]:
        """The barrier and the phase that the position means."""
        stage, lap = self.lap(slot)
        b, p = self.cta.world.barriers[name], self.integer(part)
        if not (0 <= p < b.parts and stage < b.stages):
            raise self.fault(IllFormed, why=f"`{name}` has {b.parts} parts and {b.stages} stages, no [{p}, {stage}]")
        return self.cta.mbarriers[name][p * b.stages + stage], lap

    def cells(self, buffer: str, part: Poly, slot: Slot):
        """The tile of a buffer."""
        try:
            return self.cta.memory.tile(buffer, self.integer(part), self.lap(slot)[0])
        except IndexError as e:
            raise self.fault(IllFormed, why=str(e)) from None

    def access(self, share: int, *, asynchronous: bool, write: bool, **more) -> Access:
        """A new access by one share of the current step; the agent knows its own synchronous ones."""
        assert self.step is not None
        bit = 1 << next(self.cta.bits)
        if not asynchronous:
            self.knowledge[share].known |= bit
            if write:
                self.written[share] |= bit
        return Access(bit=bit, owner=self, step=self.step, share=share, asynchronous=asynchronous, write=write, **more)

    def mine(self) -> tuple[Knowledge, ...]:
        return tuple(self.knowledge[s] for s in self.shares)

    def learn(self, k: Knowledge) -> None:
        for s in self.shares:
            self.knowledge[s].learn(k)

    def need(self, shares: tuple[int, ...]) -> None:
        if self.shares != shares:
            who = "the whole warpgroup" if shares == WHOLE else "one thread"
            raise self.fault(IllFormed, why=f"this step is executed by {who}")


class Cta:
    def __init__(self, world: World, items: list[Item], number: int):
        self.world, self.items, self.number = world, items, number
        self.memory = SharedMemory(world.kernel)
        self.bits = count()
        self.steps = 0
        self.spare = 0  # registers a thread that warpgroups have given back
        self.copies: list[Copy] = []
        self.mbarriers = {
            b.name: [
                MBarrier(name=f"{b.name}[{f'{p}, ' if b.parts > 1 else ''}{s}]", count=b.count)
                for p in range(b.parts)
                for s in range(b.stages)
            ]
            for b in world.kernel.barriers
        }
        self.named: dict[int, NamedBarrier] = {}
        self.agents = [Agent(self, r, w) for r in world.kernel.roles for w in range(r.count)]

    def tick(self, agent: Agent) -> None:
        self.steps += 1
        if self.steps > self.world.limit:
            raise agent.fault(Endless, steps=self.world.limit)

    # The order of events.
    def run(self, random: Random | None) -> None:
        """To the end of every warpgroup. Raises WgError for a fault or a deadlock."""
        running = {a: a.execute() for a in self.agents}
        while running:
            ready = [a for a in running if a.blocked is None or a.blocked.ready()]
            for a in ready if random is None else [random.choice(ready)] if ready else []:
                self.go_on(a, running)
            if self.copies and (not ready or (random is not None and random.random() < 0.3)):
                self.arrive(self.copies.pop(0 if random is None else random.randrange(len(self.copies))))
            elif not ready:
                raise self.deadlock(list(running))
        for c in self.copies:
            raise c.agent.fault(Unfinished, step=c.step, what="this copy")

    @staticmethod
    def go_on(a: Agent, running: dict[Agent, Run]) -> None:
        try:
            a.blocked = next(running[a])
        except StopIteration:
            del running[a]

    def arrive(self, c: Copy) -> None:
        """A copy's bytes are there: its panels hold them, and its barrier is told."""
        for cell, values in c.cells:
            cell.data[:] = values
            cell.whole = True
        b = c.barrier
        if b.phase != c.phase:
            met = {"barrier": b.name, "meant": c.phase, "found": b.phase, "count": b.count}
            raise c.agent.fault(WrongPhase, step=c.step, what="the copy that signals", **met)
        b.complete(c.nbytes, c.access.bit)
        if b.pending == 0 and b.nbytes < 0:
            raise self.too_few_bytes(b, c, -b.nbytes)
        self.turn(b)

    def turn(self, b: MBarrier) -> None:
        """End the barrier's phase if nothing is pending."""
        if not b.over:
            return
        late = [c for c in self.copies if c.barrier is b and c.phase == b.phase]
        if late:
            raise self.too_few_bytes(b, late[0], sum(c.nbytes for c in late))
        b.turn()

    @staticmethod
    def too_few_bytes(b: MBarrier, c: Copy, missing: int) -> WgError:
        return c.agent.fault(WrongBytes, step=c.step, barrier=b.name, copy=c.agent.doing(c.step), missing=missing)

    def deadlock(self, left: list[Agent]) -> WgError:
        waiting = tuple(
            Waiting(agent=a.name, what=a.blocked.what() if a.blocked else "", step=a.text(a.step), span=a.step.span)
            for a in left
            if a.step is not None
        )
        ended = tuple(a.name for a in self.agents if a not in left)
        item = next((f"CTA {self.number}, {a.item}" for a in left if a.item is not None), f"CTA {self.number}")
        return WgError(Deadlock(span=waiting[0].span, waiting=waiting, ended=ended, item=item))
