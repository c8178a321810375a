"""What can't be streamed: the error shows who needs whom, and what would make it possible."""

from __future__ import annotations

import pytest

from tests.programs.edits import plain
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import compile
from wgdsl.foundation.resources import resource

SCHEDULE = resource("examples", "normaliser", "schedules.wg").read_text("utf-8").replace("for normaliser ", "for {} ")


def said(program: str, name: str, result: str):
    text = SCHEDULE.replace("{}", name, 1).replace("compute L[n]", f"compute {result}[n]")
    text = text[: text.index("\nschedule warps")].replace("finish L", f"finish {result}")
    with pytest.raises(WgError) as e:
        compile(program, schedule=text, dims={"K": 64}, build=False)
    (problem,) = e.value.problems
    return problem


def test_a_normalised_row_needs_two_passes():
    problem = said(plain("examples/row_softmax/row_softmax.wg"), "row_softmax", "P")
    assert problem.code == "WG0303"
    assert problem.notes() == (
        "`P` needs `P.exp` for every `n` when the pass has ended",
        "`P.exp` needs `S`",
        "`P.exp` needs `P.max`, along `n`",
    )
    assert (
        problem.help() == "one kernel makes one pass: `kernel NAME computes P.max, P.sum { ... }`, and `stream k` for the rest"
    )


def test_a_product_beside_its_rows_is_streamed_along_the_product():
    problem = said(plain("examples/gemm_statistics/gemm_statistics.wg"), "gemm_statistics", "most")
    assert (problem.code, problem.help()) == ("WG0303", "`stream k`")
