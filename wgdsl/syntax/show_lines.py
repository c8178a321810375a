"""The explicit form's AST to text, a space between all words: `parse` of it gives the same AST.

In: a node of `lines.py`, and how to show any other.  Out: its text. `roles/text.py` is what prints a role program to be read.
"""

from __future__ import annotations

from collections.abc import Callable

from . import ast
from .lines import At, Block, Box, Dim, Explicit, Extent, KernelLines, Line, Mask, Operand, Order, Several, Text, Trail

Show = Callable[[ast.Node], str]


def show_line(node: ast.Node, show: Show) -> str:
    """The text of one node; nested ones come from `show`."""
    match node:
        case Explicit():
            settings = ", ".join(f"{s.name} = {s.value}" for s in node.settings)
            head = f"roles {node.name} for {node.program} on {node.target}{f' with {settings}' if settings else ''}"
            origin = [f'from "{node.origin.text}"'] if node.origin is not None else []
            return "\n".join([head + " {", *origin, *map(show, node.lines), "}"])
        case KernelLines():
            return "\n".join([f"kernel {node.name.id} {{", *map(show, node.lines), "}"])
        case Line():
            text = " ".join(p if isinstance(p, str) else show(p) for p in node.parts)
            blocks = any(isinstance(p, Block) for p in node.parts)
            return text if blocks or node.trail is None else f"{text} {show(node.trail)}".rstrip()
        case Block():
            return "\n".join([f"{{ {show(node.trail)}".rstrip() if node.trail else "{", *map(show, node.lines), "}"])
        case Trail():
            return " ".join([*([f'"{node.note}"'] if node.note else []), *([show(node.at)] if node.at else [])])
        case At():
            words = f' "{node.words}"' if node.words is not None else ""
            return f"@{node.line}{words}" + (f' of "{node.path}"' if node.path is not None else "")
        case Text():
            return f'"{node.text}"'
        case Several():
            return ", ".join(map(show, node.items))
        case _:
            return _small(node, show)


def _small(node: ast.Node, show: Show) -> str:
    match node:
        case Extent():
            name = f"{show(node.name)} {node.mark} " if node.name is not None else ""
            return name + show(node.start) + (f" {node.step} {show(node.count)}" if node.count is not None else "")
        case Dim():
            factor = f" x {show(node.factor)}" if node.factor is not None else ""
            return f"axis {show(node.axis)}{factor} < {show(node.extent)}"
        case Box():
            coords = f" at ({', '.join(map(show, node.coords))})" if node.coords is not None else ""
            return f"{show(node.tensor)}[{', '.join(map(show, node.extents))}] by {show(node.map)}{coords}"
        case Operand():
            return show(node.of) + (f" {node.major}" if node.major else "")
        case Order():
            outer = ", ".join(show(n) + (" reversed" if n in node.reversed else "") for n in node.outer)
            size = f" of {show(node.size)}" if node.size is not None else ""
            return f"({', '.join(map(show, node.inner))}){size} under ({outer})"
        case Mask():
            return "{" + ", ".join(f"{name}: {kind}" if kind else name for name, kind in node.classes) + "}"
    raise TypeError(f"{type(node).__name__} is no part of the explicit form")
