"""What a mutation is made of: operators, the changes that they make, and the mutants that come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..foundation.source import NOWHERE, Place
from ..roles.model import Kernel, RoleProgram, Step

Path = tuple[int, ...]  # of a step in a role: place in its list, number of the block in that step, place in that list, ...

MUST_REJECT = "must reject"
MAY_PASS = "may pass"


@dataclass(frozen=True, kw_only=True)
class Change:
    """`steps` stand in place of the `length` steps of one list from `path` on. `origins`: for each of them, which of the steps
    it replaces it is (its place among them), itself or changed."""

    path: Path
    steps: tuple[Step, ...] = ()
    origins: tuple[int, ...] = ()
    length: int = 1

    def covers(self, path: Path) -> bool:
        """Whether the step at `path` is one of those that are replaced, or in one."""
        *prefix, first = self.path
        depth = len(prefix)
        return path[:depth] == tuple(prefix) and len(path) > depth and 0 <= path[depth] - first < self.length


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A kernel that an operator has changed. `event`: the step that was changed, as text (or a declaration); `what`: how.
    `copies`: how many copies of the step. `exempt`: the rule by which this is no change of what the program does; else empty.
    """

    kernel: Kernel
    event: str
    what: str
    role: str = ""
    place: Place = NOWHERE
    copies: int = 1
    exempt: str = ""


@dataclass(frozen=True, kw_only=True)
class Operator:
    """A kind of mutation. `expects`: what a verifier owes its mutants. `text`: what it does, for users."""

    name: str
    expects: str
    text: str
    make: Callable[[Kernel], Iterator[Variant]]


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A variant in its program. `number`: which of the program's mutants this is, exempt ones too."""

    number: int
    operator: Operator
    variant: Variant
    program: RoleProgram
    original: Kernel  # before the operator

    @property
    def where(self) -> str:
        """The line of the schedule, if one asks for the event."""
        place = self.variant.place
        return f"{place.path}:{place.line}" if place != NOWHERE else ""

    @property
    def exempt(self) -> str:
        return self.variant.exempt
