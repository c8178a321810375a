"""A timeline: what the roles and engines of an SM do when, by the schedule's own words.

Times are cycles from the start of the CTA. A track is a warpgroup of a role (`math 1`) or an engine (`tensor cores`). The
slices of a track don't overlap, but for waits, which lie inside the slice of the step that waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

STEP, WAIT, ENGINE = KINDS = ("step", "wait", "engine")


@dataclass(frozen=True, kw_only=True)
class Slice:
    """One stretch. name: the words of the schedule's line, or what is waited for. line: of the schedule, 0 if none says it.
    place: where in the loops, `j.pos = 3`. by: on an engine, the track that it works for. step: of a wait, whose it is."""

    track: str
    kind: str
    name: str
    start: float
    stop: float
    line: int = 0
    place: str = ""
    by: str = ""
    step: str = ""

    @property
    def cycles(self) -> float:
        return self.stop - self.start


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """One SM for a while. origin: `predicted for ...`, `measured on ...`. what: the items that it shows. roles, engines: tracks
    in their order."""

    origin: str
    kernel: str
    what: str
    roles: tuple[str, ...]
    engines: tuple[str, ...]
    slices: tuple[Slice, ...] = field(repr=False)

    @property
    def cycles(self) -> float:
        return max((s.stop for s in self.slices), default=0.0)

    def on(self, track: str, *kinds: str) -> list[Slice]:
        """The slices of a track in the order of time."""
        return sorted(
            (s for s in self.slices if s.track == track and s.kind in (kinds or KINDS)), key=lambda s: (s.start, -s.stop)
        )

    def share(self, track: str) -> float:
        """Of the time, how much an engine works, or a role does something but wait."""
        busy = sum(s.cycles for s in self.on(track, STEP, ENGINE)) - sum(s.cycles for s in self.on(track, WAIT))
        return busy / self.cycles if self.cycles else 0.0

    def waits(self, track: str) -> list[tuple[str, int, float]]:
        """(the step that waits and what for, its line, cycles), the longest first."""
        found: dict[tuple[str, int], float] = {}
        for s in self.on(track, WAIT):
            key = f"{s.step}: {s.name}", s.line
            found[key] = found.get(key, 0.0) + s.cycles
        return [(name, line, cycles) for (name, line), cycles in sorted(found.items(), key=lambda x: (-x[1], x[0]))]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cycles of a CTA's first item, and of one that follows."""

    first: float
    next: float


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """What is predicted of one kernel. item: of the kind that takes longest, which the timeline shows. kinds: of items.
    resident: CTAs of an SM. cycles: of the launch; `bound` says by what: `SMs`, or `memory` if the tensors can't be read and
    written sooner."""

    timeline: Timeline
    items: int
    kinds: int
    resident: int
    item: Cost
    cycles: float
    bound: str


def short(words: str) -> str:
    """`issue S[j+1]` of `issue S[j+1] = wgmma(Qs, Ks[j+1])`: what stands before the `=`, `+=`."""
    head = words.split(" = ")[0].split(" += ")[0]
    return head.strip()


def joined(slices: Iterable[Slice]) -> list[Slice]:
    """Neighbours of one track and kind that are the same but for their times, as one. In and out: in the order of time."""
    out: list[Slice] = []
    last: dict[tuple[str, str], int] = {}
    for s in slices:
        k = last.get((s.track, s.kind))
        if k is not None and _goes_on(out[k], s):
            out[k] = replace(out[k], stop=s.stop)
            continue
        last[s.track, s.kind] = len(out)
        out.append(s)
    return out


def _goes_on(a: Slice, b: Slice) -> bool:
    same = (a.kind, a.name, a.line, a.place, a.by, a.step) == (b.kind, b.name, b.line, b.place, b.by, b.step)
    return same and b.start <= a.stop
