"""What a tuner may try: schedules of one program, each with every combination of values of its `tune` entries.

In: a program's file, names of schedules (none: all that there are for the program and target), and `--set` texts.  Out: a
`Field` with a `Structure` for each schedule, and candidates. Options of the program and its types say what is computed: no
entry of a tuner changes them. Two combinations that settle to the same lines are one candidate, named with as few values as
will do; what a schedule's lines say anyway is in no name.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.runtime import UnknownSetting
from ..diagnostics.tools import NotByName
from ..driver import Settings, Space, space, wanted
from ..reading import read_unit
from ..resolve.extend import split
from ..resolve.known import program_names
from ..resolve.picked import picked
from ..resolve.settle import option_decls, settle, share_out
from ..resolve.tuning import Choice, combinations
from ..settings import pairs, sort_settings
from ..sources import Found, find, schedule_names
from ..syntax import ast
from ..syntax.candidate import Candidate, Picked, candidate

SAMPLED = 1000  # combinations of one schedule that are looked at, if it has more
_SEVERAL = re.compile(r",(?![^{]*\})")  # commas outside braces


@dataclass(frozen=True, kw_only=True)
class Structure:
    """One schedule. given: values that the caller has chosen for it. settings: those of the program."""

    asked: Candidate
    space: Space
    given: tuple[Picked, ...]
    settings: Settings

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The entries that are left to the tuner; none of a schedule that was named with its values."""
        if self.asked.values:
            return ()
        own = {d.name for d in option_decls(self.space.found.schedule.items)} - {v.name for v in self.given}
        return tuple(c for c in self.space.choices if c.what != "option" or c.name in own)

    @property
    def base(self) -> Candidate:
        """The schedule as it is written, with what the caller has chosen."""
        return replace(self.asked, values=(*self.asked.values, *self.given))

    @property
    def combinations(self) -> int:
        return combinations(self.choices)

    def candidates(self) -> list[Candidate]:
        """Each once, the schedule as it is written first."""
        if self.asked.values:
            return [self.base]
        every = (replace(self.base, values=(*self.base.values, *values)) for values in ((), *_combinations(self.choices)))
        return list(dict.fromkeys(map(self._least, every)))

    def _least(self, c: Candidate) -> Candidate:
        """Without the values that change nothing."""
        same = self.settled(c)
        for v in c.values:
            less = replace(c, values=tuple(x for x in c.values if x != v))
            c = less if self.settled(less) == same else c
        return c

    def settled(self, c: Candidate) -> Any:
        """What tells one candidate from another: the lines in literals. One whose options are refused is like no other."""
        found, graph = self.space.found, self.space.graph
        try:
            schedule, options = picked(found.schedule, c.values)
            own = share_out(found.program, schedule, options)[1]
            items = settle(schedule, own, program_names(found.program, graph)).items
            return frozenset(_full(i) for i in split(items) if not isinstance(i, ast.TuneDecl | ast.OptionDecl))
        except WgError:
            return c


@dataclass(frozen=True, kw_only=True)
class Field:
    """refused: schedules that nobody asked for by name, and what is wrong with them under these settings."""

    found: Found
    structures: tuple[Structure, ...]
    refused: Mapping[str, WgError] = field(default_factory=dict)

    @property
    def target(self) -> str:
        return self.found.schedule.target

    @property
    def graph(self) -> Any:
        return self.structures[0].space.graph

    def candidates(self) -> list[tuple[Candidate, Structure]]:
        """Of all schedules: first each as it is written, then one combination of each after the other. What two schedules have
        in common is a candidate of the first."""
        each = ([(c, s) for c in s.candidates()] for s in self.structures)
        found: dict[Any, tuple[Candidate, Structure]] = {}
        for c, s in (row for column in zip_longest(*each) for row in column if row is not None):
            found.setdefault(s.settled(c), (c, s))
        return list(found.values())


def field_of(file: Path, program: str | None, schedules: str | None, settings: Sequence[str], target: str) -> Field:
    """What there is to try. Raises WgError for names that don't exist, and for what is wrong with a schedule that was named."""
    names = [name.strip() for name in _SEVERAL.split(schedules or "") if name.strip()]
    files = [n for n in names if candidate(n).schedule.endswith(".wg")]
    if files:
        raise WgError(NotByName(path=n) for n in files)
    first = find(file, program=program, schedule=names[0] if names else None, wanted=wanted(target))
    asked = [candidate(n) for n in names or schedule_names(first, read_unit(file), wanted(target))]
    look = partial(_found, file, program, target=first.schedule.target)
    founds, refused = _each(asked, look, strict=bool(names))
    own, theirs = _shared_out(first, founds.values(), settings)
    given = {c: _options(c, found, theirs) for c, found in founds.items()}
    structures, more = _each(founds, lambda c: _structure(file, program, first, c, given[c], own), strict=bool(names))
    refused |= more
    if not structures:
        raise next(iter(refused.values()))
    return Field(found=first, structures=tuple(structures.values()), refused=refused)


def _each(asked: Iterable[Candidate], make: Any, strict: bool) -> tuple[dict[Candidate, Any], dict[str, WgError]]:
    """What is made of each name; and why not, unless that is to be raised."""
    made: dict[Candidate, Any] = {}
    refused: dict[str, WgError] = {}
    for c in asked:
        try:
            made[c] = make(c)
        except WgError as e:
            if strict:
                raise
            refused[str(c)] = e
    return made, refused


def _found(file: Path, program: str | None, c: Candidate, *, target: str) -> Found:
    return find(file, program=program, schedule=str(c), wanted=wanted(target))


def _shared_out(first: Found, founds: Iterable[Found], settings: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The texts that are about the program, and options of schedules. Raises WgError (WG0654) for names that nobody has."""
    theirs = {d.name for f in founds for d in option_decls(f.schedule.items)}
    mine = {d.name for d in first.program.items if isinstance(d, ast.OptionDecl | ast.TypeDecl)}
    mine |= {name for d in first.program.items if isinstance(d, ast.DimsDecl) for name, _ in d.entries}
    given = pairs(settings)
    for name, _ in given:
        if name not in mine | theirs:
            raise WgError(UnknownSetting(text=name, known=tuple(sorted(mine | theirs))))
    return [f"{n}={v}" for n, v in given if n in mine], {n: v for n, v in given if n not in mine}


def _options(c: Candidate, found: Found, given: Mapping[str, str]) -> tuple[Picked, ...]:
    """The caller's values of the options that a schedule has; those in its name come first."""
    has = {d.name for d in option_decls(found.schedule.items)} - {v.name for v in c.values if v.what == "option"}
    return tuple(candidate(f"s {{option {n} {v}}}").values[0] for n, v in given.items() if n in has)


def _structure(
    file: Path, program: str | None, first: Found, c: Candidate, given: tuple[Picked, ...], settings: list[str]
) -> Structure:
    own = sort_settings(first, settings)
    named = str(replace(c, values=(*c.values, *given)))  # the values of an entry may depend on options
    opened = space(file, program=program, schedule=named, target=first.schedule.target, settings=lambda _: own)
    return Structure(asked=c, space=opened, given=given, settings=own)


def _full(item: ast.ScheduleItem) -> ast.ScheduleItem:
    """With what it says by leaving it out."""
    alone = isinstance(item, ast.HomeDecl) and item.ring is None
    return replace(item, ring=ast.Number(value=1)) if alone else item


def _combinations(choices: Sequence[Choice]) -> Iterator[tuple[Picked, ...]]:
    """All of them; of very many some, the same ones each time, none of which is preferred."""
    total = combinations(choices)
    numbers = range(total) if total <= SAMPLED else sorted(random.Random(0).sample(range(total), SAMPLED))
    for number in numbers:
        values = []
        for c in reversed(choices):
            number, k = divmod(number, len(c.values))
            values.append(Picked(what=c.what, name=c.name, value=c.values[k]))
        yield tuple(reversed(values))
