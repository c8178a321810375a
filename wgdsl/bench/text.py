"""What `wgdsl bench` says: a line for each case, and a summary.

In: rows with their ratios.  Out: lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .ratios import BAR, BEST, Row, Summary, grouped, summaries
from .results import Results


def head_lines(about: dict[str, Any]) -> Iterator[str]:
    """The machine, and who is missing."""
    versions = ", ".join(f"{name} {v}" for name, v in about.get("versions", {}).items())
    known = {n: v for n, v in about.items() if n in ("wgdsl", "date", "driver", "rounds", "ms", "seed", "clock and power")}
    yield f"{about.get('card', 'an unknown card')}: {', '.join(f'{n} {v}' for n, v in known.items())}"
    if versions:
        yield f"  {versions}"
    for peer, why in about.get("missing", {}).items():
        yield f"  without {peer}: {why}"


def row_lines(row: Row) -> Iterator[str]:
    """One line for each contestant of ours; for a case in which none is left, one that says so."""
    if not row["ratios"]:
        yield f"{_point(row)}  no kernel of this project is left"
    for me, of in row["ratios"].items():
        one = row["contestants"][me]
        parts = [_point(row), f"{me} {one['tflops']:.0f} TFLOP/s", *(_beside(p, r) for p, r in of.items())]
        yield "  ".join([*parts, *_state(one), one.get("schedule", "")]).rstrip()


def _point(row: Row) -> str:
    return f"{row['suite']:9}  {row['case']:24}"


def _beside(peer: str, r: Any) -> str:
    return f"{peer} {r['ratio']:.3f} [{r['least']:.3f} {r['most']:.3f}]"


def _state(one: Any) -> Iterator[str]:
    if one.get("mhz") is not None:
        yield f"{one['mhz']:.0f} MHz"
    if one.get("watts") is not None:
        yield f"{one['watts']:.0f} W"


def fault_line(fault: dict[str, str]) -> str:
    return f"left out: {fault['key']}: {fault['contestant'] or 'the inputs'}: {fault['why']}"


def summary_lines(results: Results) -> Iterator[str]:
    """By suite: geometric means of ratios, in all and by head dim and mask, the least and where, the points under the bar; who
    was left out."""
    parts = grouped(results.rows)
    for s in summaries(results.rows):
        yield f"{s.suite}: {s.who} to {s.peer}: {s.mean:.3f}, least {s.least:.3f} at {s.at} ({_points(s)})"
        means = [f"{_named(p)} {p.mean:.3f}" for p in parts if (p.suite, p.who, p.peer) == (s.suite, s.who, s.peer)]
        if means:
            yield f"  {', '.join(means)}"
        if s.peer == BEST and s.below:
            named = ", ".join(f"{c} {r:.3f}" for c, r in sorted(s.below.items(), key=lambda x: x[1]))
            yield f"  below {BAR}: {named}"
    yield from map(fault_line, results.faults)


def _named(s: Summary) -> str:
    """`d64 causal`"""
    return " ".join(f"d{value}" if fact == "head dim" else str(value) for fact, value in s.facts.items())


def _points(s: Summary) -> str:
    return f"{s.points} point{'s' * (s.points != 1)}"


def every_line(results: Results) -> Iterator[str]:
    """All of it again, of a file."""
    yield from head_lines(results.about)
    for row in results.rows:
        yield from row_lines(row)
    yield from summary_lines(results)
