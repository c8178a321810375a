"""Words of items are run exactly as they stand, in one CTA, and show the fault that a broken program has."""

from __future__ import annotations

import pytest

from tests.shipped import Shipped, attention, gemm
from tests.sim.programs import edit
from wgdsl.diagnostics.sim import Deadlock, OverwrittenTooEarly, ReadTooEarly, WrongPhase
from wgdsl.roles import model as m
from wgdsl.roles.model import RoleProgram
from wgdsl.roles.witness import Witness, WitnessItem
from wgdsl.sim.replay import items_of, replay

CASES: dict[str, Shipped] = {
    "static": attention("fa3", True, 64),
    "persistent": attention("fa3_persistent", False, 64),
    "longest first": attention("two_longest", True, 128),
    "joined": attention("two_joined", False, 128),
    "joined, causal": attention("two_joined", True, 128),
    "rescales are skipped": attention("three_longest", True, 128),
    "products": gemm("nk"),
    "products in turn": gemm("nk", schedule="turns"),
}
LENGTHS = ((300, 600), (300, 0), (1, 1), (700, 130), (128, 128))


def item(s: Shipped, row: int, lengths: tuple[int, int]) -> WitnessItem:
    """Some item whose rows begin at `row`."""
    rows, cols = lengths
    if s.program.startswith("examples/gemm"):
        return WitnessItem(dims=(("M", rows), ("N", 256), ("K", cols)), indices=(("i.lo", row), ("n.lo", 0)))
    fixed = dict(s.dims)
    dims = {"B": 1, "G": 1, "R": 2, "M": rows, "N": cols, **fixed}
    return WitnessItem(dims=tuple(dims.items()), indices=(("b", 0), ("g", 0), ("r", row % 2), ("i.lo", row)))


def word(s: Shipped, program: RoleProgram, lengths=LENGTHS, **more) -> Witness:
    """One item for each length, the last one twice; a kernel that isn't persistent runs only one."""
    kernel = program.kernels[0]
    items = tuple(item(s, 64 * k, x) for k, x in enumerate((*lengths, lengths[-1])))
    items = items if kernel.grid.persistent else items[:1]
    return Witness(kernel=kernel.name, items=items, dims=items[0].dims, **more)


def without(program: RoleProgram, barrier: str) -> RoleProgram:
    return edit(program, lambda s: () if isinstance(s, m.Wait) and s.barrier == barrier else s)


@pytest.mark.parametrize("name", CASES)
def test_a_right_program_meets_no_fault(name):
    s = CASES[name]
    program = s.compile().forms.roles
    assert replay(program, word(s, program), seeds=range(10)) is None


@pytest.mark.parametrize("name", CASES)
def test_a_missing_wait(name):
    s = CASES[name]
    program = s.compile().forms.roles
    full = next(r.full for r in program.kernels[0].rings if r.full and r.empty)
    found = replay(without(program, full), word(s, program))
    assert isinstance(found, ReadTooEarly), found


@pytest.mark.parametrize("name", [n for n, s in CASES.items() if n not in ("static", "products")])
def test_a_missing_wait_for_an_empty_slot(name):
    s = CASES[name]
    program = s.compile().forms.roles
    empty = next(f"{ring}.empty" for ring in ("Ks", "As") if any(r.name == ring for r in program.kernels[0].rings))
    found = replay(without(program, empty), word(s, program, ((300, 1200),) * 4))
    assert isinstance(found, WrongPhase | OverwrittenTooEarly), found


def test_a_missing_release():
    s = CASES["persistent"]
    program = s.compile().forms.roles
    silent = edit(program, lambda s: () if isinstance(s, m.Arrive) and s.barrier == "Qs.empty" else s)
    assert replay(silent, word(s, program, ((300, 600),))) is not None  # two items: the word holds the last one twice
    found = replay(silent, word(s, program))
    assert isinstance(found, Deadlock) and "item" in found.item


def test_items_are_numbered_by_their_places():
    s = CASES["persistent"]
    items = items_of(word(s, s.compile().forms.roles))
    assert [i.number for i in items] == list(range(6)) and items[4].dims == items[5].dims


def test_it_goes_on_for_the_kinds_that_are_asked_for():
    s = CASES["persistent"]
    program = s.compile().forms.roles
    broken = without(program, "Ks.empty")
    w = word(s, program, ((300, 1200),) * 3)
    first = replay(broken, w)
    other = OverwrittenTooEarly if isinstance(first, WrongPhase) else WrongPhase
    assert isinstance(replay(broken, w, kinds=(type(first),)), type(first))  # type: ignore[arg-type]
    assert isinstance(replay(broken, w, kinds=(other,)), WrongPhase | OverwrittenTooEarly)
    assert replay(broken, w, kinds=(Deadlock,)) == first, "none of the kind: the first there was"


def test_who_falls_behind_is_tried_first():
    """`late` names a warpgroup; its fault is the one that is found."""
    s = CASES["persistent"]
    program = s.compile().forms.roles
    half = edit(program, lambda s: _only_first(s))
    kernel = replace_count(half, "Ks.empty", 4)
    found = replay(kernel, word(s, program, ((300, 1200),) * 2, late=(("math", 1),)))
    assert found is not None and getattr(found, "agent", "").startswith("math 1"), found


def _only_first(s):
    from wgdsl.program.expr import Affine
    from wgdsl.program.poly import Poly

    release = isinstance(s, m.Arrive) and s.barrier == "Ks.empty"
    return m.If(cond=Affine(poly=-Poly.of("wg")), then=(s,)) if release else s


def replace_count(program: RoleProgram, barrier: str, count: int) -> RoleProgram:
    from dataclasses import replace

    kernel = program.kernels[0]
    changed = tuple(replace(b, count=count) if b.name == barrier else b for b in kernel.barriers)
    return replace(program, kernels=(replace(kernel, barriers=changed),))


def test_a_flag_of_the_kernel():
    """Without rows that suit the tensor map the result leaves by threads: no bulk store, so none to wait for."""
    s = gemm("nk")
    program = s.compile().forms.roles
    kernel = program.kernels[0]
    flag = next(p.name for p in kernel.params if p.kind == "flag")
    unwaited = edit(program, lambda s: () if isinstance(s, m.WaitStore) else s)
    assert replay(unwaited, word(s, program, flags=((flag, True),))) is not None
    assert replay(unwaited, word(s, program, flags=((flag, False),)), seeds=range(5)) is None
