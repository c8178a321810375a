"""One CTA: its agents, what is in flight, and the loop in which one thing after another happens.

A right program gives the same numbers in every order, since all that orders accesses is what their agents know.
"""

from __future__ import annotations

from collections import deque
from itertools import count
from random import Random
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.sim import Deadlock, Unfinished, WrongBytes, WrongPhase
from ..roles.model import Step
from ..targets.registers import WARPS
from .agent import Agent, Item, Run
from .barriers import MBarrier, NamedBarrier
from .flight import Copy, InFlight, Load, Product, Store
from .memory import SharedMemory
from .orders import CANONICAL, Order
from .scheduler import Scheduler
from .situation import RAW_EVENTS, events_before, names_of, standing
from .world import World


class Cta:
    def __init__(self, world: World, items: list[Item], number: int, order: Order = CANONICAL, seed: int | None = None):
        self.world, self.items, self.number = world, items, number
        self.memory = SharedMemory(world.kernel)
        self.bits = count()
        self.steps = 0
        self.spare = 0  # registers a thread that warps have given back, summed over warps
        self.loads: list[Load] = []
        self.stores: list[Store | Copy] = []  # what no barrier is told of: its agent waits for it
        self.events: deque[tuple[Agent, Step, str]] = deque(maxlen=RAW_EVENTS)
        self.mbarriers = {
            b.name: [
                MBarrier(name=f"{b.name}[{f'{p}, ' if b.parts > 1 else ''}{s}]", count=b.count)
                for p in range(b.parts)
                for s in range(b.stages)
            ]
            for b in world.kernel.barriers
        }
        self.named: dict[int, NamedBarrier] = {}
        self.votes: dict[tuple[int, int], list[tuple[bool, bool]]] = {}  # of warps that meet, by barrier and generation
        self.agents = self.hired()
        self.scheduler = Scheduler(order, Random(f"{seed} {number}"), self.agents, self.loads, self.stores)

    def hired(self) -> list[Agent]:
        """Every warp, or thread of an elected role."""
        return [
            Agent(self, r, w, k)
            for r in self.world.kernel.roles
            for w in range(r.count)
            for k in ((None,) if r.elected else range(WARPS))
        ]

    def run(self) -> None:
        """To the end of every agent. Raises WgError for a fault or a deadlock."""
        running = {a: a.execute() for a in self.agents}
        while running:
            next_ = self.scheduler.next()
            if next_ is None:
                raise self.deadlock()
            if isinstance(next_, Agent):
                self.go_on(next_, running)
            else:
                self.events.append((next_.agent, next_.step, "completes"))
                self.complete(next_)
        for c in self.loads:
            raise c.agent.fault(Unfinished, step=c.step, what="this copy")

    @staticmethod
    def go_on(a: Agent, running: dict[Agent, Run]) -> None:
        try:
            a.blocked = next(running[a])
        except StopIteration:
            a.blocked, a.ended = None, True
            del running[a]

    # Completions.

    def complete(self, x: InFlight) -> None:
        """By itself, or because of a wait that covers it."""
        if isinstance(x, Load):
            self.land(x)
        elif isinstance(x, Product):
            x.agent.products.remove(x)
            x.finish()
        else:
            self.stores.remove(x)
            x.finish()

    def land(self, c: Load) -> None:
        """A copy's bytes are there: its panels hold them, and its barrier is told."""
        self.loads.remove(c)
        c.land()
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
        late = [c for c in self.loads if c.barrier is b and c.phase == b.phase]
        if late:
            raise self.too_few_bytes(b, late[0], sum(c.nbytes for c in late))
        b.turn()

    @staticmethod
    def too_few_bytes(b: MBarrier, c: Load, missing: int) -> WgError:
        return c.agent.fault(WrongBytes, step=c.step, barrier=b.name, copy=c.agent.doing(c.step), missing=missing)

    # Faults.

    def situation(self, but: Agent | None) -> dict[str, Any]:
        """What a fault says of the rest of the CTA."""
        return {
            "waiting": standing([a for a in self.agents if not a.ended and a is not but]),
            "ended": names_of([a for a in self.agents if a.ended]),
            "events": events_before(self.events),
        }

    def deadlock(self) -> WgError:
        found = self.situation(None)
        item = next((f"CTA {self.number}, {a.item}" for a in self.agents if a.item is not None), f"CTA {self.number}")
        return WgError(Deadlock(span=found["waiting"][0].span, item=item, **found))
