"""Lines and steps that no pass lowers are refused where they stand; none is passed over."""

from __future__ import annotations

import pytest

from tests.lowering import SIMPLE, attention, lowered
from wgdsl.diagnostics.model import WgError

CASES = {
    "combine O, L by merge": "`combine` by merge",
    "regs Pr = P as e4m3": "an operand of e4m3 in registers without `permute`",
    "smem Ps = Q[i] times 16 by tma": "a home with a form of its own",
    "smem Ps = Q[i] permute v8 by tma": "a home with a form of its own",
    "regs Qr = Q": "`regs` without an engine",
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
        ("over (b, g, r, i)", "over (b, g, r, i) with Qs", "`with` in a `grid` line"),
        ("split i", "split tiles", "`split tiles` where a CTA has one item"),
        ("split i", "split tiles", "`split tiles` without a turn around the loop"),
        ("split i", "split tiles", "`Qs`, a ring of 1 that 2 warpgroups take whole items from,"),
        ("for j {\n      issue", "in turn { for j {\n issue", "a turn around a loop of which warpgroups share the tiles"),
    ],
)
def test_a_clause_or_step(old, new, what):
    assert old in SIMPLE
    more = "}" if new.startswith("in turn") else ""
    assert what in [w for w, _ in refused(SIMPLE.replace(old, new, 1).replace("    finish", f"    {more} finish"))]


def test_a_second_role_that_fills_in_a_dynamic_grid():
    """One thread would have to take items that are handed to whole warps."""
    text = SIMPLE.replace("grid   over", "grid   persistent dynamic over")
    text = text.replace("      fill Vs[j]\n    }\n  }", "    }\n  }\n  more { for j { fill Vs[j] } }")
    line = "role more : 1 warpgroup, registers 24"
    found = refused(text.replace("  role math", f"  {line}\n  role math", 1))
    assert found == [("a second role that only fills, in a dynamic grid", line)]
