"""Written events: the copies of a step that one line of a schedule, or one line of derivation, stands behind.

Expansion copies what a schedule says once: into the prologue, the steady loop and the drain, for each mask class, for
warpgroups that have nothing to do. Taking one copy away may be something that no run shows; taking all away may not.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from ..foundation.source import NOWHERE, Place
from ..roles.model import Kernel, Step
from ..roles.text import step_text
from .model import Path
from .sites import sites

_TARGETS = ("buffer", "barrier", "ring", "acc", "id", "tensor", "value", "dst")  # what a step is about, the first that it has


@dataclass(kw_only=True)
class Written:
    """`role`: its place in the kernel. `copies`: path and step of each, in the order of the text."""

    role: int
    copies: list[tuple[Path, Step]] = field(default_factory=list)

    @property
    def first(self) -> Step:
        return self.copies[0][1]

    @property
    def place(self) -> Place:
        return place_of(self.first)

    def text(self, kernel: Kernel) -> str:
        return told(kernel, self.first)


def told(kernel: Kernel, s: Step) -> str:
    """A step as text, with the remark on it."""
    return step_text(kernel, s) + (f'  "{s.note}"' if s.note else "")


def event_key(s: Step) -> Hashable:
    """What the copies of a written event in one role have in common: the kind of step; the buffer, barrier, ring, value or
    named barrier that it is about, and its part; the remark on it; and the line of the schedule that it comes from.

    Left out is what differs between copies of the same event: slot, coordinates and panel, the depth of a wait (0 in the
    drain), the values that are ready, bytes and counts. A producer's wait (`flip`) is another kind than a consumer's.
    """
    about = next((str(getattr(s, name)) for name in _TARGETS if hasattr(s, name)), "")
    part = str(getattr(s, "part", ""))
    return type(s).__name__, getattr(s, "flip", None), about, part, s.note, place_of(s)


def place_of(s: Step) -> Place:
    """The line of the schedule that a step comes from, `NOWHERE` if none asks for it."""
    return s.span.place if s.span is not None else NOWHERE


def written(kernel: Kernel, *kinds: type[Step]) -> Iterator[Written]:
    """The written events of these kinds, role by role, in the order of the text."""
    for number, role in enumerate(kernel.roles):
        found: dict[Hashable, Written] = {}
        for path, s in sites(role.steps):
            if isinstance(s, kinds):
                found.setdefault(event_key(s), Written(role=number)).copies.append((path, s))
        yield from found.values()
