"""The tables of the language page: what is written, and what it is on a device."""

from __future__ import annotations

import re
from functools import cache

import ml_dtypes
import numpy as np

import wgdsl
from tests.docs.pages import ROOT
from tests.programs.test_language import SCHEDULE, program

TEXT = (ROOT / "docs" / "language.md").read_text("utf-8")


def rows(*header: str) -> list[list[str]]:
    """The cells of all tables with that header."""
    head = re.escape(f"| {' | '.join(header)} |\n") + r"\|[ -|]*\|\n"
    tables = re.findall(rf"^{head}((?:\|.*\n)*)", TEXT, re.MULTILINE)
    return [[c.strip() for c in line.strip("|").split("|")] for table in tables for line in table.splitlines()]


VALUES = [(written.strip("`"), float(value)) for written, value in rows("written", "is")]
REDUCED = [(w.strip("`"), of, float(value)) for w, of, value in rows("written", "a row of `S`", "is")]


# `i` is 5 and `n` is 3 in the element that is looked at.
GIVEN = "in x: f32\nin v: f32[N]\nin w: i32[N]\nrequire N > 3\n"
V, W = np.array([np.nan, np.inf, -np.inf, 2.5], np.float32), np.array([7, -7, 3, -3], np.int32)
A, B = np.ones((6, 8), np.float16), np.ones((4, 8), np.float16)


def expression(written: str, device: str) -> float:
    """What an expression is on a device: in the epilogue of a product of ones, which isn't 0 but for the factor."""
    text = program(f"{GIVEN}C[i,n] = 0.0 * Acc[i,n] + ({written})")
    kernel = wgdsl.compile(text, schedule=SCHEDULE, types={"T": "f16"}, build=False)
    return float(np.asarray(kernel(A=A, B=B, x=0.0, v=V, w=W, device=device))[5, 3])


ROWS = """wg 1
program rows {{
  dims M, N, K
  in   A: bf16[M, K]
  in   B: bf16[N, K]
  out  Y: {kind}[M]
  S[i,n] = sum[k] A[i,k] * B[n,k]
  Y[i]   = {written}
}}
schedule one for rows on sm_90a {{
  tile   i 64, n 64
  stream n
  grid   over (i)
  role load : 1 warpgroup, registers 24
  role math : 1 warpgroup, registers 240, split i
  smem As = A[i] by tma
  smem Bs = B[n] by tma ring 2
  load {{ fill As for n {{ fill Bs[n] }} }}
  math {{
    for n {{
      issue S[n] = wgmma(As, Bs[n])
      await S[n]
      compute Y[n]
    }}
    finish Y
  }}
}}
"""


@cache
def rows_kernel(written: str):
    kind = "i32" if "arg" in written else "f32"
    return wgdsl.compile(ROWS.format(kind=kind, written=written), dims={"K": 16}, build=False)


def reduction(written: str, of: str, device: str) -> float:
    """What a reduction is on a device. A row of the product is the column of `B` that `A` picks."""
    elements = [float(x) for x in of.split(",") if x.strip()]
    a, b = np.zeros((1, 16), ml_dtypes.bfloat16), np.zeros((len(elements), 16), ml_dtypes.bfloat16)
    a[0, 0], b[:, 0] = 1, elements
    return float(np.asarray(rows_kernel(written)(A=a, B=b, device=device))[0])
