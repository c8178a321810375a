"""What waits tell beside each other: the second opinion on mutants that a verifier accepts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.shipped import KERNELS, attention, gemm, row_softmax, warps
from tests.sim.copying import Copying, build
from tests.sim.programs import attention as attention_by_hand
from tests.sim.programs import edit
from tests.sim.programs import gemm as by_hand
from wgdsl.mutate import MUST_REJECT, OPERATORS, known_otherwise, mutants, operator
from wgdsl.mutate.knowledge import SIZES, _run
from wgdsl.mutate.model import Mutant
from wgdsl.program.poly import Poly
from wgdsl.roles import model as m
from wgdsl.roles.model import RoleProgram, Step

BREAKING = [o.name for o in OPERATORS if o.expects == MUST_REJECT]
WAITS = ("no-wait", "wrong-parity", "swap")


def known(program: RoleProgram, *names: str) -> list[Mutant]:
    every = (x for x in mutants(program, map(operator, names)) if not x.exempt)
    return [x for x in every if known_otherwise(x.original, x.variant.kernel)]


@pytest.mark.parametrize("program", [by_hand(), attention_by_hand()])
def test_every_wait_of_what_is_written_by_hand_tells_something(program: RoleProgram):
    assert not known(program, *BREAKING)


@pytest.mark.parametrize("case", [gemm("nk"), gemm("nk", schedule="turns"), attention("fa3_persistent", True, 64)])
def test_every_event_of_these_tells_something(case):
    assert not known(case.compile().forms.roles, *BREAKING)


@pytest.mark.parametrize("case", [gemm("nk", schedule="turns"), attention("two_joined", True, 128), row_softmax(64)])
def test_the_agents_come_to_their_ends(case):
    for kernel in case.compile().forms.roles.kernels:
        assert all(_run(kernel, sizes, True) is not None for sizes in SIZES)


@pytest.mark.parametrize("schedule, d, implied", [("two_64_longest", 256, True), ("four_longest", 64, False)])
def test_a_ring_that_another_one_stands_in_for(schedule: str, d: int, implied: bool):
    """Q has one slot in the first: its release in the item before says that the number of the one before that was read."""
    program = attention(schedule, True, d).compile().forms.roles
    every = mutants(program, [operator("swap")])
    moved = [x for x in every if "item" in x.variant.event.split() or "`put item" in x.variant.what]
    around = [x for x in moved if "advance" not in x.variant.what and "work.full" not in x.variant.what]
    assert [known_otherwise(x.original, x.variant.kernel) for x in around] == [implied, implied]


def test_a_release_that_nobody_waits_for():
    found = known(by_hand(persistent=False), *BREAKING)
    assert {(x.operator.name, x.variant.place.line) for x in found} == {("no-arrive", 22), ("swap", 22)}  # behind the loop


def test_a_ring_that_never_comes_round():
    """With K fixed at one tile the second kernel fills one of its three slots."""
    found = known(row_softmax(64).compile().forms.roles, *WAITS)
    assert "wait As.empty[s] parity not p" in {x.variant.event for x in found}


# Warps that copy for themselves, and meet at named barriers.

BY_WARPS = [k for k in KERNELS if k.target == "sm_80"]
SHAPES = (
    Copying(),
    Copying(early=True, ahead=2, stages=4, apart=True, persistent=True),
    Copying(early=True, ahead=1, stages=2, groups=2),
    Copying(chain="plain", store="over", groups=2, persistent=True),
    Copying(pair=False, store="staged", ahead=2, stages=3),
)


@pytest.mark.parametrize("case", BY_WARPS, ids=[k.name for k in BY_WARPS])
def test_every_access_of_a_shipped_kernel_knows_of_those_that_it_meets(case):
    assert all(known_otherwise(k, k) for k in case.compile().forms.roles.kernels)


@pytest.mark.parametrize("case", [warps(gemm("nk", schedule="warps")), warps(attention("fa2_longest", True, 64))])
def test_every_event_of_these_warps_tells_something(case):
    assert not known(case.compile().forms.roles, *BREAKING)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_event_of_warps_written_by_hand_tells_something(shape: Copying):
    program = build(shape)
    assert known_otherwise(program.kernels[0], program.kernels[0])
    assert not known(program, *BREAKING)


def test_a_barrier_that_another_one_stands_in_for():
    """With a slot to spare a copy in front of the wait needs no barrier of its own."""
    program = build(Copying(early=True, stages=3))

    def meet(s: Step) -> Step:
        if not isinstance(s, m.Loop):
            return s
        return replace(s, body=(m.BarSync(id=Poly.of(1), threads=128, note="more"), *s.body))

    again = edit(program, meet)
    found = known(again, "no-bar")
    assert [x.variant.event for x in found] == ['sync bar 1 threads 128  "more"']
    assert not known(edit(build(Copying(early=True)), meet), "no-wait-copies", "more-copies")


def test_a_loop_that_never_runs():
    """K is one tile: what the steady loop does in which order shows nowhere."""
    found = known(warps(row_softmax(64, schedule="two_pass_warps")).compile().forms.roles, *BREAKING)
    assert [x.operator.name for x in found] == ["swap", "swap"]
    assert all("_use" in x.variant.kernel.name for x in found)


def test_fewer_steps_are_another_program():
    program = build(Copying())
    less = edit(program, lambda s: () if isinstance(s, m.Zero) else s)
    assert not known_otherwise(program.kernels[0], less.kernels[0])
