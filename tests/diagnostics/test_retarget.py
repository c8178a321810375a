"""Every message of `wgdsl retarget`, from schedules that provoke it: one snapshot each."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.lowering import ROOT
from tests.snapshots import TextFile
from wgdsl.diagnostics import retarget as messages
from wgdsl.diagnostics.catalogue import problems_of
from wgdsl.diagnostics.model import WgError
from wgdsl.diagnostics.render import render_all
from wgdsl.foundation.source import Source
from wgdsl.retarget.lines import Shape, Written, carry
from wgdsl.syntax.parser import parse
from wgdsl.targets.choice import TARGETS
from wgdsl.tools.retargeting import retarget

ATTENTION = str(ROOT / "examples" / "attention" / "attention.wg")
LINES = """wg 1
schedule s for attention on sm_90a {
  tile i 128, j 128
  stream j
  grid over (b, g, r, i)
  role load : 1 warpgroup, registers 24
  role math : 2 warpgroups, registers 240, split i
  smem Qs = Q[i] by tma
  load { fill Qs }
  math { for j { issue S[j] = wgmma(Qs, Ks[j])  await S[j] } }
}
"""
WIDE = """schedule wide extends two_pass {
  kernel statistics computes P.max, P.sum {
    tile i 64, n 64
    role math : 1 warpgroup, registers 240, split i
    smem Bs = B[n] by tma
  }
}
"""


def carried(old: str, new: str):
    """What the rules say of lines that don't get as far as that on the way from a file."""
    (schedule,) = parse(Source("mine.wg", LINES.replace(old, new))).schedules
    shape = Shape(tiles={"i": 128, "j": 128}, rows="i", warps=4, ring=2, over={})
    carry(Written(schedule=schedule, outputs=frozenset("O"), target=TARGETS["sm_80"]), shape)


def nothing_fits():
    """64 rows of 768 elements take nearly all of 100 KB."""
    with TemporaryDirectory() as folder, chdir(folder):
        Path("wide.wg").write_text(f'wg 1\nimport "{ROOT}/examples/row_softmax/row_softmax.wg"\n{WIDE}')
        retarget(["wide.wg"], "sm_120", ["K=768", "T=bf16"])


PROVOKED = {
    "WG1021": lambda: carried("load { fill Qs }", "load { fill Qs  for j { await Ks[j]  compute P[j] } }"),
    "WG1021-none": lambda: carried("math { for j { issue S[j] = wgmma(Qs, Ks[j])  await S[j] } }", "math { fill Qs }"),
    "WG1021-loops": lambda: carried("  await S[j] }", " }  for j { await S[j] }"),
    "WG1021-once": lambda: carried("  await S[j] }", "  once { compute P[j] } }"),
    "WG1021-home": lambda: carried("by tma", "by transpose"),
    "WG1021-form": lambda: carried("by tma", "as e4m3 by tma"),
    "WG1021-with": lambda: carried("over (b, g, r, i)", "over (b, g, r, i) with Qs"),
    "WG1022": nothing_fits,
    "WG1023": lambda: retarget([ATTENTION, "three"], "sm_90a", ["D=128", "E=128"]),
}


@pytest.mark.parametrize("name", PROVOKED)
def test_text(name, snapshot):
    with pytest.raises(WgError) as caught:
        PROVOKED[name]()
    assert {p.code for p in caught.value.problems} == {name.partition("-")[0]}
    assert render_all(caught.value.problems).replace(f"{ROOT}/", "") + "\n" == snapshot(extension_class=TextFile, name=name)


def test_every_problem_has_a_snapshot():
    assert {c.code for c in problems_of(messages)} == {name.partition("-")[0] for name in PROVOKED}
    assert all("fails:" in c.doc and "works:" in c.doc for c in problems_of(messages))
