"""Text to AST.

In: a `Source`, or the path of a file. Out: a `File`, or a `WgError` with every problem that one run can tell.

After a problem the parser leaves out the item that it stands in (a declaration, a statement, a step) and goes on at the
next one; it reports one problem a line. No step of it recurses, so depth is a matter of `too_deep` alone.
"""

from __future__ import annotations

import codecs
from pathlib import Path

from ..diagnostics.model import Problem, WgError
from ..diagnostics.syntax import EmptyFile, NotUtf8, ReservedWord, Unclosed, Unreadable, WrongVersion
from ..foundation.source import Source, Span
from . import ast
from .brackets import CLOSERS, Brackets
from .depth import too_deep
from .explain import ITEM_KEYWORDS, STEPS, Place, unexpected
from .lexer import CALLABLE, REDUCTIONS, RESERVED, Lexed, Word, lex
from .machine import Machine

VERSION = 1
_MAX_PROBLEMS = 20


def read(path: str | Path) -> Source:
    """The text of a file. Raises WgError if it can't be read or isn't UTF-8."""
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as e:
        why = "it is a folder" if isinstance(e, IsADirectoryError) else getattr(e, "strerror", None) or str(e)
        raise WgError(Unreadable(path=str(path), why=why)) from None
    try:
        return Source(str(path), data.removeprefix(codecs.BOM_UTF8).decode("utf-8"))
    except UnicodeDecodeError as e:
        shown = Source(str(path), data[: e.start].decode("utf-8") + "\ufffd" + data[e.end :].decode("utf-8", "replace"))
        at = len(data[: e.start].decode("utf-8"))
        raise WgError(NotUtf8(span=Span(shown, at, at + 1), byte=data[e.start])) from None


def parse(source: Source) -> ast.File:
    """The AST of a text. Raises WgError with all problems found, in source order."""
    return parse_words(source)[0]


def parse_words(source: Source) -> tuple[ast.File, list[Word], list[Span]]:
    """The AST, the words with their terminals, and the comments."""
    lexed = lex(source)
    problems = list(lexed.problems)
    if all(w.type == "BAD" for w in lexed.words):
        raise WgError(problems[:_MAX_PROBLEMS] or EmptyFile(span=Span(source, 0, 0)))
    run = _Run(source, lexed, frozenset(p.span.line for p in problems if p.span))
    file = run.parse()
    problems += run.problems
    if not problems and file is not None:
        problems += _version(lexed.words) + list(too_deep(file))
    if problems:
        raise WgError(sorted(problems, key=lambda p: p.span.start if p.span else 0)[:_MAX_PROBLEMS])
    assert file is not None
    return file, lexed.words, lexed.comments


class _Run:
    """One pass of the LALR machine over the words."""

    def __init__(self, source: Source, lexed: Lexed, silent: frozenset[int]):
        self.words = lexed.words
        stop = self.words[-1].span.stop
        self.end = Word("$END", "", Span(source, stop, stop))
        self.silent = silent  # lines with a bad character or number
        self.problems: list[Problem] = []
        self.machine = Machine()
        self.terminals = self.machine.tables.terminals
        self.brackets = Brackets(self.words)
        self.head: tuple[int, list[int]] | None = None  # a name that may begin an item, and the states before it
        self.doubtful: tuple[int, list[int]] | None = None  # a name at the start of a line that may be a keyword

    def parse(self) -> ast.File | None:
        at = 0
        while at < len(self.words) and len(self.problems) < _MAX_PROBLEMS:
            word = self.words[at]
            if word.type == "BAD" and (self.machine.may_begin_item() or not self.machine.takes("NAME")):
                at += 1
                continue
            before, begins = self.machine.stack.copy(), self.machine.may_begin_item()
            word.type = self.terminal(at)
            if not self.machine.feed(word):
                at, before = self.blamed(at, before)
                at = self.recover(at, self.report(at, before))
                continue
            self.note(at, before, begins)
            at += 1
        if at < len(self.words):
            return None
        before = self.machine.stack.copy()
        file = self.machine.finish(self.end)
        if file is None:
            self.report(at, before)
        return file

    # Which terminal a word is.

    def terminal(self, at: int) -> str:
        """A word is a keyword where the grammar takes that keyword, unless a name that begins an item is written so."""
        word = self.words[at]
        if word.type == "BAD":
            return "NAME"
        if word.type != "NAME":
            return self.terminals.get(word.text, word.type)
        text, following = word.text, self.following(at)
        if text in RESERVED:
            return self.reserved(at, following)
        keyword = self.terminals.get(text)
        if keyword is None or not self.machine.takes(keyword):
            return "NAME"
        if following in ("[", "{") and self.machine.takes("NAME") and not self.tunes(at):
            return "NAME"
        return keyword

    def tunes(self, at: int) -> bool:
        """`tune {` before anything but steps, which a role of that name would have."""
        inside = self.words[at + 2].text if at + 2 < len(self.words) else ""
        return self.words[at].text == "tune" and self.following(at) == "{" and inside not in (*STEPS, "}")

    def reserved(self, at: int, following: str) -> str:
        """A reserved word: what it is, or a name that it can't be."""
        word, text = self.words[at], self.words[at].text
        own = "REDUCER" if text in REDUCTIONS else self.terminals[text]
        if self.machine.takes(own) and (own != "REDUCER" or following == "["):
            return own
        if text in CALLABLE and following == "(":
            return "NAME"
        if not self.machine.takes("NAME") or (self.machine.may_begin_item() and not self.first_on_line(at)):
            return own
        use = f"{text}[j] x" if own == "REDUCER" else ""
        self.add(ReservedWord(span=word.span, word=text, use=use))
        return "NAME"

    def add(self, problem: Problem) -> None:
        """One problem a line, and one open block: others would only follow from it."""
        lines = {p.span.line for p in self.problems if p.span}
        braces = [p for p in self.problems if isinstance(p, Unclosed) and p.bracket == "{"]
        if isinstance(problem, Unclosed) and problem.bracket == "{" and braces:
            return
        if problem.span and problem.span.line not in lines and len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(problem)

    def report(self, at: int, before: list[int]) -> Problem:
        word = self.words[at] if at < len(self.words) else self.end
        head, before_head = self.head or (None, [])
        place = Place(
            words=self.words,
            at=at,
            word=word,
            accepted=self.machine.accepted(before),
            head=head,
            before_head=self.machine.accepted(before_head),
            outer=self.outer(at) is not None,
            keywords=frozenset(self.terminals),
            brackets=self.brackets,
        )
        problem = unexpected(place)
        near = {w.span.line for w in (word, self.words[max(at - 1, 0)])}
        if self.silent.isdisjoint(near):
            self.add(problem)
        return problem

    def blamed(self, at: int, before: list[int]) -> tuple[int, list[int]]:
        """The place of the mistake, and the states before it.

        After `let x = 1 +` a line `in Y: f32` gives a name `in`, and fails later; so does a `program` inside another.
        """
        head = self.head if self.head and self.head[0] < at else None
        for n, states in ((at, before), *([head] if head else [])):
            if self.opens_file_item(n):
                return self.retaken(n, states)
        following = head[0] if head else at
        if self.doubtful and following == self.doubtful[0] + 1 and not self.first_on_line(following):
            return self.retaken(*self.doubtful)
        return at, before

    def retaken(self, at: int, before: list[int]) -> tuple[int, list[int]]:
        """What was taken for a name is a keyword after all."""
        self.words[at].type = self.terminals[self.words[at].text]
        self.head = None
        return at, before

    def note(self, at: int, before: list[int], begins: bool) -> None:
        """Remember what a later mistake may come from."""
        word = self.words[at]
        if word.type == "NAME" and begins:
            self.head = (at, before)
        elif word.type == "NAME" and word.text in ITEM_KEYWORDS and self.first_on_line(at):
            self.doubtful = (at, before)
        elif word.text in ("=", "{"):
            self.head = None

    def outer(self, at: int) -> int | None:
        """How many states to keep so that a list further out takes the word as an item, if one does."""
        if at == len(self.words):
            return None
        terminals = {self.terminals.get(self.words[at].text, "NAME")}
        if self.following(at) == "{":
            terminals.add("NAME")
        elif "NAME" in terminals:
            return None
        return self.machine.outer(terminals)

    def following(self, at: int) -> str:
        """The text of the next word, '' at the end."""
        return self.words[at + 1].text if at + 1 < len(self.words) else ""

    def recover(self, at: int, problem: Problem) -> int:
        """Leave the broken item: BROKEN stands for it, and the words up to the next item are passed over."""
        self.head = self.doubtful = None
        outer = self.outer(at)
        if isinstance(problem, Unclosed) and outer is not None:
            self.machine.keep(outer)
            return at
        self.machine.leave("BROKEN")
        self.machine.feed(Word("BROKEN", "", self.words[at].span))
        depth = 0
        for n in range(at, len(self.words)):
            text = self.words[n].text
            if self.opens_file_item(n):
                self.machine.leave(self.terminals[text])
                return n
            if depth == 0 and self.begins_item(n):
                return n
            depth = max(0, depth + (text in CLOSERS) - (text in CLOSERS.values()))
        return len(self.words)

    def opens_file_item(self, at: int) -> bool:
        """`program NAME {`, `schedule NAME for`, `schedule NAME extends` or `roles NAME for` at the start of a line."""
        texts = [w.text for w in self.words[at : at + 3]]
        if len(texts) < 3 or not texts[1].isidentifier() or not self.first_on_line(at):
            return False
        return (texts[0], texts[2]) in (("program", "{"), ("schedule", "for"), ("schedule", "extends"), ("roles", "for"))

    def begins_item(self, at: int) -> bool:
        word = self.words[at]
        if word.text == "}":
            return self.machine.takes(self.terminals["}"])
        if not word.text.isidentifier() or word.text in RESERVED:
            return False
        terminal = self.terminal(at)
        return self.machine.takes(terminal) and (terminal != "NAME" or self.first_on_line(at))

    def first_on_line(self, at: int) -> bool:
        return self.brackets.first_on_line(at)


def _version(words: list[Word]) -> list[Problem]:
    if words[0].type != "WG" or words[1].text == str(VERSION):
        return []
    return [WrongVersion(span=words[1].span, text=words[1].text, known=VERSION)]
