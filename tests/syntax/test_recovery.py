"""One run reports every problem of a text, each once, where it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.syntax.texts import SHIPPED, problems
from wgdsl.diagnostics.model import WgError
from wgdsl.foundation.source import Source
from wgdsl.syntax.parser import parse

TWELVE = """wg 1
program p {
  dim N
  in X f32[N]
  let good = 1
  let = 2
  Y[i] = (a + b
  Z[i] = a[1]]
  option o of {a, b}
  W[i] = 2 * * 3
  V[i] = a[i] b[i]
}
schedule s for p on sm_90a {
  tile i
  strem j descending
  role m : 2 warpgroup registers 24
  m {
    fil K[j]
    for { await K }
    issue S wgmma(Q, K)
    await K
  }
}
"""


def places(text: str) -> list[tuple[str, int]]:
    return [(p.code, p.span.line) for p in problems(text) if p.span]


def test_every_broken_line_is_reported_once():
    assert places(TWELVE) == [
        ("WG0109", 3),
        ("WG0108", 4),
        ("WG0108", 6),
        ("WG0110", 7),
        ("WG0111", 8),
        ("WG0108", 9),
        ("WG0108", 10),
        ("WG0108", 11),
        ("WG0108", 15),
        ("WG0108", 16),
        ("WG0109", 18),
        ("WG0108", 19),
        ("WG0108", 20),
    ]


@pytest.mark.parametrize(
    "text, found",
    [
        ("program p {\n  dims N\n\nprogram q {\n  let = 1\n}\n", [("WG0110", 1), ("WG0108", 5)]),
        ("schedule s for p on t {\n  load {\n    fill K\n  math {\n    awai K\n  }\n}\n", [("WG0110", 2), ("WG0109", 5)]),
        ("schedule s for p on t {\n  load {\n    for j {\n      fill K\n  }\n  role m : 2 warps\n}\n", [("WG0110", 2)]),
        ("program p {\n  dims N\n", [("WG0110", 1)]),
        ("program p {\n  dims N\n}\n}\n}\n", [("WG0111", 4)]),
        ("program p {\n  let x = f(a, (b]\n  let y = 1\n}\n", [("WG0111", 2)]),
        ("program p {\n  let x = {a}\n  let = 1\n}\n", [("WG0108", 2), ("WG0108", 3)]),
        ("hello\nprogram p {\n  let = 1\n}\n", [("WG0109", 1), ("WG0108", 3)]),
        ("progam p {\n  dims N\n}\nschedule s on x {\n}\n", [("WG0109", 1), ("WG0108", 4)]),
    ],
)
def test_braces(text, found):
    assert places(text) == found


def test_the_line_that_lacks_a_brace_is_suspected():
    text = "schedule s for p on t {\n  m {\n    for j {\n      fill K\n  }\n  n {\n  }\n}\n"
    text = text.replace("  n {\n  }\n", "")
    (problem,) = problems(text)
    spans = [(span.line, label) for span, label in problem.others()]
    assert problem.code == "WG0110" and spans[0][0] == 3 and "missing" in spans[0][1]


@pytest.mark.parametrize("count", [1000, 5000])
def test_many_problems_are_cut_short(count):
    text = "program p {\n" + "let = 1\n" * count + "}"
    assert 1 < len(problems(text)) <= 20
    with pytest.raises(WgError) as e:
        parse(Source("t.wg", text))
    assert str(e.value).count("\n") < 40 and "more" in str(e.value)


@pytest.mark.parametrize("drop", range(0, len(TWELVE), 7))
def test_any_cut_text_is_an_error_with_a_place(drop):
    found = problems(TWELVE[:drop])
    assert found and all(p.span is not None and p.title() for p in found)


PIECES = [*'(){}[],:=+-*/%<x1\n#"$\u00e9', "+=", "**", "in", "for", "let", "role", "where", "sum", "not"]


@given(
    st.sampled_from([p.read_text(encoding="utf-8") for p in SHIPPED]),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from([*PIECES, ""])), min_size=1, max_size=6),
)
def test_no_broken_text_breaks_the_parser(text, edits):
    """Cut and insert at random: the parser takes it, or says so in at most 40 lines with a place for each problem."""
    for where, cut, piece in edits:
        at = int(where * len(text))
        text = text[:at] + piece + text[at + cut :]
    try:
        parse(Source("t.wg", text))
    except WgError as e:
        assert all(p.span is not None and p.title() for p in e.problems)
        assert str(e).count("\n") < 40
