"""Source texts and the spans that point into them.

In: the text of a `.wg` file.  Out: positions that diagnostics and `#line` can print.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Source:
    """One text with its display path. Lines end with LF, CRLF or a lone CR, and with nothing else."""

    path: str
    text: str = field(repr=False)

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """Offset of the first character of every line."""
        text, starts, at = self.text, [0], 0
        while at < len(text):
            if text.startswith("\r\n", at):
                at += 1
            if text[at] in "\r\n":
                starts.append(at + 1)
            at += 1
        return tuple(starts)

    def line_column(self, offset: int) -> tuple[int, int]:
        """1-based line and column (in characters; a tab is one) of an offset."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line_text(self, line: int) -> str:
        """Line `line` (1-based) without its end."""
        starts = self.line_starts
        stop = starts[line] if line < len(starts) else len(self.text)
        return self.text[starts[line - 1] : stop].rstrip("\r\n")


@dataclass(frozen=True)
class Place:
    """A line of a text that need not be at hand, and the words on it that count."""

    path: str
    line: int
    words: str


NOWHERE = Place("", 0, "")  # the origin of what no line asks for


@dataclass(frozen=True)
class Span:
    """Half-open character range [start, stop) of a source. `origin`: the place that this text was itself derived from."""

    source: Source
    start: int
    stop: int
    origin: Place | None = field(default=None, compare=False, repr=False)

    @property
    def place(self) -> Place:
        """Where the text comes from first of all: its origin, else its own line and the words on it, without a block."""
        if self.origin is not None:
            return self.origin
        words = next((x.strip() for x in self.text.splitlines() if x.strip()), "")
        return Place(self.source.path, self.line, words.removesuffix("{").strip())

    @property
    def line(self) -> int:
        return self.source.line_column(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.line_column(self.start)[1]

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.stop]

    def __str__(self) -> str:
        return f"{self.source.path}:{self.line}:{self.column}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of `other`."""
        return Span(self.source, min(self.start, other.start), max(self.stop, other.stop))
