"""Two walks through a role at once: the role as it is, and as some changes make it, along every path through its blocks.

Paths are taken without asking what their conditions say: both sides of a branch, none and any number of rounds of a loop. So
what holds on all of them holds; what is found on some of them may be on none that is ever taken.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Protocol

from ..roles import model as m
from ..roles.model import Kernel, Step
from .model import Change, Path

State = Hashable
Seen = Hashable  # what a step sees of a state; None if it doesn't look

LIMIT = 4000  # pairs of states, beyond which nothing is claimed


class Domain(Protocol):
    """One thing that steps do and see. `start`: its state before the role."""

    start: State

    def step(self, state: State, path: Path, s: Step) -> tuple[State, Seen]:
        """The state after a step, and what the step has seen of the one before."""
        ...

    def end(self, state: State) -> Seen:
        """What the end of the role sees."""
        ...

    def harm(self, before: Seen, after: Seen) -> bool:
        """Whether a step sees less than it has to: `before` in the role as it is, `after` (None: it is gone) in the other."""
        ...


class Harm(Exception):
    """A step on some path sees less than before."""


def harmful(kernel: Kernel, role: int, changes: Iterable[Change], domain: Domain) -> bool:
    """Whether changes let some step of a role see less than it does now."""
    try:
        _Walk(kernel, changes, domain).run(kernel.roles[role].steps)
    except Harm:
        return True
    return False


Pairs = set[tuple[State, State]]


class _Walk:
    def __init__(self, kernel: Kernel, changes: Iterable[Change], domain: Domain):
        self.once = not kernel.grid.persistent  # a CTA has one item
        self.changes = {c.path: c for c in changes}
        self.domain = domain
        self.leaving: Pairs = set()

    def run(self, steps: tuple[Step, ...]) -> None:
        for before, after in self.walk(steps, (), {(self.domain.start, self.domain.start)}):
            self.compare(self.domain.end(before), self.domain.end(after))

    def walk(self, steps: tuple[Step, ...], prefix: Path, pairs: Pairs) -> Pairs:
        k = 0
        while k < len(steps):
            path = (*prefix, k)
            change = self.changes.get(path)
            if change is not None:
                pairs = {self.both(steps, prefix, change, *pair) for pair in pairs}
                k += change.length
            else:
                pairs = self.step(steps[k], path, pairs)
                k += 1
            if len(pairs) > LIMIT:
                raise Harm
        return pairs

    def step(self, s: Step, path: Path, pairs: Pairs) -> Pairs:
        if isinstance(s, m.If):
            return self.walk(s.then, (*path, 0), pairs) | self.walk(s.other, (*path, 1), pairs)
        if isinstance(s, m.Elect):
            return self.walk(s.body, (*path, 0), pairs)
        if isinstance(s, m.Items):
            return self.items(s, path, pairs)
        if isinstance(s, m.Loop):
            return self.rounds(s.body, path, pairs)
        if isinstance(s, m.Leave):
            self.leaving |= pairs
            return pairs
        return {self.one(s, path, *pair) for pair in pairs}

    def items(self, s: m.Items, path: Path, pairs: Pairs) -> Pairs:
        self.leaving = set()
        after = self.walk(s.body, (*path, 0), pairs) if self.once else self.rounds(s.body, path, pairs)
        return after | self.leaving

    def rounds(self, body: tuple[Step, ...], path: Path, pairs: Pairs) -> Pairs:
        seen, new = set(pairs), set(pairs)
        while new:
            new = self.walk(body, (*path, 0), new) - seen
            seen |= new
        return seen

    def one(self, s: Step, path: Path, before: State, after: State) -> tuple[State, State]:
        if before == after:
            state, _ = self.domain.step(before, path, s)
            return state, state
        left, seen = self.domain.step(before, path, s)
        right, other = self.domain.step(after, path, s)
        self.compare(seen, other)
        return left, right

    def both(self, steps: tuple[Step, ...], prefix: Path, c: Change, before: State, after: State) -> tuple[State, State]:
        """Past the steps that a change replaces, and past those that stand in their place."""
        first = c.path[-1]
        left = [(k, s) for k in range(c.length) for s in _leaves(steps[first + k])]
        right = [(k, s) for k, x in zip(c.origins, c.steps, strict=True) for s in _leaves(x)]
        before, seen = self.block(left, (*prefix, first), before)
        after, other = self.block(right, (*prefix, first), after)
        for key, what in seen.items():
            self.compare(what, other.get(key))
        return before, after

    def block(
        self, steps: list[tuple[int, tuple[Path, Step]]], start: Path, state: State
    ) -> tuple[State, dict[Hashable, Seen]]:
        seen: dict[Hashable, Seen] = {}
        for origin, (inner, s) in steps:
            path = (*start[:-1], start[-1] + origin, *inner)
            state, what = self.domain.step(state, path, s)
            seen.setdefault(path, what)
        return state, seen

    def compare(self, before: Seen, after: Seen) -> None:
        if before is not None and self.domain.harm(before, after):
            raise Harm


def leafy(s: Step) -> bool:
    """Whether a step has no steps in it, or is a plain list of such steps for one thread."""
    return not s.blocks() or (isinstance(s, m.Elect) and all(not x.blocks() for x in s.body))


def _leaves(s: Step) -> Iterator[tuple[Path, Step]]:
    """A leafy step's steps, with their paths in it."""
    if isinstance(s, m.Elect):
        yield from (((0, k), x) for k, x in enumerate(s.body))
    else:
        yield (), s
