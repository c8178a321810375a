"""Exponents around a maximum that rarely moves: what hangs on it alone is kept, with one branch between scores and them."""

from __future__ import annotations

import pytest

from tests.programs.edits import ATTENTION, SIMPLE, edit
from wgdsl.driver import compile
from wgdsl.program.expr import Expr, Load, Scalar, apply, const
from wgdsl.program.poly import Poly
from wgdsl.roles.model import CompleteOp, Compute, MapOp, Op, ReduceOp, RoomOp, VoteOp, walk
from wgdsl.schedule.centre import centred

LAZY = edit(SIMPLE, ("rescale O", "rescale O when grown by 8"))
APART = edit(LAZY, ("compute P[j]\n", "compute P.max[j]\ncompute P[j]\n"))
SCORE = "S[b,g,r,i,j] * scale where"


def ops(schedule: str, program: str = ATTENTION, **options: bool) -> list[list[Op]]:
    """The operations of each `compute` in the loop over tiles."""
    kernel = compile(program, schedule=schedule, dims={"D": 64, "E": 64}, types={"T": "bf16"}, options=options, build=False)
    steps = (s for role in kernel.roles.kernels[0].roles for s in walk(role.steps))
    return [list(s.ops) for s in steps if isinstance(s, Compute)]


def loop(schedule: str, program: str = ATTENTION, **options: bool) -> list[Op]:
    """Those of the last tile loop's computes that vote, and of those behind it up to the rescale."""
    every = ops(schedule, program, **options)
    at = max(k for k, c in enumerate(every) if any(isinstance(x, VoteOp) for x in c))
    return [x for c in every[at : at + 2] for x in c]


def written(found: list[Op], name: str) -> list[MapOp]:
    return [x for x in found if isinstance(x, MapOp) and x.dst == name]


@pytest.mark.parametrize("schedule", [LAZY, APART], ids=["together", "apart"])
def test_a_tile_has_one_branch_before_its_exponentials(schedule):
    found = loop(schedule)
    exponential = next(k for k, x in enumerate(found) if isinstance(x, MapOp) and x.dst == "P")
    guarded = [k for k, x in enumerate(found[:exponential]) if getattr(x, "when", None)]
    assert guarded == list(range(guarded[0], guarded[-1] + 1))
    assert {type(found[k]) for k in guarded} == {CompleteOp, MapOp}
    assert sum(isinstance(x, VoteOp) for x in found) == 1


def test_each_lane_votes_by_its_own_columns():
    found = loop(LAZY)
    top = next(x for x in found if isinstance(x, ReduceOp) and x.op == "max")
    complete = next(x for x in found if isinstance(x, CompleteOp))
    assert (top.dst, top.lanes) == ("P.max.new", "partial")
    assert (complete.value, complete.when) == ("P.max.new", "P.max.grown")


def test_the_offset_moves_with_the_maximum_alone():
    found = loop(LAZY)
    (offset,) = written(found, "P.max.off")
    (p,) = written(found, "P")
    assert offset.when == "P.max.grown" and p.when is None
    assert str(p.expr) == "exp2(((S * scale.1) - P.max.off))"
    room = next(x for x in found if isinstance(x, RoomOp))
    assert str(room.far) == "P.max.off == 0.0 and P.max != 0.0"


def test_every_item_begins_with_an_offset():
    """Also one whose first tiles nobody sees."""
    first = [x for c in ops(LAZY) for x in c if isinstance(x, MapOp) and x.dst == "P.max.off" and x.when is None]
    assert first


def test_a_factor_within_the_score_stays_there():
    program = edit(ATTENTION, ("in scale", "in tau: f32[M]\nin scale"), (SCORE, "S[b,g,r,i,j] * tau[i] where"))
    *_, p = written(loop(LAZY, program), "P")
    assert str(p.expr) == "exp2(((P * 1.4426950408889634) - P.max.off))"


X, M, TAU = (Load(tensor=name, access=(Poly.of("i"),)) for name in ("x", "m", "tau"))


def exponent(factor: Expr) -> Expr:
    return apply("exp2", apply("mul", apply("sub", X, M), factor))


@pytest.mark.parametrize("factor", [const(2.0), Scalar(name="scale"), Load(tensor="tau", access=(Poly.of("h"),))], ids=str)
def test_a_factor_that_is_the_same_for_the_tile(factor):
    found = centred(exponent(factor), "m", frozenset("ij"))
    assert found is not None and (found.x, found.c) == (X, factor)


def test_a_factor_of_each_row_is_left_where_it_is():
    assert centred(exponent(TAU), "m", frozenset("ij")) is None


def test_a_state_that_is_read_twice_is_no_offset():
    assert centred(apply("add", exponent(const(2.0)), M), "m", frozenset("ij")) is None


def test_without_a_limit_nothing_is_kept():
    found = [x for c in ops(SIMPLE) for x in c]
    assert not any(isinstance(x, VoteOp | RoomOp) or "off" in x.dst for x in found)
