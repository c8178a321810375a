"""Problems as text.

In: a `Problem`. Out: the title with its code, the place, the source lines with carets under them, notes and help; plain, or
coloured for a terminal. A tab counts as one column and is shown as four spaces, with the carets where they belong; what
can't be printed is shown as U+FFFD.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..foundation.source import Source, Span
from .model import Problem

if TYPE_CHECKING:
    from rich.text import Text

_TAB = 4
_WIDTH = 110  # of a source line that is shown
_ROOM = 40  # lines of all problems together
_MAX_LABELS = 6

Line = list[tuple[str, str]]  # pieces with their rich styles


@dataclass(frozen=True)
class _Mark:
    span: Span
    label: str
    primary: bool

    @property
    def style(self) -> str:
        return "bold red" if self.primary else "bold blue"


def render_plain(problem: Problem) -> str:
    """The problem in at most 40 lines, without colour and without a final line end."""
    return "\n".join("".join(text for text, _ in line).rstrip() for line in _lines(problem))


def render_rich(problem: Problem) -> Text:
    """The same text with colours, for `rich.console.Console.print`."""
    from rich.text import Text

    return Text("\n").join(Text.assemble(*line) for line in _lines(problem))


def render_all(problems: Iterable[Problem]) -> str:
    """As many problems as fit in 40 lines, at least one, and how many more there are."""
    texts = [render_plain(p) for p in problems]
    shown, used = [], 0
    for text in texts:
        used += text.count("\n") + 2
        if shown and used > _ROOM - 2:
            break
        shown.append(text)
    more = len(texts) - len(shown)
    return "\n\n".join(shown) + (f"\n\n... and {more} more" if more else "")


def _lines(problem: Problem) -> Iterator[Line]:
    yield [(f"error[{problem.code}]", "bold red"), (f": {_clean(problem.title())}", "bold")]
    margin = 0
    if problem.span is not None:
        marks = [_Mark(problem.span, problem.label(), True)]
        marks += [_Mark(span, label, False) for span, label in problem.others() if span is not None][:_MAX_LABELS]
        margin = max(len(str(m.span.line)) for m in marks) + 1
        yield from _snippets(marks, margin)
    for kind, text in (*(("note", n) for n in problem.notes()), ("help", problem.help())):
        first, *rest = text.split("\n") if text else [""]
        if first:
            yield [(" " * margin + " = ", "bold blue"), (f"{kind}: ", "bold"), (_clean(first), "")]
            yield from ([(" " * (margin + 9) + _clean(more), "")] for more in rest)


def _snippets(marks: list[_Mark], margin: int) -> Iterator[Line]:
    """One snippet for each source, that of the primary mark first."""
    sources = list(dict.fromkeys(m.span.source for m in marks))  # two texts without a file are two, of one name
    for source in sources:
        own = [m for m in marks if m.span.source == source]
        arrow = "-->" if source is sources[0] else ":::"
        line, column = source.line_column(own[0].span.start)
        yield [(" " * margin + arrow, "bold blue"), (f" {_clean(source.path)}:{line}:{column}", "")]
        yield _rule(margin)
        yield from _snippet(source, sorted(own, key=lambda m: (m.span.line, not m.primary)), margin)
    yield _rule(margin)


def _snippet(source: Source, marks: list[_Mark], margin: int) -> Iterator[Line]:
    previous = None
    for number in sorted({m.span.line for m in marks}):
        if previous is not None and number > previous + 1:
            yield [("...", "bold blue")] if number > previous + 2 else _source_line(source, number - 1, margin)
        previous = number
        here = [m for m in marks if m.span.line == number]
        yield _source_line(source, number, margin, here[0].span.column - 1)
        for mark in here:
            yield _underline(mark, _Window(source.line_text(number), here[0].span.column - 1), margin)


def _source_line(source: Source, number: int, margin: int, focus: int = 0) -> Line:
    window = _Window(source.line_text(number), focus)
    return [(f"{number:>{margin}} | ", "bold blue"), (window.text, "")]


def _underline(mark: _Mark, window: _Window, margin: int) -> Line:
    span, line_end = mark.span, len(mark.span.source.line_text(mark.span.line))
    first = span.column - 1
    last = max(first + 1, min(first + span.stop - span.start, line_end))
    left = window.cell(first)
    width = max(1, window.cell(last) - left)
    text = " " * left + ("^" if mark.primary else "-") * width
    return [*_rule(margin), (f" {text}", mark.style), (f" {_clean(mark.label)}" if mark.label else "", mark.style)]


def _rule(margin: int) -> Line:
    return [(" " * margin + " |", "bold blue")]


class _Window:
    """A source line as shown: cut to the width around `focus`, a character number, with a cell for each of its characters."""

    def __init__(self, line: str, focus: int):
        self.first = 0 if len(line) <= _WIDTH else max(0, min(focus - _WIDTH // 3, len(line) - _WIDTH))
        shown = line[self.first : self.first + _WIDTH]
        before = "..." if self.first else ""
        self.text = before + "".join(_shown(c) for c in shown) + ("..." if self.first + _WIDTH < len(line) else "")
        self.cells = [len(before)]
        for c in shown:
            self.cells.append(self.cells[-1] + _cells(c))

    def cell(self, character: int) -> int:
        return self.cells[max(0, min(character - self.first, len(self.cells) - 1))]


def _shown(c: str) -> str:
    if c in "\t\f":
        return " " * _cells(c)
    return c if c.isprintable() else "\ufffd"


def _cells(c: str) -> int:
    if c == "\t":
        return _TAB
    if unicodedata.combining(c):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


def _clean(text: str) -> str:
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
