"""Marks of an instrumented kernel: where they stand, and the timeline that notes make."""

from __future__ import annotations

import numpy as np

from tests.shipped import attention
from wgdsl.roles import model as m
from wgdsl.roles.marks import END, KEPT, NUMBER_BITS, marks_of, measured
from wgdsl.roles.timeline import STEP, WAIT


def fa3() -> m.Kernel:
    (kernel,) = attention("fa3", False, 128).compile().roles.kernels
    return kernel


def notes(kernel: m.Kernel, *tracks: list[tuple[int, int]]) -> np.ndarray:
    """What a launch leaves behind, whose warpgroups note (clock, mark)."""
    out = np.zeros((KEPT + 1, kernel.threads // 128), np.uint64)
    for w, track in enumerate(tracks):
        for k, (clock, number) in enumerate(track):
            out[KEPT - k, w] = clock << NUMBER_BITS | number
    return out


def test_a_mark_stands_before_each_run_of_the_same_words():
    kernel = fa3()
    marks = marks_of(kernel)
    assert sorted(x.number for x in marks.values()) == list(range(len(marks)))
    leaves = [s for r in kernel.roles for s in m.walk(r.steps) if not s.blocks() and not isinstance(s, m.Registers)]
    assert {id(s) for s in leaves} >= marks.keys() and len(marks) < len(leaves)
    assert all(id(s) in marks for s in leaves if isinstance(s, m.WaitGroup)), "where somebody waits a slice begins"
    products = [marks[id(s)] for s in leaves if isinstance(s, m.WaitGroup)]
    assert {x.name for x in products} == {"await S[j+1]", "await O[j]"} and {x.waits for x in products} == {"products"}


def test_notes_make_a_timeline():
    kernel = fa3()
    by_name = {(x.name, x.waits): x.number for x in marks_of(kernel).values()}
    issue, wait = by_name["issue S[j+1]", ""], by_name["await S[j+1]", "products"]
    t = measured(kernel, notes(kernel, [], [(1000, issue), (1040, wait), (1100, issue), (1130, END)], [(990, issue)]), "H200")
    assert t.roles == ("load", "math 0", "math 1") and t.engines == ()
    assert [(s.name, s.start, s.stop) for s in t.on("math 0", STEP)] == [
        ("issue S[j+1]", 10, 50),
        ("await S[j+1]", 50, 110),
        ("issue S[j+1]", 110, 140),
    ]
    assert [(s.name, s.step, s.start, s.stop) for s in t.on("math 0", WAIT)] == [("products", "await S[j+1]", 50, 110)]
    assert t.on("load") == t.on("math 1") == []
    assert (t.origin, t.what) == ("measured on H200", "CTA 0")


def test_notes_may_fill_the_array():
    kernel = fa3()
    number = next(iter(marks_of(kernel).values())).number
    t = measured(kernel, notes(kernel, [], [(k + 1, number) for k in range(KEPT)]), "H200")
    assert t.what == f"CTA 0, the first {KEPT} marks" and t.cycles == KEPT - 1


def test_no_notes_make_no_slices():
    kernel = fa3()
    assert measured(kernel, notes(kernel), "H200").slices == ()
