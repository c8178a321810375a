"""Lines and steps that no pass lowers are refused where they stand; none is passed over."""

from __future__ import annotations

import pytest

from tests.lowering import SIMPLE, attention, lowered
from wgdsl.diagnostics.model import WgError

CASES = {
    "kernel first computes S { tile i 64 }": "cutting a program into kernels",
    "combine O, L by merge": "`combine`",
    "regs Pr = P as e4m3": "a home with a form of its own",
    "smem Ps = Q[i] times 16 by tma": "a home with a form of its own",
    "smem Ps = Q[i] permute v8 by tma": "a home with a form of its own",
    "regs P ring 2": "`regs` without an engine",
}


def refused(text: str) -> list[tuple[str, str]]:
    """What is not yet supported, with the text that it stands in."""
    with pytest.raises(WgError) as e:
        lowered(attention(), text)
    return [(p.what, p.span.text) for p in e.value.problems if p.code == "WG0405"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("line", CASES)
def test_a_line(line):
    assert (CASES[line], line) in refused(SIMPLE.replace("  role load", f"  {line}\n  role load", 1))


@pytest.mark.parametrize(
    "old, new, what",
    [
        ("stream j descending", "stream j descending split s in 8", "`split` of the streamed index"),
        ("over (b, g, r, i)", "over (b, g, r, i) with Qs", "`with` in a `grid` line"),
    ],
)
def test_a_clause_or_step(old, new, what):
    assert old in SIMPLE
    assert what in [w for w, _ in refused(SIMPLE.replace(old, new, 1))]
