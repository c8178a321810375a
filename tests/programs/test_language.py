"""The language of programs through the whole compiler: each construct in the epilogue of a product, in the simulator against
the float64 reference, at a size below a tile and one above it."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import wgdsl
from tests.lowering import GEMM
from tests.programs.edits import PIPELINED, edit
from wgdsl.tools.running import run

SCHEDULE = edit(PIPELINED, ("smem Cs = C[i, n] by tma", ""), (" via Cs", ""), ("n 256", "n 128"))
SIZES = ({"M": 5, "N": 9, "K": 16}, {"M": 130, "N": 70, "K": 40})


def program(items: str, out: str = "f32") -> str:
    """A product `Acc`, with further items that make `C` of it."""
    return f"""wg 1
program gemm {{
dims M, N, K
type T in {{bf16, f16}}
in A: T[M, K]
in B: T[N, K]
out C: {out}[M, N]
Acc[i,n] = sum[k] A[i,k] * B[n,k]
{items}
}}
"""


def kernel(items: str, out: str = "f32", **options: object):
    return wgdsl.compile(program(items, out), schedule=SCHEDULE, options=options, build=False)


ACTIVATION = """option act in {none, relu, gelu, gelu_tanh, silu}
def pick(x) = select(act == gelu, gelu(x), select(act == gelu_tanh, gelu_tanh(x), select(act == silu, silu(x), x)))
def activation(x) = select(act == relu, relu(x), pick(x))
C[i,n] = activation(Acc[i,n])"""
CASES = {
    "enumeration": (ACTIVATION, [{"act": a} for a in ("none", "relu", "gelu", "gelu_tanh", "silu")]),
    "names of choices are their own": (
        "option mode in {A, M, exp, i, mode, T}\n"
        "C[i,n] = Acc[i,n] * select(mode == A, 1.0, select(mode == exp, 2.0, select(mode != mode, 3.0, 4.0)))",
        [{"mode": m} for m in ("A", "M", "exp", "i", "mode", "T")],
    ),
    "when by enumeration": (
        "option act in {none, bias}\nin w: f32[N] when act == bias\n"
        "C[i,n] = Acc[i,n] when act == none\nC[i,n] = Acc[i,n] + w[n] when act != none",
        [{"act": "none"}, {"act": "bias"}],
    ),
    "an absent output": (
        "option second = true\nout D: f32[M, N] when second\nC[i,n] = Acc[i,n]\nD[i,n] = Acc[i,n] * 2.0",
        [{"second": False}],
    ),
    "numbers as options": (
        "option a = 2\noption b = a * 3 + 1\noption c = 0.5\noption d in {64, 128}\nC[i,n] = Acc[i,n] * b * c + d",
        [{}, {"a": 5}, {"b": "1", "c": 2}, {"c": 1e-3, "d": 128}],
    ),
    "options in shapes": ("option c = 4\nin w: f32[c, N]\nC[i,n] = w[i % c, n] * Acc[i,n]", [{}, {"c": 8}]),
    "functions of functions": (
        "def sq(x) = x * x\ndef four(x) = sq(sq(x))\ndef dist(a, b) = sq(a - b)\nC[i,n] = dist(Acc[i,n], four(0.5)) * 0.01",
        [{}],
    ),
    "parameters hide other names": ("in x: f32 = 3.0\ndef f(x, i) = x - i\nC[i,n] = f(Acc[i,n], n) * x", [{}]),
    "let of an integer": ("let last = N - 1\nlet d = i - n\nC[i,n] = Acc[i,n] where d <= last and n != last else d", [{}]),
    "let of a quotient": (
        "dims Q = N / 4 + 1\nlet p = n / 4\nlet q = n % 4\nin w: f32[Q, 4]\nC[i,n] = Acc[i,n] * w[p, q]",
        [{}],
    ),
    "computed dims": (
        "dims H = N * 2, G = H / 2 + M\nin w: f32[H]\nin v: f32[G]\nC[i,n] = w[2 * n] * Acc[i,n] + v[i + n]",
        [{}],
    ),
    "expressions in shapes": ("in w: f32[2 * N + 1]\nC[i,n] = Acc[i,n] + w[2 * n + 1]", [{}]),
    "declared extents": ("index i < M, n < N\nin w: f32[N + 1]\nC[i,n] = Acc[i,n] + w[n + 1] - w[n]", [{}]),
    "dims are numbers": ("C[i,n] = Acc[i,n] / N + 1 / sqrt(K) * M", [{}]),
    "scalars with defaults of others": ("in s: f32 = 2.0\nin t: f32 = s * 2 + N\nC[i,n] = Acc[i,n] * s + t", [{}]),
    "a truth value as an argument": ("in s: bool = true\nC[i,n] = Acc[i,n] where s and i > 1 else 3.0", [{}]),
    "require": ("in s: f32 = 2.0\nrequire s > 0 and M >= 0\nrequire N < K + 100000\nC[i,n] = Acc[i,n] * s", [{}]),
    "chained comparisons": ("C[i,n] = Acc[i,n] where 0 < i < 5", [{}]),
    "longer chains": ("C[i,n] = select(0 <= n < i <= 7, Acc[i,n], -inf)", [{}]),
    "logic": ("C[i,n] = Acc[i,n] where not i == n and i % 2 == 0 or n == 3", [{}]),
    "a mask of truth values": ("in a: bool[M]\nin b: bool[N]\nC[i,n] = Acc[i,n] where a[i] and not b[n] else -1.0", [{}]),
    "a mask of data": ("in a: i32[M]\nin b: i32[N]\nC[i,n] = Acc[i,n] where a[i] == b[n] else -1.0", [{}]),
    "powers": ("C[i,n] = Acc[i,n] * (-f32(i) ** 2) * 0.001 + 2 ** -1 + 2 ** 3 ** 2 + abs(Acc[i,n]) ** 0.5", [{}]),
    "powers that are products": (
        "C[i,n] = Acc[i,n] ** 2 * 0.1 - Acc[i,n] ** 3 * 0.02 + Acc[i,n] ** 4 * 1e-3\n"
        "  + (0.5 + abs(Acc[i,n])) ** -1 + (0.5 + abs(Acc[i,n])) ** -2.0",
        [{}],
    ),
    "a square beside powers": (
        "option e in {2, 3, 4, 5}\nC[i,n] = (Acc[i,n] * 0.25) ** e where i > n else relu(Acc[i,n]) ** 1.5",
        [{"e": e} for e in (2, 3, 4, 5)],
    ),
    "extremes of several integers": (
        "C[i,n] = Acc[i,n] + min(i, n, 4) + max(i, n, 4) where n < min(i, N - 2, 60) else 1",
        [{}],
    ),
    "floors": ("C[i,n] = Acc[i,n] + (i - n) / 3 + (i - n) % 3 + (-7) / 2 + 7 / 2.0", [{}]),
    "literals": ("C[i,n] = max(Acc[i,n], -inf) + select(i < 0, nan, -0.0) + 1e-45 + 1_000 + .5", [{}]),
    "casts": ("C[i,n] = f32(f16(Acc[i,n])) + bf16(Acc[i,n] * 0.1) + i32(Acc[i,n]) + T(Acc[i,n])", [{}]),
    "casts to 8 bits": (
        "in w: e4m3[N]\nin v: e5m2[M]\nC[i,n] = e4m3(Acc[i,n] * 30.0) + e5m2(Acc[i,n] * 1e4) * 1e-3 + w[n] - v[i]",
        [{}],
    ),
    "functions": (
        "C[i,n] = erf(Acc[i,n]) + sigmoid(Acc[i,n]) + exp2(-abs(Acc[i,n])) + tanh(Acc[i,n]) + min(Acc[i,n], 1.0, 2.0)\n"
        "  + log2(1.0 + abs(Acc[i,n])) + log(2.0 + relu(Acc[i,n])) + rsqrt(1.0 + abs(Acc[i,n])) + max(Acc[i,n], -1.0)",
        [{}],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_right_in_the_simulator(name):
    items, choices = CASES[name]
    for options in choices:
        made = kernel(items, **options)
        for sizes in SIZES:
            out = run(made, sizes, device="sim", check=True)
            assert out.right, (options, sizes, [str(v) for v in out.verdicts])


@pytest.mark.parametrize("n", [2, 3, 4, -1, -2, 2.0, -1.0])
def test_a_small_whole_power_is_a_product(n):
    text = kernel(f"C[i,n] = Acc[i,n] ** {n}").cuda
    assert "powf" not in text and f"ptx::power_{'minus_' * (n < 0)}{abs(int(n))}(" in text


@pytest.mark.parametrize("n", [0.5, 2.5, 5, -3, "Acc[i,n]"])
def test_any_other_power_is_the_librarys(n):
    assert "powf(" in kernel(f"C[i,n] = Acc[i,n] ** {n}").cuda


def test_a_chain_is_no_pair_of_comparisons():
    """`0 < i < 5` keeps 1 to 4; as `(0 < i) < 5` it would keep all."""
    a = np.ones((7, 8), np.float16)
    made = wgdsl.compile(program("C[i,n] = Acc[i,n] where 0 < i < 5"), schedule=SCHEDULE, types={"T": "f16"}, build=False)
    for device in ("sim", "reference"):
        assert made(A=a, B=a, device=device)[:, 0].tolist() == [0, 8, 8, 8, 8, 0, 0]


def test_a_truth_value_is_given_as_one():
    a = np.ones((2, 8), np.float16)
    made = wgdsl.compile(program("in s: bool\nC[i,n] = Acc[i,n] where s"), schedule=SCHEDULE, types={"T": "f16"}, build=False)
    for device in ("sim", "reference"):
        assert [made(A=a, B=a, s=s, device=device)[0, 0] for s in (True, False, np.bool_(True), 1, 0)] == [8, 0, 8, 8, 0]
    with pytest.raises(wgdsl.WgError, match="WG0614"):
        made(A=a, B=a, s=2, device="sim")


def test_what_no_index_reaches_stays_as_it_was():
    text = program("C[i, 2 * n + 1] = Acc[i,n]").replace("out C: f32[M, N]", "out C: f32[M, 2 * N + 1]")
    made = wgdsl.compile(text, schedule=SCHEDULE, types={"T": "f16"}, build=False)
    a, c = np.ones((3, 8), np.float16), np.full((3, 9), -1.0, np.float32)
    made(A=a, B=a[:1].repeat(4, 0), out={"C": c}, device="sim")
    assert c.tolist() == [[-1, 8, -1, 8, -1, 8, -1, 8, -1]] * 3
    assert run(made, {"M": 3, "N": 4, "K": 8}, device="sim", check=True).right


def test_a_cast_to_an_integer_saturates():
    made = wgdsl.compile(
        program("in v: f32[N]\nC[i,n] = i32(v[n]) + i32(0.0 * Acc[i,n])", "i32"), schedule=SCHEDULE, build=False
    )
    v = np.array([np.nan, np.inf, -3e9, 2.7, -2.7], np.float32)
    a, b = np.ones((1, 8), ml_dtypes.bfloat16), np.ones((5, 8), ml_dtypes.bfloat16)
    for device in ("reference", "sim"):
        assert made(A=a, B=b, v=v, device=device).tolist() == [[0, 2**31 - 1, -(2**31), 2, -2]]


@pytest.mark.parametrize(
    "items, out, said",
    [
        ("in w: i64[M]\nC[i,n] = Acc[i,n] * w[i]", "f32", "`w`, whose elements are i64,"),
        ("C[i,n] = Acc[i,n] > 0.0", "bool", "`C`, whose elements are bool,"),
    ],
)
def test_elements_that_no_thread_reads_or_writes_yet(items, out, said):
    with pytest.raises(wgdsl.WgError) as e:
        kernel(items, out)
    assert [p.code for p in e.value.problems] == ["WG0405"] and said in str(e.value)


@pytest.mark.parametrize(
    "items, code, said",
    [
        ("option act in {none, relu}\nC[i,n] = Acc[i,n] * act", "WG0211", "act == none"),
        ("option act in {none, relu}\nC[i,n] = select(act == gelu, Acc[i,n], 1.0)", "WG0201", "value of option `act`"),
        ("option a = true\nC[i,n] = Acc[i,n] when a\nC[i,n] = 1.0 when M > 3", "WG0217", "known at compile time"),
        ("option a = true\nC[i,n] = Acc[i,n] when a\nC[i,n] = 1.0", "WG0214", "C"),
        ("def f(x, y) = x\nC[i,n] = f(Acc[i,n])", "WG0212", "2 arguments"),
        ("def f(x) = g(x)\ndef g(x) = f(x)\nC[i,n] = f(Acc[i,n])", "WG0221", "f -> g -> f"),
        ("def f(x) = x * n\nC[i,n] = f(Acc[i,n])", "WG0204", "n"),
        ("let a = 0.5\nC[i,n] = Acc[i,n] * a", "WG0211", "an integer"),
        ("C[i,n] = Acc[i,n] * 2147483648", "WG0222", "2147483648.0"),
        ("C[i,n] = Acc[i,n] + 1e39", "WG0222", "inf"),
        ("C[i,n] = Acc[i,n] + 0x1p-3", "WG0105", "0.125"),
        ("C[i,n] = sum[k] A[i,k] * B[n,k] + A[i,k]", "WG0204", "k"),
    ],
)
def test_refused(items, code, said):
    with pytest.raises(wgdsl.WgError) as e:
        kernel(items)
    assert code in {p.code for p in e.value.problems} and said in str(e.value)


def test_a_reduction_takes_the_product_that_follows():
    """`sum[k] a * b + c` adds `c` once; the product is then a part of `Acc`."""
    a = np.ones((2, 8), np.float16)
    text = program("C[i,n] = Acc[i,n]").replace("* B[n,k]", "* B[n,k] + 5.0")
    schedule = SCHEDULE.replace("Acc", "Acc.sum")
    made = wgdsl.compile(text, schedule=schedule, types={"T": "f16"}, build=False)
    assert made(A=a, B=a, device="reference")[0, 0] == made(A=a, B=a, device="sim")[0, 0] == 13


SPELLINGS = {
    "CRLF": lambda t: t.replace("\n", "\r\n"),
    "CR": lambda t: t.replace("\n", "\r"),
    "no last line end": lambda t: t.rstrip(),
    "byte order mark": lambda t: "\ufeff" + t,
    "tabs": lambda t: t.replace("  ", "\t"),
    "form feed": lambda t: t.replace("\n\n", "\n\f\n"),
    "another script in comments": lambda t: t.replace("#", "# Привет \u2014 µ² \u0085 \u2028"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_cuda_of_a_text_does_not_depend_on_its_spelling(spelling, tmp_path):
    path = tmp_path / "g.wg"
    texts = []
    for text in (GEMM + PIPELINED.removeprefix("wg 1\n"), SPELLINGS[spelling](GEMM + PIPELINED.removeprefix("wg 1\n"))):
        path.write_bytes(text.encode())
        texts.append(wgdsl.compile(path, build=False).cuda)
    assert texts[1].isascii()
    assert re.sub(r"[ \t]+", " ", texts[0]) == re.sub(r"[ \t]+", " ", texts[1])
