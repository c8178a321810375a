"""Follows an order: of all that can happen next in a CTA, it picks one thing.

That is an agent that can go on, until its next step that others can see or until it blocks; or something in flight that can
complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from .flight import Copy, InFlight, Load, Store
from .orders import CANONICAL, Order

if TYPE_CHECKING:
    from .agent import Agent

EAGER = 0.3  # how often something completes at random while agents can go on
TRIES = 4  # to hit upon an agent that can go on, before all are asked


class Scheduler:
    """loads, stores: those in flight, the oldest first."""

    def __init__(self, order: Order, random: Random, agents: Sequence[Agent], loads: list[Load], stores: list[Store | Copy]):
        self.random, self.agents, self.loads, self.stores = random, agents, loads, stores
        self.last: Agent | None = None  # the agent that went on
        self.left = order.events
        self._follow(order, order.then)

    def _follow(self, order: Order, then: Order | None) -> None:
        self.order, self.then = order, then
        self.stepwise = order != CANONICAL  # whether agents stop before each step, for others to come first
        self.behind = [a for a in self.agents if a.is_one_of(order.behind)]
        self.ahead = [a for a in self.agents if a.is_one_of(order.ahead)]
        self.others = [a for a in self.agents if a not in self.behind and a not in self.ahead]

    def next(self) -> Agent | InFlight | None:
        """None: nothing can happen."""
        if self.then is not None:
            self._maybe_switch()
        completions = self.order.completions
        if completions == "early" and (ready := self._in_flight()):
            return ready[0]
        if completions == "random" and self.random.random() < EAGER and (ready := self._in_flight()):
            return self.random.choice(ready)
        return self._agent(self.ahead) or self._agent(self.others) or self._load() or self._agent(self.behind)

    def _maybe_switch(self) -> None:
        self.left -= 1
        if self.left > 0 or self.then is None:
            return
        now, length = self.order, self.then.events or self.order.events
        self._follow(self.then, now)
        self.left = self.random.randrange(1, 2 * max(length, 1) + 1)

    def _agent(self, group: list[Agent]) -> Agent | None:
        if not group:
            return None
        if self.order.turns == "random":
            for _ in range(TRIES):
                a = group[int(self.random.random() * len(group))]
                if not a.ended and a.can_go_on():
                    return a
            ready = [a for a in group if not a.ended and a.can_go_on()]
            return self.random.choice(ready) if ready else None
        n = len(group)
        start = self._after_last(group)
        for k in range(start, start + n):
            a = group[k % n]
            if not a.ended and a.can_go_on():
                self.last = a
                return a
        return None

    def _after_last(self, group: list[Agent]) -> int:
        """Where to look first: at the agent that went on, if it hasn't blocked, else behind it."""
        if self.last is None or self.last not in group:
            return 0
        return group.index(self.last) + (self.last.blocked is not None)

    def _load(self) -> Load | None:
        if not self.loads:
            return None
        if self.order.completions == "random":
            return self.random.choice(self.loads)
        return self.loads[-1 if self.order.completions == "newest" else 0]

    def _in_flight(self) -> list[InFlight]:
        return [*self.loads, *self.stores, *(a.products[0] for a in self.agents if a.products)]
