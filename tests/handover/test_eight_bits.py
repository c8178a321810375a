"""Operands and results of 8 bits: B15's casts, products with scales of rows and columns, and what is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import wgdsl
from tests.handover.running import DEVICES, call
from tests.shipped import ROOT
from wgdsl.driver import compile
from wgdsl.tools.running import run

on_devices = pytest.mark.parametrize("device", ("reference", *DEVICES))
CAST = """
wg 1
program round_up {
  dims M, N, K
  in   A: bf16[M, K]
  in   B: bf16[N, K]
  in   v: f32[N]
  out  C: f32[M, N]
  out  W: RESULT[M, N]
  Zero[i,n] = sum[k] A[i,k] * B[n,k]
  C[i,n] = RESULT(v[n] + Zero[i,n])
  W[i,n] = v[n] + Zero[i,n]
}
schedule own for round_up on sm_90a {
  tile i 64, n 64, k 64
  stream k
  grid over (i, n)
  role load : 1 warpgroup, registers 24
  role math : 1 warpgroup, registers 240
  smem As = A[i, k] by tma ring 2
  smem Bs = B[n, k] by tma ring 2
  smem Ws = W[i, n] by tma
  load { for k { fill As[k], Bs[k] } }
  math { for k { issue Zero += wgmma(As[k], Bs[k])  await Zero[k] }  finish C, W via Ws }
}
"""
GIVEN = [447.9, 448.0, 449.0, 464.0, 465.0, 480.0, 1e4, np.inf, -1e4, np.nan]
PRODUCT = ROOT / "examples" / "gemm_scaled" / "gemm_scaled.wg"


@pytest.mark.parametrize(("dtype", "largest"), [("e4m3", 448.0), ("e5m2", 57344.0)])
@on_devices
def test_b15_casts_saturate(dtype, largest, device):
    """A value in registers and a result alike; only NaN becomes NaN."""
    kernel = compile(CAST.replace("RESULT", dtype), build=False)
    v = np.array([x * largest / 448.0 for x in GIVEN], np.float32)
    zeros = np.zeros((3, 8), ml_dtypes.bfloat16), np.zeros((len(v), 8), ml_dtypes.bfloat16)
    want = [*[largest] * 8, -largest, np.nan]
    got = call(kernel, device, dict(zip("AB", zeros, strict=True)), v=v)
    for name in ("C", "W") if device != "reference" else ("C",):  # the reference doesn't round results
        for row in np.asarray(got[name], np.float64):
            np.testing.assert_array_equal(row, want)


@pytest.mark.parametrize("dtype", ["e4m3", "e5m2"])
def test_every_number_of_8_bits_is_read_as_it_is(dtype):
    """Infinities too, where the type has them: they aren't rounded again."""
    kind = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}[dtype]
    text = CAST.replace("v: f32", f"v: {dtype}").replace("RESULT", "f32")
    v = np.arange(256, dtype=np.uint8).view(kind)
    zeros = np.zeros((1, 8), ml_dtypes.bfloat16), np.zeros((256, 8), ml_dtypes.bfloat16)
    got = call(compile(text, build=False), "sim", dict(zip("AB", zeros, strict=True)), v=v)
    np.testing.assert_array_equal(got["C"][0], v.astype(np.float32))


@pytest.mark.parametrize(
    ("schedule", "T", "U", "act"),
    [
        ("scaled", "e4m3", "bf16", "none"),
        ("scaled", "e5m2", "f16", "gelu"),
        ("scaled", "e4m3", "e4m3", "silu"),
        ("scaled_128", "e4m3", "f32", "relu"),
    ],
)
def test_products_with_scales(schedule, T, U, act):
    kernel = compile(PRODUCT, schedule=schedule, types={"T": T, "U": U}, options={"act": act}, target="sm_90a", build=False)
    for seed, (m, n, k) in enumerate([(130, 300, 272), (1, 1, 16), (65, 301, 0), (128, 256, 128), (0, 5, 32)]):
        done = run(kernel, {"M": m, "N": n, "K": k}, device="sim", seed=seed, order=seed or None, check=True)
        assert done.right, ((m, n, k), [str(v) for v in done.verdicts])


def refused(text: str, **more) -> wgdsl.WgError:
    with pytest.raises(wgdsl.WgError) as e:
        compile(text, **{"build": False, **more})
    return e.value


def product(a: str, b: str, at: str, target: str = "sm_90a") -> str:
    """A product of 8-bit inputs, B read at `at`."""
    whole = {"k,n": ("[K, N]", "[k, n]"), "n,k": ("[N, K]", "[n, k]")}[at]
    text = CAST.replace("A: bf16", f"A: {a}").replace("B: bf16[N, K]", f"B: {b}{whole[0]}").replace("B[n,k]", f"B[{at}]")
    return text.replace("B[n, k]", f"B{whole[1]}").replace("RESULT", "f32").replace("sm_90a", target)


def test_operands_that_do_not_lie_along_k():
    (problem,) = refused(product("e4m3", "e4m3", "k,n")).problems
    assert problem.code == "WG0449" and problem.span is not None and problem.span.text == "Bs[k]"
    assert "lies along `n`" in problem.label() and "`B[..., n, k]`" in problem.help()


def test_operands_of_two_types():
    (problem,) = refused(product("e4m3", "e5m2", "n,k")).problems
    assert problem.code == "WG0405" and "wgmma of e4m3 by e5m2" in problem.title()


def test_steps_of_k_are_32_elements():
    (problem,) = refused(product("e4m3", "e4m3", "n,k").replace("k 64", "k 48")).problems
    assert problem.code == "WG0415" and "in steps of 32" in problem.rule  # type: ignore[attr-defined]


def test_weights_in_registers_are_not_8_bits_yet():
    attention = (ROOT / "examples" / "attention" / "attention.wg").read_text("utf-8").replace("{f16, bf16}", "{e4m3, f16}")
    keyed = attention.replace("V: T[B, N, G, E]", "V: T[B, G, E, N]").replace("V[b,j,g,e]", "V[b,g,e,j]")
    problems = refused(keyed, schedule="simple", dims={"D": 64, "E": 64}, types={"T": "e4m3"}, target="sm_90a").problems
    assert [p.code for p in problems] == ["WG0405"]
