"""The checks and the simulator judge random role programs alike: neither knows the other, and both know what the steps mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, note, settings
from hypothesis import strategies as st

from tests.agreement.cases import Case, cases, seeded
from tests.agreement.copying import copying
from tests.agreement.disturb import Change
from tests.agreement.oracle import SEEDS, SIZES, expected, fault, run
from tests.agreement.programs import build
from tests.agreement.shapes import RingShape, Shape, shape
from tests.agreement.verdicts import FAULTS, OUTSIDE, refusals, refused, table, verdict, witnessed
from tests.sim.copying import Copying
from tests.sim.programs import edit
from wgdsl.diagnostics.model import Problem
from wgdsl.diagnostics.sim import Deadlock, Uninitialised
from wgdsl.roles.model import Items, RoleProgram, Zero
from wgdsl.roles.text import roles_text
from wgdsl.sim.replay import replay

# A case takes half a second: 60 as a rule, 400 in the thorough profile, and there in more orders.
EXAMPLES = settings(max_examples=min(settings.default.max_examples, 400))
FEWER = settings(max_examples=EXAMPLES.max_examples // 2)
ORDERS = SEEDS if settings.default.max_examples <= 60 else (None, *range(12))
MISSING = Case(  # the wait for an operand, and the 0 of the accumulator
    shape=Shape(rings=(RingShape(pair=False),) * 2, roles=(1, 1), chain="plain", clear=True, skip="loops"),
    changes=(Change(kind="delete", at=495, by=0), Change(kind="delete", at=40, by=0)),
)
CORPUS = 100


def told(case: Case) -> None:
    note(roles_text(case.program, lines=False))


@pytest.mark.timeout(1800)
@EXAMPLES
@given(cases())
def test_what_faults_is_refused(case: Case):
    """And what is accepted gives the same numbers in every order."""
    refused_if_wrong(case)


@pytest.mark.timeout(1800)
@EXAMPLES
@given(cases(kind="sm_80"))
def test_what_faults_is_refused_of_copies_by_threads(case: Case):
    """The same for warps that copy for themselves."""
    refused_if_wrong(case)


def refused_if_wrong(case: Case) -> None:
    told(case)
    found = fault(case.program, case.warpgroups, seeds=ORDERS)
    assume(not isinstance(found, OUTSIDE))
    refused = refusals(case)
    if found is not None:
        assert refused, f"the checks accept this, and the simulator says: {found.title()}; {'; '.join(found.notes())}"
    elif not refused:
        the_same_in_every_order(case)


def the_same_in_every_order(case: Case) -> None:
    for size in SIZES[1::3]:
        first = run(case.program, case.warpgroups, size)
        for seed in range(1, 6):
            np.testing.assert_array_equal(run(case.program, case.warpgroups, size, seed), first)


@pytest.mark.timeout(1800)
@EXAMPLES
@example(MISSING)
@given(cases(how_many=(1, 2, 3)))
def test_a_counter_example_faults(case: Case):
    """The word that the checks show leads the simulator to a fault of the same kind."""
    shown(case)


@pytest.mark.timeout(1800)
@EXAMPLES
@given(cases(how_many=(1, 2, 3), kind="sm_80"))
def test_a_counter_example_of_copies_by_threads_faults(case: Case):
    shown(case)


def shown(case: Case) -> None:
    told(case)
    told_by_words(case.program, refusals(case), several=len(case.changes) > 1)


def told_by_words(program: RoleProgram, problems: Iterable[Problem], several: bool) -> None:
    for p in witnessed(problems):
        found = replay(program, p.witness, kinds=FAULTS[type(p)])
        assert found is not None, f"{p.code}, {p.title()}: nothing happens at {p.witness}"
        if isinstance(found, FAULTS[type(p)]):
            continue
        # another change has taken a value away, and its reader is met first: what is left is told all the same
        if not (several and isinstance(found, Uninitialised) and found.value in tiles(program)):
            pytest.fail(f"{p.code}, {p.title()}: the simulator says {found.code}, {found.title()}")
        again = with_value(program, found.value)
        left = refused(again)
        assert left, f"{p.code}, {p.title()}: only `{found.value}` was missing"
        told_by_words(again, left, several)


def tiles(program: RoleProgram) -> set[str]:
    return {v.name for k in program.kernels for v in k.values if v.kind == "tile"}


def with_value(program: RoleProgram, value: str) -> RoleProgram:
    """The tile is 0 where an item begins."""
    for role in {v.role for k in program.kernels for v in k.values if v.name == value}:
        program = edit(
            program, lambda s: replace(s, body=(Zero(value=value), *s.body)) if isinstance(s, Items) else s, role=role
        )
    return program


@pytest.mark.parametrize(
    "s",
    [
        Shape(rings=(RingShape(),), loader="around"),
        Shape(rings=(RingShape(),), idle=True),
        Shape(rings=(RingShape(), RingShape(stages=3)), producers=2, idle=True, trips="item"),
    ],
    ids=["a thread elected for all items", "a role without items", "a role without items, two loaders"],
)
def test_forms_of_roles(s: Shape):
    right(s)


@FEWER
@given(st.randoms(use_true_random=False).map(lambda r: shape(r.choice)))
def test_skeletons_are_right(s: Shape):
    """Undisturbed programs compute what NumPy does and are accepted, unless a ring is too short for their order."""
    assume(not s.flawed)
    right(s)


@FEWER
@given(st.randoms(use_true_random=False).map(lambda r: copying(r.choice)))
def test_skeletons_of_copies_by_threads_are_right(s: Copying):
    program = Case(shape=s).program
    assert fault(program, s.warpgroups) is None
    computed(s, program)


def right(s: Shape) -> None:
    program = build(s)
    found = fault(program, s.warpgroups)
    if found is not None:
        assert isinstance(found, Deadlock) and min(r.stages for r in s.rings) <= 2, found.title()
        return
    computed(s, program)


def computed(s: Shape | Copying, program: RoleProgram) -> None:
    for size in SIZES:
        np.testing.assert_array_equal(run(program, s.warpgroups, size), expected(s, program, size))
    assert refusals(Case(shape=s)) == ()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("target, kinds", [("sm_90a", 8), pytest.param("sm_80", 4, marks=pytest.mark.slow)])
def test_the_corpus_is_not_vacuous(target: str, kinds: int):
    """Right and wrong programs, accepted and refused ones, and many kinds of both faults and rules."""
    found = [verdict(seeded(seed, target)) for seed in range(CORPUS)]
    print(table(found))
    assert not [seed for seed, v in enumerate(found) if v.missed]
    assert 0.3 <= sum(v.wrong for v in found) / CORPUS <= 0.7
    assert 0.3 <= sum(not v.refused for v in found) / CORPUS <= 0.7
    assert len({type(v.fault) for v in found if v.wrong}) >= kinds
    assert len({v.refused for v in found if v.refused}) >= kinds
    assert sum(bool(v.refused) and not v.shown and not v.wrong for v in found) <= 0.03 * CORPUS, "right programs are refused"
