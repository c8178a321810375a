"""What there is to choose from where no schedule is named.

In: the schedules for a program, what was measured of them, and what the program is compiled for.  Out: `Field`, which can be
kept: it holds no kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.runtime import NothingLegal
from ..program.graph import ProgramGraph
from .nearest import Ranked, Shape
from .pick import Made, Pick, Picker, Refusal, told
from .places import Measured


@dataclass(frozen=True, kw_only=True)
class Field:
    """names: of schedules.  rows: what was measured of the program on the target.  rest: the schedules in the order that counts
    where nobody has.  texts: all that was read to find them.  graph, choices: those of the program, for calls; a single
    schedule that nobody has measured needs none."""

    program: str
    target: str
    names: tuple[str, ...]
    texts: tuple[str, ...]
    shape: Shape = field(default_factory=Shape)
    rows: tuple[Measured, ...] = ()
    rest: tuple[Ranked, ...] = ()
    graph: ProgramGraph | None = None
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def alone(self) -> bool:
        """Whether there is nothing to choose."""
        return len(self.names) == 1 and not self.rows

    def picker(self, attempt: Callable[[str], Made]) -> Picker[Made]:
        """attempt: compiles a candidate, or raises WgError."""
        return Picker(self.rest, self.rows, self.shape, attempt)

    def told(self, pick: Pick[Any], lengths: Mapping[str, int]) -> tuple[str, ...]:
        """What a report says of a pick for some lengths."""
        return tuple(told(pick, replace(self.shape, lengths=lengths), len(self.names)))

    def refused(self, refusals: tuple[Refusal, ...]) -> WgError:
        """What is wrong if every candidate is refused: what is wrong with all, or with each."""
        first = refusals[0].problems
        if all(_said(r) == _said(refusals[0]) for r in refusals):
            return WgError(first)
        each = tuple((r.candidate, r.problems[0].code, r.problems[0].title()) for r in refusals)
        return WgError(NothingLegal(program=self.program, target=self.target, refused=each))


def _said(r: Refusal) -> list[tuple[str, str]]:
    return [(p.code, p.title()) for p in r.problems]
