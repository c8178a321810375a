"""The LALR tables of the grammar, and the words of the language.

The tables take some 80 ms to build. They are kept in the cache folder, under the hash of the grammar; lark checks in addition
that it wrote them itself, in this version of Python. Without a folder to write to they are built in every process.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import lark
from lark.lexer import Lexer, PatternStr

from ..foundation.environment import cache_dir
from ..foundation.resources import grammar_path
from . import build, build_lines


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
    parser = _kept(grammar_path().read_text(encoding="utf-8"))
    terminals = {t.pattern.value: t.name for t in parser.terminals if isinstance(t.pattern, PatternStr)}
    return Tables(parser, terminals, {name: text for text, name in terminals.items()})


def _kept(grammar: str) -> lark.Lark:
    """The parser, its tables read from the cache folder or written there."""
    folder = cache_dir()
    path = folder / f"grammar-{sha256(grammar.encode()).hexdigest()[:16]}-{lark.__version__}.tables"
    if path.is_file():
        return _parser(grammar, path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mine = folder / f"{path.name}.{os.getpid()}"
        parser = _parser(grammar, mine)
        mine.replace(path)  # at once: no process ever reads half a file
    except OSError:
        return _parser(grammar, None)
    return parser


def _parser(grammar: str, kept: Path | None) -> lark.Lark:
    return lark.Lark(
        grammar,
        parser="lalr",
        lexer=_NoLexer,
        transformer=SimpleNamespace(**{**vars(build_lines), **vars(build)}),
        keep_all_tokens=True,
        maybe_placeholders=False,
        cache=str(kept) if kept else False,
    )
