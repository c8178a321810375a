"""Hand-over cases B32, B34 and B35 where warps copy and multiply by themselves, and copies past the ends of tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.bugs.test_bugs import told
from tests.shipped import ROOT
from tests.sim.test_shipped import close
from wgdsl.diagnostics.model import Problem, WgError
from wgdsl.driver import Settings, prepare
from wgdsl.reference.evaluate import evaluate
from wgdsl.sim import simulate_unchecked

SCHEDULE = """wg 1

schedule both for {program} on sm_80 {{
  tile   i 128, j {j}
  stream j
  grid   over ({grid})

  role math : {warps} warps, registers {registers}, split i

  smem Qs = Q[i] by cp_async
  smem Ks = K[j] by cp_async ring 2
  smem Vs = V[j] by cp_async ring 2
  smem Os = O[i] by copy {over}

  math {{
    fill Qs
    for j {{
      await Ks[j]
      fill Vs[j]
      issue S[j] = mma(Qs, Ks[j])
      await Vs[j]
      fill Ks[j+1]
      compute P[j]
      rescale O
      pack P[j]
      issue O += mma(P[j], Vs[j])
    }}
    finish O via Os
  }}
}}
"""
RIGHT = {"program": "attention", "grid": "b, g, r, i", "j": 128, "warps": 8, "registers": 255, "over": "over Qs"}
ATTENTION = ROOT / "examples" / "attention" / "attention.wg"


def kernel(tmp_path: Path, d: int, target: str = "sm_80", **changes: object):
    path = tmp_path / "both.wg"
    path.write_text(SCHEDULE.format(**{**RIGHT, **changes}))
    settings = Settings(dims={"D": d, "E": d}, types={"T": "bf16"}, options={"causal": False, "lse": False})
    return prepare(ATTENTION, schedule=path, target=target, settings=settings)[0]


def refusal(tmp_path: Path, d: int, target: str = "sm_80", **changes: object) -> Problem:
    with pytest.raises(WgError) as caught:
        kernel(tmp_path, d, target, **changes)
    (problem,) = caught.value.problems
    return problem


# B34: shared memory.


@pytest.mark.parametrize(
    "d, target, changes, nbytes",
    [
        (128, "sm_80", {}, 163840),
        (64, "sm_86", {}, 81920),
        (64, "sm_86", {"over": ""}, 98304),
        (64, "sm_89", {"over": "", "j": 64}, 65536),
    ],
)
def test_tiles_that_fit(tmp_path: Path, d: int, target: str, changes: dict[str, object], nbytes: int):
    """No barrier takes any."""
    (only,) = kernel(tmp_path, d, target, **changes).roles.kernels
    assert only.shared_bytes == nbytes


@pytest.mark.parametrize(
    "d, target, changes, total, limit, rows",
    [
        (128, "sm_80", {"over": ""}, 196608, 166912, ("65536  Ks: 1 x 2 x 32768", "32768  Os: 2 x 1 x 16384")),
        (128, "sm_86", {}, 163840, 101376, ("65536  Ks: 1 x 2 x 32768", "0  Os: over Qs")),
        (128, "sm_89", {}, 163840, 101376, ("65536  Vs: 1 x 2 x 32768", "0  Os: over Qs")),
        (256, "sm_80", {}, 327680, 166912, ("131072  Ks: 1 x 2 x 65536",)),
    ],
)
def test_tiles_that_do_not_fit(
    tmp_path: Path, d: int, target: str, changes: dict[str, object], total: int, limit: int, rows: tuple[str, ...]
):
    p = refusal(tmp_path, d, target, **changes)
    assert p.code == "WG0708" and p.title() == f"{total} bytes of shared memory are needed, {target} has {limit}"
    assert [r for r in rows if r not in told(p)] == []
    assert "what fits: " in p.help()


# B32: registers.


def test_registers_that_a_role_of_few_warps_lacks(tmp_path: Path):
    """No warpgroup gives registers to another there: a thread has what the launch grants, 255 at most."""
    p = refusal(tmp_path, 128, warps=4)
    assert p.code == "WG0707" and "can use 247 of its 255" in p.title()
    assert all(x in told(p) for x in ("128  S: 128 x 128 f32", "128  O: 128 x 128 f32", "what fits"))


@pytest.mark.parametrize("registers, code", [(300, "WG0404"), (20, "WG0404")])
def test_counts_that_no_thread_can_have(tmp_path: Path, registers: int, code: str):
    assert refusal(tmp_path, 64, registers=registers).code == code


# B35: shapes of instructions.


@pytest.mark.parametrize("j", [8, 40, 104])
def test_columns_that_no_product_has(tmp_path: Path, j: int):
    p = refusal(tmp_path, 64, j=j)
    assert p.code == "WG0415" and f"n of this product is {j}: mma has n a multiple of 16" in p.title()


def test_rows_that_warps_can_not_share(tmp_path: Path):
    p = refusal(tmp_path, 64, warps=12)
    assert p.code == "WG0414" and "a multiple of 192" in p.title()


@pytest.mark.parametrize(
    "m, n, k", [(64, 64, 8), (64, 64, 16), (64, 64, 24), (64, 64, 40), (130, 200, 72), (1, 8, 8), (70, 136, 0)]
)
@pytest.mark.parametrize("layout", ["nk", "kn"])
def test_k_and_n_that_fill_no_tile(m: int, n: int, k: int, layout: str):
    """What a copy finds past the end is zero, whatever stood in shared memory, and what lies beyond isn't stored."""
    settings = Settings(types={"T": "f16"}, options={"layout": layout, "bias": False})
    found = prepare(ROOT / "examples" / "gemm" / "gemm.wg", schedule="warps", target="sm_80", settings=settings)[0]
    draw = np.random.default_rng(5)
    arrays = {"A": draw.uniform(-1, 1, (m, k)), "B": draw.uniform(-1, 1, (n, k) if layout == "nk" else (k, n))}
    arrays = {name: x.astype(np.float16) for name, x in arrays.items()}
    dims = {"M": m, "N": n, "K": k}
    exact = evaluate(found.forms.graph, arrays, {}, dims)
    rounded = evaluate(found.forms.graph, arrays, {}, dims, round_operands=True)
    for seed in (None, 1, 2):
        got = simulate_unchecked(found.roles, arrays, {}, dims, seed=seed)
        close("C", np.asarray(got["C"], dtype=np.float64), exact["C"], rounded["C"])
