"""`X[i, t[i]]`: an element of what the program computes, at a place that the data say."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.programs.edits import edit
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import compile
from wgdsl.foundation.resources import resource

PROGRAM = resource("examples", "cross_entropy", "cross_entropy.wg").read_text("utf-8")
SCHEDULES = resource("examples", "cross_entropy", "schedules.wg").read_text("utf-8")
LOGIT = edit(PROGRAM, ("L[i] - X[i, t[i]]", "X[i, t[i]]"))
TARGETS = {"rows": "sm_90a", "warps": "sm_80"}
M, K = 70, 64


def compiled(text: str, name: str):
    whole = text + SCHEDULES.removeprefix("wg 1\n")
    return compile(whole, schedule=name, target=TARGETS[name], dims={"K": K}, types={"T": "bf16"}, build=False)


@pytest.mark.parametrize("name", TARGETS)
def test_an_element_that_does_not_exist_is_0(name):
    """Against NumPy's own indexing: the reference sees what the analysis made of the access."""
    some = edit(LOGIT, ("B[n,k]\n", "B[n,k]\n  Y[i,n] = X[i,n] where n <= i\n"), ("X[i, t[i]]", "Y[i, t[i]]"))
    some = edit(some, ("logsumexp[n] X[i,n]", "logsumexp[n] Y[i,n]"))
    for n in (300, 1):
        rng = np.random.default_rng(n)
        a, b = (rng.integers(-2, 3, (rows, K)).astype(ml_dtypes.bfloat16) for rows in (M, n))
        t = rng.integers(0, n, M).astype(np.int32)
        t[::7], t[1::7], t[2::7] = -100, n, 2**23
        logits = a.astype(np.float32) @ b.astype(np.float32).T
        there = (t >= 0) & (t < n)
        chosen = np.where(there, logits[np.arange(M), np.clip(t, 0, n - 1)], 0.0)
        for text, expected in ((LOGIT, chosen), (some, np.where(t <= np.arange(M), chosen, 0.0))):
            for seed in (None, 1):
                out = {name: np.full(M, np.nan, np.float32) for name in ("loss", "L")}
                compiled(text, name).simulate(A=a, B=b, t=t, out=out, seed=seed)
                assert np.array_equal(out["loss"], expected), (n, seed)


def test_of_an_expression_of_elements():
    """The place may be computed, and the axis may be any of the tensor's."""
    text = edit(LOGIT, ("X[i, t[i]]", "X[i, 2 * t[i] + 1]"))
    n = 40
    a, b = (np.arange(rows * K).reshape(rows, K) % 5 for rows in (M, n))
    t = (np.arange(M) % 20).astype(np.int32)
    out = {name: np.full(M, np.nan, np.float32) for name in ("loss", "L")}
    given = {"A": a.astype(ml_dtypes.bfloat16), "B": b.astype(ml_dtypes.bfloat16), "t": t}
    compiled(text, "rows").simulate(**given, out=out)
    assert np.array_equal(out["loss"], (a @ b.T)[np.arange(M), 2 * t + 1])


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("X[i, t[i]]", "sum[n] X[i, t[i]] * n", "WG0223"),  # where the tensor's own index is bound
        ("X[i, t[i]]", "X[i, L[i]]", "WG02"),  # no integer
    ],
)
def test_refused(old, new, code):
    with pytest.raises(WgError) as e:
        compiled(edit(LOGIT, (old, new)), "rows")
    assert code in str(e.value)


def test_an_element_of_an_input_for_each_row_is_refused(monkeypatch):
    """A gather within a tile: places are read once an item."""
    monkeypatch.setitem(globals(), "SCHEDULES", SCHEDULES.replace("compute loss[n]", "compute L[n]"))
    with pytest.raises(WgError, match="differs within a tile") as e:
        compiled(edit(LOGIT, ("X[i, t[i]]", "B[t[i], 0]")), "rows")
    assert "WG0405" in str(e.value)
