"""Every message of the commands beside compiling, rendered: one snapshot each."""

from __future__ import annotations

import pytest

from tests.snapshots import TextFile
from wgdsl.diagnostics import tools
from wgdsl.diagnostics.catalogue import problems_of
from wgdsl.diagnostics.render import render_plain

PROBLEMS = [
    tools.NoGoldens(path="linear.wg", folder="golden"),
    tools.BadManifest(path="golden/golden.json", why="`linear-simple` doesn't say its file"),
    tools.StaleGolden(name="linear-simple", state="stale"),
    tools.NoCommonProgram(first="fa3", second="pipelined"),
    tools.EditedText(path="mine.cu", what="the type of parameter 2", expected="long long", got="int"),
    tools.RegistersTaken(name="S", by="P"),
    tools.NothingToProbe(name="Q", known=("S", "P", "O")),
    tools.NeedsProbeCall(names=("P", "S")),
    tools.NoProbe(schedule="fa3"),
    tools.OfAnotherProgram(schedule="pipelined", program="attention", programs=("gemm",)),
    tools.NothingToCompare(text=",", known=("simple", "fa3")),
    tools.NoCycleModel(target="sm_86", known=("sm_90a", "sm_80")),
    tools.NoTimeline(path="linear.wg", why="it isn't JSON"),
    tools.NotByName(path="other/mine.wg"),
    tools.BadLimit(option="--most", value=0),
    tools.UnknownWord(what="suite", text="atention", known=("attention", "gemm")),
    tools.NoResults(path="out/bench.jsonl", why="line 3 isn't JSON"),
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=[p.code for p in PROBLEMS])
def test_text(problem, snapshot):
    assert render_plain(problem) + "\n" == snapshot(extension_class=TextFile, name=problem.code)


def test_every_problem_has_a_snapshot():
    assert {type(p) for p in PROBLEMS} == set(problems_of(tools))
    assert all("fails:" in c.doc and "works:" in c.doc for c in problems_of(tools))
