"""Events in the order of time: processes that sleep or wait, and engines that serve one request after another.

A process is a coroutine. It yields the time at which it goes on, or what it waits for (`Blocked`): then it goes on at the time
at which somebody else has made it so. Of what happens at one time, what was asked for first comes first: the order is always
the same.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from .agent import Blocked

Process = Generator["float | Blocked", None, None]


@dataclass(eq=False)
class Engine:
    """Serves requests one after another. free: when it is done with all so far."""

    name: str
    free: float = 0.0

    def serve(self, now: float, cycles: float) -> tuple[float, float]:
        """From when to when a request of now is served."""
        start = max(now, self.free)
        self.free = start + cycles
        return start, self.free


@dataclass(eq=False)
class Clock:
    now: float = 0.0
    queue: list[tuple[float, int, Process]] = field(default_factory=list)
    waiting: list[tuple[Process, Blocked]] = field(default_factory=list)
    started: int = 0

    def start(self, p: Process, at: float | None = None) -> None:
        """Let it go on at a time, or now."""
        self.started += 1
        heappush(self.queue, (self.now if at is None else at, self.started, p))

    def run(self) -> bool:
        """Until nothing can happen any more; whether nobody waits then."""
        while self.queue:
            self.now, _, p = heappop(self.queue)
            self._step(p)
            self._release()
        return not self.waiting

    def _step(self, p: Process) -> None:
        wanted = next(p, None)
        if isinstance(wanted, Blocked):
            self.waiting.append((p, wanted))
        elif wanted is not None:
            self.start(p, wanted)

    def _release(self) -> None:
        """Those whose wait is over go on now."""
        if not any(what.ready() for _, what in self.waiting):
            return
        ready = [w for w in self.waiting if w[1].ready()]
        self.waiting = [w for w in self.waiting if w not in ready]
        for p, _ in ready:
            self.start(p)
