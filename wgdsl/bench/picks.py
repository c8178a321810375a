"""What this project runs in each case: the schedule that is named or chosen, compiled beforehand.

In: cases, and which of the schedules that were named fit each.  Out: for each case, contestant -> candidate; and why one has
none. Processes do the work, each thing once: whoever runs the kernel later finds it in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..diagnostics.model import InternalError, WgError
from ..driver import Settings, chosen, compile
from ..tools.progress import Progress
from ..tools.workers import Died, Workers
from .case import Case, Own
from .fitting import Fitting
from .request import schedules_of


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Calls of one program under the same settings, whose schedule is to be chosen."""

    own: Own
    lengths: tuple[tuple[tuple[str, int], ...], ...]

    def __hash__(self) -> int:
        return hash((self.own.program, self.lengths))


@dataclass(frozen=True, kw_only=True)
class Building:
    """A kernel that is to be compiled, whatever the lengths of its calls."""

    own: Own
    candidate: str

    def __hash__(self) -> int:
        return hash((self.own.program, self.candidate))


@dataclass(frozen=True, kw_only=True)
class Refused:
    why: str


@dataclass(frozen=True, kw_only=True)
class Picks:
    """candidates, refused: by the key of a case, contestant -> what it runs, or why it runs nothing."""

    candidates: dict[str, dict[str, str]]
    refused: dict[str, dict[str, str]]


def choose(task: Choice) -> list[str] | Refused:
    """The candidate for each of the calls."""
    return _unless_refused(lambda: [_chosen(task.own, dict(lengths)) for lengths in task.lengths])


def build(task: Building) -> Refused | None:
    """Compile into the cache."""
    own = task.own
    return _unless_refused(
        lambda: _none(
            compile(
                own.program,
                schedule=task.candidate,
                target=own.target,
                dims=own.dims,
                types=own.types,
                options=own.options,
            )
        )
    )


def _none(kernel: object) -> None:
    """Kernels don't travel between processes."""


def _chosen(own: Own, lengths: dict[str, int]) -> str:
    settings = Settings(options=dict(own.options), types=dict(own.types), dims=dict(own.dims))
    return chosen(own.program, target=own.target, settings=settings, lengths=lengths)


def _unless_refused(work):
    try:
        return work()
    except WgError as e:
        return Refused(why=f"{e.problems[0].code}: {e.problems[0].title()}")
    except InternalError as e:
        return Refused(why=" ".join(str(e).split()))


def picks_of(cases: Sequence[Case], fit: Fitting, pool: Workers, progress: Progress, until: float) -> Picks:
    """Choose, then compile; what isn't ready by `until` (of `time.monotonic`) is refused."""
    named = {c.key: schedules_of(c, fit[c.key]) for c in cases}
    picks = Picks(candidates={c.key: {} for c in cases}, refused={c.key: {} for c in cases})
    open_ = [c for c in cases if None in named[c.key].values()]
    chosen_ = _choices(open_, pool, progress, until)
    for c in cases:
        for who, schedule in named[c.key].items():
            found = schedule if schedule is not None else chosen_.get(c.key, Refused(why="no schedule was chosen in time"))
            if isinstance(found, Refused):
                picks.refused[c.key][who] = found.why
            else:
                picks.candidates[c.key][who] = found
    _compile(cases, picks, pool, progress, until)
    return picks


def _choices(cases: Sequence[Case], pool: Workers, progress: Progress, until: float) -> dict[str, str | Refused]:
    groups: dict[str, list[Case]] = {}
    for c in cases:
        groups.setdefault(repr(_same(c.own)), []).append(c)
    tasks = {_choice(of): of for of in groups.values()}
    found: dict[str, str | Refused] = {}
    with progress.of("choosing", len(tasks)) as step:
        for task, result in pool.each(choose, list(tasks), until):
            step(tasks[task][0].name)
            names = result if isinstance(result, list) else [Refused(why=result.why)] * len(tasks[task])
            found |= {c.key: name for c, name in zip(tasks[task], names, strict=True)}
    return found


def _same(own: Own) -> Own:
    """What is compiled, whatever the lengths."""
    return replace(own, lengths={})


def _choice(cases: Sequence[Case]) -> Choice:
    return Choice(own=_same(cases[0].own), lengths=tuple(tuple(c.own.lengths.items()) for c in cases))


def _compile(cases: Sequence[Case], picks: Picks, pool: Workers, progress: Progress, until: float) -> None:
    """Every kernel once. Who can't be compiled, or isn't in time, runs nothing."""
    users: dict[str, list[tuple[str, str]]] = {}
    tasks: dict[str, Building] = {}
    for c in cases:
        for who, candidate in picks.candidates[c.key].items():
            task = Building(own=_same(c.own), candidate=candidate)
            tasks[repr(task)] = task
            users.setdefault(repr(task), []).append((c.key, who))
    left = dict.fromkeys(tasks, "it wasn't compiled in time")
    with progress.of("compiling", len(tasks)) as step:
        for task, result in pool.each(build, list(tasks.values()), until):
            step(task.candidate)
            refused = _refused(result)
            if refused is None:
                del left[repr(task)]
            else:
                left[repr(task)] = refused.why
    for name, why in left.items():
        for key, who in users[name]:
            del picks.candidates[key][who]
            picks.refused[key][who] = why


def _refused(result: object) -> Refused | None:
    return Refused(why=result.why) if isinstance(result, Refused | Died) else None


def refusals(picks: Picks) -> Iterator[tuple[str, str, str]]:
    """(case, contestant, why)"""
    for key, of in picks.refused.items():
        yield from ((key, who, why) for who, why in of.items())
