"""How the analyse step reports several problems a run.

`Refused` unwinds to the nearest declaration or statement; that one is left out and the next goes on. A `Refused` without
a problem means: something that it needs was refused before, so there is nothing new to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import NoReturn

from ..diagnostics.model import Problem, WgError


class Refused(Exception):
    def __init__(self, problem: Problem | None = None):
        self.problem = problem
        super().__init__(problem)


def refuse(problem: Problem) -> NoReturn:
    """Leave the declaration or statement that stands here out."""
    raise Refused(problem)


class Problems:
    """Collects problems; `close` raises them in source order, if there are any."""

    def __init__(self):
        self._found: list[Problem] = []
        self.refusals = 0

    def add(self, problem: Problem) -> None:
        if problem not in self._found:
            self._found.append(problem)

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Turn a `Refused` inside into an entry."""
        try:
            yield
        except Refused as r:
            self.refusals += 1
            if r.problem is not None:
                self.add(r.problem)

    def close(self) -> None:
        assert self._found or not self.refusals, "something was refused, but nothing reported"
        if self._found:
            raise WgError(sorted(self._found, key=lambda p: p.span.start if p.span else -1))


def nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Up to two known names that look like `name`, best first."""
    known = tuple(dict.fromkeys(known))
    same = tuple(k for k in known if k.lower() == name.lower())
    return same or tuple(get_close_matches(name, known, n=2, cutoff=0.6))
