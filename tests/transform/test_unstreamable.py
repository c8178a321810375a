"""Programs that one pass can't compute: the error shows who needs whom, the statements, and a cure that works."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import wgdsl
from wgdsl.diagnostics.transform import NotSeparable, NotStreamable
from wgdsl.tools.running import run

PROGRAM = """wg 1
program p {{
  dims M, N, K
  type T in {{f16, bf16}}
  in   A: T[M, K]
  in   B: T[N, K]
  out  Y: f32[M]

  S[i,j] = sum[k] A[i,k] * B[j,k]
{statements}
}}
"""
SCHEDULE = """wg 1
schedule s for p on sm_90a {{
  tile   i 64, j 64
  stream j
  grid   over (i)
  role load : 1 warpgroup, registers 24
  role math : 1 warpgroup, registers 240, split i
  smem As = A[i] by tma
  smem Bs = B[j] by tma ring 2
  load {{ fill As for j {{ fill Bs[j] }} }}
{kernels}
}}
"""
STEPS = "for j {{ issue S[j] = wgmma(As, Bs[j])  await S[j]  compute {first}[j] }}  finish {results}"


@dataclass(frozen=True)
class Case:
    """A program; the notes that name who needs whom; the tensors of the kernel that the help proposes."""

    statements: str
    chain: tuple[str, ...]
    computes: tuple[str, ...]
    kind: type = NotSeparable


CASES = {
    "a function of a difference": Case(
        "  m[i] = max[j] S[i,j]\n  Y[i] = sum[j] tanh(S[i,j] - m[i])",
        ("`Y` needs `S`", "`Y` needs `m`, along `j`"),
        ("m",),
    ),
    "the second largest": Case(
        "  m[i] = max[j] S[i,j]\n  Y[i] = max[j] select(S[i,j] == m[i], -inf, S[i,j])",
        ("`Y` needs `S`", "`Y` needs `m`, along `j`"),
        ("m",),
    ),
    "a variance": Case(
        "  mean[i] = (sum[j] S[i,j]) / N\n  Y[i] = sum[j] (S[i,j] - mean[i]) ** 2",
        ("`Y` needs `mean`", "`mean` needs `mean.sum`, along `j`"),
        ("mean",),
        NotStreamable,
    ),
    "a count": Case(
        "  mean[i] = (sum[j] S[i,j]) / N\n  Y[i] = sum[j] select(S[i,j] > mean[i], 1.0, 0.0)",
        ("`Y` needs `mean`", "`mean` needs `mean.sum`, along `j`"),
        ("mean",),
        NotStreamable,
    ),
    "the largest deviation": Case(
        "  m[i] = min[j] S[i,j]\n  Y[i] = max[j] abs(S[i,j] - 2.0 * m[i])",
        ("`Y` needs `m`, along `j`",),
        ("m",),
    ),
    "a root of weights": Case(
        "  P[i,j] = softmax[j] S[i,j]\n  Y[i] = sum[j] sqrt(P[i,j])",
        ("`Y` needs `P.sum`, along `j`", "`P.exp` needs `P.max`, along `j`"),
        ("P.max", "P.sum"),
    ),
    "weights above a threshold": Case(
        "  m[i] = max[j] S[i,j]\n  W[i,j] = S[i,j] where S[i,j] > m[i] - 3.0\n  Y[i] = sum[j] W[i,j]",
        ("`W` needs `S`", "`W` needs `m`, along `j`"),
        ("m",),
        NotStreamable,
    ),
    "a threshold by a function of one": Case(
        "  m[i] = (max[j] S[i,j]) * 0.5\n  W[i,j] = S[i,j] where S[i,j] > m[i]\n  Y[i] = sum[j] W[i,j]",
        ("`W` needs `m.max`, along `j`",),
        ("m.max",),
        NotStreamable,
    ),
}


def compiled(statements: str, kernels: str) -> wgdsl.Kernel:
    schedule = SCHEDULE.format(kernels=kernels)
    return wgdsl.compile(PROGRAM.format(statements=statements), schedule=schedule, dims={"K": 64}, build=False)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_error_shows_the_chain_and_the_statements(case: Case):
    with pytest.raises(wgdsl.WgError) as refused:
        compiled(case.statements, f"math {{ {STEPS.format(first='Y', results='Y')} }}")
    (problem,) = refused.value.problems
    assert isinstance(problem, case.kind)
    assert set(case.chain) <= set(problem.notes())
    assert f"`kernel NAME computes {', '.join(case.computes)} {{ ... }}`" in problem.help()
    shown = str(problem.span and problem.span.text) + " ".join(span.text for span, _ in problem.others())
    assert all(f"{name.partition('.')[0]}[" in shown for name in case.computes), "the statement of each stands there"


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_what_the_help_proposes_works(case: Case):
    first, names = case.computes[-1], ", ".join(case.computes)
    before = f"kernel before computes {names} {{ math {{ {STEPS.format(first=first, results=names)} }} }}"
    behind = f"kernel behind computes Y {{ math {{ {STEPS.format(first='Y', results='Y')} }} }}"
    kernel = compiled(case.statements, f"{before}\n{behind}")
    for m, n in ((70, 200), (64, 1)):
        assert run(kernel, {"M": m, "N": n}, device="sim", check=True).right, (m, n)
