"""`wgdsl tune`: the candidates of a program, ranked by the cycle model, compiled in parallel, timed on a GPU.

In: a `Request`, and what gives a `Stopwatch` for a target (None without a GPU that runs it).  Out: an `Outcome` for each call,
as soon as it is there; rows of the table that the chooser reads. What was measured when somebody interrupts is kept; what the
table has isn't measured again.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from ..diagnostics.model import WgError
from ..diagnostics.runtime import DimsDontFit, UnknownSetting
from ..foundation.resources import resource
from ..measured.table import Row, Table, add, merged, read_table, table_path
from ..reading import read_unit
from ..reference.shapes import solve_dims
from ..syntax.candidate import Candidate
from .candidates import Field, Structure, field_of
from .contest import Contest, times_of
from .halving import Measured, measured, starts
from .hardware import today
from .progress import Progress
from .shapes import calls_of
from .supervised import Entry
from .trying import Built, Foreseen, Refused, Trial, build, foresee
from .workers import Workers, workers

RANKED_BY, BUILT_BY = 0.4, 0.65  # parts of the time of a call by which these have to be done


class Stopwatch(Protocol):
    """What times candidates: a GPU, with all that may go wrong on it."""

    card: str

    def times(self, contest: Contest, until: float) -> Generator[Entry]:
        """Entries of `contest`, as they come, at the latest by `until` (of `time.monotonic`)."""
        ...


@dataclass(frozen=True, kw_only=True)
class Request:
    """schedules: with commas between them; None for all. most: candidates that are timed for a call. seconds: for each call.
    again: also what the table has. command: what the table says of its making."""

    file: Path
    dims: tuple[str, ...]
    program: str | None = None
    schedules: str | None = None
    settings: tuple[str, ...] = ()
    target: str = "auto"
    most: int = 40
    seconds: float = 120.0
    jobs: int = 1
    into: Path | None = None
    again: bool = False
    command: str = "wgdsl tune"


@dataclass(kw_only=True)
class Outcome:
    """Of one call. ranked: seconds by the model, best first. known: microseconds that the table has. taken: those that are to
    run. refused: by candidate, before it ran; faults: when it did. unranked, unbuilt: for which there was no time."""

    dims: Mapping[str, int]
    ranked: dict[str, float | None] = field(default_factory=dict)
    known: dict[str, float] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)
    refused: dict[str, Refused] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    measured: dict[str, Measured] = field(default_factory=dict)
    unranked: int = 0
    unbuilt: int = 0
    interrupted: bool = False
    table: Path | None = None

    @property
    def times(self) -> dict[str, float]:
        """Microseconds, new ones before those of the table."""
        there = {**self.known, **{n: m.median for n, m in self.measured.items()}}
        return {n: us for n, us in there.items() if n not in self.faults}


def tune(request: Request, clock: Callable[[str], Stopwatch | None], progress: Progress) -> Iterator[Outcome]:
    """One outcome for each call, the row of which is in the table by then; an interrupted one is the last. Raises WgError for
    what can't be asked."""
    found = field_of(request.file, request.program, request.schedules, request.settings, request.target)
    calls = [_every_dim(found, dims) for dims in calls_of(request.dims)]
    stopwatch = clock(found.target)
    table = _table(request, found, stopwatch)
    with interruptible(), workers(request.jobs) as pool:
        for dims in calls:
            call = _Call(request, found, dims, table, progress)
            try:
                call.work(pool, stopwatch)
            except KeyboardInterrupt:
                call.outcome.interrupted = True
            yield call.finished()
            if call.outcome.interrupted:
                return


@contextmanager
def interruptible() -> Iterator[None]:
    """A request to end counts as an interruption."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def default_table(file: Path, program: str, target: str) -> Path:
    """Where the times of a program go: beside its file; those of a shipped one to the shipped tables."""
    shipped = file.resolve().is_relative_to(resource("examples"))
    return table_path(program, target, None if shipped else file, several=len(read_unit(file).programs) > 1)


def _every_dim(found: Field, dims: Mapping[str, int]) -> dict[str, int]:
    graph = found.graph
    known = (*graph.dims, *graph.derived, *graph.fixed)
    for name in dims:
        if name not in known:
            raise WgError(UnknownSetting(text=name, known=known, why=f"the program has no dim `{name}`"))
    try:
        return solve_dims(graph, {}, dims)
    except ValueError as e:
        raise WgError(DimsDontFit(why=str(e), dims=graph.dims)) from None


@dataclass(frozen=True, kw_only=True)
class _Table:
    path: Path
    head: Table

    def add(self, row: Row) -> None:
        add(self.path, replace(self.head, rows=(row,)))

    def known(self, row: Row) -> dict[str, float]:
        """What the file has of the same call."""
        return {name: us for r in self.there().rows if r.key == row.key for name, us in r.microseconds.items()}

    def there(self) -> Table:
        """What the file has. Raises WgError (WG0660) for one of something else."""
        return merged(read_table(self.path), self.head, str(self.path)) if self.path.exists() else self.head


def _table(request: Request, found: Field, stopwatch: Stopwatch | None) -> _Table | None:
    """Where times go; nowhere if nothing is timed."""
    if stopwatch is None:
        return None
    program, target = found.found.program.name, found.target
    path = request.into or default_table(request.file, program, target)
    head = Table(program=program, target=target, card=stopwatch.card, date=today(), command=request.command, rows=())
    table = _Table(path=path, head=head)
    table.there()  # who can't keep times shouldn't take any
    _writable(path)
    return table


def _writable(path: Path) -> None:
    """Raises OSError if nothing can be written there."""
    there = next(p for p in (path, *path.absolute().parents) if p.exists())
    if not os.access(there, os.W_OK) or (there != path and not there.is_dir()):
        raise OSError(f"{path} can't be written: `--into FILE.json` names another table")


class _Call:
    """The tuning of one call."""

    def __init__(self, request: Request, found: Field, dims: Mapping[str, int], table: _Table | None, progress: Progress):
        self.request, self.field, self.dims, self.table, self.progress = request, found, dims, table, progress
        self.outcome = Outcome(dims=dims, table=table.path if table else None)
        self.start = time.monotonic()
        self.entries: list[Entry] = []

    def work(self, pool: Workers, stopwatch: Stopwatch | None) -> None:
        trials = self._rank(pool)
        if self.table is not None and not self.request.again:
            self.outcome.known = self.table.known(self._row({}))
        self.outcome.taken = self._taken()
        if stopwatch is None or not (names := self._unknown()):
            return
        built = self._build(pool, [trials[n] for n in names])
        if built:
            self._time(stopwatch, Contest(trials={n: trials[n] for n in names if n in built}))

    def _until(self, part: float) -> float:
        return self.start + part * self.request.seconds

    def _rank(self, pool: Workers) -> dict[str, Trial]:
        """The legal candidates with the settings that they need; their ranks into the outcome."""
        trials = [self._trial(c, s) for c, s in self.field.candidates()]
        found: dict[Trial, Foreseen] = {}
        with self.progress.of("ranking", len(trials)) as step:
            for t, result in pool.each(foresee, trials, self._until(RANKED_BY)):
                step(t.candidate)
                if isinstance(result, Foreseen):
                    found[t] = result
                else:
                    self._refuse(t, result)
        self.outcome.unranked = len(trials) - len(found) - len(self.outcome.refused)
        order = sorted((t for t in trials if t in found), key=lambda t: _or_last(found[t].seconds))
        self.outcome.ranked = {t.candidate: found[t].seconds for t in order}
        return {t.candidate: replace(t, settings=found[t].settings) for t in order}

    def _trial(self, c: Candidate, s: Structure) -> Trial:
        file, program, target = str(self.request.file), self.request.program, self.field.target
        return Trial(file=file, program=program, candidate=str(c), target=target, settings=s.settings, dims=self.dims)

    def _refuse(self, t: Trial, result: Any) -> None:
        self.outcome.refused[t.candidate] = result if isinstance(result, Refused) else Refused(code="", why=result.why)

    def _taken(self) -> list[str]:
        """The first by rank; but of each schedule the best one before, as long as these are less than half."""
        ranked, most = list(self.outcome.ranked), self.request.most
        best = {name.split(" {")[0]: name for name in reversed(ranked)}
        first = [n for n in ranked if n in best.values()][: most // 2]
        rest = [n for n in ranked if n not in first]
        return sorted((*first, *rest[: most - len(first)]), key=ranked.index)

    def _unknown(self) -> list[str]:
        """What is to be timed: what isn't known, beside the best that is."""
        known = self.outcome.known
        new = [n for n in self.outcome.taken if n not in known]
        there = [n for n in known if n in self.outcome.ranked]
        return [*new, *([min(there, key=lambda n: known[n])] if new and there else [])]

    def _build(self, pool: Workers, trials: list[Trial]) -> set[str]:
        built: set[str] = set()
        before = len(self.outcome.refused)
        with self.progress.of("compiling", len(trials)) as step:
            for t, result in pool.each(build, trials, self._until(BUILT_BY)):
                step(t.candidate)
                if isinstance(result, Built):
                    built.add(t.candidate)
                else:
                    self._refuse(t, result)
        self.outcome.unbuilt = len(trials) - len(built) - (len(self.outcome.refused) - before)
        return built

    def _time(self, stopwatch: Stopwatch, contest: Contest) -> None:
        count = len(contest.trials)
        timing = self.progress.of("timing", count + starts(count))  # checks, then rounds
        with timing as step, closing(stopwatch.times(contest, self._until(1.0))) as entries:
            for entry in entries:
                self.entries.append(entry)
                what, who = next(iter(entry.items()))
                if what == "fault":
                    self.outcome.faults[who] = entry["why"]
                if what in ("right", "fault", "times"):
                    step(who)

    def finished(self) -> Outcome:
        """What there is, in the table too."""
        times = {n: of for n, of in times_of(self.entries).items() if n not in self.outcome.faults}
        self.outcome.measured = measured(times)
        if self.table is not None and self.outcome.measured:
            self.table.add(self._row({n: m.median for n, m in self.outcome.measured.items()}))
        return self.outcome

    def _row(self, microseconds: Mapping[str, float]) -> Row:
        graph = self.field.graph
        return Row(
            types={n: t.name for n, t in graph.types.items()},
            options=dict(graph.options),
            dims={n: self.dims[n] for n in (*graph.dims, *graph.fixed)},
            microseconds=dict(microseconds),
        )


def _or_last(seconds: float | None) -> float:
    return math.inf if seconds is None else seconds
