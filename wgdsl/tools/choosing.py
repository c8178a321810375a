"""`wgdsl choose`: which schedule is taken for a program where none is named, and why.

In: a path, what is fixed, the lengths of a call.  Out: the candidates in their order, the one that is taken, and the row that
says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..driver import field_for, picked, prepare_under
from ..measured.field import Field
from ..measured.nearest import Ranked
from ..measured.pick import Pick, Picker, differences
from ..measured.places import Measured
from ..program.text import spelled
from ..settings import numbers, sort_settings


def choice_text(path: Path, settings: Sequence[str], dims: Sequence[str], program: str | None, target: str) -> str:
    """The text of `wgdsl choose`. Raises WgError for what `compile` would refuse."""
    given = {"program": program, "target": target, "settings": lambda found: sort_settings(found, settings)}
    there, lengths = field_for(path, **given), numbers(dims)
    under = partial(prepare_under, path, **given)
    if there.alone:
        under(there.names[0])
        return f"{_head(there)}\n  {there.names[0]}  taken: there is no other\n"
    picker = there.picker(partial(under, trial=True))
    pick = picked(there, under, partial(picker.pick, lengths))
    return "\n".join([_head(there), *_lines(there, picker, pick, lengths)]) + "\n"


def _head(there: Field) -> str:
    rows = f"{len(there.rows)} row{'s' * (len(there.rows) != 1)} of measured times" if there.rows else "no measured times"
    return f"program {there.program} on {there.target}: {len(there.names)} schedule{'s' * (len(there.names) != 1)}, {rows}"


def _lines(there: Field, picker: Picker, pick: Pick, lengths: Mapping[str, int]) -> Iterator[str]:
    shape = there.shape
    known = {**shape.types, **shape.options, **shape.fixed, **lengths}
    yield f"  for {', '.join(f'{n} = {spelled(v)}' for n, v in known.items())}"
    if pick.ranked.rows:
        yield from _nearest(there, pick.ranked.rows, lengths)
    if not lengths and picker.settled() is None:
        yield "  the lengths of a call matter: `--dims` gives them"
    passed = {r.candidate: r.why for r in pick.passed}
    rows = [(r.candidate, _worth(r), _became(r, pick, passed)) for r in picker.order(lengths)]
    names, times = (max(len(row[k]) for row in rows) for k in (0, 1))
    for name, worth, became in rows:
        yield f"  {name.ljust(names)}  {worth.rjust(times)}  {became}".rstrip()


def _became(r: Ranked, pick: Pick, passed: Mapping[str, str]) -> str:
    if r.candidate == pick.candidate:
        return "taken"
    why = passed.get(r.candidate, r.refused)
    return f"refused: {why}" if why else ""


def _nearest(there: Field, rows: Sequence[Measured], lengths: Mapping[str, int]) -> Iterator[str]:
    """The rows that decide."""
    others = f" and {len(rows) - 1} that {'is' if len(rows) == 2 else 'are'} equally near" if len(rows) > 1 else ""
    yield f"  decided by {rows[0].place} ({rows[0].made}){others}"
    if len(rows) == 1:
        yield from (f"    {line}" for line in differences(rows[0], replace(there.shape, lengths=lengths)))


def _worth(r: Ranked) -> str:
    if r.microseconds is not None:
        return f"{r.microseconds:.1f} us"
    if r.cycles is not None:
        return f"{r.cycles:.3g} cycles"
    return f"{r.ratio:.3f}" if r.rows else "-" if r.refused else "not measured"
