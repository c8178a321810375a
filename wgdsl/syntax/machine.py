"""The LALR machine of lark, one word at a time, with the questions that recovery and messages need.

In: words with their terminals. Out: the value of the whole text. BROKEN, which no text holds, stands for a broken item.
"""

from __future__ import annotations

from collections.abc import Iterable

from lark.exceptions import UnexpectedToken
from lark.parsers.lalr_analysis import Shift

from . import ast
from .lexer import Word
from .tables import tables

_CLASSES = ("NAME", "PART", "NUMBER", "STRING", "REDUCER", "$END")
_STARTERS = frozenset(("LET", "TILE", "FILL", "ROUNDS", "PARAM", "ADVANCE", "COMPLETE"))  # one of each list of items


class Machine:
    """`stack`: the states, of which each but the first belongs to a word or node."""

    def __init__(self):
        self.tables = tables()
        self._state = self.tables.begin()
        self._states = self._state.parse_conf.states
        self.stack = self._state.state_stack

    def feed(self, word: Word) -> bool:
        """Take a word, if the grammar does."""
        try:
            self._state.feed_token(word)  # type: ignore[arg-type]
        except UnexpectedToken:
            return False
        return True

    def finish(self, end: Word) -> ast.File | None:
        """The file, if it may end here."""
        try:
            return self._state.feed_token(end, is_end=True)  # type: ignore[arg-type]
        except UnexpectedToken:
            return None

    def takes(self, terminal: str) -> bool:
        return _shifts(self._states, self.stack, len(self.stack), terminal)

    def accepted(self, stack: list[int]) -> frozenset[str]:
        """The keywords and marks, as texts, and the classes of words that such a stack takes."""
        texts = self.tables.texts
        fitting = [t for t in (*texts, *_CLASSES) if stack and _shifts(self._states, stack, len(stack), t)]
        return frozenset(texts.get(t, t) for t in fitting)

    def may_begin_item(self) -> bool:
        """Quick, and at times True in vain: an item may begin here."""
        return not self._states[self.stack[-1]].keys().isdisjoint(_STARTERS)

    def outer(self, terminals: Iterable[str]) -> int | None:
        """How many states to keep so that a list further out takes one of the terminals, if there is one."""
        lists = [n for n in range(len(self.stack), 0, -1) if _shifts(self._states, self.stack, n, "BROKEN")]
        for size in lists[1:]:
            if any(_shifts(self._states, self.stack, size, t) for t in terminals):
                return size
        return None

    def keep(self, size: int) -> None:
        """Drop all states but the first `size`, and the values that belong to them."""
        del self.stack[size:]
        del self._state.value_stack[size - 1 :]

    def leave(self, terminal: str) -> None:
        """Drop states until the terminal is taken."""
        while not self.takes(terminal):
            self.keep(len(self.stack) - 1)


def _shifts(states: dict, stack: list[int], size: int, terminal: str) -> bool:
    """Do the first `size` states take the terminal? Exact: it follows the reductions, without running them."""
    dropped = 0
    pushed: list[int] = []
    while True:
        state = pushed[-1] if pushed else stack[size - 1 - dropped]
        action = states[state].get(terminal)
        if action is None:
            return False
        if action[0] is Shift:
            return True
        rule = action[1]
        count = len(rule.expansion)
        inside = min(count, len(pushed))
        del pushed[len(pushed) - inside :]
        dropped += count - inside
        state = pushed[-1] if pushed else stack[size - 1 - dropped]
        pushed.append(states[state][rule.origin.name][1])
