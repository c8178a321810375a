"""What `wgdsl bench` is asked.

In: the words of the command line.  Out: a `Request`, and the cases that it leaves of the suites. Raises WgError for words that
name nothing, and for limits that leave nothing to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from random import SystemRandom
from shlex import join

from ..diagnostics.model import Problem, WgError
from ..diagnostics.tools import BadLimit, UnknownWord
from .case import Case
from .suites import SUITES

ALL = "all"
# option -> the fact of a case that it filters
FILTERS = {"--head-dims": "head dim", "--masks": "mask", "--dtypes": "dtype", "--lengths": "length"}
PLACES = ("--fa3-site", "--schedule", "--jsonl", "--plot")  # options that name a file or a folder


@dataclass(frozen=True, kw_only=True)
class Request:
    """filters: option -> the values that stay. cases: how their names begin. schedules: none for the one that is chosen. peers:
    none for those that a suite usually has. target: None for that of the suite. ms: of calls, for each contestant in each
    round. budget: seconds in all. timeout: seconds without an end that count as hanging."""

    suites: tuple[str, ...] = ()
    filters: dict[str, tuple[str, ...]]
    cases: tuple[str, ...] = ("",)
    schedules: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    target: str | None = None
    fa3_site: str | None = None
    rounds: int = 5
    ms: float = 12.0
    budget: float = 900.0
    timeout: float = 60.0
    jobs: int = 1
    seed: int = 0
    command: str = "wgdsl bench"

    @property
    def site(self) -> Path | None:
        return Path(self.fa3_site) if self.fa3_site else None

    @classmethod
    def of(cls, given: dict) -> Request:
        """From what `asdict` makes of one, perhaps by way of JSON."""
        tuples = {f.name for f in fields(cls) if str(f.type).startswith("tuple")}
        filters = {option: tuple(values) for option, values in given["filters"].items()}
        return cls(**{**given, **{n: tuple(given[n]) for n in tuples}, "filters": filters})


def fresh_seed() -> int:
    """Of inputs that nobody has seen."""
    return SystemRandom().randrange(2**31)


def command_of(words: Iterable[str]) -> str:
    """A command as a file of results has it: without where files lie on the machine that ran it."""
    told, option = ["wgdsl"], ""
    for word in words:
        name, equals, value = word.partition("=")
        if option in PLACES:
            told.append(_placeless(option, word))
        else:
            told.append(f"{name}={_placeless(name, value)}" if equals and name in PLACES else word)
        option = word if option not in PLACES else ""
    return join(told)


def _placeless(option: str, value: str) -> str:
    return "DIR" if option == "--fa3-site" else shown(value)


def shown(schedule: str) -> str:
    """A schedule as a file of results has it: the name of its file, without its folder."""
    file, brace, values = schedule.partition(" {")
    return f"{Path(file).name}{brace}{values}"


def words(text: str | None) -> tuple[str, ...]:
    """`a,b` as two words."""
    return tuple(w.strip() for w in (text or "").split(",") if w.strip())


def cases_of(request: Request) -> list[Case]:
    """The cases, in their order."""
    _known_words("suite", request.suites, SUITES)
    every = [c for name in request.suites or SUITES for c in SUITES[name](request.target)]
    wrong = [*_limits(request), *_unknown(request, every)]
    if wrong:
        raise WgError(wrong)
    left = [c for c in every if _stays(request, c)]
    if not left:
        begins = ",".join(request.cases)
        raise WgError(UnknownWord(what="case", text=begins, known=tuple(c.name for c in every)))
    return left


def peers_of(request: Request, case: Case) -> list[str]:
    """Those that are asked, in the order in which the case has them."""
    wanted = case.usual if not request.peers else case.peers if ALL in request.peers else request.peers
    return [p for p in case.peers if p in wanted]


def peers_here(request: Request, case: Case, missing: Container[str]) -> list[str]:
    """Those that are asked and there; where none of the usual ones is, who is asked otherwise."""
    there = [p for p in peers_of(request, case) if p not in missing]
    return there if there or request.peers else [p for p in case.otherwise if p not in missing]


def schedules_of(case: Case, named: Sequence[str]) -> Mapping[str, str | None]:
    """Contestant -> its schedule; None for the one that is chosen. named: those of the request that fit the case."""
    if case.schedules:
        return {"wgdsl": case.schedules[0]} if len(case.schedules) == 1 else {f"wgdsl {s}": s for s in case.schedules}
    if not named:
        return {"wgdsl": None}
    alike = Counter(map(shown, dict.fromkeys(named)))
    return {f"wgdsl {shown(s) if alike[shown(s)] == 1 else s}": s for s in named}


def _stays(request: Request, case: Case) -> bool:
    for option, values in request.filters.items():
        fact = case.facts.get(FILTERS[option])
        if values and fact is not None and str(fact) not in values:
            return False
    return any(case.name.startswith(begin) for begin in request.cases)


def _limits(request: Request) -> Iterator[Problem]:
    r = request
    limits = {"--rounds": r.rounds, "--ms": r.ms, "--budget": r.budget, "--timeout": r.timeout, "--jobs": r.jobs}
    yield from (BadLimit(option=name, value=value) for name, value in limits.items() if not value > 0)


def _unknown(request: Request, every: Sequence[Case]) -> Iterator[Problem]:
    """Words that no case of the suites has."""
    peers = {p: None for c in every for p in c.peers}
    yield from _strange("peer", request.peers, (*peers, ALL))
    for option, values in request.filters.items():
        facts = {str(c.facts[FILTERS[option]]): None for c in every if FILTERS[option] in c.facts}
        yield from _strange(FILTERS[option], values, facts)


def _known_words(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    wrong = list(_strange(what, given, known))
    if wrong:
        raise WgError(wrong)


def _strange(what: str, given: Iterable[str], known: Iterable[str]) -> Iterator[Problem]:
    there = tuple(known)
    yield from (UnknownWord(what=what, text=w, known=there) for w in given if w not in there)
