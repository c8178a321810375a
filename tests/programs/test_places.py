"""argmax and argmin, and sums over what equals an extreme, along the streamed axis: ties, NaN, infinities, nothing at all."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.programs.edits import edit
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import compile
from wgdsl.foundation.resources import resource
from wgdsl.reference.evaluate import evaluate

NEAREST = resource("examples", "nearest", "nearest.wg").read_text("utf-8")
SCHEDULES = resource("examples", "nearest", "schedules.wg").read_text("utf-8")
HERE = "norm[n] - 2.0 * S[i,n]"
PROGRAMS = {
    "argmin": NEAREST,
    "argmax": NEAREST.replace("argmin", "argmax").replace("min[n]", "max[n]"),
    "argmin of some": edit(NEAREST, (HERE, f"{HERE} where 40 <= n <= i")),
    "argmax of a product": edit(NEAREST, ("argmin[n] X[i,n]", "argmax[n] 3.0 * S[i,n]")),
    "of an expression": edit(NEAREST, ("argmin[n] X[i,n]", "argmin[n] abs(X[i,n] - 1.0)")),
    "how many are least": edit(NEAREST, ("argmin[n] X[i,n]", "sum[n] select(X[i,n] == least[i], 1, 0)"))
    .replace("  least[i] = min[n] X[i,n]\n", "")
    .replace("  index[i] =", "  least[i] = min[n] X[i,n]\n  index[i] ="),
}
M, K = 70, 64


def numbers(n: int, kind: str) -> dict[str, np.ndarray]:
    """Small integers, whose products are exact and often equal; then with rows, or columns, that are no numbers."""
    rng = np.random.default_rng(n)
    a, b = (rng.integers(-2, 3, (rows, K)).astype(ml_dtypes.bfloat16) for rows in (M, n))
    norm = rng.integers(0, 4, n).astype(np.float32)
    if kind == "nan":
        norm[rng.random(n) < 0.5] = np.nan
        norm[rng.random(n) < 0.2] = np.inf
        a[::3] = np.nan
    if kind == "infinite":
        norm[:] = np.inf
        norm[:5] = np.nan
    return {"A": a, "B": b, "norm": norm}


@pytest.mark.parametrize("schedule", ["rows", "warps"])
@pytest.mark.parametrize("stream", ["stream n", "stream n descending"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_exact(program, stream, schedule):
    text = SCHEDULES.replace("stream n", stream)
    target = {"rows": "sm_90a", "warps": "sm_80"}[schedule]
    whole = PROGRAMS[program] + text.removeprefix("wg 1\n")
    kernel = compile(whole, schedule=schedule, target=target, dims={"K": K}, types={"T": "bf16"}, build=False)
    for n, kind in ((300, ""), (300, "nan"), (300, "infinite"), (0, ""), (1, "nan")):
        given = numbers(n, kind)
        exact = evaluate(kernel.graph, given, {}, {"M": M, "N": n})
        for seed in (None, 1):
            out = {"index": np.full(M, -7, np.int32), "least": np.full(M, np.nan, np.float32)}
            kernel.simulate(**given, out=out, seed=seed)
            for name, found in out.items():
                assert np.array_equal(found, exact[name], equal_nan=True), (n, kind, seed, name)


def test_places_are_exact_or_refused():
    """A place is an f32 in a kernel: a call with more of them is told so."""
    kernel = compile(PROGRAMS["argmin"] + SCHEDULES.removeprefix("wg 1\n"), schedule="rows", dims={"K": K}, build=False)
    a, b = (np.lib.stride_tricks.as_strided(np.zeros(1, ml_dtypes.bfloat16), (rows, K), (0, 0)) for rows in (1, 2**24 + 1))
    norm = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (2**24 + 1,), (0,))
    with pytest.raises(WgError, match="16777216"):
        kernel.bound(kernel.interface.sort((), {"A": a, "B": b, "norm": norm}, None))


def test_only_the_extreme_of_the_same_elements_keeps_what_equals_it():
    """An element that isn't among those of the maximum may equal a later one."""
    other = edit(NEAREST, ("argmin[n] X[i,n]", "sum[n] select(S[i,n] == least[i], 1, 0)"))
    other = other.replace("  least[i] = min[n] X[i,n]\n", "")
    other = other.replace("  index[i] =", "  least[i] = min[n] X[i,n]\n  index[i] =")
    with pytest.raises(WgError, match="WG0302"):
        compile(other + SCHEDULES.removeprefix("wg 1\n"), schedule="rows", dims={"K": K}, build=False)
