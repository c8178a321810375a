"""mbarriers and named barriers: who may pass, and what those who pass learn.

Knowledge is a pair of bit sets over the accesses of a CTA: those known to be complete, and those (generic writes) known to
be visible to the asynchronous proxy as well. An arrival leaves the arriver's knowledge in its phase; a wait takes it up.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Knowledge:
    """Bit sets of accesses."""

    known: int = 0
    proxied: int = 0

    def learn(self, other: Knowledge) -> None:
        self.known |= other.known
        self.proxied |= other.proxied


@dataclass(kw_only=True)
class MBarrier:
    """One mbarrier. A phase is over when no arrivals and no bytes are pending (PTX ISA: "mbarrier")."""

    name: str
    count: int
    pending: int = 0
    nbytes: int = 0
    phase: int = 0  # the phase that is going on
    gathered: Knowledge = field(default_factory=Knowledge)
    last: Knowledge = field(default_factory=Knowledge)  # what the phase before knew

    def __post_init__(self) -> None:
        self.pending = self.count

    def passes(self, parity: int) -> bool:
        """Whether the phase with this parity is over."""
        return self.phase % 2 != parity

    def arrive(self, arrivals: int, nbytes: int, knowledge: Knowledge) -> bool:
        """Count arrivals and expected bytes. False if there are more arrivals than the phase expects."""
        if arrivals > self.pending:
            return False
        self.pending -= arrivals
        self.nbytes += nbytes
        self.gathered.learn(knowledge)
        return True

    def complete(self, nbytes: int, access: int) -> None:
        """Bytes of a copy have arrived."""
        self.nbytes -= nbytes
        self.gathered.known |= access

    @property
    def over(self) -> bool:
        return self.pending == 0 and self.nbytes == 0

    def turn(self) -> None:
        """Go on to the next phase."""
        self.phase += 1
        self.pending, self.last, self.gathered = self.count, self.gathered, Knowledge()

    def missing(self) -> str:
        """What the current phase still waits for."""
        return f"phase {self.phase}, pending {self.pending} of {self.count} arrivals and {self.nbytes} bytes"


@dataclass(kw_only=True)
class NamedBarrier:
    """One of the CTA's 16 barriers; a generation ends when `threads` have arrived."""

    id: int
    threads: int = 0
    arrived: int = 0
    waiting: int = 0
    generation: int = 0
    gathered: Knowledge = field(default_factory=Knowledge)

    def arrive(self, threads: int, of: int, waits: bool, knowledge: Knowledge) -> str:
        """Returns why this is wrong, or nothing."""
        if self.arrived and of != self.threads:
            return f"a generation of {self.threads} threads is joined with {of}"
        self.threads = of
        self.arrived += threads
        self.waiting += waits
        self.gathered.learn(knowledge)
        if self.arrived > of:
            return f"{self.arrived} threads arrive in a generation of {of}"
        if self.arrived == of and not self.waiting:
            return f"{of} threads arrive and none of them waits"
        if self.arrived == of:
            self.arrived = self.waiting = 0
            self.generation += 1
            self.gathered = Knowledge()
        return ""
