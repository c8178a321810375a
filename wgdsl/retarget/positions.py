"""positions: at which tile of the stream a step stands.

In: steps and what they name, with the streamed axis.  Out: their offsets, and the same steps at another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

from ..syntax import ast


def name_of(t: ast.Name | ast.Index) -> str:
    return t.id if isinstance(t, ast.Name) else t.base.id


def tile(home: str, axis: str, ahead: int = 0) -> ast.Index:
    index: ast.Expr = ast.Name(id=axis)
    if ahead:
        index = ast.Binary(op="+", left=index, right=ast.Number(value=ahead))
    return ast.Index(base=ast.Name(id=home), indices=(index,))


def offset(node: Any, axis: str) -> int | None:
    """d in `axis + d`, wherever it stands in a step; None if the axis isn't mentioned."""
    if isinstance(node, ast.Name):
        return 0 if node.id == axis else None
    if isinstance(node, ast.Binary) and isinstance(node.left, ast.Name) and isinstance(node.right, ast.Number):
        sign = {"+": 1, "-": -1}.get(node.op)
        return sign * int(node.right.value) if sign and node.left.id == axis else None
    if isinstance(node, ast.Index):
        return next((d for i in node.indices if (d := offset(i, axis)) is not None), None)
    parts = [getattr(node, f.name) for f in fields(node) if f.name != "span"] if isinstance(node, ast.Step) else []
    return next((d for p in parts if isinstance(p, ast.Index) and (d := offset(p, axis)) is not None), None)


def at_own_tile(node: Any, axis: str) -> Any:
    """The step with every `axis + d` as `axis`."""
    if isinstance(node, ast.Index):
        return replace(node, indices=tuple(ast.Name(id=axis) if offset(i, axis) is not None else i for i in node.indices))
    if not isinstance(node, ast.Step):
        return node
    new = {f.name: at_own_tile(getattr(node, f.name), axis) for f in fields(node) if f.name != "span"}
    return replace(node, **new)


def leaves(steps: Iterable[ast.Step]) -> Iterator[ast.Step]:
    for s in steps:
        if isinstance(s, ast.ForStep | ast.OnceStep | ast.TurnStep):
            yield from leaves(s.body)
        else:
            yield s
