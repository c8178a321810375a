"""Names in the AST: which indices a statement binds, which functions a `def` calls.

In: AST nodes.  Out: names, in source order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

from ..foundation.source import Span
from ..syntax import ast
from .context import Context


def walk(node: ast.Node) -> Iterator[ast.Node]:
    """An AST node and everything under it, in source order."""
    stack: list[object] = [node]
    while stack:
        x = stack.pop()
        if isinstance(x, tuple):
            stack.extend(reversed(x))
        elif isinstance(x, ast.Node):
            yield x
            stack.extend(getattr(x, f.name) for f in reversed(fields(x)) if f.name != "span")


def left_indices(context: Context, target: ast.Index) -> list[tuple[str, Span | None]]:
    """The indices that a left side binds, in the order in which they occur; a `let` stands for its expression."""
    found: dict[str, Span | None] = {}

    def visit(e: ast.Node, opening: tuple[str, ...]) -> None:
        for x in walk(e):
            if not isinstance(x, ast.Name) or x.id in opening:
                continue
            if x.id in context.lets:
                visit(context.lets[x.id].value, (*opening, x.id))
            elif x.id not in context.names:
                found.setdefault(x.id, x.span)

    for e in target.indices:
        visit(e, ())
    return list(found.items())


def axes(s: ast.Statement) -> list[tuple[str, Span | None]]:
    """The axes that the reductions of a statement bind, with the places of those reductions."""
    return [(a, x.span) for x in walk(s) if isinstance(x, ast.Reduce) for a in x.axes]


def calls_of(d: ast.DefDecl) -> tuple[str, ...]:
    """The functions that the body of a `def` calls."""
    return tuple(x.function for x in walk(d.body) if isinstance(x, ast.Call))


def cycle(start: str, calls: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """A path from `start` back to itself, or ()."""
    seen: set[str] = set()
    stack: list[tuple[str, tuple[str, ...]]] = [(start, (start,))]
    while stack:
        name, path = stack.pop()
        for callee in calls.get(name, ()):
            if callee == start:
                return (*path, start)
            if callee in calls and callee not in seen:
                seen.add(callee)
                stack.append((callee, (*path, callee)))
    return ()
