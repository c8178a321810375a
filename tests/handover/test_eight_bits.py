"""Operands and results of 8 bits: B15's casts, products with scales of rows and columns, and what is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import wgdsl
from tests.handover.reference import hashed
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
ATTENTION = ROOT / "examples" / "attention_eight_bits" / "attention_eight_bits.wg"
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
        ("scaled_promoted", "e4m3", "f32", "none"),
        ("scaled_promoted", "e4m3", "bf16", "relu"),
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


def attention(schedule: str = "eight_128", causal: bool = False, **more):
    settings = {"dims": {"D": 64, "E": 64}, "types": {"T": "e4m3", "U": "bf16"}, "options": {"causal": causal}}
    return compile(ATTENTION, schedule=schedule, target="sm_90a", build=False, **{**settings, **more})


def test_weights_of_8_bits_in_registers_need_a_form():
    eight = (ROOT / "schedules" / "hopper" / "attention_eight_bits.wg").read_text("utf-8").partition("# Under")[0]
    plain = eight.replace("  regs Pr = P as e4m3 times 16 permute v8\n", "").replace("Pr[j]", "P[j]")
    (problem,) = refused(ATTENTION, schedule=plain, dims={"D": 64, "E": 64}).problems
    assert problem.code == "WG0405" and "regs Pr = P as e4m3 permute v8" in problem.help()


def dequantised(q, k, v, scales, causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """B15's reference: attention in float64 on values times their scale. Arrays are [B, heads, rows, elements]."""
    group = q.shape[1] // k.shape[1]
    wide = [x.astype(np.float64) * s.astype(np.float64).repeat(x.shape[1] // s.shape[1], 1)[..., None, None] for x, s in scales]
    qq, kk, vv = wide[0], wide[1].repeat(group, 1), wide[2].repeat(group, 1)
    scores = qq @ kk.swapaxes(2, 3) / np.sqrt(q.shape[-1])
    if causal:
        hidden = np.arange(k.shape[2])[None] > np.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2]
        scores = np.where(hidden, -np.inf, scores)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    return weights @ vv / total, (top + np.log(total))[..., 0]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("device", DEVICES)
def test_b15_scales_of_each_batch_and_key_head(device, causal):
    """The scores of one head may be a hundred times those of another."""
    kind = ml_dtypes.float8_e4m3fn
    q, k, v = (hashed(seed, (2, heads, 40, 64), -100, 100, "f32").astype(kind) for seed, heads in ((1, 4), (2, 2), (3, 2)))
    qs, ks, vs = (hashed(seed, (2, 2), 0.002, 0.02, "f32") for seed in (5, 6, 7))
    arrays = {"Q": q.swapaxes(1, 2), "K": k.swapaxes(1, 2), "V": np.ascontiguousarray(v.swapaxes(2, 3))}
    arrays["V"] = padded(arrays["V"], 48)[..., :40]
    o, lse = dequantised(q, k, v, ((q, qs), (k, ks), (v, vs)), causal)
    one, _ = dequantised(q, k, v, ((q, qs[:1, :1].repeat(2, 0).repeat(2, 1)), (k, ks), (v, vs)), causal)
    got = call(attention(causal=causal), device, arrays, q=qs, k=ks, v=vs)
    off = np.abs(got["O"].astype(np.float64).swapaxes(1, 2) - o).max()
    assert off < 0.06 * np.abs(o).max() and np.abs(one - o).max() > 2 * off, "not the scale of one head for all"
    assert np.abs(got["L"] - lse).max() < (1e-4 if device == "sim" else 0.02)


def padded(x: np.ndarray, length: int) -> np.ndarray:
    out = np.zeros((*x.shape[:-1], length), x.dtype)
    out[..., : x.shape[-1]] = x
    return out


@pytest.mark.parametrize(
    ("q", "said"),
    [
        (np.ones(2, np.float32), "`q` has 1 axes"),
        (np.ones((2, 4), np.float32), "G"),
        (np.ones((), np.float32), "`q` has 0 axes"),
        (np.ones((2, 2), np.float16), "f16"),
    ],
)
def test_b15_scales_of_another_shape_or_type(q, said):
    arrays = {"Q": (2, 40, 4, 64), "K": (2, 40, 2, 64), "V": (2, 2, 64, 48)}
    given = {name: np.zeros(shape, ml_dtypes.float8_e4m3fn) for name, shape in arrays.items()}
    given["V"] = given["V"][..., :40]
    ones = np.ones((2, 2), np.float32)
    with pytest.raises(wgdsl.WgError) as e:
        attention()(**given, q=q, k=ones, v=ones, device="sim")
    assert said in str(e.value) and "q" in str(e.value)


@pytest.mark.parametrize("std", [0.25, 1, 4])
def test_scores_that_spread_show_no_jump_where_tiles_meet(std):
    """The error of a row hangs on its weights, not on the tile in which its maximum lies: a lagging maximum clips nothing."""
    random, kind = np.random.default_rng(7), ml_dtypes.float8_e4m3fn
    m, n = 64, 640
    q, k = (random.standard_normal(shape).astype(kind) for shape in ((1, m, 1, 64), (1, n, 1, 64)))
    q = (q.astype(np.float32) * std).astype(kind)
    v = np.abs(random.standard_normal((1, 1, 64, n))).astype(kind)
    ones = np.ones((1, 1), np.float32)
    got = call(attention(), "sim", {"Q": q, "K": k, "V": v}, q=ones, k=ones, v=ones)
    heads = [x.swapaxes(1, 2) for x in (q, k)] + [v.swapaxes(2, 3)]
    o, lse = dequantised(*heads, [(x, ones) for x in heads], False)
    off = np.abs(got["O"].astype(np.float64).swapaxes(1, 2) - o)[0, 0] / np.abs(o).max()
    assert off.max() < 0.04 and np.abs(got["L"] - lse).max() < 1e-4
