"""What hangs on the scalars of a call alone is a parameter, computed once by the launch."""

from __future__ import annotations

import numpy as np
import pytest

from tests.programs.edits import ATTENTION, GEMM, PIPELINED, SIMPLE, edit
from wgdsl.driver import compile
from wgdsl.program.expr import Apply, Scalar, walk
from wgdsl.program.functions import single
from wgdsl.roles.model import Param, exprs
from wgdsl.roles.model import walk as steps_of
from wgdsl.runtime.bind import Bound
from wgdsl.runtime.launch import Launcher


def kernel(program: str = ATTENTION, schedule: str = SIMPLE, **options):
    dims = {"D": 64, "E": 64} if program is ATTENTION or "attention" in program else {}
    return compile(program, schedule=schedule, dims=dims, types={"T": "bf16"}, options=options, target="sm_90a", build=False)


def numbers(k) -> dict[str, Param]:
    return {p.name: p for p in k.roles.kernels[0].params if p.kind == "number"}


SCALED = edit(GEMM, ("in A:", "in alpha: f32 = 1\nin beta: f32 = 2\nin A:"), ("C[i,n] = ", "C[i,n] = alpha * exp(beta) * "))


def test_a_formula_of_a_scalar():
    k = kernel(lse=False)
    assert [str(p.value) for p in numbers(k).values()] == ["(scale * 1.4426950408889634)"]
    assert "float scale_1" in k.cuda and "float scale," not in k.cuda


def test_no_formula_is_left_in_the_steps():
    steps = (s for role in kernel().roles.kernels[0].roles for s in steps_of(role.steps))
    left = [x for s in steps for e in exprs(s) for x in walk(e) if isinstance(x, Apply)]
    assert left and not any(all(isinstance(a, Scalar) for a in x.args) for x in left)


def test_two_scalars_are_one_number():
    k = kernel(SCALED, PIPELINED)
    assert [str(p.value) for p in numbers(k).values()] == ["(alpha * exp2((beta * 1.4426950408889634)))"]


def test_a_scalar_alone_stays_what_it_is():
    k = kernel(edit(SCALED, ("alpha * exp(beta) *", "alpha + beta *")), PIPELINED)
    assert not numbers(k)
    assert {p.name for p in k.roles.kernels[0].params if p.kind == "scalar"} == {"alpha", "beta"}


@pytest.mark.parametrize("scale", [0.125, 1e-30, 3e38, float("inf")])
def test_launch_and_simulator_have_the_same_number(scale):
    k = kernel()
    (p,) = numbers(k).values()
    launched = Launcher(k.roles.kernels[0])._value(p, {}, Bound(dims={}, scalars={"scale": scale}))
    with np.errstate(over="ignore"):
        want = float(np.float32(scale * 1.4426950408889634))
    assert launched == want == single(p.value, {"scale": scale})


def test_an_explicit_form_says_it():
    from wgdsl.roles.text import roles_text

    assert "param number scale.1: f32 = (scale * 1.4426950408889634)" in roles_text(kernel().roles)
