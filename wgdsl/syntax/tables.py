"""The LALR tables of the grammar, built once a process (80 ms), and the words of the language."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import lark
from lark.lexer import Lexer, PatternStr

from ..foundation.resources import grammar_path
from . import build


class _NoLexer(Lexer):
    """lark asks for a lexer; the parser feeds the words of `lexer.lex` instead."""

    def __init__(self, conf):
        pass

    def lex(self, lexer_state, parser_state):
        raise NotImplementedError


@dataclass(frozen=True)
class Tables:
    """`terminals`: keyword or mark -> terminal. `texts`: the reverse."""

    parser: lark.Lark
    terminals: dict[str, str]
    texts: dict[str, str]

    def begin(self):
        """A fresh LALR machine: `feed_token`, `state_stack`, `parse_conf.states`."""
        return self.parser.parse_interactive().parser_state


@cache
def tables() -> Tables:
    """The tables of `grammar/wg.lark`."""
    parser = lark.Lark(
        grammar_path().read_text(encoding="utf-8"),
        parser="lalr",
        lexer=_NoLexer,
        transformer=build,
        keep_all_tokens=True,
        maybe_placeholders=False,
    )
    terminals = {t.pattern.value: t.name for t in parser.terminals if isinstance(t.pattern, PatternStr)}
    return Tables(parser, terminals, {name: text for text, name in terminals.items()})
