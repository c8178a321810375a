"""Text to words.

In: a `Source`. Out: its words with spans, its comments, and the problems that are visible in single words (characters,
numbers). Line ends, tabs, form feeds and a byte order mark at the start only separate words. Which words are keywords
depends on where they stand, so the parser decides it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ..diagnostics.model import Problem
from ..diagnostics.syntax import BadCharacter, BadNumber, NumberRange
from ..foundation.source import Source, Span

REDUCTIONS = frozenset(["sum", "max", "min", "argmax", "argmin", "softmax", "logsumexp"])
RESERVED = REDUCTIONS | frozenset(["and", "or", "not", "true", "false", "inf", "nan"])
CALLABLE = frozenset(("max", "min"))  # reductions that are functions too

_WORD = re.compile(
    r"""(?P<SPACE>[ \t\f\r\n]+)
      | (?P<COMMENT>\#[^\r\n]*)
      | (?P<PART>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)+)
      | (?P<NAME>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<NUMBER>\.?[0-9](?:[eEpP][+-]|[A-Za-z0-9_.])*)
      | (?P<STRING>"[^"\r\n]*"?)
      | (?P<MARK>\*\*|\+[=:]|\.\.|[<>=!]=|[-+*/%<>=()\[\]{},:;@])
      | (?P<OTHER>.)""",
    re.VERBOSE | re.DOTALL,
)
_INTEGER = re.compile(r"0(_?0)*|[1-9](_?[0-9])*")
_DIGITS = r"[0-9](?:_?[0-9])*"
_FLOAT = re.compile(rf"(?:(?:{_DIGITS})?\.{_DIGITS}|{_DIGITS}\.?)(?:[eE][+-]?{_DIGITS})?")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")


@dataclass(slots=True)
class Word:
    """`type` is the terminal of the grammar; for a mark it is the mark itself until the parser looks it up.

    BAD stands for characters that have no meaning: in place of a name it counts as one, so that no more is said.
    """

    type: str
    text: str
    span: Span
    value: int | float = 0  # of a NUMBER


@dataclass(frozen=True)
class Lexed:
    words: list[Word]
    comments: list[Span]
    problems: list[Problem]


def lex(source: Source) -> Lexed:
    """Every word of the text, in order. Bad numbers count as 0."""
    words: list[Word] = []
    comments: list[Span] = []
    problems: list[Problem] = []
    bad_until = -1
    start = 1 if source.text.startswith("\ufeff") else 0
    for match in _WORD.finditer(source.text, start):
        kind = match.lastgroup or ""
        if kind == "SPACE":
            continue
        span = Span(source, match.start(), match.end())
        if kind == "COMMENT":
            comments.append(span)
            problems.extend(_controls(span))
        elif kind == "OTHER":
            if bad_until != span.start:  # one problem for a run of them
                problems.append(BadCharacter(span=span, character=match[0]))
                words.append(Word("BAD", "", span))
            bad_until = span.stop
        elif kind == "NUMBER":
            value, problem = _number(span, match[0])
            words.append(Word(kind, match[0], span, value))
            problems.extend(problem)
        else:
            if kind == "STRING":
                problems.extend(_string(span, match[0]))
            words.append(Word(match[0] if kind == "MARK" else kind, match[0], span))
    return Lexed(words, comments, problems)


def _controls(comment: Span) -> list[Problem]:
    at = _CONTROL.search(comment.text)
    if at is None:
        return []
    span = Span(comment.source, comment.start + at.start(), comment.start + at.end())
    return [BadCharacter(span=span, character=at[0], in_comment=True)]


def _string(span: Span, text: str) -> list[Problem]:
    """A text is closed on its line, and printable ASCII."""
    bad = 0 if len(text) < 2 or text[-1] != '"' else next((n for n, c in enumerate(text) if not " " <= c < "\x7f"), None)
    if bad is None:
        return []
    at = span.start + bad
    return [BadCharacter(span=Span(span.source, at, at + 1), character=text[bad])]


def _number(span: Span, text: str) -> tuple[int | float, list[Problem]]:
    if _INTEGER.fullmatch(text):
        digits = text.replace("_", "").lstrip("0")
        value = int(digits[:20] or "0")
        return (value, []) if value < 2**63 else (0, [NumberRange(span=span, text=text)])
    if not _FLOAT.fullmatch(text) or text.replace("_", "").isdigit():
        return 0, [BadNumber(span=span, text=text)]
    value = float(text.replace("_", ""))
    mantissa = re.split("[eE]", text)[0]
    if math.isinf(value) or (value == 0 and mantissa.strip("0._")):
        return 0, [NumberRange(span=span, text=text)]
    return value, []
