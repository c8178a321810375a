"""What `split` of the stream and `combine` refuse."""

from __future__ import annotations

import pytest

from tests.lowering import PIPELINED, SIMPLE, attention, gemm, lowered
from wgdsl.diagnostics.model import WgError

PARTS = ("stream k\n  grid   over (i, n)", "stream k split s in 4\n  grid   over (s, i, n)")
GEMM = {
    "no combine": ((), "WG0440", "several CTAs would store `C`, one for each `s`"),
    "unknown output": ((("role load", "combine D by atomic_add\n  role load"),), "WG0401", "no output is called `D`"),
    "part not on the grid": ((("over (s, i, n)", "over (i, n)"),), "WG0402", "`grid` has no axis `s`"),
    "name of an index": ((("split s", "split i"),), "WG0403", "index or dim `i` is declared twice"),
    "no parts": ((("in 4", "in 0"),), "WG0404", "the number of parts of the stream is 0"),
    "by merge": ((("role load", "combine C by merge\n  role load"),), "WG0405", "`combine` by merge"),
    "staged": ((("role load", "combine C by atomic_add\n  role load"),), "WG0405", "staging of `C`, which is combined,"),
}


def said(graph, text: str) -> list[tuple[str, str]]:
    with pytest.raises(WgError) as e:
        lowered(graph, text)
    return [(p.code, p.title()) for p in e.value.problems]


@pytest.mark.parametrize("name", GEMM)
def test_refused(name):
    edits, code, title = GEMM[name]
    text = PIPELINED
    for old, new in (PARTS, *edits):
        assert old in text
        text = text.replace(old, new, 1)
    assert any(c == code and title in t for c, t in said(gemm(), text))


def test_nothing_to_combine():
    text = PIPELINED.replace("role load", "combine C by atomic_add\n  role load", 1)
    assert said(gemm(), text) == [("WG0440", "`C` is made by one CTA: there is nothing to combine")]


def test_sums_that_are_scaled_to_a_maximum():
    text = SIMPLE.replace("stream j descending", "stream j descending split s in 4\n  combine O, L by atomic_add")
    problems = said(attention(), text.replace("over (b,", "over (s, b,"))
    assert ("WG0441", "the parts of `L` can't be added up: it needs the `max` of all parts") in problems
    assert [c for c, _ in problems] == ["WG0441", "WG0441"]


def test_an_output_without_a_grid_axis():
    """Without a reduction over the axis its CTAs would all store the same."""
    assert said(attention(), SIMPLE.replace("(b, g, r, i)", "(b, g, r, i, d)"))[0][0] == "WG0440"
