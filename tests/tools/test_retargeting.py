"""`wgdsl retarget`: every shipped Hopper schedule for sm_80: text, report, compiled, and simulated against float64."""

from __future__ import annotations

import json
import re
from functools import cache

import numpy as np
import pytest

from tests.shipped import KERNELS, ROOT, Shipped, attention
from tests.sim.test_shipped import close, inputs
from tests.snapshots import TextFile
from wgdsl import cli
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import Settings, prepare
from wgdsl.forms import explained
from wgdsl.foundation.source import Source
from wgdsl.reference.evaluate import evaluate
from wgdsl.roles.checked import Checked
from wgdsl.runtime import nvrtc
from wgdsl.sim import simulate
from wgdsl.sources import find
from wgdsl.syntax import ast
from wgdsl.syntax.formatter import fmt
from wgdsl.tools.retargeting import Retargeted, report, retarget
from wgdsl.tools.running import run

SIZES = ((200, 137), (65, 300), (1, 3), (130, 0))
HOPPER = [k for k in KERNELS if k.target == "sm_90a" and k.dtype in ("bf16", "f16")]  # sm_80 has no products of 8 bits
FIRST = tuple({k.schedule: k for k in reversed(HOPPER)}.values())  # one kernel of each schedule
SPILLED = {"batched_narrow": 12}  # at the end, by a function and a residual; the schedule written for sm_80 spills more
ATTENTION = str(ROOT / "examples" / "attention" / "attention.wg")
GEMM = str(ROOT / "examples" / "gemm" / "gemm.wg")


def settings(k: Shipped) -> list[str]:
    return [f"{n}={str(v).lower() if isinstance(v, bool) else v}" for n, v in (*k.dims, *k.options, ("T", k.dtype))]


@cache
def retargeted(k: Shipped, to: str = "sm_80") -> Retargeted:
    return retarget([str(ROOT / k.program), k.schedule], to, settings(k))


@pytest.mark.parametrize("k", FIRST, ids=[k.schedule for k in FIRST])
def test_text_and_report(k: Shipped, snapshot):
    made = retargeted(k)
    assert report(made) + "\n" + made.text == snapshot(extension_class=TextFile, name=k.name)


@pytest.mark.parametrize(
    "k", [k if k in FIRST else pytest.param(k, marks=pytest.mark.slow) for k in HOPPER], ids=[k.name for k in HOPPER]
)
def test_it_computes_what_the_program_says(k: Shipped):
    forms = retargeted(k).prepared().forms
    for m, n in SIZES:
        arrays, scalars, dims = inputs(k, m, n)
        expected = evaluate(forms.graph, arrays, scalars, dims)
        rounded = evaluate(forms.graph, arrays, scalars, dims, round_operands=True)
        for seed in (None, 1, 2):
            got = simulate(Checked(forms.roles), arrays, scalars, dims, seed=seed)
            assert got.keys() == expected.keys()
            for name, e in expected.items():
                close(name, np.asarray(got[name], dtype=np.float64), e, rounded[name])


@pytest.mark.parametrize("k", FIRST, ids=[k.schedule for k in FIRST])
def test_it_compiles_without_spills(k: Shipped):
    kernel = retargeted(k).prepared()
    for text in kernel.forms.texts.values():
        for found in nvrtc.compile(text, "sm_80").kernels:
            assert found.spill_stores <= SPILLED.get(k.schedule, 8), found


@pytest.mark.parametrize("k", FIRST, ids=[k.schedule for k in FIRST])
def test_no_directive_is_passed_over(k: Shipped):
    """Each line and each step of the schedule has its row, and each row that isn't kept has a reason."""
    made = retargeted(k)
    rows = made.rows
    seen = {(r.path, r.line, r.directive.split()[0]) for r in rows if r.line}
    schedule = find(ROOT / k.program, schedule=k.schedule).schedule
    for node in directives(schedule.items):
        assert node.span is not None
        assert (node.span.source.path, node.span.line, node.span.text.split()[0]) in seen, node.span.text
    assert all(r.why for r in rows if r.became != r.directive)


def directives(nodes):
    """Every item and step; of blocks that are only an order, what stands in them."""
    for n in nodes:
        if isinstance(n, ast.KernelDecl):
            yield from directives(n.items)
        elif isinstance(n, ast.RoleBody | ast.ForStep):
            yield from directives(n.steps if isinstance(n, ast.RoleBody) else n.body)
        elif isinstance(n, ast.TurnStep | ast.OnceStep):
            yield from directives(n.body)
        else:
            yield n


@pytest.mark.parametrize("k", FIRST, ids=[k.schedule for k in FIRST])
def test_the_text_is_in_canonical_layout(k: Shipped):
    text = retargeted(k).text
    assert fmt(Source("retargeted.wg", text)) == text


def test_names_mean_nothing(tmp_path):
    """The same schedule with other names gives the same one with these."""
    names = {"load": "cook", "math": "guests", "Qs": "Plate", "Ks": "Fork", "Vs": "Vase", "Os": "Tray", "three": "dinner"}

    def renamed(text: str) -> str:
        return re.sub(r"\b(\w+?)(_sm_80)?\b", lambda m: names.get(m[1], m[1]) + (m[2] or ""), text)

    shipped = (ROOT / "schedules" / "hopper" / "attention_three.wg").read_text().partition("# Under a causal")[0]
    (tmp_path / "dinner.wg").write_text(renamed(shipped))
    fixed = ["D=128", "E=128", "T=bf16"]
    other = retarget([ATTENTION, str(tmp_path / "dinner.wg")], "sm_80", fixed)
    words = " ".join(renamed(retarget([ATTENTION, "three"], "sm_80", fixed).text).split())
    assert " ".join(other.text.split()) == words


@pytest.mark.parametrize("to", ["sm_86", "sm_89", "sm_120"])
def test_smaller_memories(to: str):
    """100 KB of shared memory an SM."""
    made = retargeted(attention("three", False, 128), to)
    ((_, fit),) = made.fits
    assert fit.kernel.target == to and fit.ctas * (fit.kernel.shared_bytes + 1024) <= 100 * 1024


VARIANTS = {
    "apart": (GEMM, "schedule mine extends pipelined { load { for k { fill As[k]  fill Bs[k] } } }", []),
    "one slot": (GEMM, "schedule mine extends pipelined { smem As = A[i, k] by tma  smem Bs = B[n, k] by tma\n"
                 "math { for k { issue Acc += wgmma(As[k], Bs[k])  await Acc[k] }  finish C via Cs } }", []),
    "one slot of two": (ATTENTION, "schedule mine extends simple { smem Vs = V[j] by tma }", ["D=64", "E=64"]),
    "two sets": (ATTENTION, "schedule mine extends fa3 { tile j 64\n regs P ring 2 }", ["D=64", "E=64"]),
    "no staging": (ATTENTION, "schedule mine extends simple { smem Os = O[i] by tma }", ["D=64", "E=128"]),
}  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
def test_other_structures(variant: str, tmp_path):
    program, lines, fixed = VARIANTS[variant]
    (tmp_path / "mine.wg").write_text(f"wg 1\n{lines}\n")
    kernel = retarget([program, str(tmp_path / "mine.wg")], "sm_80", fixed).prepared()
    every = {"B": 1, "G": 1, "R": 2, "M": 150, "N": 136, "K": 136}
    dims = {n: every[n] for n in every if n in kernel.graph.dims}
    assert run(kernel, dims, device="sim", order=3, check=True).right


def test_an_explicit_form_is_refused(tmp_path):
    _, journal = prepare(GEMM, schedule="pipelined", settings=Settings(types={"T": "bf16"}))
    (tmp_path / "explicit.wg").write_text(explained(journal.forms))
    with pytest.raises(WgError) as caught:
        retarget([str(tmp_path / "explicit.wg"), "pipelined"], "sm_80", [])
    assert caught.value.problems[0].title() == "`pipelined` is an explicit form, whose steps are those of sm_90a"


SIZED = """schedule sized extends pipelined {
  option depth = 1
  smem As = A[i, k] by tma ring depth + 1
  smem Bs = B[n, k] by tma ring depth + 1
  tune { ring As in {3, 4} }
}
"""


def test_options_and_ranges_of_a_tuner_are_settled(tmp_path):
    (tmp_path / "sized.wg").write_text(f'wg 1\nimport "{GEMM}"\n{SIZED}')
    made = retarget([str(tmp_path / "sized.wg"), "sized"], "sm_80", ["depth=2"])
    became = {r.directive: (r.became, r.why) for r in made.rows}
    assert became["option depth = 1"] == ("", "settled: the sizes here are found for its value")
    assert became["smem As = A[i, k] by tma ring depth + 1"][0] == "smem As = A[i, k] by cp_async ring 2"
    assert became["tune"][0] == "" and "option" not in made.text


@pytest.mark.parametrize(
    "words, to, fixed, code",
    [
        ([ATTENTION, "three"], "sm_90a", ["D=128", "E=128"], "WG1023"),
        ([ATTENTION, "three"], "sm_75", ["D=128", "E=128"], "WG0653"),
        ([ATTENTION, "fa2"], "sm_80", ["D=64", "E=64"], "WG1023"),
        ([ATTENTION, "three"], "sm_80", [], "WG0657"),
        ([GEMM, "nothing"], "sm_80", [], "WG0651"),
    ],
)
def test_refusals(words, to, fixed, code):
    with pytest.raises(WgError) as caught:
        retarget(words, to, fixed)
    assert [p.code for p in caught.value.problems] == [code]


def test_the_command(capsys, tmp_path):
    out = tmp_path / "mine.wg"
    with pytest.raises(SystemExit) as exit:
        cli.main(["retarget", "pipelined", "--to", "sm_80", "--set", "T=bf16", "--format", "json", "-o", str(out)])
    assert not exit.value.code
    data = json.loads(capsys.readouterr().out)
    assert data["text"] == out.read_text()
    assert data["kernels"][0]["tiles"] == {"i": 128, "n": 96, "k": 64}
    assert {"directive": "role load : 1 warpgroup, registers 24", "became": ""}.items() <= data["directives"][3].items()
    with pytest.raises(SystemExit):
        cli.main(["run", GEMM, "--schedule", str(out), "--dims", "M=70,N=72,K=40", "--device", "sim", "--check"])
    assert "C: right" in capsys.readouterr().out
