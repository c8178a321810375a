"""The limit on the depth of a tree, so that passes may recurse over it.

In: a `File`. Out: a problem for each item that is too deep. Python allows 1000 calls inside one another; a pass takes up to
ten a level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from ..diagnostics.model import Problem
from ..diagnostics.syntax import TooDeep
from . import ast
from .lines import Block, Explicit, Line

MAX_DEPTH = 100


def too_deep(file: ast.File) -> Iterator[Problem]:
    """The first node of each item that lies deeper than MAX_DEPTH."""
    for block in (*file.programs, *file.schedules):
        for item in (*block.items, *(block.lines if isinstance(block, Explicit) else ())):
            pending: list[tuple[ast.Node, int]] = [(item, 0)]
            while pending:
                node, depth = pending.pop()
                if depth > MAX_DEPTH:
                    what = "block" if isinstance(node, ast.Step | Block | Line) else "expression"
                    yield TooDeep(span=node.span, limit=MAX_DEPTH, what=what)
                    break
                pending.extend((child, depth + 1) for child in _children(node))


def _children(node: ast.Node) -> Iterator[ast.Node]:
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, ast.Node):
            yield value
        elif isinstance(value, tuple):
            for entry in value:
                if isinstance(entry, tuple):
                    yield from (part for part in entry if isinstance(part, ast.Node))
                elif isinstance(entry, ast.Node):
                    yield entry
