"""Recurrences: read, and refused with what they are needed for and what would do instead."""

from __future__ import annotations

import pytest

from tests.analyse.programs import graph_of
from wgdsl.diagnostics.model import WgError

RECURRENCE = """wg 1
program running {{
  dims C, R, D
  in   K: f32[C, R, D]
  in   decay: f32
  out  O: f32[C, D]
  State[c,d] = {value}
  Twice[c,d] = 2 * State[c,d]
  O[c,d]     = Twice[c,d]
}}
"""


def test_a_recurrence_shows_its_chain_and_what_would_do():
    value = "decay * State[c-1,d] + sum[r] K[c,r,d] from 0"
    with pytest.raises(WgError) as e:
        graph_of(RECURRENCE.format(value=value))
    (problem,) = e.value.problems
    assert problem.code == "WG0223" and "recurrence" in problem.title()
    assert problem.notes() == (
        "`State` needs an earlier element of `State`",
        "`Twice` needs `State`",
        "`O` needs `Twice`",
    )
    assert "decay ** (i - j)" in problem.help()


def test_from_without_a_recurrence():
    with pytest.raises(WgError, match="`from` in a statement that doesn't read its own tensor"):
        graph_of(RECURRENCE.format(value="sum[r] K[c,r,d] from 0"))
