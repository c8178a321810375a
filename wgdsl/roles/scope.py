"""What names mean while an explicit form is read.

`Names` is what a kernel declares, `Scope` what can be said at one place of it. A name that means nothing is a problem; what was
declared with a mistake of its own is passed over in silence (`Skipped`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from ..diagnostics.model import Problem
from ..diagnostics.roles import NothingOfThatName
from ..syntax.ast import Node


class Skipped(Exception):
    """This line can't be read. `problem` says why, unless that has been said elsewhere."""

    def __init__(self, problem: Problem | None = None):
        super().__init__()
        self.problem = problem


def refuse(problem: Problem) -> NoReturn:
    """Give the line up."""
    raise Skipped(problem)


@dataclass
class Names:
    """kind (barrier, ring, buffer, map, tensor, value) -> name -> what it stands for, None while that isn't read."""

    of: dict[str, dict[str, Any]] = field(default_factory=dict)

    def declare(self, kind: str, name: str, thing: Any = None) -> None:
        self.of.setdefault(kind, {})[name] = thing

    def known(self, kind: str) -> Mapping[str, Any]:
        return self.of.get(kind, {})


@dataclass(frozen=True, kw_only=True)
class Scope:
    """integers: dims, grid indices, loop variables, ...; scalars: arguments that an expression can name; grid: the integers
    that `items` adds; flags among the scalars are conditions; later: what would bind an integer that isn't known here."""

    names: Names
    integers: frozenset[str] = frozenset()
    scalars: frozenset[str] = frozenset()
    grid: frozenset[str] = frozenset()
    later: Mapping[str, str] = field(default_factory=dict)

    def with_integers(self, more: Iterable[str]) -> Scope:
        return replace(self, integers=self.integers | frozenset(more))

    def bound_by(self, name: str) -> str:
        """What to do for an integer of an item that isn't known here; empty for other names."""
        return self.later.get(name, "")

    def name(self, kind: str, node: Node, name: str) -> str:
        """The name, if something of that kind has it."""
        if name not in self.names.known(kind):
            refuse(NothingOfThatName(span=node.span, what=kind, name=name, known=tuple(self.names.known(kind))))
        return name

    def thing(self, kind: str, node: Node, name: str) -> Any:
        """What the name stands for."""
        found = self.names.known(kind)[self.name(kind, node, name)]
        if found is None:
            raise Skipped
        return found
