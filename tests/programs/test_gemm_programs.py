"""Other programs over the shipped GEMM schedule: epilogues, layouts, batches, other tiles and waits."""

from __future__ import annotations

import pytest

from tests.programs.check import DEVICES, inputs, wrong
from tests.programs.edits import PIPELINED, TURNS, edit
from wgdsl.driver import compile

SIZES = ((1, 1, 8), (130, 260, 200), (129, 513, 8), (3, 7, 0), (300, 40, 136))
DIRECT = edit(PIPELINED, ("smem Cs = C[i, n] by tma", ""), (" via Cs", ""))
NARROW = edit(PIPELINED, ("n 256", "n 128"))


def program(value: str, more: str = "", out: str = "T", rest: str = "") -> str:
    return f"""wg 1
program gemm {{
dims M, N, K
type T in {{bf16, f16}}
in A: T[M, K]
in B: T[N, K]
{more}
out C: {out}[M, N]
Acc[i,n] = sum[k] A[i,k] * B[n,k]
C[i,n] = {value}
{rest}
}}
"""


PLAIN = program("Acc[i,n]")
BATCHED = edit(
    PLAIN,
    ("dims M", "dims Z, M"),
    ("T[M, K]", "T[Z, M, K]"),
    ("T[N, K]", "T[Z, N, K]"),
    ("T[M, N]", "T[Z, M, N]"),
    ("Acc[i,n]", "Acc[z,i,n]"),
    ("A[i,k]", "A[z,i,k]"),
    ("B[n,k]", "B[z,n,k]"),
    ("C[i,n]", "C[z,i,n]"),
)
PROGRAMS = {
    "relu": (program("relu(Acc[i,n])"), PIPELINED),
    "gelu and bias": (program("gelu(Acc[i,n] + w[n])", "in w: f32[N]"), PIPELINED),
    "silu": (program("silu(Acc[i,n])"), PIPELINED),
    "scales of rows and columns": (program("Acc[i,n] * s[i] * w[n]", "in s: f32[M]\nin w: f32[N]"), PIPELINED),
    "residual": (program("Acc[i,n] + R[i,n]", "in R: T[M, N]"), NARROW),
    "alpha": (program("alpha * Acc[i,n]", "in alpha: f32 = 1.5"), PIPELINED),
    "from registers": (PLAIN, DIRECT),
    "f32 result": (program("Acc[i,n]", out="f32"), DIRECT),
    "a masked result": (program("Acc[i,n] where n <= i"), PIPELINED),
    "a masked result with else": (program("Acc[i,n] where n <= i else 7.0"), PIPELINED),
    "factors the other way round": (edit(PLAIN, ("A[i,k] * B[n,k]", "B[n,k] * A[i,k]")), PIPELINED),
    "A transposed": (edit(PLAIN, ("A: T[M, K]", "A: T[K, M]"), ("A[i,k]", "A[k,i]")), PIPELINED),
    "batched": (BATCHED, edit(PIPELINED, ("grid over (i, n)", "grid over (z, i, n)"))),
    "two results": (
        program("Acc[i,n]", "out D: f32[M, N]", rest="D[i,n] = Acc[i,n] * 2.0"),
        edit(NARROW, ("finish C via", "finish C, D via")),
    ),
    "two staged results": (
        program("relu(Acc[i,n])", "out D: T[M, N]", rest="D[i,n] = Acc[i,n] * 2.0"),
        edit(
            PIPELINED,
            ("n 256", "n 64"),
            ("finish C via Cs", "finish C, D via Cs, Ds"),
            ("load {", "smem Ds = D[i, n] by tma\nload {"),
        ),
    ),
    "results in two steps": (
        program("relu(Acc[i,n])", "out D: T[M, N]", rest="D[i,n] = Acc[i,n] * 2.0"),
        edit(
            PIPELINED,
            ("n 256", "n 64"),
            ("finish C via Cs", "finish C via Cs\nfinish D via Ds"),
            ("load {", "smem Ds = D[i, n] by tma\nload {"),
        ),
    ),
    "distances": (
        program("sqrt(max(a[i] + w[n] - 2.0 * Acc[i,n], 0.0))", "in a: f32[M]\nin w: f32[N]", out="f32"),
        DIRECT,
    ),
    "persistent": (PLAIN, edit(PIPELINED, ("grid over", "grid persistent over"))),
    "k 32": (PLAIN, edit(PIPELINED, ("k 64", "k 32"), ("ring 3", "ring 5"))),
    "k 128": (PLAIN, edit(PIPELINED, ("k 64", "k 128"), ("ring 3", "ring 2"), ("n 256", "n 64"))),
    "n 96": (PLAIN, edit(PIPELINED, ("n 256", "n 96"))),
    "n 8": (PLAIN, edit(PIPELINED, ("n 256", "n 8"))),
    "synchronous": (PLAIN, edit(PIPELINED, ("await Acc[k-1]", "await Acc[k]"))),
    "rows past the end passed over": (PLAIN, edit(PIPELINED, ("stream k", "skip empty per warpgroup\nstream k"))),
    "items in turn": (PLAIN, TURNS),
    "items in turn, 3 warpgroups": (
        program("gelu(Acc[i,n] + w[n])", "in w: f32[N]"),
        edit(TURNS, ("2 warpgroups, registers 232", "3 warpgroups, registers 160"), ("n 256", "n 96"), ("s 40", "s 32")),
    ),
    "items in turn, from registers": (PLAIN, edit(TURNS, ("smem Cs = C[i, n] by tma\n", ""), (" via Cs", ""))),
    "items in turn, dynamic grid": (PLAIN, edit(TURNS, ("grid persistent over", "grid persistent dynamic over"))),
    "items in turn, sections": (PLAIN, edit(TURNS, ("over (i, n)", "over (i, n) section (i) within 1 MB"))),
    "items in turn, one slot": (PLAIN, edit(TURNS, ("await Acc[k-1]", "await Acc[k]"), ("ring 4", "ring 1"))),
    "items in turn, finish in turn": (PLAIN, edit(TURNS, ("}\n}\nfinish C via Cs", "}\nfinish C via Cs\n}"))),
    "finish in turn": (PLAIN, edit(PIPELINED, ("finish C via Cs", "in turn { finish C via Cs }"))),
    "one slot": (PLAIN, edit(PIPELINED, ("await Acc[k-1]", "await Acc[k]"), ("ring 3", "ring 1"))),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, device):
    text, schedule = PROGRAMS[name]
    kernel = compile(text, schedule=schedule, types={"T": "bf16"}, build=False)
    for m, n, k in SIZES:
        if "T[K, M]" in text:
            m = -(-m // 8) * 8  # its rows are the copy engine's: multiples of 16 bytes
        assert wrong(kernel, inputs(text, {"M": m, "N": n, "K": k, "Z": 2}), device) == [], (m, n, k)
