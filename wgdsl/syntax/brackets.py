"""Which brackets of a text belong together, as far as that can be told from a broken one.

In: words. Out: `Brackets`. A `}` also ends the `(` and `[` that were left open inside its block.
"""

from __future__ import annotations

from .lexer import Word

CLOSERS = {"(": ")", "[": "]", "{": "}"}


class Brackets:
    """`closed`: opening word -> its closing word, by their numbers."""

    def __init__(self, words: list[Word]):
        self.words = words
        self.closed: dict[int, int] = {}
        self._never = self._match(len(words), self.closed)

    def open_at(self, at: int) -> int | None:
        """The innermost bracket that is open before word `at`."""
        return next(reversed(self._match(at, {})), None)

    def lacks_brace_around(self, opener: int) -> bool:
        """Does a block around this one stay open to the end of the text?"""
        return any(at < opener and self.words[at].text == "{" for at in self._never)

    def suspect(self, opener: int) -> int | None:
        """The first block inside an unclosed one whose `}` begins a line in another column than the block's line."""
        for inner, end in sorted(self.closed.items(), key=lambda pair: pair[1]):
            braces = inner > opener and self.words[inner].text == "{"
            if braces and self.first_on_line(end) and self._indent(inner) != self._indent(end):
                return inner
        return None

    def first_on_line(self, at: int) -> bool:
        return at == 0 or self.words[at - 1].span.line != self.words[at].span.line

    def _match(self, stop: int, closed: dict[int, int]) -> list[int]:
        """The brackets that are open before word `stop`; fills in `closed`."""
        opened: list[int] = []
        for at in range(stop):
            text = self.words[at].text
            if text in CLOSERS:
                opened.append(at)
            elif text == "}":
                while opened and self.words[opened[-1]].text != "{":
                    opened.pop()
                if opened:
                    closed[opened.pop()] = at
            elif text in (")", "]") and opened and CLOSERS[self.words[opened[-1]].text] == text:
                closed[opened.pop()] = at
        return opened

    def _indent(self, at: int) -> int:
        span = self.words[at].span
        text = span.source.line_text(span.line)
        return len(text) - len(text.lstrip())
