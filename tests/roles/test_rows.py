"""The vocabulary: a row for everything, and everything in its row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest

from wgdsl.foundation.resources import grammar_path
from wgdsl.roles import model as m
from wgdsl.roles.grammar import written
from wgdsl.roles.rows import TABLES, Row, untold

ROWS = [row for table in TABLES.values() for row in table]


def steps(base: type = m.Step) -> Iterator[type]:
    """Those of the vocabulary: a test that was read before may have made others."""
    for c in base.__subclasses__():
        if c.__module__ == m.__name__:
            yield c
            yield from steps(c)


@pytest.mark.parametrize("kind", [*steps(), *get_args(m.Op), m.Buffer, m.Barrier, m.Ring, m.TensorMap, m.Value, m.Param,
                                  m.Grid, m.TensorArg, m.Role], ids=lambda c: c.__name__)  # fmt: skip
def test_everything_has_a_row(kind: type):
    assert any(row.make is kind for row in ROWS), f"roles/rows.py has no row for {kind.__name__}: nothing can print or read it"


def test_the_grammar_is_that_of_the_rows():
    grammar = grammar_path().read_text("utf-8")
    assert written(grammar) == grammar, "a row has changed: `python -m wgdsl.roles.grammar` writes grammar/wg.lark anew"


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.pattern)
def test_a_row_tells_every_field(row: Row):
    assert not untold(row), f"`{row.pattern}` leaves out fields of {row.make.__name__}"
