"""Other programs over the shipped attention schedules: nothing in a pass knows which program it lowers."""

from __future__ import annotations

import pytest

from tests.programs.check import DEVICES, inputs, wrong
from tests.programs.edits import ATTENTION, FA3, SIMPLE, edit
from wgdsl.driver import compile

X = "X[b,g,r,i,j] = S[b,g,r,i,j] * scale where not causal or j <= i + N - M"
P = "P[b,g,r,i,j] = softmax[j] X[b,g,r,i,j]"
L = "L[b,h,i] = logsumexp[j] X[b,g,r,i,j]"
SIZES = ((1, 1), (200, 300), (300, 200), (130, 0), (129, 257))


def score(text: str) -> tuple[str, str]:
    return X, f"X[b,g,r,i,j] = {text}"


def extra(declaration: str) -> tuple[str, str]:
    return "in scale", f"in {declaration}\nin scale"


NO_LSE = (("out L: f32[B, H, M] when lse", ""), (L, ""), ("option lse = true", ""))
NO_MAXIMUM = edit(SIMPLE, ("O, L via", "O via"), ("rescale O\n", ""))
SWAPPED = [
    pair
    for t, row in (("Q", "i,h"), ("K", "j,g"), ("V", "j,g"), ("O", "i,h"))
    for last in ("e" if t in "VO" else "d",)
    for pair in ((f"{t}[b,{row},{last}]", f"{t}[b,{row[::-1]},{last}]"),)
]
LAYOUT = [
    (f"{t}: T[B, {s}, {h}, {d}]", f"{t}: T[B, {h}, {s}, {d}]")
    for t, s, h, d in (("Q", "M", "H", "D"), ("K", "N", "G", "D"), ("V", "N", "G", "E"), ("O", "M", "H", "E"))
]
CAUSAL = {"causal": True}
PROGRAMS = {
    "soft cap": (edit(ATTENTION, score("30.0 * tanh(S[b,g,r,i,j] * scale / 30.0) where j <= i + N - M")), FA3, {}),
    "soft cap by def": (
        edit(ATTENTION, score("cap(S[b,g,r,i,j] * scale, 30.0)"), ("let h", "def cap(x, c) = c * tanh(x / c)\nlet h")),
        FA3,
        {},
    ),
    "alibi": (edit(ATTENTION, score("S[b,g,r,i,j] * scale - (i + N - M - j) * 0.1 where j <= i + N - M")), FA3, {}),
    "alibi by head": (
        edit(ATTENTION, score("S[b,g,r,i,j] * scale - (i - j) * slope[h] where j <= i"), extra("slope: f32[H]")),
        FA3,
        {},
    ),
    "bias": (edit(ATTENTION, score("S[b,g,r,i,j] * scale + w[i,j]"), extra("w: f32[M, N]")), SIMPLE, {}),
    "bias of 4 axes": (edit(ATTENTION, score("S[b,g,r,i,j] * scale + w[b,h,i,j]"), extra("w: T[B, H, M, N]")), FA3, {}),
    "window": (edit(ATTENTION, score("S[b,g,r,i,j] * scale where j <= i + N - M and j >= i + N - M - 100")), FA3, {}),
    "two-sided window": (edit(ATTENTION, score("S[b,g,r,i,j] * scale where i - 30 <= j <= i + 20")), SIMPLE, {}),
    "prefix": (edit(ATTENTION, score("S[b,g,r,i,j] * scale where j < 50 or j <= i + N - M")), FA3, {}),
    "dilated": (edit(ATTENTION, score("S[b,g,r,i,j] * scale where (i + j) % 2 == 0")), SIMPLE, {}),
    "top left": (edit(ATTENTION, score("S[b,g,r,i,j] * scale where j <= i")), FA3, {}),
    "the future only": (edit(ATTENTION, score("S[b,g,r,i,j] * scale where j >= i")), FA3, {}),
    "scale of any sign": (edit(ATTENTION, ("require scale > 0", "")), FA3, {}),
    "temperature by head": (
        edit(
            ATTENTION,
            ("S[b,g,r,i,j] * scale where", "S[b,g,r,i,j] * t[h] where"),
            ("in scale: f32 = 1 / sqrt(D)", "in t: f32[H]"),
            ("require scale > 0", ""),
        ),
        FA3,
        {},
    ),
    "scores of -inf where no predicate says so": (
        edit(ATTENTION, score("select(j <= i, S[b,g,r,i,j] * scale, -inf)")),
        SIMPLE,
        {},
    ),
    "another value instead of a mask": (edit(ATTENTION, score("S[b,g,r,i,j] * scale where j < 10 else -2.0")), SIMPLE, {}),
    "a predicate over scores": (edit(ATTENTION, score("S[b,g,r,i,j] * scale where S[b,g,r,i,j] > 0")), SIMPLE, {}),
    "entropy": (
        edit(
            ATTENTION,
            (
                L,
                "Z[b,g,r,i] = logsumexp[j] X[b,g,r,i,j]\nU[b,g,r,i] = sum[j] P[b,g,r,i,j] * X[b,g,r,i,j]\n"
                "L[b,h,i] = Z[b,g,r,i] - U[b,g,r,i]",
            ),
        ),
        SIMPLE,
        CAUSAL,
    ),
    "sum of squares": (edit(ATTENTION, (L, "L[b,h,i] = sum[j] P[b,g,r,i,j] * P[b,g,r,i,j]")), FA3, CAUSAL),
    "no normaliser": (edit(ATTENTION, (P, "P[b,g,r,i,j] = X[b,g,r,i,j]"), *NO_LSE), NO_MAXIMUM, CAUSAL),
    "sigmoid": (edit(ATTENTION, (P, "P[b,g,r,i,j] = sigmoid(X[b,g,r,i,j])"), *NO_LSE), NO_MAXIMUM, CAUSAL),
    "exponentials without maximum": (
        edit(ATTENTION, (P, "P[b,g,r,i,j] = exp(X[b,g,r,i,j])"), ("logsumexp[j] X[b,g,r,i,j]", "sum[j] P[b,g,r,i,j]")),
        edit(SIMPLE, ("rescale O\n", "")),
        CAUSAL,
    ),
    "row maximum": (edit(ATTENTION, ("logsumexp[j] X", "max[j] X")), FA3, {}),
    "a factor on the values": (edit(ATTENTION, ("* V[b,j,g,e]", "* V[b,j,g,e] * 2.0")), FA3, {}),
    "heads before lengths": (edit(ATTENTION, *SWAPPED, *LAYOUT), FA3, CAUSAL),
}


def test_a_requirement_counts_only_where_it_always_holds():
    """`scale > 0 or ...` doesn't prove a sign: a negative scale must come out right."""
    text = edit(ATTENTION, ("require scale > 0", "require scale > 0 or M >= 0"))
    kernel = compile(text, schedule=SIMPLE, dims={"D": 64, "E": 64}, types={"T": "bf16"}, build=False)
    arrays = inputs(text, {"B": 1, "H": 2, "G": 1, "M": 100, "N": 150, "D": 64, "E": 64})
    assert wrong(kernel, {**arrays, "scale": -0.3}) == []


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, device):
    program, schedule, options = PROGRAMS[name]
    kernel = compile(program, schedule=schedule, dims={"D": 64, "E": 64}, types={"T": "bf16"}, options=options, build=False)
    for m, n in SIZES:
        sizes = {"B": 2, "H": 2, "G": 1, "M": m, "N": n, "D": 64, "E": 64}
        assert wrong(kernel, inputs(program, sizes), device) == [], (m, n)
