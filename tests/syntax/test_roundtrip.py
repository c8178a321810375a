"""parse(show(tree)) == tree for random trees, and the layout of a text carries no meaning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.syntax import trees
from tests.syntax.texts import SHIPPED, expression, parsed
from wgdsl.foundation.source import Source
from wgdsl.syntax.lexer import lex
from wgdsl.syntax.parser import parse, read
from wgdsl.syntax.printer import fmt, show

BETWEEN = [" ", "\n", "\r\n", "\r", "\t", "\n\n\n", " # note\n", "\n# own line\n", "  ", "\n    ", " #\r"]


@given(trees.exprs)
def test_expressions(tree):
    assert expression(show(tree)) == tree


@given(trees.files)
def test_files(tree):
    assert parsed(show(tree)) == tree


@given(trees.files, st.data())
def test_any_layout_gives_the_same_tree_and_one_formatted_text(tree, data):
    words = [w.text for w in lex(Source("t.wg", show(tree))).words]
    gaps = data.draw(st.lists(st.sampled_from(BETWEEN), min_size=len(words), max_size=len(words)))
    text = "".join(gap + word for gap, word in zip(gaps, words, strict=True)) + "\n# end"
    source = Source("t.wg", text)
    assert parse(source) == tree
    formatted = fmt(source)
    assert parsed(formatted) == tree
    assert fmt(Source("t.wg", formatted)) == formatted
    assert comments(formatted) == comments(text)
    assert [w.text for w in lex(Source("t.wg", formatted)).words] == words


def comments(text: str) -> list[str]:
    return [c.text.rstrip() for c in lex(Source("t.wg", text)).comments]


@pytest.mark.parametrize(
    "text",
    [
        "schedule s for p on t { stream\nprogram descending { } }",
        "schedule s for p on t {\nschedule { for a { } } }",
        "program p { let x =\nschedule [ for_ ] }",
        "program p { let x = a +\nin Y[i] = 2 }",
    ],
)
def test_words_that_look_like_another_item(text):
    assert fmt(Source("t.wg", text)) and parsed(show(parsed(text))) == parsed(text)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_shipped_files(path):
    source = read(path)
    file = parse(source)
    assert parsed(show(file)) == file
    assert parsed(fmt(source)) == file
    assert comments(fmt(source)) == comments(source.text)
