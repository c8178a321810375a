"""text: a carried schedule as a `.wg` text, with a comment beside each directive that changed.

In: the schedule's name, program and target, and each kernel's lines and steps.  Out: its text in canonical layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..foundation.source import Source
from ..syntax import ast
from ..syntax.formatter import fmt
from ..syntax.parser import VERSION
from ..syntax.printer import show
from .carried import Carried
from .lines import Carry

INDENT = "  "


def text(head: str, about: str, kernels: Sequence[tuple[ast.KernelDecl | None, Carry]]) -> str:
    """`head`: `schedule NAME for PROGRAM on TARGET`; `about`: what stands above it."""
    lines = [f"wg {VERSION}", "", *(f"# {line}" for line in about.splitlines()), f"{head} {{"]
    for n, (decl, carried) in enumerate(kernels):
        inner = list(_kernel(carried))
        if decl is not None:
            opening = f"kernel {decl.name} computes {', '.join(decl.computes)} {{"
            inner = [*([""] if n else []), opening, *(INDENT + line if line else "" for line in inner), "}"]
        lines += [INDENT + line if line else "" for line in inner]
    return fmt(Source("retargeted.wg", "\n".join([*lines, "}"]) + "\n"))


def _kernel(carried: Carry) -> Iterator[str]:
    """Its lines, in paragraphs: placement, roles, homes, steps."""
    whole = (ast.TileDecl, ast.FuseDecl, ast.StreamDecl, ast.GridDecl, ast.CombineDecl, ast.ApproximateDecl)
    for kind in (whole, (ast.RoleDecl,), (ast.HomeDecl,)):
        found = [c for c in carried.lines if isinstance(c.node, kind)]
        yield from _lines(found)
        if found:
            yield ""
    body = carried.body
    yield f"{body.role} {{"
    yield from (INDENT + line for line in _lines(body.before))
    yield f"{INDENT}for {body.axis} {{"
    yield from (INDENT * 2 + line for line in _lines(body.loop))
    yield INDENT + "}"
    yield from (INDENT + line for line in _lines(body.after))
    yield "}"


def _lines(carried: Iterable[Carried]) -> Iterator[str]:
    for c in carried:
        if c.node is not None:
            yield show(c.node) + (f"  # {c.why}" if c.why else "")
