"""`wgdsl timeline`: what it prints, its trace and its picture."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from wgdsl import cli
from wgdsl.foundation.resources import resource
from wgdsl.roles.timeline import ENGINE, STEP, WAIT, Slice, Timeline, joined, short
from wgdsl.tools.timeline_svg import picture
from wgdsl.tools.trace_events import read_trace, trace_text

ATTENTION = str(resource("examples", "attention", "attention.wg"))
ROWS = str(resource("examples", "row_softmax", "row_softmax.wg"))
SET = ["--set", "D=128", "E=128", "T=bf16"]
DIMS = ["--dims", "B=1", "G=2", "R=1", "M=512", "N=512"]

TIMELINE = Timeline(
    origin="predicted for H200",
    kernel="k",
    what="item 0",
    roles=("load", "math"),
    engines=("tensor cores", "MUFU"),
    slices=(
        Slice(track="load", kind=STEP, name="fill Ks[j]", start=0, stop=40, line=3),
        Slice(track="math", kind=STEP, name="await S[j]", start=0, stop=70, line=5, place="j.pos = 1"),
        Slice(track="math", kind=WAIT, name="products", start=10, stop=60, line=5, place="j.pos = 1", step="await S[j]"),
        Slice(track="math", kind=STEP, name="compute P[j] < 1", start=70, stop=100, line=6),
        Slice(track="tensor cores", kind=ENGINE, name="issue S[j]", start=5, stop=55, line=4, by="math"),
    ),
)


def said(capsys, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(["timeline", *arguments])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_shares_and_waits():
    assert TIMELINE.cycles == 100
    assert [TIMELINE.share(t) for t in ("load", "math", "tensor cores", "MUFU")] == [0.4, 0.5, 0.5, 0]
    assert TIMELINE.waits("math") == [("await S[j]: products", 5, 50)]


def test_short_words():
    assert short("issue S[j+1] = wgmma(Qs, Ks[j+1])") == "issue S[j+1]"
    assert short("issue O += wgmma(P[j], Vs[j])") == "issue O"
    assert short("await O[j]") == "await O[j]"


def test_neighbours_that_say_the_same_are_one():
    a = Slice(track="math", kind=STEP, name="a", start=0, stop=1)
    again = Slice(track="math", kind=STEP, name="a", start=1, stop=3)
    later = Slice(track="math", kind=STEP, name="a", start=4, stop=5)
    assert joined([a, again, later]) == [Slice(track="math", kind=STEP, name="a", start=0, stop=3), later]


def test_a_trace_can_be_read_again(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(trace_text([TIMELINE, TIMELINE]))
    first, second = read_trace(path)
    assert first == second and set(first.slices) == set(TIMELINE.slices)
    assert (first.origin, first.roles, first.engines) == (TIMELINE.origin, TIMELINE.roles, TIMELINE.engines)


def test_trace_events():
    """What the viewers need: complete events with times, and a name for each thread."""
    events = json.loads(trace_text([TIMELINE]))["traceEvents"]
    complete = [e for e in events if e["ph"] == "X"]
    assert len(complete) == len(TIMELINE.slices)
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert list(threads.values()) == [*TIMELINE.roles, *TIMELINE.engines]
    (wait,) = (e for e in complete if e["cat"] == WAIT)
    assert (wait["ts"], wait["dur"], threads[wait["tid"]]) == (10, 50, "math")
    assert wait["args"] == {"line": 5, "place": "j.pos = 1", "step": "await S[j]"}


def test_a_picture_shows_every_slice_of_its_window():
    texts = _texts(picture([TIMELINE], (0, 100)))
    assert {"load", "math", "tensor cores"} <= texts and "MUFU" not in texts
    assert {"40 %", "50 %", "fill Ks[j]", "compute P[j] < 1"} <= texts
    assert "math waits: 50 % await S[j]: products (line 5)" in texts
    assert "fill Ks[j], line 3, 0 to 40" in texts, "what a pointer sees"
    assert "fill Ks[j]" not in _texts(picture([TIMELINE], (60, 100)))


def _texts(svg: str) -> set[str]:
    return {e.text or "" for e in ElementTree.fromstring(svg).iter()}


def test_the_command(capsys, tmp_path):
    trace, svg = tmp_path / "t.json", tmp_path / "t.svg"
    code, out, _ = said(capsys, ATTENTION, "--schedule", "fa3", *SET, *DIMS, "-o", str(trace), "--svg", str(svg))
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("predicted for H200 (sm_90a): D = 128, E = 128, B = 1, G = 2")
    assert lines[1] == "kernel attention_fa3: 8 items of 1 kind, 1 CTA an SM"
    assert "await S[j+1]: products" in out and " FLOP a cycle and SM" in lines[-1]
    assert read_trace(trace)[0].kernel == "attention_fa3"
    ElementTree.fromstring(svg.read_text())


def test_another_trace_beside_it(capsys, tmp_path):
    trace, svg = tmp_path / "t.json", tmp_path / "t.svg"
    said(capsys, ATTENTION, "--schedule", "simple", *SET, *DIMS, "-o", str(trace))
    code, _, _ = said(capsys, ATTENTION, "--schedule", "fa3", *SET, *DIMS, "--beside", str(trace), "--svg", str(svg))
    assert code == 0
    heads = [t for t in _texts(svg.read_text()) if "predicted for H200" in t]
    assert len(heads) == 2 and {h.split(",")[0] for h in heads} == {"attention_fa3", "attention_simple"}


def test_several_kernels(capsys):
    code, out, _ = said(capsys, ROWS, "--set", "T=bf16", "K=64", "--dims", "M=512", "N=512")
    assert code == 0 and out.count("\nkernel ") == 2


def test_a_target_without_a_model(capsys):
    gemm = str(resource("examples", "gemm", "gemm.wg"))
    code, _, err = said(capsys, gemm, "--schedule", "warps", "--target", "sm_86", "--dims", "M=512", "N=512", "K=512")
    assert code == 1 and "WG1012" in err


@pytest.mark.parametrize("text", ["wg 1", "{}", '{"otherData": {}, "traceEvents": 3}', "[]"])
def test_what_is_no_trace(capsys, tmp_path, text):
    path = tmp_path / "no.json"
    path.write_text(text)
    code, _, err = said(capsys, ATTENTION, "--schedule", "fa3", *SET, *DIMS, "--beside", str(path), "--svg", "unused.svg")
    assert code == 1 and "WG1013" in err


def test_dims_that_are_missing(capsys):
    code, _, err = said(capsys, ATTENTION, "--schedule", "fa3", *SET, "--dims", "M=512")
    assert code == 1 and "WG0655" in err


def test_a_size_below_0_is_refused(capsys):
    path = str(resource("examples", "gemm", "gemm.wg"))
    code, _, err = said(capsys, path, "--schedule", "pipelined", "--target", "sm_90a", "--dims", "M=-1", "N=64", "K=64")
    assert code and "WG0620" in err
