"""Programs that the analyse and reference tests share, and short ways to a graph and to a FileCheck run."""

from __future__ import annotations

import io

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts

from wgdsl.analyse import analyse
from wgdsl.diagnostics.model import Problem, WgError
from wgdsl.foundation.source import Source
from wgdsl.program.graph import ProgramGraph
from wgdsl.syntax.parser import parse

ATTENTION = """wg 1
program attention {
  option causal = false
  option lse = true
  dims   B, G, R, M, N, D, E
  dims   H = G * R
  type   T in {f16, bf16}

  in     Q: T[B, M, H, D]
  in     K: T[B, N, G, D]
  in     V: T[B, N, G, E]
  in     scale: f32 = 1 / sqrt(D)
  out    O: T[B, M, H, E]
  out    L: f32[B, H, M] when lse
  require scale > 0

  let h = g * R + r

  S[b,g,r,i,j] = sum[d] Q[b,i,h,d] * K[b,j,g,d]
  X[b,g,r,i,j] = S[b,g,r,i,j] * scale      where not causal or j <= i + N - M
  P[b,g,r,i,j] = softmax[j] X[b,g,r,i,j]
  O[b,i,h,e]   = sum[j] P[b,g,r,i,j] * V[b,j,g,e]
  L[b,h,i]     = logsumexp[j] X[b,g,r,i,j]
}
"""

GEMM = """wg 1
program gemm {
  option with_bias = false
  option act in {none, relu, gelu, silu}
  option b_rows = true
  dims   M, N, K
  type   T in {f16, bf16}
  in     A: T[M, K]
  in     B: T[N, K] when b_rows
  in     Bt: T[K, N] when not b_rows
  in     bias: f32[N] when with_bias
  out    C: T[M, N]

  def    activation(x) = select(act == relu, relu(x), select(act == gelu, gelu(x), select(act == silu, silu(x), x)))

  Acc[m,n] = sum[k] A[m,k] * B[n,k]   when b_rows
  Acc[m,n] = sum[k] A[m,k] * Bt[k,n]  when not b_rows
  C[m,n]   = activation(Acc[m,n] + select(with_bias, bias[n], 0))
}
"""


def wrapped(body: str) -> str:
    """A program around some items: X[M, N] and Z[M] in, Y[M] out."""
    head = "dims M, N\n  in X: f32[M, N]\n  in Z: f32[M]\n  out Y: f32[M]\n  "
    return f"wg 1\nprogram p {{\n  {head}{body}\n}}\n"


def graph_of(
    text: str,
    *,
    options: dict[str, object] | None = None,
    types: dict[str, str] | None = None,
    dims: dict[str, int] | None = None,
) -> ProgramGraph:
    """The graph of the only program of a text."""
    text = text if text.startswith("wg 1") else f"wg 1\n{text}"
    return analyse(parse(Source("test.wg", text)).programs[0], options=options, types=types, dims=dims)


def problems_of(text: str, **chosen: dict) -> tuple[Problem, ...]:
    """The problems of a program, () if it has none."""
    try:
        graph_of(text, **chosen)
    except WgError as e:
        return e.problems
    return ()


def file_check(text: str, checks: str) -> None:
    """Run FileCheck in process: `CHECK:` lines against a text."""
    options = Options(match_filename="checks")
    parser = Parser(options, io.StringIO(checks), *pattern_for_opts(options))
    assert Matcher(options, FInput("text", text), parser).run() == 0
