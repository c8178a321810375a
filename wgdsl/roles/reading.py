"""One line of an explicit form -> what it stands for, with the lines in its blocks.

In: a `Line` and what can be named where it stands.  Out: an object of the row's class, or None after a mistake in it, which is
kept. `read.py` puts kernels together of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ..diagnostics.model import Problem
from ..diagnostics.roles import NoOrigin, SlotsDiffer
from ..foundation.source import NOWHERE, Place, Span
from ..syntax.lines import At, Block, Line
from .codecs import read
from .limits import counting
from .matching import Match, matched
from .model import NEXT
from .rows import Row, Slot
from .scope import Scope, Skipped


@dataclass
class LineReader:
    """Reads lines in the order of the text: an `@` holds until the next one."""

    problems: list[Problem] = field(default_factory=list)
    place: Place | None = None  # that the last `@` named
    path: str = ""

    def line(self, line: Line, scope: Scope, **context: Any) -> Any:
        """What a line stands for; None after a mistake in it."""
        try:
            span = self.span(line)
            return self.made(matched(line), span, scope, context)
        except Skipped as e:
            if e.problem is not None:
                self.problems.append(e.problem)
            return None

    def made(self, found: Match, span: Span, scope: Scope, context: dict[str, Any]) -> Any:
        row = found.row
        values = {name: row.default(name) for name in found.absent} | dict.fromkeys(found.flags, True)
        values |= {**row.fixed, **context}
        inner = scope.with_integers(self.axes(found))
        for slot, node in found.slots:
            if isinstance(node, Block):
                values[slot.fields[-1]] = self.nested(row, slot, node, self.bound(row, values, inner), values)
                continue
            told = (node,) if isinstance(node, str) else self.told(slot, node, scope if slot.codec == "axis" else inner)
            for name, value in zip(slot.fields, told, strict=True):
                if values.setdefault(name, value) != value:
                    raise Skipped(SlotsDiffer(span=span, first=_text(found, name, 0), second=_text(found, name, 1)))
        known = {f.name for f in fields(row.make)}
        behind = {"span": span, "note": found.line.trail.note if found.line.trail else ""}
        return row.make(**values, **{k: v for k, v in behind.items() if k in known})

    def told(self, slot: Slot, node: Any, scope: Scope) -> tuple[Any, ...]:
        """The values of a slot's fields."""
        found = read(slot.codec, scope, node)
        if slot.codec == "int":
            counting(slot.fields[0], node, *found)
        return found

    def axes(self, found: Match) -> Iterator[str]:
        """The indices of the axes of a line: integers in what the line computes."""
        for slot, node in found.slots:
            if slot.codec == "axis":
                yield node.name.id

    def bound(self, row: Row, values: dict[str, Any], scope: Scope) -> Scope:
        """What a block can name: the variable of its loop, the indices of an item (behind `leave` where it is fetched)."""
        if row.inside == "items":
            own = [*(["item.ordinal"] if values["counted"] else []), *(["item.begun"] if values["joined"] else [])]
            told = replace(scope, later=_later(scope, values["source"]))
            return told.with_integers([*own, *(scope.grid if values["source"] == "stride" or values["joined"] else ())])
        return scope.with_integers([values[row.inside]]) if row.inside else scope

    def nested(self, row: Row, slot: Slot, block: Block, scope: Scope, values: dict[str, Any]) -> tuple:
        """The lines of a block. The values of a role come first in it; what a `let` names holds for what follows."""
        out = []
        for line in block.lines:
            out.append(self.line(line, scope, **({"role": values["name"]} if is_value(line) else {})))
            scope = self.following(line, scope)
        return tuple(x for x in out if x is not None)

    def following(self, line: Line, scope: Scope) -> Scope:
        """What the lines after one can name. A wrong line names it too: what follows may be right."""
        found = matched(line, strict=False)
        if found.row.after == "items":
            return scope.with_integers(scope.grid)
        if found.row.after == "next":
            return scope.with_integers(["item.follows", *(NEXT + name for name in scope.grid)])
        return scope.with_integers([node.id for slot, node in found.slots if found.row.after in slot.fields])

    # Places.

    def span(self, line: Line) -> Span:
        """The line's first words, with the place that it comes from."""
        span = first_line(line)
        if line.trail is not None and line.trail.at is not None:
            self.place = self.named(line.trail.at)
        return replace(span, origin=self.place)

    def named(self, at: At) -> Place:
        if at.line == 0:
            return NOWHERE
        if at.path is None and not self.path:
            raise Skipped(NoOrigin(span=at.span))
        self.path = at.path or self.path
        return Place(self.path, at.line, at.words or "")


def _later(scope: Scope, source: str) -> dict[str, str]:
    """How the integers of an item come to be known, for those who miss them."""
    leave = "the item's indices are known behind `leave if no item`, directly in `items`: write it before this line"
    follow = "what follows an item is known behind `next item`, in `items joined`"
    return {
        **(dict.fromkeys(scope.grid, leave) if source != "stride" else {}),
        **dict.fromkeys((NEXT + name for name in scope.grid), follow),
        "item.follows": follow,
        "item.begun": "items say whether they have been begun where they are joined: write `items joined`",
        "item.ordinal": "items have numbers where they are counted: write `items counted`",
    }


def first_line(line: Line) -> Span:
    """The span of a line, without the block that it opens."""
    assert line.span is not None
    block = next((p for p in line.parts if isinstance(p, Block)), None)
    stop = block.span.start if block is not None and block.span else line.span.stop
    return Span(line.span.source, line.span.start, stop)


def _text(found: Match, name: str, which: int) -> str:
    nodes = [node for slot, node in found.slots if name in slot.fields]
    span = nodes[min(which, len(nodes) - 1)].span
    return span.text if span is not None else ""


def first_word(line: Line) -> str:
    return line.parts[0] if isinstance(line.parts[0], str) else ""


def is_value(line: Line) -> bool:
    return first_word(line) == "value"
