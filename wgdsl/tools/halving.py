"""Who of many runs next, and what their times say: successive halving.

In: times of candidates, by round.  Out: the entrants of the next round, and in the end a median and a spread for each. The
first rounds are short and take everybody; the last ones are long, and take the few that may be the best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

FEW = 4  # at least so many stay


@dataclass(frozen=True, kw_only=True)
class Round:
    """calls: of each entrant. share: of all candidates that enter it."""

    calls: int
    share: float


LAST = Round(calls=12, share=0.1)
PLAN = (Round(calls=3, share=1.0), Round(calls=5, share=0.5), Round(calls=8, share=0.25), LAST, LAST, LAST)

Times = Mapping[str, Mapping[int, Sequence[float]]]  # candidate -> round -> the times of its calls


@dataclass(frozen=True, kw_only=True)
class Measured:
    """In the unit of the times. spread: the range of the middle half of the calls, as a part of the median. calls: how many."""

    median: float
    spread: float
    calls: int


def entrants(names: Sequence[str], times: Times, number: int) -> list[str]:
    """Who runs in a round, each time beginning with another: the fastest of the round before. Of those that are left, if some
    have failed."""
    there = [n for n in names if number == 0 or times.get(n, {}).get(number - 1)]
    there.sort(key=lambda n: median(times[n][number - 1]) if number else 0.0)
    first = there[: _stay(len(names), number)]
    turn = number % max(1, len(first))
    return first[turn:] + first[:turn]


def _stay(count: int, number: int) -> int:
    """How many of so many candidates enter a round, if none fails."""
    return min(count, max(FEW, math.ceil(PLAN[number].share * count)))


def starts(count: int) -> int:
    """How often one of so many candidates enters a round."""
    return sum(_stay(count, number) for number in range(len(PLAN)))


def measured(times: Times) -> dict[str, Measured]:
    """What the times say. A card changes its clocks while it works: who has left early is put where those that stayed would
    put it, by how their own times have changed since."""
    rounds = {n: max(r for r, each in of.items() if each) for n, of in times.items() if any(of.values())}
    end = max(rounds.values(), default=0)
    return {n: _measured(times, n, last, end) for n, last in rounds.items()}


def _measured(times: Times, name: str, last: int, end: int) -> Measured:
    mine = [r for r in range(len(PLAN)) if PLAN[r] == PLAN[last] and times[name].get(r)]  # rounds alike count together
    each = [t for r in mine for t in times[name][r]]
    stayed = [of for of in times.values() if of.get(end) and of.get(last)]
    drift = median(median(of[end]) / median(of[last]) for of in stayed) if stayed and PLAN[end] != PLAN[last] else 1.0
    middle = median(each)
    low, _, high = quantiles(each, n=4, method="inclusive") if len(each) > 1 else (middle,) * 3
    return Measured(median=middle * drift, spread=(high - low) / middle, calls=len(each))


def agreeing(names: Sequence[str], same: Callable[[str, str], bool]) -> list[str]:
    """Of results that should be the same, those of the largest group of which each agrees with its first; none if another group
    is as large."""
    groups: list[list[str]] = []
    for n in names:
        group = next((g for g in groups if same(g[0], n)), None)
        if group is None:
            groups.append([n])
        else:
            group.append(n)
    groups.sort(key=len, reverse=True)
    if len(groups) > 1 and len(groups[0]) == len(groups[1]):
        return []
    return groups[0] if groups else []
