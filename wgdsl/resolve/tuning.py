"""tuning: what the `tune` blocks of a schedule leave open.

In: a settled schedule, and the options of its program.  Out: a `Choice` for each entry, its values checked against what the
schedule declares. Nothing of it changes what the schedule itself says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

from ..diagnostics.model import Problem, WgError
from ..diagnostics.schedule import BadNumber, DeclaredTwice, UnknownName
from ..foundation.source import Span
from ..syntax import ast
from ..syntax.candidate import shown
from ..syntax.options import OptionValue
from .evaluate import Names, evaluate
from .known import ProgramNames
from .picked import NAMES, WHAT
from .settle import choice_of, option_decls

_LIMITS = {"tile": (1, 1 << 16, 1), "ring": (1, 32, 1), "registers": (24, 240, 8), "warpgroups": (1, 7, 1)}  # low, high, step


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One entry: `tile i in {128, 192}` has what `tile`, name `i` and two values."""

    what: str
    name: str
    values: tuple[OptionValue, ...]
    span: Span | None = None

    def __str__(self) -> str:
        return f"{self.what} {self.name} in {{{', '.join(map(shown, self.values))}}}"


def choices(schedule: ast.Schedule, program: ast.Program, known: ProgramNames) -> tuple[Choice, ...]:
    """The space of a tuner. Raises WgError for names that aren't declared and values that can't be."""
    reader = _Reader(schedule, program, known)
    found = tuple(reader.read(schedule.items))
    if reader.problems:
        raise WgError(reader.problems)
    return found


def combinations(found: Iterable[Choice]) -> int:
    """How many schedules the choices make."""
    return prod(len(c.values) for c in found)


class _Reader:
    def __init__(self, schedule: ast.Schedule, program: ast.Program, known: ProgramNames):
        self.problems: list[Problem] = []
        self.options = {d.name: d for d in option_decls((*schedule.items, *program.items))}  # type: ignore[arg-type]
        self.program = known
        self.seen: dict[tuple[str, str], Span | None] = {}

    def read(self, items: Iterable[ast.ScheduleItem], outer: Mapping[str, frozenset[str]] | None = None) -> Iterator[Choice]:
        """The choices of a schedule, then those of its kernels, which may choose for the lines around them too."""
        items = tuple(items)
        names = {what: frozenset(of(items)) | (outer or {}).get(what, frozenset()) for what, of in NAMES.items()}
        for item in items:
            if isinstance(item, ast.KernelDecl):
                yield from self.read(item.items, names)
            elif isinstance(item, ast.TuneDecl):
                for entry in item.entries:
                    yield from self.entry(entry, names)

    def entry(self, t: ast.Tuning, names: Mapping[str, frozenset[str]]) -> Iterator[Choice]:
        known = tuple(sorted(self.options if t.what == "option" else names[t.what]))
        if t.name not in known:
            self.problems.append(UnknownName(span=t.span, what=f"{WHAT[t.what]} of this schedule", name=t.name, known=known))
            return
        if (t.what, t.name) in self.seen:
            first = self.seen[t.what, t.name]
            self.problems.append(DeclaredTwice(span=t.span, what=f"choice of {t.what}", name=t.name, first=first))
            return
        self.seen[t.what, t.name] = t.span
        values = [v for e in t.values if (v := self.value(t, e)) is not None]
        for n, value in enumerate(values):
            if value in values[:n]:
                self.problems.append(DeclaredTwice(span=t.span, what=f"value of {t.what} {t.name}", name=str(value)))
        yield Choice(what=t.what, name=t.name, values=tuple(values), span=t.span)

    def value(self, t: ast.Tuning, e: ast.Expr) -> OptionValue | None:
        if t.what == "option":
            return self.option(self.options[t.name], e)
        value = e.value if isinstance(e, ast.Number) else None
        low, high, step = _LIMITS[t.what]
        if isinstance(value, int) and low <= value <= high and value % step == 0:
            return value
        rule = f"it must be a {'whole number' if step == 1 else f'multiple of {step}'} from {low} to {high}"
        self.problems.append(BadNumber(span=e.span, what=f"a value of {t.what} `{t.name}`", value=value, rule=rule))
        return None

    def option(self, d: ast.OptionDecl, e: ast.Expr) -> OptionValue | None:
        enumeration = bool(d.choices) and all(isinstance(c, ast.Name) for c in d.choices)
        enumerated = {d.name: tuple(c.id for c in d.choices if isinstance(c, ast.Name))} if enumeration else {}
        names = Names(values=self.program.values, choices=enumerated)
        try:
            first = d.default if d.default is not None else d.choices[0]
            default = enumerated[d.name][0] if enumeration else evaluate(first, names)
            given = e.id if isinstance(e, ast.Name) and enumeration else evaluate(e, names)
            return choice_of(d, given, default, names)
        except WgError as error:
            self.problems += error.problems
            return None
