"""What to say about a word that the grammar doesn't take.

In: a `Place`. Out: one problem, in the words of the language. The first rule of `unexpected` that knows something wins.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..diagnostics.hints import nearest
from ..diagnostics.model import Problem
from ..diagnostics.syntax import StrayBracket, Unclosed, Unexpected, UnknownWord
from ..foundation.source import Span
from .brackets import CLOSERS, Brackets
from .lexer import Word

_OPERATORS = frozenset(("+", "-", "*", "/", "%", "**", "<", "<=", ">", ">=", "==", "!=", "and", "or"))
_OPERANDS = frozenset(("NAME", "PART", "NUMBER", "REDUCER", "(", "-", "not", "true", "false", "inf", "nan"))
_CLASSES = {"NAME": "a name", "NUMBER": "a number", "STRING": 'a file name in `"`', "$END": "the end of the file"}
# What begins an item of a list, and what such an item is called. Where all of a row fit, they are named as a group.
_ITEMS = {
    "step": frozenset(["fill", "await", "issue", "compute", "pack", "rescale", "finish", "probe", "for", "once"]),
    "line of a schedule": frozenset(
        ["tile", "fuse", "stream", "grid", "role", "smem", "regs", "combine", "skip", "approximate", "accumulate", "tune"],
    ),
    "setting of `tune`": frozenset(["tile", "ring", "registers", "warpgroups"]),
    "declaration or statement": frozenset(["dims", "type", "out", "require", "assume", "let", "def", "index"]),
    "step of an explicit form": frozenset(
        ["wait", "expect", "arrive", "advance", "tma", "wgmma", "fence", "sync", "loop", "items"]
    ),
    "line of a kernel": frozenset(["threads", "shared", "tensor", "param", "map", "barrier", "bars"]),
    "program or schedule": frozenset(("program", "schedule", "roles", "import")),
}
_ALSO = frozenset(["in", "option", "kernel"])  # begin an item of more than one list, or of a part of one
ITEM_KEYWORDS = _ALSO.union(*_ITEMS.values()) - {"ring", "registers", "warpgroups"}
STEPS = _ITEMS["step"] | {"in"}
_HOMES = {
    "step": "the steps of a role",
    "step of an explicit form": "a `roles` block",
    "line of a schedule": "a schedule",
    "declaration or statement": "a program",
}


@dataclass(frozen=True)
class Place:
    """The broken place.

    `word` isn't taken, where the grammar takes the terminals (as texts) `accepted`. `head` is the name, if any, that
    was taken for the beginning of a statement or of a role's steps, and `before_head` what could have stood there instead.
    `outer`: a list further out takes the word.
    """

    words: list[Word]
    at: int
    word: Word
    accepted: frozenset[str]
    head: int | None
    before_head: frozenset[str]
    outer: bool
    keywords: frozenset[str]
    brackets: Brackets

    @property
    def at_end(self) -> bool:
        return self.at == len(self.words)


def unexpected(place: Place) -> Problem:
    """The problem at a place."""
    return (
        _stray(place)
        or _unclosed(place)
        or _broken_head(place)
        or _unknown_word(place.words, place.at, place.word, place.accepted)
        or _plain(place, place.at, place.word, place.accepted)
    )


def _stray(p: Place) -> Problem | None:
    if p.word.text not in CLOSERS.values():
        return None
    opener = p.brackets.open_at(p.at)
    if opener is None or (p.words[opener].text == "{" and p.word.text != "}"):
        return StrayBracket(span=p.word.span, bracket=p.word.text)
    if CLOSERS[p.words[opener].text] == p.word.text or p.word.text == "}":
        return None
    return StrayBracket(span=p.word.span, bracket=p.word.text, opened=p.words[opener].span)


def _unclosed(p: Place) -> Problem | None:
    opener = p.brackets.open_at(p.at)
    if opener is None or CLOSERS[p.words[opener].text] not in p.accepted:
        return None
    never = opener not in p.brackets.closed
    if not never and not (p.outer and p.brackets.lacks_brace_around(opener)):
        return None
    suspect = p.brackets.suspect(opener) if p.at_end else None
    return Unclosed(
        span=p.words[opener].span,
        bracket=p.words[opener].text,
        at=_last_character(p.words) if p.at_end else p.word.span,
        at_end=p.at_end,
        suspect=None if suspect is None else p.words[suspect].span,
    )


def _last_character(words: list[Word]) -> Span:
    last = words[-1].span
    return Span(last.source, last.stop - 1, last.stop)


def _broken_head(p: Place) -> Problem | None:
    """The word before is the wrong one: a misspelt keyword, or a name after an expression that has ended."""
    if p.head is None:
        return None
    head = p.words[p.head]
    if not p.brackets.first_on_line(p.head) and p.words[p.head - 1].text not in ("{", "}"):
        misspelt = p.head == p.at - 1 and nearest(head.text, _starters(p.before_head))
        if misspelt or "+" in p.before_head or head.text in p.keywords:
            return _plain(p, p.head, head, p.before_head - {"NAME"})
    if p.head != p.at - 1 or (p.word.text in ("=", "+=") and not nearest(head.text, _starters(p.before_head))):
        return None
    return _unknown_word(p.words, p.head, head, p.before_head)


def _unknown_word(words: list[Word], at: int, word: Word, accepted: frozenset[str]) -> Problem | None:
    """A word where an item has to begin with a keyword."""
    if word.type != "NAME":
        return None
    for item, known in _ITEMS.items():
        if known <= accepted:
            return UnknownWord(
                span=word.span,
                word=word.text,
                item=item,
                known=_starters(accepted),
                home=_home(word.text, words[at + 1].text if at + 1 < len(words) else ""),
            )
    return None


def _home(word: str, following: str) -> str:
    if word == "kernel":
        return _HOMES["line of a schedule"]
    if word == "in":
        return _HOMES["step"] if following == "turn" else _HOMES["declaration or statement"]
    return next((_HOMES[item] for item, words in _ITEMS.items() if word in words and item in _HOMES), "")


def _plain(p: Place, at: int, word: Word, accepted: frozenset[str]) -> Problem:
    return Unexpected(span=word.span, found=_found(p, word), expected=_expected(accepted), hint=_hint(p, at, word, accepted))


def _found(p: Place, word: Word) -> str:
    if word.type in ("$END", "STRING"):
        return "end of the file" if word.type == "$END" else "text"
    kind = "number " if word.type == "NUMBER" else "name " if word.type in ("NAME", "PART") else ""
    if word.text in p.keywords and word.text.isidentifier():
        kind = "keyword "
    return f"{kind}`{word.text}`"


def _expected(accepted: frozenset[str]) -> tuple[str, ...]:
    rest, out = set(accepted), []
    if {"NUMBER", "(", "-"} <= rest:
        rest -= _OPERANDS
        out.append("an expression")
    if len(rest & _OPERATORS) > 2:
        rest -= _OPERATORS | {"(", "["}
        out.append("an operator")
    for item, starters in _ITEMS.items():
        if starters <= rest:
            rest -= starters | _ALSO | {"NAME"}
            out.append(f"a {item}")
    named = [text for terminal, text in _CLASSES.items() if terminal in rest]
    marks = sorted(rest - set(_CLASSES) - {"PART"}, key=lambda t: (not t.isidentifier(), t))
    return (*out, *named, *(f"`{t}`" for t in marks))


def _starters(accepted: frozenset[str]) -> tuple[str, ...]:
    """The keywords among the terminals."""
    return tuple(sorted(t for t in accepted if t.isidentifier() and t.islower() and t not in _OPERATORS | _OPERANDS))


def _hint(p: Place, at: int, word: Word, accepted: frozenset[str]) -> str:
    meant = nearest(word.text, _starters(accepted)) if word.type == "NAME" else ""
    if meant and meant != word.text:
        return f"did you mean `{meant}`?"
    if word.text in ITEM_KEYWORDS and "NUMBER" in accepted and p.brackets.first_on_line(at):
        return f"the line before ends in `{p.words[at - 1].text}`, so it goes on here"
    if word.text == "=" and "==" in accepted:
        return "equality is `==`"
    if word.text == "=" and at == (p.head or 0) + 1 and accepted == {"["}:
        return f"a statement names the indices of its tensor: `{p.words[at - 1].text}[i] = ...`"
    if word.text == ";":
        return "a line needs no `;`"
    if word.text == "else":
        return "`else` follows `where`; a choice of values is `select(c, a, b)`"
    if word.text == "/" and p.words[at - 1].text == "/":
        return "a comment begins with `#`; `/` of whole numbers rounds down"
    if word.type in ("NAME", "PART", "NUMBER", "REDUCER", "NOT", "TRUE", "FALSE") and {"+", "*"} <= accepted:
        return "is an operator missing before it?"
    return ""
