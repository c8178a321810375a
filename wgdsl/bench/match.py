"""All contestants of every case, turn and turn about: the work of the process that `supervised` follows.

In: a `Plan`, a journal and an `Arena`.  Out: entries: `about` the machine, `row` for each case, `fault` for who fails or is
wrong. All contestants of a case take turns, round after round, so that they meet the same clocks and temperature; another one
begins each round. Nobody is timed who wasn't right. A process that follows one which has died begins the case anew, without
the one that was at work.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from .. import __version__
from ..tools.supervised import LOST, Entry, Journal
from .case import Call, Case, Ground, Own
from .request import Request, cases_of, peers_here, peers_of, shown

DEATHS_ALLOWED = 2  # who has ended so many processes is left out of the rest
FEWEST, MOST = 3, 100  # calls of a turn
INPUTS = ""  # stands for the contestant while a case's inputs are made


@dataclass(frozen=True, kw_only=True)
class Plan:
    """picks: for the key of each case, contestant -> the candidate that it runs."""

    request: Request
    picks: Mapping[str, Mapping[str, str]]

    def write(self, path: Path) -> None:
        path.write_text(json.dumps({"request": asdict(self.request), "picks": self.picks}), "utf-8")

    @classmethod
    def read(cls, path: Path) -> Plan:
        given = json.loads(path.read_text("utf-8"))
        return cls(request=Request.of(given["request"]), picks=given["picks"])


@dataclass(frozen=True, kw_only=True)
class Turn:
    """microseconds of each call; the SM's clock in MHz and the power in W meanwhile, where they can be read."""

    microseconds: Sequence[float]
    mhz: float | None = None
    watts: float | None = None


class Arena(Protocol):
    """Where contestants run."""

    def about(self) -> dict[str, Any]:
        """The machine."""
        ...

    def missing(self, peer: str) -> str:
        """Why a peer can't be asked here; empty if it can."""
        ...

    def enter(self, case: Case, seed: int) -> Ground:
        """The inputs of a case."""
        ...

    def kernel(self, own: Own, candidate: str) -> Any:
        """The kernel of this project under a schedule."""
        ...

    def turn(self, call: Call, count: int) -> Turn:
        """So many calls, each with an empty L2 cache."""
        ...

    def lost(self) -> bool:
        """Whether nothing can run here any more."""
        ...


def hold(plan: Plan, journal: Journal, arena: Arena) -> None:
    """Go on from where the journal ends, up to the end."""
    cases = cases_of(plan.request)
    if not journal.all("about"):
        about = {"wgdsl": __version__, **arena.about()}
        journal.add({"about": {**about, "missing": _missing(plan.request, cases, arena)}})
    done = {e["row"]["key"] for e in journal.all("row")}
    for number, case in enumerate(cases):
        if case.key not in done and [case.key, INPUTS] not in [e["fault"] for e in journal.all("fault")]:
            _Match(plan, journal, arena, case).play(plan.request.seed + number)


def _missing(request: Request, cases: Sequence[Case], arena: Arena) -> dict[str, str]:
    def without(peers: Iterable[str]) -> dict[str, str]:
        return {p: why for p in dict.fromkeys(peers) if (why := arena.missing(p))}

    missing = without(p for c in cases for p in peers_of(request, c))
    return missing | without(p for c in cases for p in peers_here(request, c, missing))


class _Match:
    """One case."""

    def __init__(self, plan: Plan, journal: Journal, arena: Arena, case: Case):
        self.request, self.journal, self.arena, self.case = plan.request, journal, arena, case
        self.picks = plan.picks.get(case.key, {})

    def play(self, seed: int) -> None:
        ground = self._attempt(INPUTS, lambda: self.arena.enter(self.case, seed))
        if ground is None:
            return
        ready, errors = self._ready(ground)
        turns = self._rounds(ready)
        rows = {who: {**_summary(each), "max_error": errors[who]} for who, each in turns.items()}
        for who, row in rows.items():
            if who in self.picks:
                row["schedule"] = shown(self.picks[who])
        facts = {"suite": self.case.suite, "case": self.case.name, "key": self.case.key, "facts": dict(self.case.facts)}
        self.journal.add({"row": {**facts, "work": ground.work, "contestants": rows}})

    def _ready(self, ground: Ground) -> tuple[dict[str, Call], dict[str, float]]:
        """The calls of those who are right, and their errors."""
        ready: dict[str, Call] = {}
        errors: dict[str, float] = {}
        for who in self._asked():

            def prove(who: str = who) -> bool:
                ready[who] = self._build(ground, who)
                errors[who] = ground.check(ready[who], who not in self.picks)
                return True

            if self._attempt(who, prove) is None:
                ready.pop(who, None)
        return ready, errors

    def _asked(self) -> list[str]:
        """Peers that are here, then those of this project; without those that have failed in this case, or too often."""
        missing = self.journal.all("about")[0]["about"]["missing"]
        peers = peers_here(self.request, self.case, missing)
        faults = [e["fault"] for e in self.journal.all("fault")]
        deaths = deaths_of(self.journal.entries)
        everyone = (*peers, *self.picks)
        return [w for w in everyone if [self.case.key, w] not in faults and deaths[w] < DEATHS_ALLOWED]

    def _build(self, ground: Ground, who: str) -> Call:
        if who in self.picks:
            return ground.own(self.arena.kernel(self.case.own, self.picks[who]))
        return ground.peers[who]()

    def _rounds(self, ready: Mapping[str, Call]) -> dict[str, list[Turn]]:
        """The turns of each contestant. Who fails is left out."""
        names = list(ready)
        turns: dict[str, list[Turn]] = {who: [] for who in names}
        counts: dict[str, int] = {}
        for number in range(self.request.rounds):
            first = number % max(1, len(names))
            for who in names[first:] + names[:first]:
                if who in turns and not self._turn(who, ready[who], turns[who], counts):
                    del turns[who]
        return turns

    def _turn(self, who: str, call: Call, turns: list[Turn], counts: dict[str, int]) -> bool:
        def go() -> bool:
            if who not in counts:
                each = median(self.arena.turn(call, FEWEST).microseconds)
                counts[who] = max(FEWEST, min(MOST, round(1000 * self.request.ms / each)))
            turns.append(self.arena.turn(call, counts[who]))
            return True

        return self._attempt(who, go) is not None

    def _attempt(self, who: str, work: Callable[[], Any]) -> Any:
        """What the work gives; None if it fails, which is noted: peers raise what they like. Ends the process if nothing can
        run in it any more."""
        at = [self.case.key, who]
        self.journal.add({"begin": at})
        try:
            done = work()
        except Exception as e:
            lost = self.arena.lost()
            self.journal.add({"fault": at, "why": " ".join(f"{type(e).__name__}: {e}".split())[:600], "lost": lost})
            if lost:
                os._exit(LOST)
            return None
        self.journal.add({"ran": at})
        return done


def deaths_of(entries: Sequence[Entry]) -> Counter[str]:
    """How many processes each contestant has ended: by losing the device, or as its parent has noted."""
    return Counter(e["fault"][1] for e in entries if "fault" in e and e.get("lost", True))


def _summary(turns: Sequence[Turn]) -> dict[str, Any]:
    """rounds: the median of each, in microseconds. mhz and watts: medians over the rounds, None if unknown."""
    return {
        "microseconds": median(us for t in turns for us in t.microseconds),
        "rounds": [median(t.microseconds) for t in turns],
        "mhz": _middle([t.mhz for t in turns]),
        "watts": _middle([t.watts for t in turns]),
    }


def _middle(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return median(known) if known else None
