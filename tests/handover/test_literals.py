"""Numbers and comparisons of public bug reports (B52): a text means what Python and NumPy make of it, or it is refused."""

from __future__ import annotations

import numpy as np
import pytest

import wgdsl
from tests.handover.reference import hashed
from tests.handover.running import DEVICES, SCHEDULES, SCORE, attend, call, made, program
from tests.programs.edits import PIPELINED, edit, plain
from wgdsl.runtime.kernel import Kernel

ROWS, COLUMNS = 9, 10
DIRECT = {
    "sm_90a": edit(PIPELINED, ("smem Cs = C[i, n] by tma\n", ""), (" via Cs", ""), ("n 256", "n 64")),
    "sm_80": edit(
        plain("schedules/ampere/gemm_warps.wg"), ("smem Cs = C[i, n] by copy\n", ""), (" via Cs", ""), ("n 128", "n 64")
    ),
}
on_targets = pytest.mark.parametrize("target", DIRECT)
on_devices = pytest.mark.parametrize("device", DEVICES)


def kernel(value: str, target: str, out: str = "f32") -> Kernel:
    """C[i, n] is that; `Acc` is a product."""
    text = f"""wg 1
program gemm {{
dims M, N, K
type T in {{f16, bf16}}
in A: T[M, K]
in B: T[N, K]
out C: {out}[M, N]
Acc[i,n] = sum[k] A[i,k] * B[n,k]
C[i,n] = {value}
}}
"""
    return wgdsl.compile(text, schedule=DIRECT[target], target=target, types={"T": "f16"}, build=False)


def computed(value: str, target: str, device: str) -> np.ndarray:
    """Where Acc is 1 everywhere."""
    a, b = np.zeros((ROWS, 16), np.float16), np.zeros((COLUMNS, 16), np.float16)
    a[:, 0], b[:, 0] = 1, 1
    return call(kernel(value, target), device, {"A": a, "B": b})["C"]


CONSTANTS = {
    "inf": np.inf,
    "-inf": -np.inf,
    "nan": np.nan,
    "1e-45": 2.0**-149,
    "3.4028235e38": float(np.finfo(np.float32).max),
    "-0.0": -0.0,
    "1_000": 1000.0,
    ".5": 0.5,
    "2 ** -1": 0.5,
    "2 ** 3 ** 2": 512.0,
    "-2 ** 2": -4.0,
    "-7 / 2": -4.0,
    "-7 % 3": 2.0,
    "7 / 2.0": 3.5,
    "2147483647": 2.0**31,
    "1.0 / 0.0": np.inf,
    "0.0 / 0.0": np.nan,
    "3e38 * 10": np.inf,
    "-3e38 * 10": -np.inf,
}


@on_devices
@on_targets
@pytest.mark.parametrize("text", CONSTANTS)
def test_b52_constants(target, device, text):
    """Also those that C++ has no literal for; in f32."""
    got = computed(f"select(Acc[i,n] > 0.0, {text}, 7.0)", target, device)
    want = np.full((ROWS, COLUMNS), CONSTANTS[text], np.float32)
    assert np.array_equal(got, want, equal_nan=True)
    assert np.isnan(want).all() or np.array_equal(np.signbit(got), np.signbit(want))


@on_devices
@on_targets
def test_b52_zeros_of_both_signs(target, device):
    got = computed("select(n < 5, 0.0, select(Acc[i,n] > 0.0, -0.0, 0.0))", target, device)
    assert not got.any() and np.array_equal(np.signbit(got), np.tile(np.arange(COLUMNS) >= 5, (ROWS, 1)))


REFUSED = {
    "1e39": ("WG0222", "literal 1e39 is too large for f32", "write `inf` for infinity"),
    "1e400": ("WG0106", "`1e400` is out of range", "no such float"),
    "1e-46": ("WG0222", "literal 1e-46 is 0 in f32", "write `0.0`"),
    "0x1p-3": ("WG0105", "`0x1p-3` is no number", "write `0.125`"),
    "2147483648": ("WG0222", "doesn't fit a 32-bit integer", "write 2147483648.0"),
    "1 / 0": ("WG0211", "an integer divisor must be other than 0", "this is 0"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_b52_numbers_that_there_are_not(text):
    code, said, cure = REFUSED[text]
    with pytest.raises(wgdsl.WgError) as e:
        kernel(f"Acc[i,n] + {text}", "sm_90a")
    assert [p.code for p in e.value.problems] == [code] and said in str(e.value) and cure in str(e.value)


PREDICATES = (
    "0 < i < 5",
    "i < n < 7",
    "0 < i < n < 5",
    "i == n == 1",
    "i != n != 2",
    "not i == n",
    "not i == n and i > 1",
    "i == 1 and n == 1 or n == 2",
    "i == 1 or n == 1 and n == 2",
    "not (i < 3 or n < 3)",
    "not i < 3 or n < 3",
    "-(i % 4) ** 2 < -3",
    "(i - n) % 3 == 1",
    "(i - n) // 2 == -2",
)


@on_devices
@on_targets
@pytest.mark.parametrize("text", PREDICATES)
def test_b52_comparisons_are_those_of_python(target, device, text):
    """Each element is what `eval` makes of the text; whole numbers divide by `/` here and by `//` there."""
    got = computed(f"Acc[i,n] where {text.replace('//', '/')} else -1.0", target, device)
    want = [[1.0 if eval(text, {"i": i, "n": n}) else -1.0 for n in range(COLUMNS)] for i in range(ROWS)]
    assert np.array_equal(got, want)


@on_devices
@on_targets
@pytest.mark.parametrize("text", ["-i ** 2", "(-i) ** 2", "-i ** 2 + 2 ** -1", "2 * i ** 3", "i % 4 - 7"])
def test_b52_powers_bind_as_in_python(target, device, text):
    """As real numbers: of integers, squares of any size wouldn't fit 32 bits, which is refused."""
    got = computed(f"Acc[i,n] * 0.0 + {text.replace('i', 'f32(i)') if '%' not in text else text}", target, device)
    assert np.array_equal(got, [[float(eval(text, {"i": i}))] * COLUMNS for i in range(ROWS)])


def test_b52_a_square_that_may_not_fit_is_refused():
    with pytest.raises(wgdsl.WgError, match="WG0724") as e:
        kernel("Acc[i,n] + -i ** 2", "sm_90a")
    assert "products of `f32(...)`" in str(e.value)


@on_devices
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dtype", ["f32", "T"])
def test_b52_the_largest_of_nothing(schedule, device, dtype):
    """-inf, which f16 has too."""
    text = edit(program(), ("logsumexp[j] X", "max[j] X"), ("L: f32", f"L: {dtype}"))
    q, k, v = (hashed(seed, (1, 2, n, 64)) for seed, n in ((1, 5), (2, 0), (3, 0)))
    _, most = attend(made(text, schedule, "f16"), device, q, k, v)
    assert most.shape == (1, 2, 5) and np.isneginf(most.astype(np.float32)).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_b52_the_largest_of_nothing_in_a_type_without_infinity(schedule):
    """-448, to which casts saturate; on sm_80, which has no conversions of 8 bits, refused."""
    text = edit(program(), ("logsumexp[j] X", "max[j] X"), ("L: f32", "L: e4m3"))
    if schedule == "fa2":
        with pytest.raises(wgdsl.WgError, match="`L`, whose elements are e4m3"):
            made(text, schedule, "f16")
        return
    q, k, v = (hashed(seed, (1, 2, n, 64)) for seed, n in ((1, 5), (2, 0), (3, 0)))
    _, most = attend(made(text, schedule, "f16"), "sim", q, k, v)
    assert (most.astype(np.float32) == -448).all()


@on_devices
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_b52_infinite_constants_in_scores(schedule, device):
    """A score that the text makes -inf counts as one that isn't there."""
    q, k, v = (hashed(seed, (1, 2, 77, 64)) for seed in (1, 2, 3))
    chosen = attend(made(program(f"select(j <= i, {SCORE}, -inf)"), schedule, "f16"), device, q, k, v)
    masked = attend(made(program(where="j <= i"), schedule, "f16"), device, q, k, v)
    for a, b in zip(chosen, masked, strict=True):
        assert np.array_equal(a, b)
