"""Targets by name, and for which of them a schedule may be compiled.

In: what a caller names, or the GPU of this machine, and the target that a schedule is written for.  Out: the target that it is
compiled for, or why there is none.

A schedule names one target. It can be compiled for a later one of its family too, against that one's own limits: the same
instructions are there. A GPU runs the schedules of its own target, those of its family up to it, and those of an earlier family
without instructions of its own (`sm_80`, not `sm_90a`), whose text is compiled again for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..diagnostics.model import WgError
from ..diagnostics.runtime import UnknownTarget
from ..foundation.source import Span
from .sm_80 import SM_80, SM_86, SM_89, SM_120
from .sm_90a import SM_90A

TARGETS = {t.name: t for t in (SM_90A, SM_80, SM_86, SM_89, SM_120)}
FAMILIES = tuple(dict.fromkeys(t.family for t in TARGETS.values()))
_SPELLING = re.compile(r"(?:sm_?)?(\d{2,3})([af]?)")
OWN, FAMILY, EARLIER, UNKNOWN = range(4)  # how near a schedule is to what is wanted


def number(target: str) -> int:
    """What architectures are ordered by: 90 of sm_90a. As texts `sm_100` would come before `sm_89`."""
    return int("".join(c for c in target if c.isdigit()))


def specific(target: str) -> bool:
    """Whether its code runs on that architecture alone."""
    return target[-1] in "af"


def serves(written: str, target: str) -> bool:
    """Whether a schedule that is written for one target may be compiled for the other."""
    if written == target or written not in TARGETS or target not in TARGETS:
        return written == target
    return TARGETS[written].family == TARGETS[target].family and number(written) <= number(target)


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """A GPU of this machine."""

    name: str
    capability: tuple[int, int]

    @property
    def number(self) -> int:
        return self.capability[0] * 10 + self.capability[1]

    @property
    def target(self) -> str:
        """The architecture whose cubins it runs, with its own instructions."""
        return f"sm_{self.number}" + ("a" if self.capability[0] >= 9 else "")

    def runs(self, written: str) -> bool:
        """Whether it has the instructions of a target."""
        return written == self.target if specific(written) else number(written) <= self.number

    @property
    def best(self) -> str:
        """The target whose schedules suit it best; empty if it runs none."""
        return _best([t for t in TARGETS if self.runs(t)], self.number)

    def serving(self, written: str) -> str:
        """The target whose limits are its own, or else the one that a schedule is written for."""
        near = [t for t in TARGETS if serves(written, t) and number(t) // 10 == self.capability[0] and self.runs(t)]
        return max(near, key=number, default=written)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a compilation is for: the target that the caller names, or else the GPU there is; or what the schedule says."""

    named: str | None = None
    gpu: Gpu | None = None

    def target_for(self, written: str, exact: bool = False) -> str | None:
        """What to compile a schedule for; None if it can't be. `exact`: its numbers hold for its own target alone."""
        if self.named is not None:
            return self.named if (written == self.named or not exact) and serves(written, self.named) else None
        if self.gpu is None or written not in TARGETS:
            return written
        if not self.gpu.runs(written):
            return None
        return written if exact else self.gpu.serving(written)

    def distance(self, written: str) -> int:
        """How near a schedule is that can be compiled for this: those of the own target come first."""
        if self.gpu is None or self.named is not None:
            return OWN if self.named in (None, written) else FAMILY
        if written not in TARGETS:
            return UNKNOWN
        target = self.gpu.serving(written)
        if number(target) // 10 != self.gpu.capability[0]:
            return EARLIER
        return OWN if target == written else FAMILY

    def told(self, written: str, target: str) -> tuple[str, ...]:
        """What a report says of the choice; nothing where the schedule's own target was taken as it is."""
        lines = []
        if self.named is None and self.gpu is not None:
            lines.append(f"chosen for this GPU: {self.gpu.name}, {self.gpu.target}")
        if written != target:
            lines.append(f"the schedule is written for {written}: placed and checked against the limits of {target}")
        if self.named is None and self.gpu is not None and number(target) // 10 != self.gpu.capability[0]:
            lines.append(f"it runs the instructions of {target}: the text is compiled again for it")
        return tuple(lines)


def _best(runs: list[str], architecture: int) -> str:
    """Of the targets that an architecture runs the last one of its own generation, or else the first of all."""
    near = [t for t in runs if number(t) // 10 == architecture // 10]
    return max(near, key=number) if near else min(runs, key=number, default="")


def resolve(target: str) -> str | None:
    """The target that is meant; None for `auto`. Raises WgError (WG0653) for what is none."""
    if target.lower() == "auto":
        return None
    found = _SPELLING.fullmatch(target.strip().lower())
    name = f"sm_{found[1]}{found[2]}" if found else ""
    if name in TARGETS:
        return name
    raise WgError(unknown_target(name or target, known=bool(name)))


def unknown_target(target: str, *, known: bool = True, span: Span | None = None) -> UnknownTarget:
    """Why nothing is emitted for an architecture, and what to take instead. `known`: it is spelled as one."""
    if not known:
        return UnknownTarget(span=span, target=target, known=tuple(TARGETS))
    own = [t for t in TARGETS if number(t) == number(target)]
    before = [t for t in TARGETS if not specific(t) and number(t) <= number(target)]
    return UnknownTarget(
        span=span,
        target=target,
        known=tuple(TARGETS),
        own=own[0] if own else "",
        needs=(*TARGETS[own[0]].products, *TARGETS[own[0]].copies) if own and specific(own[0]) else (),
        before=_best(before, number(target)),
        first=min(TARGETS, key=number),
    )
