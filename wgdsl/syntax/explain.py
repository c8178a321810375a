"""What to say about a word that the grammar doesn't take.

In: the words, the place, and the terminals that would have fitted. Out: one problem, in the words of the language.
"""

from __future__ import annotations

from difflib import get_close_matches

from ..diagnostics.model import Problem
from ..diagnostics.syntax import StrayBracket, Unclosed, Unexpected, UnknownWord
from ..foundation.source import Span
from .lexer import Word
from .tables import Tables

_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_OPERATORS = frozenset(("+", "-", "*", "/", "%", "**", "<", "<=", ">", ">=", "==", "!=", "and", "or"))
_CLASS_NAMES = {"NAME": "a name", "NUMBER": "a number", "STRING": 'a file name in `"`', "$END": "the end of the file"}
# What begins an item: more than one of them is named as a group.
_GROUPS = (
    ("a step", frozenset("fill await issue compute pack rescale finish for once".split())),
    ("a line of the schedule", frozenset("tile fuse stream grid role smem regs".split())),
    ("a declaration", frozenset("dims type in out require assume let def index".split())),
)


class Brackets:
    """Which brackets are open where. A `}` also ends what was left open inside its block."""

    def __init__(self, words: list[Word]):
        self.closed: dict[int, int] = {}  # opening word -> closing word
        self.suspect: dict[int, int] = {}  # open block -> an inner one that ends in another column
        self.words = words
        open_: list[int] = []
        suspect: int | None = None
        for at, word in enumerate(words):
            if word.text in _CLOSERS:
                open_.append(at)
            elif word.text in (")", "]"):
                if open_ and _CLOSERS[words[open_[-1]].text] == word.text:
                    self.closed[open_.pop()] = at
            elif word.text == "}":
                while open_ and words[open_[-1]].text != "{":
                    open_.pop()
                if open_:
                    opener = open_.pop()
                    self.closed[opener] = at
                    if suspect is None and self._first_on_line(at) and self._indent(opener) != self._indent(at):
                        suspect = opener
        if suspect is not None:
            self.suspect = {at: suspect for at in open_ if at < suspect}

    def open_at(self, at: int) -> int | None:
        """The innermost bracket that is open before word `at`."""
        open_: list[int] = []
        for i, word in enumerate(self.words[:at]):
            if word.text in _CLOSERS:
                open_.append(i)
            elif word.text in (")", "]", "}"):
                while open_ and word.text == "}" and self.words[open_[-1]].text != "{":
                    open_.pop()
                if open_ and _CLOSERS[self.words[open_[-1]].text] == word.text:
                    open_.pop()
        return open_[-1] if open_ else None

    def _first_on_line(self, at: int) -> bool:
        return at == 0 or self.words[at - 1].span.line != self.words[at].span.line

    def _indent(self, at: int) -> int:
        span = self.words[at].span
        text = span.source.line_text(span.line)
        return len(text) - len(text.lstrip())


def unexpected(
    words: list[Word], at: int, end: Word, accepted: set[str], tables: Tables, brackets: Brackets
) -> Problem:
    """The problem at word `at` (or at the end), where only `accepted` would have fitted."""
    word = words[at] if at < len(words) else end
    texts = {tables.texts.get(t, t) for t in accepted}
    return (
        _bracket(words, at, word, texts, brackets)
        or _unknown_word(words, at, word, texts)
        or Unexpected(
            span=word.span, found=_found(word, tables), expected=_expected(texts), hint=_hint(words, at, word, texts)
        )
    )


def _bracket(words: list[Word], at: int, word: Word, texts: set[str], brackets: Brackets) -> Problem | None:
    opener = brackets.open_at(at)
    if word.text in (")", "]", "}"):
        if opener is None or (_CLOSERS[words[opener].text] != word.text and opener in brackets.closed):
            return StrayBracket(span=word.span, bracket=word.text, opened=opener and words[opener].span)
        if _CLOSERS[words[opener].text] != word.text and word.text != "}":
            return StrayBracket(span=word.span, bracket=word.text, opened=words[opener].span)
    if opener is None or opener in brackets.closed or _CLOSERS[words[opener].text] not in texts:
        return None
    return Unclosed(
        span=words[opener].span,
        bracket=words[opener].text,
        at=_end_span(words) if word.type == "$END" else word.span,
        at_end=word.type == "$END",
        suspect=words[brackets.suspect[opener]].span if opener in brackets.suspect else None,
    )


def _end_span(words: list[Word]) -> Span:
    last = words[-1].span
    return Span(last.source, last.stop - 1, last.stop)


def _unknown_word(words: list[Word], at: int, word: Word, texts: set[str]) -> Problem | None:
    """A misspelt keyword was taken for the name that begins a statement or a role's steps; the word after it then fails."""
    for place, known in _GROUPS:
        if known <= texts and word.type == "NAME":
            return UnknownWord(span=word.span, word=word.text, place=place, known=_starters(texts))
    return None


def _starters(texts: set[str]) -> tuple[str, ...]:
    return tuple(sorted(t for t in texts if t.isidentifier() and t not in _CLASS_NAMES and t not in _OPERATORS))


def _found(word: Word, tables: Tables) -> str:
    if word.type in ("$END", "STRING"):
        return "end of the file" if word.type == "$END" else "text"
    kind = {"NAME": "name ", "PART": "name ", "NUMBER": "number "}.get(word.type)
    if kind is None:
        kind = "keyword " if word.text.isidentifier() else ""
    return f"{kind}`{word.text}`"


def _expected(texts: set[str]) -> tuple[str, ...]:
    texts = set(texts)
    out: list[str] = []
    if {"NUMBER", "(", "-"} <= texts:
        texts -= {"NAME", "PART", "NUMBER", "REDUCER", "(", "-", "not", "true", "false", "inf", "nan"}
        out.append("an expression")
    texts.discard("PART")
    if len(texts & _OPERATORS) > 2:
        texts -= _OPERATORS
        out.append("an operator")
    for group, members in _GROUPS:
        if members <= texts:
            texts -= members | {"option", "NAME"}
            if group == "a declaration":
                out.append("a statement")
            out.append(group)
    named = [_CLASS_NAMES[t] for t in _CLASS_NAMES if t in texts]
    return (*out, *named, *(f"`{t}`" for t in sorted(texts - set(_CLASS_NAMES), key=_order)))


def _order(text: str) -> tuple[bool, str]:
    return (not text.isidentifier(), text)


def _hint(words: list[Word], at: int, word: Word, texts: set[str]) -> str:
    if word.type == "NAME":
        close = get_close_matches(word.text, _starters(texts), n=1, cutoff=0.6)
        if close:
            return f"did you mean `{close[0]}`?"
    return ""
