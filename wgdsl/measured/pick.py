"""The candidate that is taken: the first in order that can be compiled.

In: what there is to choose from, and a way to try a candidate.  Out: `Pick`, for any lengths.
A candidate is tried once; one that is refused is passed over, and the reason remembered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..diagnostics.model import Problem, WgError
from ..program.text import spelled
from .nearest import Ranked, Ranking, Shape
from .places import Measured

Made = TypeVar("Made")
SHOWN = 3  # refused candidates that a report names


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why a candidate can't be compiled."""

    candidate: str
    problems: tuple[Problem, ...]

    @property
    def why(self) -> str:
        return f"{self.problems[0].code}: {self.problems[0].title()}"

    def __str__(self) -> str:
        return f"{self.candidate} ({self.why})"


@dataclass(frozen=True, kw_only=True)
class Pick(Generic[Made]):
    """What was taken, and what came before it and was refused."""

    ranked: Ranked
    passed: tuple[Refusal, ...]
    made: Made

    @property
    def candidate(self) -> str:
        return self.ranked.candidate


class NoneLegal(Exception):
    """Every candidate is refused."""

    def __init__(self, refusals: tuple[Refusal, ...]):
        self.refusals = refusals
        super().__init__("; ".join(map(str, refusals)))


class Picker(Generic[Made]):
    """rest: what there is, in the order that counts where nobody has measured.  rows: what was measured.  shape: what it is
    for, without lengths.  attempt: compiles a candidate, or raises WgError. Threads may share it."""

    def __init__(self, rest: Sequence[Ranked], rows: Sequence[Measured], shape: Shape, attempt: Callable[[str], Made]):
        self._rest, self._shape, self._attempt = rest, shape, attempt
        self._ranking = Ranking(rows, shape)
        self._made: dict[str, Made | Refusal] = {}
        self._lock = threading.RLock()

    def order(self, lengths: Mapping[str, int]) -> Iterator[Ranked]:
        """Every candidate, the best first."""
        timed: set[str] = set()
        for r in self._ranking.candidates(lengths):
            timed.add(r.candidate)
            yield r
        yield from (r for r in self._rest if r.candidate not in timed)

    def pick(self, lengths: Mapping[str, int]) -> Pick[Made]:
        """The first that can be compiled. Raises NoneLegal."""
        passed = []
        for ranked in self.order(lengths):
            made = self.tried(ranked.candidate)
            if not isinstance(made, Refusal):
                return Pick(ranked=ranked, passed=tuple(passed), made=made)
            passed.append(made)
        raise NoneLegal(tuple(passed))

    def tried(self, candidate: str) -> Made | Refusal:
        """What became of a candidate, which is compiled once."""
        with self._lock:
            if candidate not in self._made:
                try:
                    self._made[candidate] = self._attempt(candidate)
                except WgError as e:
                    self._made[candidate] = Refusal(candidate=candidate, problems=e.problems)
            return self._made[candidate]

    def settled(self) -> Pick[Made] | None:
        """The pick if it is the same for all lengths; None if they matter. Raises NoneLegal."""
        first: Pick[Made] | None = None
        for m in self._ranking.nearest:
            found = self.pick(m.row.dims)
            if first is not None and found.candidate != first.candidate:
                return None
            first = first or found
        return self.pick({})


def told(pick: Pick[Any], shape: Shape, count: int) -> Iterator[str]:
    """What a report says of a pick. count: of the schedules that there were."""
    yield f"chosen of {_some(count, 'schedule')}: {pick.candidate}, {_why(pick.ranked)}"
    if len(pick.ranked.rows) == 1:
        yield from (f"  {line}" for line in differences(pick.ranked.rows[0], shape))
    more = f"; {len(pick.passed) - SHOWN} more" if len(pick.passed) > SHOWN else ""
    if pick.passed:
        yield f"  passed over: {'; '.join(map(str, pick.passed[:SHOWN]))}{more}"


def _why(r: Ranked) -> str:
    if r.microseconds is not None:
        return f"{r.microseconds:g} us in {r.rows[0].place} ({r.rows[0].made})"
    if r.rows:
        files = dict.fromkeys(m.path for m in r.rows)
        return f"the fastest on the whole of {len(r.rows)} rows of {', '.join(files)} that are equally near"
    if r.cycles is not None:
        return f"{r.cycles:.3g} cycles by the model: nobody has measured this program"
    return "the first that can be compiled: nobody has measured it"


def differences(m: Measured, shape: Shape) -> Iterator[str]:
    """How the row that decides differs from what is compiled, in one line; nothing if it doesn't."""
    ours = {**shape.types, **shape.options, **shape.lengths, **shape.fixed}
    row = {**m.row.types, **m.row.options, **m.row.dims}
    other = [f"{n} = {spelled(row[n])} for {spelled(v)}" for n, v in ours.items() if n in row and row[n] != v]
    if other:
        yield f"the nearest row there is: {', '.join(other)}"


def _some(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
