"""What `wgdsl tune` says of a call: its candidates, best first, and what became of the others.

In: an `Outcome`.  Out: lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from .tune import Outcome

SHOWN = 40  # candidates in a table


def outcome_lines(o: Outcome, timed: bool) -> list[str]:
    """timed: whether there was a GPU to time on."""
    return [", ".join(f"{n} = {v}" for n, v in o.dims.items()), *_rows(o), *_rest(o, timed)]


def _rows(o: Outcome) -> Iterator[str]:
    best = min(o.times.values(), default=None)
    names = sorted(o.times, key=lambda n: o.times[n]) if best is not None else o.taken
    rows = [("candidate", "predicted us", "measured us", "spread", "to best")]
    rows += [_row(o, n, best) for n in names[:SHOWN]]
    if best is None:
        rows = [row[:2] for row in rows]
    if len(rows) > 1:
        yield from aligned(rows)
    if len(names) > SHOWN:
        yield f"  ... and {len(names) - SHOWN} more"


def _row(o: Outcome, name: str, best: float | None) -> tuple[str, ...]:
    predicted = o.ranked.get(name)
    us = o.times.get(name)
    spread = f"{100 * o.measured[name].spread:.1f} %" if name in o.measured else "measured before"
    measured = (f"{us:.1f}", spread, f"{us / best:.3f}") if us is not None and best is not None else ("", "", "")
    return name, f"{1e6 * predicted:.1f}" if predicted is not None else "-", *measured


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns, the first to the left and the rest to the right."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    for row in rows:
        cells = [cell.ljust(w) if c == 0 else cell.rjust(w) for c, (cell, w) in enumerate(zip(row, widths, strict=True))]
        yield "  " + "  ".join(cells).rstrip()


def _rest(o: Outcome, timed: bool) -> Iterator[str]:
    """What isn't in the table, and why."""
    behind = len(o.ranked) - len(o.taken)
    if behind:
        yield f"  {_some(behind)} ranked behind the {len(o.taken)}: `--most` takes more"
    if o.unranked:
        yield f"  {_some(o.unranked)} not ranked in time: `--seconds` gives more"
    if o.unbuilt:
        yield f"  {_some(o.unbuilt)} not compiled in time: `--seconds` gives more"
    yield from _refused(o)
    yield from (f"  left out: {name}: {why}" for name, why in o.faults.items())
    if not timed:
        yield "  nothing was timed, and no table was written: no GPU here runs this target"
    elif o.interrupted:
        yield f"  interrupted: {len(o.measured)} measured" + (f", kept in {o.table}" if o.measured else "")
    elif o.measured:
        yield f"  written to {o.table}"
    elif o.known:
        yield f"  all of these are in {o.table}: `--again` measures them anew"
    else:
        yield "  nothing could be timed"


def _refused(o: Outcome) -> Iterator[str]:
    """How many for each reason, with one of them."""
    counts = Counter(r.code for r in o.refused.values())
    for code, count in counts.most_common():
        name, r = next((n, r) for n, r in o.refused.items() if r.code == code)
        yield f"  {_some(count)} refused, such as {name}: {r}"


def _some(count: int) -> str:
    return f"{count} candidate{'s' * (count != 1)}"
