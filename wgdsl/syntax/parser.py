"""Text to AST.

In: a `Source`, or the path of a file. Out: a `File`, or a `WgError` with every problem that one run can tell.

After a problem the parser leaves out the item that it stands in (a declaration, a statement, a step) and goes on at the
next one; it reports one problem a line. No step of it recurses, so depth is a matter of `TooDeep` alone.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from lark.exceptions import UnexpectedToken
from lark.parsers.lalr_analysis import Shift

from ..diagnostics.model import Problem, WgError
from ..diagnostics.syntax import EmptyFile, NotUtf8, ReservedWord, TooDeep, Unclosed, Unreadable, WrongVersion
from ..foundation.source import Source, Span
from . import ast
from .brackets import CLOSERS, Brackets
from .explain import Place, unexpected
from .lexer import CALLABLE, REDUCTIONS, RESERVED, Lexed, Word, lex
from .tables import tables

VERSION = 1
MAX_DEPTH = 100
_MAX_PROBLEMS = 20


def read(path: str | Path) -> Source:
    """The text of a file. Raises WgError if it can't be read or isn't UTF-8."""
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as e:
        why = "it is a folder" if Path(path).is_dir() else getattr(e, "strerror", None) or str(e)
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
    if not lexed.words:
        raise WgError(problems or EmptyFile(span=Span(source, 0, 0)))
    run = _Run(source, lexed, frozenset(p.span.line for p in problems if p.span))
    file = run.parse()
    problems += run.problems
    if not problems and file is not None:
        problems += _version(file, lexed.words) + list(_too_deep(file))
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
        self.tables = tables()
        self.machine = self.tables.begin()
        self.states = self.machine.parse_conf.states
        self.brackets = Brackets(self.words)
        self.head: tuple[int, list[int]] | None = None  # a name that may begin an item, and the states before it

    def parse(self) -> ast.File | None:
        at = 0
        while at < len(self.words):
            word = self.words[at]
            before = self.machine.state_stack.copy()
            word.type = self.terminal(at)
            try:
                self.machine.feed_token(word)
            except UnexpectedToken:
                at = self.recover(at, self.report(at, before))
                continue
            self.note_head(at, word, before)
            at += 1
        before = self.machine.state_stack.copy()
        try:
            return self.machine.feed_token(self.end, is_end=True)
        except UnexpectedToken:
            self.report(at, before)
            return None

    def note_head(self, at: int, word: Word, before: list[int]) -> None:
        if word.type == "NAME" and not self.states[before[-1]].keys().isdisjoint(_STARTERS):
            self.head = (at, before)
        elif word.text in ("=", "{"):
            self.head = None

    # ---- which terminal a word is

    def terminal(self, at: int) -> str:
        """A word is a keyword where the grammar takes that keyword, unless a name that begins an item is written so."""
        word = self.words[at]
        if word.type != "NAME":
            return self.tables.terminals.get(word.text, word.type)
        text, following = word.text, self.words[at + 1].text if at + 1 < len(self.words) else ""
        if text in RESERVED:
            return self.reserved(at, following)
        keyword = self.tables.terminals.get(text)
        if keyword is not None and self.opens_file_item(at):
            return keyword
        if keyword is None or not self.takes(keyword):
            return "NAME"
        if following in ("[", "{") and self.takes("NAME"):
            return "NAME"
        return keyword

    def reserved(self, at: int, following: str) -> str:
        """A reserved word: what it is, or a name that it can't be."""
        word, text = self.words[at], self.words[at].text
        own = "REDUCER" if text in REDUCTIONS else self.tables.terminals[text]
        if self.takes(own) and (own != "REDUCER" or following == "["):
            return own
        if text in CALLABLE and following == "(":
            return "NAME"
        if not self.takes("NAME") or (self.may_begin_item() and not self.first_on_line(at)):
            return own
        use = f"{text}[j] x" if own == "REDUCER" else ""
        self.add(ReservedWord(span=word.span, word=text, use=use))
        return "NAME"

    def may_begin_item(self) -> bool:
        """Quick, and at times True in vain."""
        return not self.states[self.machine.state_stack[-1]].keys().isdisjoint(_STARTERS)

    def takes(self, terminal: str) -> bool:
        return can_shift(self.states, self.machine.state_stack, terminal)

    # ---- problems

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
            accepted=self.accepted(before),
            head=head,
            before_head=self.accepted(before_head),
            outer=self.outer(at) is not None,
            keywords=frozenset(self.tables.terminals),
            brackets=self.brackets,
        )
        problem = unexpected(place)
        near = {w.span.line for w in (word, self.words[max(at - 1, 0)])}
        if self.silent.isdisjoint(near):
            self.add(problem)
        return problem

    def accepted(self, stack: list[int]) -> frozenset[str]:
        """The keywords and marks, as texts, and the classes of words that fit."""
        if not stack:
            return frozenset()
        fitting = [t for t in (*self.tables.texts, *_CLASSES) if can_shift(self.states, stack, t)]
        return frozenset(self.tables.texts.get(t, t) for t in fitting)

    def outer(self, at: int) -> int | None:
        """How many states to keep so that a list further out takes the word as an item, if one does."""
        stack, seen = self.machine.state_stack, 0
        if at == len(self.words) or not (self.words[at].type != "NAME" or self.followed_by(at, "{")):
            return None
        terminals = {self.tables.terminals.get(self.words[at].text), self.words[at].type} - {None}
        for size in range(len(stack), 0, -1):
            if can_shift(self.states, stack[:size], "BROKEN"):
                seen += 1
                if seen > 1 and any(can_shift(self.states, stack[:size], t) for t in terminals):
                    return size
        return None

    def followed_by(self, at: int, *texts: str) -> bool:
        return at + 1 < len(self.words) and self.words[at + 1].text in texts

    # ---- going on

    def recover(self, at: int, problem: Problem) -> int:
        """Leave the broken item: BROKEN stands for it, and the words up to the next item are passed over."""
        self.head = None
        outer = self.outer(at)
        if isinstance(problem, Unclosed) and outer is not None:
            self.keep(outer)
            return at
        while not self.takes("BROKEN"):
            self.keep(len(self.machine.state_stack) - 1)
        self.machine.feed_token(Word("BROKEN", "", self.words[at].span))
        depth = 0
        while at < len(self.words):
            if self.opens_file_item(at):
                while not self.takes(self.tables.terminals[self.words[at].text]):
                    self.keep(len(self.machine.state_stack) - 1)
                return at
            if depth == 0 and self.begins_item(at):
                return at
            text = self.words[at].text
            depth = max(0, depth + (text in CLOSERS) - (text in CLOSERS.values()))
            at += 1
        return at

    def keep(self, size: int) -> None:
        """Drop all states but the first `size`, and the values that belong to them."""
        del self.machine.state_stack[size:]
        del self.machine.value_stack[size - 1 :]

    def opens_file_item(self, at: int) -> bool:
        """`program NAME {` or `schedule NAME for` at the start of a line: nothing else looks like it."""
        text, last = self.words[at].text, self.words[at + 2].text if at + 2 < len(self.words) else ""
        return (text, last) in (("program", "{"), ("schedule", "for")) and self.first_on_line(at)

    def begins_item(self, at: int) -> bool:
        word = self.words[at]
        if word.text == "}":
            return self.takes(self.tables.terminals["}"])
        if not word.text.isidentifier() or word.text in RESERVED:
            return False
        terminal = self.terminal(at)
        return self.takes(terminal) and (terminal != "NAME" or self.first_on_line(at))

    def first_on_line(self, at: int) -> bool:
        return self.brackets.first_on_line(at)


_STARTERS = frozenset(("LET", "TILE", "FILL"))
_CLASSES = ("NAME", "PART", "NUMBER", "STRING", "REDUCER", "$END")


def can_shift(states: dict, stack: list[int], terminal: str) -> bool:
    """Does the machine in this state take the terminal? Exact: it follows the reductions, without running them."""
    dropped, pushed = 0, []
    while True:
        state = pushed[-1] if pushed else stack[len(stack) - 1 - dropped]
        action = states[state].get(terminal)
        if action is None:
            return False
        if action[0] is Shift:
            return True
        rule = action[1]
        size = len(rule.expansion)
        inside = min(size, len(pushed))
        del pushed[len(pushed) - inside :]
        dropped += size - inside
        state = pushed[-1] if pushed else stack[len(stack) - 1 - dropped]
        pushed.append(states[state][rule.origin.name][1])


def _version(file: ast.File, words: list[Word]) -> list[Problem]:
    if file.version in (None, VERSION):
        return []
    return [WrongVersion(span=words[1].span, text=words[1].text, known=VERSION)]


def _too_deep(file: ast.File) -> Iterator[Problem]:
    """The first node of each item that lies deeper than MAX_DEPTH."""
    for block in (*file.programs, *file.schedules):
        for item in block.items:
            pending: list[tuple[ast.Node, int]] = [(item, 0)]
            while pending:
                node, depth = pending.pop()
                if depth > MAX_DEPTH:
                    what = "block" if isinstance(node, ast.Step) else "expression"
                    yield TooDeep(span=node.span, limit=MAX_DEPTH, what=what)
                    break
                pending.extend((child, depth + 1) for child in _children(node))


def _children(node: ast.Node) -> Iterator[ast.Node]:
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, ast.Node):
            yield value
        elif isinstance(value, tuple):
            for entry in value:
                if isinstance(entry, tuple):
                    yield from (part for part in entry if isinstance(part, ast.Node))
                elif isinstance(entry, ast.Node):
                    yield entry
