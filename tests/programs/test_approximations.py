"""`approximate`: a schedule may let the chip be less exact. The program stays; the report says so, and so does the bar."""

from __future__ import annotations

import numpy as np
import pytest

import wgdsl
from tests.programs.edits import ATTENTION, edit
from tests.programs.test_attention_programs import score
from wgdsl.program.functions import FUNCTIONS as MEANING
from wgdsl.roles.settings import settings_text
from wgdsl.roles.text import roles_text
from wgdsl.sim.functions import FUNCTIONS as SIMULATED
from wgdsl.tools.judge import judge
from wgdsl.tools.retargeting import retarget
from wgdsl.tools.running import run

CAPPED = edit(ATTENTION, score("30.0 * tanh(S[b,g,r,i,j] * scale / 30.0) where j <= i + N - M"))
NOTE = "tanh to 2^-11 of its value"
SIZES = {"B": 1, "G": 1, "R": 2, "M": 130, "N": 200}


def made(base: str, lines: str = "approximate tanh", program: str = CAPPED):
    text = f"wg 1\nschedule near extends {base} {{ {lines} }}\n"
    return wgdsl.compile(program, schedule=text, dims={"D": 64, "E": 64}, types={"T": "bf16"}, build=False)


@pytest.mark.parametrize("base", ["three", "fa2"])
def test_a_soft_cap_is_right_and_says_what_it_is(base):
    kernel, exact = made(base), made(base, "")
    assert "tanh.approx.f32" in kernel.cuda and "ptx::tanh(" not in kernel.cuda
    assert "tanh.approx" not in exact.cuda and "ptx::tanh(" in exact.cuda
    assert NOTE in kernel.roles.roundings and NOTE not in exact.roles.roundings
    assert (kernel.approximated, exact.approximated) == ({"tanh"}, frozenset())
    assert run(kernel, SIZES, device="sim", check=True).right


def test_the_report_says_it():
    assert NOTE in str(made("three").report)


def test_the_bar_of_an_exact_kernel_would_refuse_it():
    kernel = made("three")
    ran = run(kernel, SIZES, device="sim", check=True)
    exact = judge(kernel.graph, ran.inputs, ran.bound.scalars, ran.bound.dims, ran.results)
    assert not all(v.right for v in exact)
    assert all(v.bar < 1e-2 for v in ran.verdicts), "the bar is that of 2^-11, not any bar"


def test_the_simulator_and_the_bar_are_as_far_off_as_the_manual_allows():
    x = np.concatenate([np.linspace(-12, 12, 4001), 2.0 ** np.arange(-30, 5)]).astype(np.float32)
    exact = np.tanh(x.astype(np.float64))
    for off in (SIMULATED["tanh_approx"](x) - exact, MEANING["tanh_approx"](x.astype(np.float64)) - exact):
        share = np.abs(off[exact != 0] / exact[exact != 0])
        assert 2**-12 < share.max() <= 2**-11 * (1 + 1e-3)
    special = np.array([np.nan, np.inf, -np.inf, 0.0], np.float32)
    np.testing.assert_array_equal(SIMULATED["tanh_approx"](special), np.tanh(special))


def test_the_explicit_form_says_it_and_compiles_to_the_same():
    kernel = made("three")
    text = roles_text(kernel.roles, settings=settings_text(kernel.graph))
    again = wgdsl.compile(CAPPED, schedule=f"wg 1\n{text}", build=False)
    assert "tanh_approx(" in text and again.approximated == {"tanh"}
    assert roles_text(again.roles) == roles_text(kernel.roles)


def test_a_program_without_tanh_stays_as_it_is():
    kernel, plain = made("three", program=ATTENTION), made("three", "", program=ATTENTION)
    assert kernel.roles == plain.roles


def test_the_line_is_carried_to_another_target(tmp_path):
    path = tmp_path / "near.wg"
    path.write_text(f"wg 1\n{CAPPED.removeprefix('wg 1')}\nschedule near extends three {{ approximate tanh }}\n", "utf-8")
    new = retarget([str(path), "near"], "sm_80", ["D=64", "E=64", "T=bf16"])
    assert "approximate tanh" in new.text
    assert new.prepared().approximated == {"tanh"}


def test_what_the_chip_does_not_approximate_is_refused():
    with pytest.raises(wgdsl.WgError, match="WG0401"):
        made("three", "approximate erf")
