"""The report of a mutation run as text: what was missed first, then every mutant, then totals by operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from ..mutate import OPERATORS, Mutant
from .mutating import Outcome, Report

WIDTH = 110  # of an event with what was done to it


def report_text(report: Report, *, every: bool = True) -> str:
    """The whole report. `every`: the table of the mutants, too."""
    lines = list(_missed(report))
    if every:
        lines += [*_table([_row(o) for o in report.outcomes]), ""]
    lines += [*_totals(report), "", *_exempt(report.exempt), summary(report)]
    return "\n".join(lines) + "\n"


def summary(report: Report) -> str:
    """One line."""
    tried, missed = len(report.outcomes), len(report.missed)
    of = f" of {report.total}" if tried < report.total else ""
    verdict = "none was missed" if not missed else f"{missed} {'was' if missed == 1 else 'were'} missed"
    gave_up = sum(o.gave_up for o in report.outcomes)
    beside = f", {gave_up} had too many states to tell" if gave_up else ""
    return f"{tried}{of} mutants in {report.seconds:.1f} s: {verdict}{beside}"


def _missed(report: Report) -> Iterator[str]:
    if not report.missed:
        return
    yield "missed: the verifier accepts what it must reject"
    for o in report.missed:
        x = o.mutant
        copies = f", {x.variant.copies} copies" if x.variant.copies > 1 else ""
        yield f"  {x.operator.name}: {x.operator.text}"
        yield f"    {x.variant.event}"
        yield f"    {x.variant.what}{copies}, in {x.variant.role or 'the kernel'} at {x.where or 'no line'}"
        if o.simulated:
            yield f"    accepted, and simulated: {o.simulated}"
    yield ""


def _row(o: Outcome) -> tuple[str, ...]:
    x = o.mutant
    change = f"{x.variant.event}: {x.variant.what}"
    change = change if len(change) <= WIDTH else change[: WIDTH - 3] + "..."
    line = x.where.rpartition("/")[2]
    verdict = f"{o.verdict}{'  MISSED' if o.missed else ''}"
    return x.operator.name, x.variant.role, line, change, verdict, f"{1000 * o.seconds:.0f} ms"


def _totals(report: Report) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [("operator", "", "tried", "rejected", "accepted", "missed", "known", "exempt", "by")]
    exempt = Counter(x.operator.name for x in report.exempt)
    for operator in OPERATORS:
        of = [o for o in report.outcomes if o.mutant.operator.name == operator.name]
        rejected = [o for o in of if o.codes]
        if of or exempt[operator.name]:
            codes = Counter(c for o in rejected for c in o.codes)
            missed, known = sum(o.missed for o in of), sum(o.known for o in of)
            numbers = (len(of), len(rejected), len(of) - len(rejected), missed, known, exempt[operator.name])
            rows.append((operator.name, operator.expects, *map(str, numbers), " ".join(sorted(codes))))
    yield from _table(rows)


def _exempt(exempt: tuple[Mutant, ...]) -> Iterator[str]:
    """The rules by which mutants are no change, and how often."""
    for rule, n in Counter(x.exempt for x in exempt).items():
        yield f"exempt, {n}: {rule}"


def _table(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()
