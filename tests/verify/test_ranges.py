"""Integers of a role program: bounds of all that is shipped hold, and what leaves them is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.docs.test_cookbook_page import changed
from tests.shipped import KERNELS, attention, field_ids, gemm
from tests.sim.programs import edit
from tests.sim.programs import gemm as by_hand
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import compile
from wgdsl.program.poly import Poly, floordiv, maximum, minimum, mod
from wgdsl.roles import model as m
from wgdsl.roles.limits import LARGEST
from wgdsl.roles.model import RoleProgram
from wgdsl.verify.ranges import FAR, ROUNDS, SIZE, Known, _bounds, _Wrong, range_problems

K, T, W = map(Poly.of, ("K", "t", "wg"))
KNOWN = Known({"t": (0, 9), "wg": (0, 1), "x": (-5, 3)})


def titles(program: RoleProgram) -> list[str]:
    return [p.title() for k in program.kernels for p in range_problems(k)]


@pytest.mark.parametrize("s", KERNELS, ids=field_ids())
def test_shipped_schedules_pass(s):
    assert not titles(s.compile().roles)


@pytest.mark.parametrize(
    "p, low, high",
    [
        (K, 0, SIZE),
        (3 * T - 5 * W + 1, -4, 28),
        (T * W, 0, 9),
        (-2 * T * Poly.of("x"), -54, 90),
        (floordiv(Poly.of("x"), Poly.of(2)), -3, 1),
        (mod(Poly.of("x"), Poly.of(4)), 0, 3),
        (floordiv(K, T + 1), 0, SIZE),
        (minimum(K, T), 0, 9),
        (maximum(Poly.of("x"), Poly.of(0)), 0, 3),
    ],
)
def test_bounds(p: Poly, low: int, high: int):
    assert _bounds(p, KNOWN) == (low, high)


@pytest.mark.parametrize("p", [128 * K, K * K, floordiv(65536 * K, Poly.of(65536 * 3)), K + LARGEST, 200 * K - 200 * K * W])
def test_what_leaves_32_bits_on_the_way(p: Poly):
    with pytest.raises(_Wrong) as caught:
        _bounds(p, KNOWN)
    assert "can come to" in caught.value.why


@pytest.mark.parametrize(
    "value, right", [("len[b] * len[b]", True), ("len[b] * len[b] * len[b]", False), ("len[b] + 9999 * N", True)]
)
def test_what_is_read_is_computed_in_64_bits(value: str, right: bool):
    text = changed(f"in len: i32[B]\nX[b,g,r,i,j] = S[b,g,r,i,j] * scale where j < {value}")
    if right:
        compile(text, schedule="simple", dims={"D": 64, "E": 64}, build=False)
        return
    with pytest.raises(WgError, match="what is made of elements goes up to") as caught:
        compile(text, schedule="simple", dims={"D": 64, "E": 64}, build=False)
    assert {p.code for p in caught.value.problems} == {"WG0724"}


@pytest.mark.parametrize("divisor", [K, T, Poly.of("x"), T - 4])
def test_a_divisor_that_can_be_0(divisor: Poly):
    for op in (floordiv, mod):
        with pytest.raises(_Wrong) as caught:
            _bounds(op(K, divisor), KNOWN)
        assert "can be 0" in caught.value.why


def test_heads_of_a_group_are_an_axis():
    """`g * R + r` with G * R heads: that product is as small as a dim, another one isn't."""
    program = attention("fa3", True, 64).compile().roles
    assert not titles(program)
    squared = edit(program, lambda s: replace(s, value=s.value + Poly.of("g") * Poly.of("G")) if isinstance(s, m.Let) else s)
    assert titles(squared)[0].startswith("`g * G` can come to")


@pytest.mark.parametrize("rounds, right", [(ROUNDS, True), (ROUNDS + 1, False)])
def test_rounds_of_loops_on_numbers(rounds: int, right: bool):
    loop = m.Loop(var="x", start=Poly(), stop=Poly.of(rounds))
    once = m.Loop(var="y", start=Poly(), stop=Poly.of(1), body=(loop,))
    program = edit(by_hand(), lambda s: (once, s) if isinstance(s, m.Items) else s)
    assert (titles(program) == []) == right


@pytest.mark.parametrize("by, right", [(0, True), (FAR, True), (FAR + 1, False), (-1, False)])
def test_how_far_an_advance_goes(by: int, right: bool):
    far = m.Advance(ring="As", stages=Poly.of(by))
    program = edit(by_hand(), lambda s: (far, s) if isinstance(s, m.Items) else s)
    assert (titles(program) == []) == right


def test_each_step_is_told_once():
    wrong = m.Let(name="y", value=128 * K * K)
    program = edit(gemm("nk").compile().roles, lambda s: (wrong, s) if isinstance(s, m.Let) and s.name == "k.n" else s)
    assert len(titles(program)) == 2  # in both roles
