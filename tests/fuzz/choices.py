"""Where a generator's decisions come from: a seed, a list of numbers, or hypothesis (`tests.fuzz.strategy`).

Every decision is one number, `index(n)`, and 0 is the simplest answer: so a failing case shrinks by lowering numbers, whoever
drew them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Decisions, and the numbers they were made of. `draw(n)` gives a number from 0 to n - 1."""

    def __init__(self, draw: Callable[[int], int]):
        self._draw = draw
        self.taken: list[int] = []

    def index(self, n: int) -> int:
        if n > 1:
            self.taken.append(self._draw(n))
        return self.taken[-1] if n > 1 else 0

    def pick(self, *options: T) -> T:
        return options[self.index(len(options))]

    def chance(self, percent: int) -> bool:
        """True so many times in a hundred; the simplest is False."""
        return self.index(100) >= 100 - percent

    def between(self, low: int, high: int) -> int:
        return low + self.index(high - low + 1)

    def order(self, items: Sequence[T]) -> list[T]:
        """Some permutation; the simplest changes nothing."""
        rest, out = list(items), []
        while rest:
            out.append(rest.pop(self.index(len(rest))))
        return out


def seeded(seed: int) -> Choices:
    return Choices(Random(seed).randrange)


def replayed(numbers: Sequence[int]) -> Choices:
    """The decisions of a list; behind its end the simplest ones."""
    rest = list(reversed(numbers))
    return Choices(lambda n: min(rest.pop(), n - 1) if rest else 0)
