"""carried: what became of the directives of a schedule.

A `Carried` is a line or a step of the new schedule with the ones that it comes from, and why it isn't the same; without a node
they are dropped, without an origin the node is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..foundation.source import Span
from ..syntax import ast
from ..syntax.printer import show


@dataclass(frozen=True, kw_only=True)
class Carried:
    node: ast.Node | None
    was: tuple[ast.Node, ...] = ()
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Body:
    """The steps of the one role: before its loop, in it, and behind."""

    role: str
    axis: str
    before: tuple[Carried, ...]
    loop: tuple[Carried, ...]
    after: tuple[Carried, ...]

    @property
    def every(self) -> tuple[Carried, ...]:
        return (*self.before, *self.loop, *self.after)

    @property
    def node(self) -> ast.RoleBody:
        loop = ast.ForStep(axis=self.axis, body=_nodes(self.loop))
        return ast.RoleBody(role=self.role, steps=(*_nodes(self.before), loop, *_nodes(self.after)))


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the report. Empty: `became` where it was dropped, `directive` where it was added, `why` where it was kept."""

    path: str
    line: int
    directive: str
    became: str
    why: str


def rows_of(carried: Carried) -> Iterator[Row]:
    """One for each directive that it comes from."""
    became = show(carried.node) if carried.node is not None else ""
    spans = dict.fromkeys(n.span for n in carried.was if n.span is not None)
    for span in spans:
        yield Row(path=span.source.path, line=span.line, directive=words(span), became=became, why=carried.why)
    if not carried.was:
        yield Row(path="", line=0, directive="", became=became, why=carried.why)


def words(span: Span) -> str:
    """A directive as it is written, on one line, a block without its steps."""
    return " ".join(span.text.partition("{")[0].split()) if span.text.startswith(BLOCKS) else " ".join(span.text.split())


BLOCKS = ("in turn", "once", "tune")


def _nodes(carried: tuple[Carried, ...]) -> tuple[ast.Step, ...]:
    return tuple(c.node for c in carried if c.node is not None)  # type: ignore[misc]
