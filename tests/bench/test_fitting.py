"""A schedule that is named is timed where there is one of that name for the program and its target."""

from __future__ import annotations

import pytest

from wgdsl.bench.fitting import fitting
from wgdsl.bench.request import Request, cases_of
from wgdsl.diagnostics.model import WgError

ATTENTION = """wg 1

schedule mine extends fa3 { }
"""


def fit(*suites: str, schedules=(), target: str | None = "sm_90a"):
    """Suite -> the sets of schedules that its cases have."""
    request = Request(suites=suites, filters={}, schedules=schedules, target=target)
    cases = cases_of(request)
    found = fitting(request, cases)
    assert list(found) == [c.key for c in cases]
    return {suite: {tuple(found[c.key]) for c in cases if c.suite == suite} for suite in suites}


def test_each_suite_has_those_for_its_program():
    found = fit("attention", "gemm", "dual_gemm", schedules=("three", "pipelined", "two {tile j 96}"))
    assert found == {"attention": {("three", "two {tile j 96}")}, "gemm": {("pipelined",)}, "dual_gemm": {()}}


def test_a_target_counts_too():
    found = fit("attention", "ampere", schedules=("three", "fa2"), target=None)
    assert found["ampere"] == {("fa2",)} and ("three",) not in found["ampere"]
    assert all("three" in of for of in found["attention"])


def test_cases_with_schedules_of_their_own_are_left_alone():
    assert fit("variants", schedules=("fa3",))["variants"] == {("fa3",), ()}


def test_a_file_fits_the_program_that_it_is_for(tmp_path):
    path = tmp_path / "mine.wg"
    path.write_text(ATTENTION)
    assert fit("lengths", "gemm", schedules=(str(path),)) == {"lengths": {(str(path),)}, "gemm": {()}}


def test_without_names_nothing_is_looked_up():
    assert fit("attention", "gemm") == {"attention": {()}, "gemm": {()}}


@pytest.mark.parametrize(
    "suites, name, near", [(("attention", "gemm"), "thre", "three"), (("gemm",), "persistant", "persistent")]
)
def test_one_that_fits_nothing_is_refused(suites, name, near):
    with pytest.raises(WgError, match="WG1016") as caught:
        fit(*suites, schedules=("pipelined", name))
    (problem,) = caught.value.problems
    assert f"no schedule `{name}`" in problem.title() and f"`{near}`" in problem.help()


def test_one_for_another_program_alone_is_refused():
    with pytest.raises(WgError, match="no schedule `three`"):
        fit("gemm", schedules=("three",))


def test_what_is_wrong_in_a_file_is_said(tmp_path):
    path = tmp_path / "mine.wg"
    path.write_text(ATTENTION.replace("{ }", "{"))
    with pytest.raises(WgError, match="WG01"):
        fit("attention", schedules=(str(path),))
