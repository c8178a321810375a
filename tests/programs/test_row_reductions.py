"""Reductions of final values: the rows of a product's tile, by one CTA that has all of a row, or by several together."""

from __future__ import annotations

import numpy as np
import pytest

from tests.programs.edits import edit
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import compile
from wgdsl.foundation.resources import resource
from wgdsl.runtime.kernel import Kernel
from wgdsl.tools.running import run

PROGRAM = resource("examples", "gemm_statistics", "gemm_statistics.wg").read_text("utf-8")
SCHEDULES = resource("examples", "gemm_statistics", "schedules.wg").read_text("utf-8")
HEAD = PROGRAM[: PROGRAM.index("  C[i,n]")].replace("  out    most: f32[M]\n  out    squares: f32[M]\n", "")
COMBINED = "  combine most by atomic_max\n  combine squares by atomic_add\n"
TARGETS = {"pipelined": "sm_90a", "warps": "sm_80"}
SIZES = ({"M": 70, "N": 300, "K": 72}, {"M": 129, "N": 257, "K": 200}, {"M": 130, "N": 260, "K": 0})


def program(body: str, out: str = "") -> str:
    """Statements behind the product, and more outputs."""
    return edit(HEAD, ("out    C: T[M, N]\n", f"out    C: T[M, N]\n{out}\n")) + body + "\n}\n"


def schedule(finish: str, combine: str = "", whole: bool = False) -> str:
    """The shipped schedules with other results; `whole`: a CTA has all of a row."""
    lines = [line for line in SCHEDULES.splitlines() if not line.strip().startswith("combine")]
    text = "\n".join(lines).replace("finish most, squares", finish).replace("  role math", f"  {combine}\n  role math")
    return text.replace("over (i, n)", "over (i)").replace(", n 256", "").replace(", n 128", "") if whole else text


def compiled(text: str, plan: str, name: str, **dims: int) -> Kernel:
    whole = text + plan.removeprefix("wg 1\n")
    return compile(whole, schedule=name, target=TARGETS[name], dims=dims, types={"T": "bf16"}, build=False)


def check(kernel: Kernel, sizes) -> None:
    for seed, dims in enumerate(sizes):
        for order in (None, 1):
            done = run(kernel, dims, device="sim", seed=seed, order=order, check=True)
            assert done.right, (dims, order, [str(v) for v in done.verdicts])


SQUARE = "sum[n] Acc[i,n] * Acc[i,n]"
WHOLE = {
    "root mean square": (program(f"  q[i] = {SQUARE}\n  C[i,n] = Acc[i,n] * rsqrt(q[i] / N + 0.001)"), ""),
    "mean and variance": (
        program(
            "  mu[i] = sum[n] Acc[i,n] / N\n  va[i] = sum[n] (Acc[i,n] - mu[i]) ** 2 / N\n"
            "  C[i,n] = (Acc[i,n] - mu[i]) * rsqrt(va[i] + 0.001)"
        ),
        "",
    ),
    "softmax": (program("  C[i,n] = softmax[n] Acc[i,n] * 0.1"), ""),
    "softmax of some": (program("  X[i,n] = Acc[i,n] * 0.1 where n <= i\n  C[i,n] = softmax[n] X[i,n]"), ""),
    "place of the largest": (program("  C[i,n] = Acc[i,n]\n  w[i] = argmax[n] Acc[i,n]", "out w: i32[M]"), "finish w"),
    "beside the product": (PROGRAM, "finish most, squares"),
}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("case", WHOLE)
def test_whole_rows(case, name):
    text, finish = WHOLE[case]
    for n in (128, 80):
        plan = schedule(finish, whole=True)
        check(compiled(text, plan, name, N=n), ({"M": 70, "K": 72}, {"M": 129, "K": 200}, {"M": 130, "K": 0}))


TOGETHER = {
    "rounded": (
        program(f"  C[i,n] = Acc[i,n]\n  r[i] = rsqrt({SQUARE} / N + 0.001)", "out r: T[M]"),
        ("finish r", "combine r by atomic_add"),
    ),
    "of some elements": (
        program("  Z[i,n] = Acc[i,n] where n <= i + 3\n  C[i,n] = Z[i,n]\n  r[i] = min[n] Z[i,n]", "out r: f32[M]"),
        ("finish r", "combine r by atomic_min"),
    ),
    "not 0 where the product is": (
        program("  C[i,n] = Acc[i,n]\n  r[i] = sum[n] exp(-abs(Acc[i,n]))", "out r: f32[M]"),
        ("finish r", "combine r by atomic_add"),
    ),
}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("grid", ["grid   over", "grid persistent over"])
@pytest.mark.parametrize("case", TOGETHER)
def test_together(case, grid, name):
    text, lines = TOGETHER[case]
    check(compiled(text, schedule(*lines).replace("grid   over", grid), name), SIZES)


REFUSED = {
    "no line": (PROGRAM, schedule("finish most, squares"), "WG0440", "combine most by atomic_max"),
    "another operation": (PROGRAM, SCHEDULES.replace("atomic_max", "atomic_add"), "WG0441", "needs the `max`"),
    "read back": (WHOLE["root mean square"][0], schedule(""), "WG0441", "reads all of `q` along `n`"),
    "one upon another": (
        program("  C[i,n] = Acc[i,n]\n  m[i] = max[n] Acc[i,n]\n  r[i] = sum[n] exp(Acc[i,n] - m[i])", "out r: f32[M]"),
        schedule("finish r", "combine r by atomic_add"),
        "WG0441",
        "`r` reads what is reduced along another axis",
    ),
    "parts of the stream too": (
        PROGRAM,
        SCHEDULES.replace("stream k", "stream k split s in 4").replace("over (i, n)", "over (s, i, n)").replace(
            "combine squares", "combine C, squares"
        ),
        "WG0441",
        "`most` is reduced along `n` too",
    ),
    "along rows": (
        program("  C[i,n] = Acc[i,n]\n  r[n] = max[i] Acc[i,n]", "out r: f32[N]"),
        schedule("finish r", "combine r by atomic_max"),
        "WG0405",
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, name):
    text, plan, code, words = REFUSED[case]
    with pytest.raises(WgError) as e:
        compiled(text, plan, name)
    assert code in str(e.value) and words in str(e.value)


def test_largest_elements_of_any_sign():
    """Bits of f32 are ordered as integers only within a sign: the parts of a row are compared as numbers, NaN beyond all."""
    kernel = compiled(PROGRAM.replace("abs(Acc[i,n])", "Acc[i,n]"), SCHEDULES, "pipelined")
    a = np.full((6, 64), 1.0, np.float32)
    b = np.zeros((600, 64), np.float32)
    b[:, 0], b[300, 0] = -3.0, -1.0
    a[1], a[2], a[3] = -1.0, 0.0, np.nan
    import ml_dtypes

    out = {
        "C": np.full((6, 600), np.nan, ml_dtypes.bfloat16),
        **{name: np.full(6, np.nan, np.float32) for name in ("most", "squares")},
    }
    kernel.simulate(A=a.astype(ml_dtypes.bfloat16), B=b.astype(ml_dtypes.bfloat16), out=out)
    assert np.array_equal(out["most"], [-1.0, 3.0, 0.0, np.nan, -1.0, -1.0], equal_nan=True)


def test_only_sums_differ_from_run_to_run():
    text = str(compiled(PROGRAM, SCHEDULES, "pipelined").cuda)
    assert "max_global_f32" in text and "add_global_f32" in text
