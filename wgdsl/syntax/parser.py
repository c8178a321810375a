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
from ..diagnostics.syntax import (
    EmptyFile,
    NotUtf8,
    ReservedWord,
    TooDeep,
    Unreadable,
    WrongVersion,
)
from ..foundation.source import Source, Span
from . import ast
from .explain import Brackets, unexpected
from .lexer import CALLABLE, REDUCTIONS, RESERVED, Lexed, Word, lex
from .tables import Tables, tables

VERSION = 1
MAX_DEPTH = 200
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
    lexed = lex(source)
    problems = list(lexed.problems)
    if not lexed.words:
        raise WgError(problems or EmptyFile(span=Span(source, 0, 0)))
    run = _Run(source, lexed, {p.span.line for p in problems if p.span})
    file = run.parse()
    problems += run.problems
    if not problems and file is not None:
        problems += _version(file, lexed.words) + list(_too_deep(file))
    if problems:
        raise WgError(sorted(problems, key=lambda p: p.span.start if p.span else 0)[:_MAX_PROBLEMS])
    assert file is not None
    return file


class _Run:
    """One pass of the LALR machine over the words."""

    def __init__(self, source: Source, lexed: Lexed, silent: set[int]):
        self.words = lexed.words
        self.end = Word("$END", "", Span(source, len(source.text), len(source.text)))
        self.silent = silent  # lines that have a problem already
        self.problems: list[Problem] = []
        self.tables = tables()
        self.machine = self.tables.begin()
        self.brackets = Brackets(self.words)

    def parse(self) -> ast.File | None:
        at = 0
        while at < len(self.words):
            word = self.words[at]
            before = self.machine.state_stack.copy()
            word.type = self.terminal(at)
            try:
                self.machine.feed_token(word)
                at += 1
            except UnexpectedToken:
                self.report(at, before)
                at = self.recover(at)
        before = self.machine.state_stack.copy()
        try:
            return self.machine.feed_token(self.end, is_end=True)
        except UnexpectedToken:
            self.report(at, before)
            return None

    # ---- which terminal a word is

    def terminal(self, at: int) -> str:
        """A word is a keyword where the grammar takes that keyword, unless a name that begins an item is written so."""
        word = self.words[at]
        if word.type != "NAME":
            return self.tables.terminals.get(word.text, word.type)
        text, following = word.text, self.words[at + 1].text if at + 1 < len(self.words) else ""
        if text in RESERVED:
            return self.reserved(word, following)
        keyword = self.tables.terminals.get(text)
        if keyword is None or not self.takes(keyword):
            return "NAME"
        if following in ("[", "{") and self.takes("NAME"):
            return "NAME"
        return keyword

    def reserved(self, word: Word, following: str) -> str:
        text = word.text
        if text in REDUCTIONS and following == "[" and self.takes("REDUCER"):
            return "REDUCER"
        if text not in REDUCTIONS and (self.takes(self.tables.terminals[text]) or not self.takes("NAME")):
            return self.tables.terminals[text]
        if self.takes("NAME") and not (text in CALLABLE and following == "("):
            use = f"{text}[j] x" if text in REDUCTIONS else ""
            self.add(ReservedWord(span=word.span, word=text, use=use))
        return "NAME"

    def takes(self, terminal: str) -> bool:
        return can_shift(self.machine.parse_conf.states, self.machine.state_stack, terminal)

    # ---- problems

    def add(self, problem: Problem) -> None:
        line = problem.span.line if problem.span else 0
        if line not in self.silent and len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(problem)
            self.silent.add(line)

    def report(self, at: int, before: list[int]) -> None:
        states = self.machine.parse_conf.states
        accepted = {t for t in (*self.tables.texts, *_CLASSES) if can_shift(states, before, t)}
        self.add(unexpected(self.words, at, self.end, accepted, self.tables, self.brackets))

    # ---- going on

    def recover(self, at: int) -> int:
        """Leave the broken item: BROKEN stands for it, and the words up to the next item are passed over."""
        self.leave("BROKEN")
        self.machine.feed_token(Word("BROKEN", "", self.words[at].span))
        depth = 0
        while at < len(self.words):
            word = self.words[at]
            if self.opens_file_item(at) and (depth or not self.takes(word.text.upper())):
                self.leave(word.text.upper())
                return at
            if depth == 0 and self.begins_item(at):
                return at
            depth = max(0, depth + (word.text in "([{") - (word.text in ")]}"))
            at += 1
        return at

    def leave(self, terminal: str) -> None:
        """Drop what is open until the terminal fits."""
        while not self.takes(terminal):
            self.machine.state_stack.pop()
            self.machine.value_stack.pop()

    def opens_file_item(self, at: int) -> bool:
        """`program NAME {` or `schedule NAME for` at the start of a line."""
        following = [w.text for w in self.words[at + 2 : at + 3]]
        return self.first_on_line(at) and (self.words[at].text, *following) in (("program", "{"), ("schedule", "for"))

    def begins_item(self, at: int) -> bool:
        word = self.words[at]
        if word.text == "}":
            return self.takes(self.tables.terminals["}"])
        if not word.text.isidentifier() or word.text in RESERVED:
            return False
        terminal = self.terminal(at)
        return self.takes(terminal) and (terminal != "NAME" or self.first_on_line(at))

    def first_on_line(self, at: int) -> bool:
        return at == 0 or self.words[at].span.line != self.words[at - 1].span.line


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
