"""Numbers and places that an explicit form can't have: each is refused at its line, with what to do, and soon.

Whole forms are edited; the first problem is the snapshot.
"""

from __future__ import annotations

import re

import pytest

from tests.roles.test_read import text_of
from tests.shipped import attention, gemm
from tests.snapshots import TextFile
from wgdsl.diagnostics.model import Problem, WgError
from wgdsl.diagnostics.render import render_all
from wgdsl.driver import prepare

LOOP = r"(loop k\.pos 0 \.\. k\.n - 1) (mask)"
RELEASE = r"arrive As\.empty\[s-1\]"
BRANCH = r"if k\.n - 1 >= 0 \{"
FENCE = r"^( +)(fence async)$"
COPY = r"64 \* k\.pos \+: 64"
TILES = r"let k\.n = max\(k\.hi, 0\)"
ADVANCE = r"advance As by k\.n"

NESTED = "loop x 0 .. 2000 mask {} { loop y 0 .. 2000 mask {} { } }"

CASES: dict[str, tuple[str, str, str]] = {  # code, what is replaced, and by what
    "loop by 0": ("WG1103", LOOP, r"\1 by 0 \2"),
    "loop by a negative number": ("WG1103", LOOP, r"\1 by -1 \2"),
    "no stages": ("WG1103", r"ring As stages \d+", "ring As stages 0"),
    "negative groups in flight": ("WG1103", r"wait_group 1", "wait_group -1"),
    "far behind the ring": ("WG0701", RELEASE, "arrive As.empty[s-7]"),
    "before the first position of the ring": ("WG0718", RELEASE, "arrive As.empty[s-2]"),
    "no 32-bit integer": ("WG0222", ADVANCE, "advance As by 9223372036854775807"),
    "a product that is no 32-bit integer": ("WG0222", COPY, "65536 * 65536 * k.pos +: 64"),
    "an overflow": ("WG0724", COPY, "99999999 * k.pos +: 64"),
    "an overflow of two dims": ("WG0724", COPY, "M * k.pos +: 64"),
    "an overflow on the way": ("WG0724", TILES, "let k.n = max(k.hi * 65536 / 65537, 0)"),
    "many rounds": ("WG0724", LOOP.replace(r"k\.n - 1", r"(k\.n - 1)"), r"loop k.pos 0 .. 1000000000 \3"),
    "many rounds in many": ("WG0724", r"^( +)(let k\.hi)", rf"\1{NESTED}\n\1\2"),
    "a far advance": ("WG0724", ADVANCE, "advance As by 1000000000"),
    "an advance back": ("WG0724", ADVANCE, "advance As by -1"),
    "a far comparison": ("WG0724", FENCE, r"\1if M - 1000000 < 0 { \2 }"),
    "a late item": ("WG0701", FENCE, r"\1if item.ordinal - 99999999 < 0 { \2 }"),
    "a long round of items": ("WG0701", FENCE, r"\1if item.ordinal % 1000 != 999 { \2 }"),
    "divided by 0": ("WG1104", BRANCH, "if k.n / 0 >= 0 {"),
    "a remainder by 0": ("WG1104", BRANCH, "if k.n % 0 >= 0 {"),
    "divided by what can be 0": ("WG0724", BRANCH, "if k.n / M >= 0 {"),
    "no leave": ("WG1101", r"^ +leave if no item.*\n", ""),
    "items that aren't counted": ("WG1101", "items counted", "items"),
}


STATIC, DYNAMIC = gemm("nk", schedule="turns"), attention("four_longest", True, 64)


def said(old: str, new: str) -> tuple[Problem, ...]:
    """What is said of an explicit form with the first match replaced."""
    text = text_of(DYNAMIC if "leave" in old else STATIC)
    edited, count = re.subn(old, new, text, count=1, flags=re.MULTILINE)
    assert count, f"nothing matches {old}"
    with pytest.raises(WgError) as caught:
        prepare(edited, target="sm_90a")
    return caught.value.problems


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case: str, snapshot):
    code, old, new = CASES[case]
    first, *_ = said(old, new)
    assert first.code == code and first.span is not None
    assert render_all((first,)) + "\n" == snapshot(extension_class=TextFile, name=case.replace(" ", "_"))
