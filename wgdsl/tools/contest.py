"""Many candidates of one call, timed against each other: the work of the process that `supervised` follows.

In: a `Contest`, a journal, and a `Track` that can run its candidates.  Out: entries: `right`, `fault` and `times`. A candidate
is timed only after it was right: beside float64 in a smaller call, and beside the others in this one. So no time of what isn't
right can get into a table.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from ..diagnostics.model import InternalError, WgError
from ..driver import Settings
from ..runtime.cuda import CudaError
from .halving import PLAN, agreeing, entrants
from .supervised import LOST, Journal
from .trying import Trial


class Wrong(Exception):
    """A result that isn't right."""


class Track(Protocol):
    """Where candidates run. `load`, `fill` and `same` don't run any; each of the rest is work of one candidate on the GPU."""

    def load(self, name: str) -> None:
        """Everything up to its first run."""
        ...

    def prove(self, name: str) -> None:
        """Run it in the smaller call. Raises Wrong."""
        ...

    def fill(self) -> None:
        """Make the inputs of the call."""
        ...

    def result(self, name: str) -> Any:
        """Some of what it makes of them."""
        ...

    def same(self, one: str, a: Any, other: str, b: Any) -> bool:
        """Whether two results differ by no more than roundings."""
        ...

    def calls(self, name: str, count: int) -> list[float]:
        """Microseconds of so many calls, each with an empty L2 cache."""
        ...

    def lost(self) -> bool:
        """Whether nothing can run here any more."""
        ...


@dataclass(frozen=True, kw_only=True)
class Contest:
    """trials: by name."""

    trials: Mapping[str, Trial]
    seed: int = 0

    def write(self, path: Path) -> None:
        path.write_text(json.dumps({"seed": self.seed, "trials": {n: asdict(t) for n, t in self.trials.items()}}), "utf-8")

    @classmethod
    def read(cls, path: Path) -> Contest:
        given = json.loads(path.read_text("utf-8"))
        trials = {n: Trial(**{**t, "settings": Settings(**t["settings"])}) for n, t in given["trials"].items()}
        return cls(trials=trials, seed=given["seed"])


def hold(contest: Contest, journal: Journal, track: Track) -> None:
    """Go on from where the journal ends, up to the end."""
    for name in (n for n in contest.trials if n not in _faults(journal)):
        _prove(journal, track, name)
    names = [n for n in contest.trials if n not in _faults(journal)]
    track.fill()
    results = {n: r for n in names if (r := _attempt(journal, track, n, lambda n=n: track.result(n))) is not None}
    right = agreeing(list(results), lambda a, b: track.same(a, results[a], b, results[b]))
    for name in results:
        if name not in right:
            journal.add({"fault": name, "why": f"its result in this call isn't that of {len(right) or 'any'} others"})
    for number in range(len(PLAN)):
        _round(journal, track, right, number)


def _prove(journal: Journal, track: Track, name: str) -> None:
    def right() -> bool:
        track.prove(name)
        journal.add({"right": name})
        return True

    if _caught(journal, track, name, lambda: track.load(name) or True):
        _attempt(journal, track, name, right)


def _round(journal: Journal, track: Track, names: Sequence[str], number: int) -> None:
    """Those entrants that haven't run yet."""
    faults, times = _faults(journal), times_of(journal.entries)
    for name in entrants([n for n in names if n not in faults], times, number):
        if number in times.get(name, {}):
            continue
        each = _attempt(journal, track, name, lambda name=name: track.calls(name, PLAN[number].calls))
        if each:
            journal.add({"times": name, "round": number, "microseconds": each})


def times_of(entries: Sequence[Mapping[str, Any]]) -> dict[str, dict[int, list[float]]]:
    """Candidate -> round -> its times."""
    found: dict[str, dict[int, list[float]]] = {}
    for e in entries:
        if "times" in e:
            found.setdefault(e["times"], {})[e["round"]] = e["microseconds"]
    return found


def _faults(journal: Journal) -> set[str]:
    return {e["fault"] for e in journal.all("fault")}


def _attempt(journal: Journal, track: Track, name: str, work: Callable[[], Any]) -> Any:
    """Work on the GPU, which may be the last that this process does."""
    journal.add({"begin": name})
    done = _caught(journal, track, name, work)
    if done is not None:
        journal.add({"ran": name})
    return done


def _caught(journal: Journal, track: Track, name: str, work: Callable[[], Any]) -> Any:
    """What the work gives; None if it fails, which is noted. Ends the process if nothing can run in it any more."""
    try:
        return work()
    except (Wrong, WgError, InternalError, CudaError, MemoryError) as e:
        problem = e.problems[0] if isinstance(e, WgError) else None
        why = f"{problem.code}: {problem.title()}" if problem else f"{e}" or type(e).__name__
        lost = track.lost()
        journal.add({"fault": name, "why": why})
        if lost:
            os._exit(LOST)
        return None
