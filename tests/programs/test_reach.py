"""Results that are written up to less than their tensor's end: what no index reaches stays as it was, however it is stored."""

from __future__ import annotations

import pytest

from tests.programs.edits import GEMM, PIPELINED, edit, plain
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import compile
from wgdsl.tools.running import run

SHORT = edit(GEMM, ("out C: T[M, N]", "index i < M - 5\nout C: T[M, N]"))
WARPS = plain("schedules/ampere/gemm_warps.wg")
STAGED = {
    "tma": PIPELINED,
    "threads": WARPS,
    "registers": edit(PIPELINED, ("smem Cs = C[i, n] by tma", ""), (" via Cs", ""), ("n 256", "n 128")),
}


@pytest.mark.parametrize("n", [64, 63])
@pytest.mark.parametrize("how", STAGED)
def test_rows(how, n):
    kernel = compile(SHORT, schedule=STAGED[how], dims={"K": 64}, build=False)
    for m in (5, 64, 132, 133):
        assert run(kernel, {"M": m, "N": n}, device="sim", check=True).right, m


@pytest.mark.parametrize("how", ["tma", "threads"])
def test_columns_are_not_staged(how):
    with pytest.raises(WgError, match="up to `N - 5` of `N` elements") as e:
        compile(edit(GEMM, ("out C: T[M, N]", "index n < N - 5\nout C: T[M, N]")), schedule=STAGED[how], build=False)
    assert e.value.problems[0].code == "WG0405"
