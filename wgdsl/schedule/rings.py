"""rings: the steps that a role has written so far, and the waits and releases of ring slots among them.

In: the placement and how many products of the role read each ring.  Out: `RingWriter`, on which `sync` builds: it keeps each
ring's position, waits before a tile's first read, and releases its slot after the last.
"""

from __future__ import annotations

from dataclasses import replace

from ..diagnostics.model import WgError
from ..diagnostics.schedule import RingTooShallow
from ..foundation.source import Span
from ..program.poly import Poly
from ..roles.model import Advance, Arrive, Slot, Step, Wait
from .flight import State
from .place import Placement


class RingWriter:
    """Steps of one role in the making."""

    def __init__(self, placement: Placement):
        self.placement = placement
        self.uses: dict[str, int] = {}  # ring -> products of the role that read each of its tiles
        self.out: list[Step] = []
        self.state = State()
        self.span: Span | None = None  # of the schedule's step that is being lowered

    def emit(self, *steps: Step) -> None:
        for s in steps:
            self.out.append(replace(s, span=self.span) if s.span is None else s)

    def part_of(self, home: str) -> Poly:
        return Poly.of("wg") if self.placement.placed[home].buffer.parts > 1 else Poly.of(0)

    def barrier_part(self, ring: str) -> Poly:
        return Poly.of("wg") if self.placement.per_part(ring) else Poly.of(0)

    def wait_full(self, home: str, rel: int | None) -> None:
        """Before the first read of a tile: its copies have arrived."""
        ring = self.placement.ring_of[home]
        if (ring, rel) in self.state.waited:
            return
        if rel is not None:
            self.room(home, ring)
            self.move_to(ring, rel)
        full = self.placement.rings[ring].full
        assert full is not None
        self.emit(Wait(barrier=full, part=self.barrier_part(ring), slot=self.slot(ring, rel)))
        self.state.waited.add((ring, rel))

    def room(self, home: str, ring: str) -> None:
        """A tile can arrive only in a slot that isn't held by tiles still to be released."""
        held, stages = sum(r == ring for r, _ in self.state.waited), self.placement.rings[ring].stages
        if held >= stages:
            raise WgError(RingTooShallow(span=self.span, home=home, stages=stages, held=held))

    def move_to(self, ring: str, rel: int) -> None:
        """Bring the ring's position to a tile that hasn't been read yet."""
        at = self.state.position.setdefault(ring, rel)
        while at < rel:
            self.emit(Advance(ring=ring))
            at += 1
        self.state.position[ring] = at

    def slot(self, ring: str, rel: int | None) -> Slot:
        return Slot(ring=ring, lag=0 if rel is None else self.state.position[ring] - rel)

    def read_done(self, ring: str, rel: int | None) -> None:
        """One product has finished reading a tile; after the last one its slot is released."""
        if rel is None:
            return
        key = (ring, rel)
        self.state.done[key] = self.state.done.get(key, 0) + 1
        if self.state.done[key] < self.uses[ring]:
            return
        empty = self.placement.rings[ring].empty
        assert empty is not None
        slot = self.slot(ring, rel)
        self.emit(Arrive(barrier=empty, part=self.barrier_part(ring), slot=slot))
        if slot.lag == 0:
            self.emit(Advance(ring=ring))
            self.state.position[ring] += 1
        del self.state.done[key]
        self.state.waited.discard(key)
