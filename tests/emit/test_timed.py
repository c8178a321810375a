"""Texts that note the clock: what is in them, and what the compiler makes of them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.shipped import Shipped, attention, gemm
from wgdsl.driver import timed
from wgdsl.roles.marks import END, KEPT, marks_of
from wgdsl.runtime.verdict import complaints_of

AMPERE = replace(attention("fa2", False, 64), target="sm_80")
SHIPPED = [
    attention("fa3", False, 128),
    attention("three", False, 128),
    attention("softmax_turns", True, 128),
    gemm("nk"),
    AMPERE,
]
NOTE = re.compile(r"ptx::note_clock\(marks_left, timeline_marks, (\d+)\);")


@pytest.mark.parametrize("s", SHIPPED, ids=lambda s: s.name)
def test_the_compiler_takes_them(s: Shipped):
    """Nothing spills and no product is serialised; the text stays within the registers of its roles."""
    kernel, names = timed(s.compile())
    (made,) = kernel.roles.kernels
    assert names == {made.name: "timeline_marks"}
    assert complaints_of(made, kernel.binaries[made.name]) == []


@pytest.mark.parametrize("s", SHIPPED, ids=lambda s: s.name)
def test_every_mark_is_noted(s: Shipped):
    kernel, _ = timed(s.compile())
    (made,) = kernel.roles.kernels
    noted = [int(n) for n in NOTE.findall(kernel.cuda)]
    assert {n for n in noted if n != END} == {x.number for x in marks_of(made).values()}
    assert noted.count(END) == len(made.roles)
    groups = made.threads // 128
    assert f"timeline_marks[{(KEPT + 1) * groups}]" in kernel.cuda
    assert f"? {KEPT * groups} + threadIdx.x / 128 : 0" in kernel.cuda


def test_without_notes_the_text_is_that_of_always():
    """The marks are all that is added: the text without the lines that hold them."""
    s = attention("fa3", False, 128)
    plain = s.compile().cuda
    kernel, _ = timed(s.compile())
    kept = [line for line in kernel.cuda.splitlines() if "marks" not in line]
    text = re.sub(r"__device__ __forceinline__ void note_clock.*?\n}\n", "", "\n".join(kept) + "\n", flags=re.DOTALL)
    assert "note_clock" not in plain and "clock64" not in plain
    assert [x for x in text.splitlines() if x.strip()] == [x for x in plain.splitlines() if x.strip()]
