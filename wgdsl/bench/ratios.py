"""How much faster a contestant is than its peers.

In: rows of the journal.  Out: ratios of times, above 1: faster than the peer. A ratio is the median of those of each round, in
which both met the same clocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import exp, log
from statistics import median
from typing import Any

Row = Mapping[str, Any]
OWN = "wgdsl"
BAR = 0.93  # of the best peer: points below it are named
GROUPED = ("head dim", "mask")  # facts by which points have means of their own


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """least, most: of the rounds."""

    ratio: float
    least: float
    most: float


def is_own(who: str) -> bool:
    """Whether a contestant is a kernel of this project."""
    return who.split(" ")[0] == OWN


def owns(row: Row) -> list[str]:
    return [who for who in row["contestants"] if is_own(who)]


def ratio(mine: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Of the times of each round."""
    each = [b / a for a, b in zip(mine, theirs, strict=True)]
    return Ratio(ratio=median(each), least=min(each), most=max(each))


def with_ratios(row: Row) -> dict[str, Any]:
    """A row with `tflops`, `spread` (of the rounds, as a part of the median) and `ratios` for each contestant of ours;
    `ratio_best`: of the best of ours to the peer that comes off best against it, which is `best`."""
    who = {name: {**one, **_figures(row, one)} for name, one in row["contestants"].items()}
    rounds = {name: one["rounds"] for name, one in who.items()}
    ratios = {me: {p: ratio(rounds[me], rounds[p]) for p in who if not is_own(p)} for me in who if is_own(me)}
    best = {me: min(of, key=lambda p, of=of: of[p].ratio) for me, of in ratios.items() if of}
    first = max(best, key=lambda me: ratios[me][best[me]].ratio, default=None)
    return {
        **row,
        "contestants": who,
        "ratios": {me: {p: asdict(r) for p, r in of.items()} for me, of in ratios.items()},
        "ratio_best": ratios[first][best[first]].ratio if first is not None else None,
        "best": best[first] if first is not None else None,
    }


def _figures(row: Row, one: Mapping[str, Any]) -> dict[str, float]:
    rounds = one["rounds"]
    return {"tflops": row["work"] / one["microseconds"] * 1e-6, "spread": (max(rounds) - min(rounds)) / median(rounds)}


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Of one contestant to one peer, or to the best of each point: over the points of a suite, or those of them with these
    facts. mean: the geometric one. least: where it is `at`. below: the points under `BAR`, and their ratios."""

    suite: str
    who: str
    peer: str
    points: int
    mean: float
    least: float
    at: str
    below: Mapping[str, float]
    facts: Mapping[str, Any] = field(default_factory=dict)


BEST = "the best"


def summaries(rows: Iterable[Row]) -> list[Summary]:
    """By suite, contestant and peer, in the order in which they come; the best last."""
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in rows:
        for me, of in row["ratios"].items():
            each = {p: r["ratio"] for p, r in of.items()}
            for peer, value in {**each, **({BEST: min(each.values())} if each else {})}.items():
                found.setdefault((row["suite"], me, peer), {})[row["case"]] = value
    order = sorted(found, key=lambda k: (list(dict.fromkeys(x[:2] for x in found)).index(k[:2]), k[2] == BEST))
    return [_summary(*key, found[key]) for key in order]


def grouped(rows: Iterable[Row]) -> list[Summary]:
    """The same for the points of each head dim and mask, where a suite has several."""
    groups: dict[tuple[str, Any], list[Row]] = {}
    for row in rows:
        facts = row.get("facts", {})
        groups.setdefault((row["suite"], tuple((f, facts[f]) for f in GROUPED if f in facts)), []).append(row)
    count = Counter(suite for suite, _ in groups)
    return [replace(s, facts=dict(f)) for (suite, f), of in groups.items() if count[suite] > 1 for s in summaries(of)]


def summary_line(rows: Sequence[Row]) -> dict[str, Any]:
    """All of it, for a file."""
    return {"summary": [_line(s) for s in (*summaries(rows), *grouped(rows))]}


def _line(s: Summary) -> dict[str, Any]:
    who = {"suite": s.suite, "facts": dict(s.facts), "contestant": s.who, "peer": s.peer}
    return {**who, "points": s.points, "mean": s.mean, "least": s.least, "at": s.at, "below": dict(s.below)}


def _summary(suite: str, who: str, peer: str, each: Mapping[str, float]) -> Summary:
    at = min(each, key=lambda c: each[c])
    return Summary(
        suite=suite,
        who=who,
        peer=peer,
        points=len(each),
        mean=exp(sum(map(log, each.values())) / len(each)),
        least=each[at],
        at=at,
        below={c: r for c, r in each.items() if r < BAR},
    )
