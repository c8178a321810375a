"""Steps of warps that copy for themselves, in the simulator: what is poison until when, and what it says of mistakes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.agreement.oracle import SIZES, expected, fault, inputs, run
from tests.sim.copying import WG, Copying, build
from tests.sim.programs import drop, edit
from tests.sim.test_faults import kind
from wgdsl.diagnostics.model import WgError
from wgdsl.diagnostics.sim import (
    Fault,
    IllFormed,
    NamedBarrierMisuse,
    OverwrittenTooEarly,
    ReadTooEarly,
    Unfinished,
    Uninitialised,
)
from wgdsl.program.expr import Affine
from wgdsl.program.poly import Poly
from wgdsl.roles import model as m
from wgdsl.roles.model import RoleProgram, Slot, Step
from wgdsl.sim import memory, simulate_unchecked

SEEDS = (None, *range(12))
SHAPES = (
    Copying(),
    Copying(groups=3, stages=4, ahead=2, early=True, apart=True, persistent=True),
    Copying(stages=1, ahead=0, early=True, pair=False, store="staged"),
    Copying(groups=2, chain="plain", store="over", persistent=True),
    Copying(groups=2, chain="plain", stages=3, ahead=2, apart=True, store="staged"),
)


def fault_of(program: RoleProgram, groups: int = 1, seeds=SEEDS) -> Fault:
    found = fault(program, groups, seeds=seeds)
    assert found is not None
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", (None, 1, 2, 3))
def test_products_and_chains(shape: Copying, seed: int | None):
    program = build(shape)
    for size in SIZES:
        np.testing.assert_array_equal(run(program, shape.groups, size, seed), expected(shape, program, size))


# Poison.


@pytest.fixture
def ignorant(monkeypatch):
    """Memory that doesn't ask who knows of what."""
    monkeypatch.setattr(memory, "_check_read", lambda *a: frozenset())
    monkeypatch.setattr(memory, "_check_write", lambda *a: None)


def awaited_at_the_end(s: Step) -> Step:
    """The wait in the loop leaves all copies in flight."""
    return replace(s, body=(m.WaitCopies(pending=9), *s.body[1:])) if isinstance(s, m.Loop) else s


@pytest.mark.parametrize("change", [awaited_at_the_end, drop(kind(m.CopyAsync))])
def test_what_has_not_arrived_is_poison(ignorant, change):
    program = build(Copying(chain="plain"))
    late = [np.isnan(run(edit(program, change), 1, SIZES[3], seed)).any() for seed in SEEDS]
    assert any(late)
    assert not any(np.isnan(run(program, 1, SIZES[3], seed)).any() for seed in SEEDS)


# Ends of tensors.


@pytest.mark.parametrize("rows, cols", [(64, 16), (1, 16), (63, 3), (65, 17), (5, 0)])
def test_what_lies_outside_becomes_zero(rows: int, cols: int):
    """Whatever was in shared memory before."""
    program = build(Copying(persistent=True))
    arrays = inputs(program, {"M": rows, "K": cols})
    out = simulate_unchecked(program, arrays, {}, {"M": rows, "K": cols}, sms=1)
    a, b = (arrays[n].astype(np.float64) for n in ("A0", "B0"))
    np.testing.assert_array_equal(np.asarray(out["C"], dtype=np.float64), a @ b.T)


# Groups.


@pytest.mark.parametrize("pending, right", [(0, True), (1, True), (2, False), (5, False)])
def test_a_wait_leaves_the_youngest_groups(pending: int, right: bool):
    """Two tiles are copied ahead: the younger may be under way."""
    program = edit(
        build(Copying(ahead=2, stages=3)), lambda s: replace(s, pending=pending) if isinstance(s, m.WaitCopies) else s
    )
    found = fault(program, 1)
    assert (found is None) == right
    assert right or isinstance(found, ReadTooEarly)


def test_groups_of_nothing_count():
    """A commit without copies is a group: a wait for one less than there are waits for the copies before it."""
    program = build(Copying())
    twice = edit(program, lambda s: (s, s) if isinstance(s, m.CommitCopies) else s)
    one = edit(twice, lambda s: replace(s, pending=1) if isinstance(s, m.WaitCopies) else s)
    assert fault(one, 1) is None
    two = edit(twice, lambda s: replace(s, pending=2) if isinstance(s, m.WaitCopies) else s)
    assert isinstance(fault_of(two), ReadTooEarly)


def test_a_wait_in_the_drain_that_counts_as_in_the_loop():
    """Where nothing is committed any more the last groups are the ones that are needed."""
    program = build(Copying(ahead=2, stages=3, pair=False))
    more = Affine(poly=Poly.of("k.n") - 1 - (Poly.of("t") + 2))

    def commits_what_there_is(s: Step) -> Step:
        if not isinstance(s, m.Loop):
            return s
        wait, bar, fill, commit, *rest = s.body
        assert isinstance(commit, m.CommitCopies)
        return replace(s, body=(wait, bar, fill, m.If(cond=more, then=(commit,)), *rest))

    assert isinstance(fault_of(edit(program, commits_what_there_is)), ReadTooEarly)


def test_copies_in_flight_at_the_end():
    program = build(Copying(pair=False))
    last = [s for s in m.walk(program.kernels[0].roles[0].steps) if isinstance(s, m.WaitCopies)][-1]
    found = fault_of(edit(program, drop(lambda s: s is last)))
    assert isinstance(found, Unfinished) and found.title() == "this copy may still be in flight at the end"


# Shares.


def by_some(match, cond: Poly):
    return lambda s: m.If(cond=Affine(poly=cond), then=(s,)) if match(s) else s


@pytest.mark.parametrize("steps", [m.CopyAsync, m.WaitCopies, m.CommitCopies])
@pytest.mark.parametrize("cond", [-WG, WG - 1])
def test_a_group_of_warps_that_leaves_its_share_out(steps: type[Step], cond: Poly):
    program = edit(build(Copying(groups=2)), by_some(kind(steps), cond))
    assert isinstance(fault_of(program, 2), ReadTooEarly | OverwrittenTooEarly)


def test_a_barrier_of_half_the_role():
    program = edit(build(Copying(groups=2)), lambda s: replace(s, threads=128, id=WG + 1) if isinstance(s, m.BarSync) else s)
    assert isinstance(fault_of(program, 2), ReadTooEarly | OverwrittenTooEarly | NamedBarrierMisuse)


def test_a_tile_of_another_size():
    program = build(Copying())
    wide = edit(program, lambda s: replace(s, rows=replace(s.rows, count=8)) if isinstance(s, m.CopyAsync) else s)
    found = fault_of(wide, seeds=(None,))
    assert isinstance(found, IllFormed) and "8 x 16 elements don't fit" in found.title()


# Positions.


def other_lag(by: int):
    """The product reads another tile of the ring."""

    def change(s: Step) -> Step:
        if not isinstance(s, m.Mma):
            return s
        return replace(s, b=replace(s.b, slot=Slot(ring=s.b.slot.ring, lag=s.b.slot.lag + by)))

    return change


@pytest.mark.parametrize("by", [-1, 1, 2, -2])
def test_a_product_reads_what_was_copied_for_its_position(by: int):
    """Also where another position of the ring has the same slot."""
    assert isinstance(fault_of(edit(build(Copying()), other_lag(by))), ReadTooEarly)


def test_no_two_copies_to_one_position():
    twice = edit(build(Copying()), lambda s: (s, s) if isinstance(s, m.CopyAsync) and s.tensor == "B0" else s)
    assert isinstance(fault_of(twice), OverwrittenTooEarly)


def test_what_is_filled_once_an_item_has_no_position():
    """Its ring stands still, and each item fills it again."""
    shape = Copying(pair=False, persistent=True)
    assert fault(build(shape), 1) is None
    program = build(shape)
    (items,) = program.kernels[0].roles[0].steps
    assert isinstance(items, m.Items) and isinstance(items.body[-1], m.BarSync)
    role = replace(program.kernels[0].roles[0], steps=(replace(items, body=items.body[:-1]),))
    without = replace(program, kernels=(replace(program.kernels[0], roles=(role,)),))
    assert isinstance(fault_of(without), OverwrittenTooEarly | ReadTooEarly)


# Products that are done at once.


@pytest.mark.parametrize("match", [m.Zero, m.Pack])
def test_registers_without_a_value(match: type[Step]):
    assert isinstance(fault_of(edit(build(Copying(chain="plain")), drop(kind(match))), seeds=(None,)), Uninitialised)


def test_registers_may_be_touched_right_behind_a_product():
    again = edit(build(Copying()), lambda s: (s, m.Move(dst="O", src="O")) if isinstance(s, m.Mma) else s)
    np.testing.assert_array_equal(run(again, 1, SIZES[3]), run(build(Copying()), 1, SIZES[3]))


def test_a_product_of_another_type():
    with pytest.raises(WgError) as e:
        odd = edit(build(Copying()), lambda s: replace(s, k=32) if isinstance(s, m.Mma) else s)
        run(odd, 1, SIZES[0])
    assert isinstance(e.value.problems[0], IllFormed)
