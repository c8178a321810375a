"""From a run to lines, a file, a picture; and back from the file."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest

from tests.bench.arenas import CASES, Fake, plan
from wgdsl import __version__
from wgdsl.bench.bench import held, show, told
from wgdsl.bench.match import hold
from wgdsl.bench.plot import by_suite, plot
from wgdsl.bench.ratios import with_ratios
from wgdsl.bench.results import Results, Sink, read_results
from wgdsl.diagnostics.model import WgError
from wgdsl.tools.supervised import Journal, read

FAKE = {"FA3": 110.0, "cuDNN": 95.0, "three": 100.0, "two": 125.0}


@pytest.fixture
def run(tmp_path):
    """A run: its lines, and its file."""

    def go(fake: Fake, **more):
        def follow(given, until):
            hold(given, Journal(tmp_path / "journal"), fake)
            yield from read(tmp_path / "journal")

        lines: list[str] = []
        sink = Sink(tmp_path / "out" / "bench.jsonl")
        held(plan(**more), sink, 0.0, lines.append, follow)
        code = told(sink.results, None, lines.append)
        return lines, sink.path, code

    return go


def test_a_line_for_each_case_and_a_summary(run):
    lines, path, code = run(Fake(FAKE, drift={"FA3": (1, 1, 1, 1.1, 0.9)}, absent=["FA2"]), peers=("FA3", "cuDNN", "FA2"))
    assert code == 0
    assert lines == [
        f"a fake: wgdsl {__version__}, date 2026-11-30, clock and power no libnvidia-ml.so.1",
        "  without FA2: it is absent",
        *(
            f"attention  {case:24}  wgdsl 10 TFLOP/s  FA3 1.100 [0.990 1.210]  cuDNN 0.950 [0.950 0.950]  1702 MHz  three"
            for case in CASES
        ),
        f"attention: wgdsl to FA3: 1.100, least 1.100 at {CASES[0]} (3 points)",
        f"attention: wgdsl to cuDNN: 0.950, least 0.950 at {CASES[0]} (3 points)",
        f"attention: wgdsl to the best: 0.950, least 0.950 at {CASES[0]} (3 points)",
    ]
    first, row, *_, last = map(json.loads, path.read_text().splitlines())
    assert first["about"]["wgdsl"] == __version__ and [*last] == ["summary"]
    assert [(s["peer"], s["points"]) for s in last["summary"]] == [("FA3", 3), ("cuDNN", 3), ("the best", 3)]
    assert (row["case"], row["ratio_best"], row["best"]) == (CASES[0], pytest.approx(0.95), "cuDNN")
    assert row["contestants"]["wgdsl"]["schedule"] == "three"


def test_a_point_under_the_bar_is_named(run):
    lines, _, _ = run(Fake({**FAKE, "cuDNN": 90.0}), cases=CASES[:1])
    assert lines[-1] == f"  below 0.93: {CASES[0]} 0.900"


def test_several_schedules_have_a_line_each(run):
    lines, _, _ = run(Fake(FAKE), cases=CASES[:1], schedules=("three", "two"))
    assert [line.split("  ")[-1] for line in lines if "TFLOP/s" in line] == ["three", "two"]
    assert f"attention: wgdsl two to FA3: 0.880, least 0.880 at {CASES[0]} (1 point)" in lines


def test_who_fails_is_said_at_once_and_in_the_end(run):
    lines, _, _ = run(Fake(FAKE, fails=["three"]), cases=CASES[:1])
    fault = f"left out: attention: {CASES[0]}: wgdsl: RuntimeError: launch failed"
    assert lines[1] == lines[-1] == fault
    assert lines[2] == f"attention  {CASES[0]:24}  no kernel of this project is left"


def test_a_file_says_the_same_again(run):
    lines, path, _ = run(Fake(FAKE, wrong=["cuDNN"]), cases=CASES[:2])
    again: list[str] = []
    assert show(path, None, again.append) == 0
    said = [line for n, line in enumerate(lines) if not (line.startswith("left out") and n < len(lines) - 2)]
    assert again == said


def test_what_was_broken_off_can_be_read(run, tmp_path):
    _, path, _ = run(Fake(FAKE))
    part = tmp_path / "part.jsonl"
    part.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    assert [r["case"] for r in read_results(part).rows] == [CASES[0]]


@pytest.mark.parametrize(
    "text, why",
    [
        ("", "no line says"),
        ("{", "line 1 isn't JSON"),
        ('{"about": {"card": "x"}}\n{"a": 1}', "line 2 is no case"),
        ("[]", "line 1 is no case"),
    ],
    ids=["empty", "not JSON", "another object", "a list"],
)
def test_a_file_of_something_else_is_refused(tmp_path, text, why):
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(WgError, match="WG1017") as caught:
        read_results(path)
    assert why in caught.value.problems[0].title()


def test_nothing_timed_is_a_failure():
    assert told(Results(), None, lambda line: None) == 1


def test_masks_and_head_dims_have_means_of_their_own(run):
    lines, path, _ = run(Fake(FAKE), cases=("d64 bf16 full 512", "d64 bf16 causal 512", "d128 bf16 full 512"))
    assert lines[-2:] == [
        "attention: wgdsl to the best: 0.950, least 0.950 at d64 bf16 full 512 (3 points)",
        "  d64 full 0.950, d64 causal 0.950, d128 full 0.950",
    ]
    summary = json.loads(path.read_text().splitlines()[-1])["summary"]
    assert [s["facts"] for s in summary if s["peer"] == "FA3"] == [
        {}, {"head dim": 64, "mask": "full"}, {"head dim": 64, "mask": "causal"}, {"head dim": 128, "mask": "full"}
    ]  # fmt: skip


def test_a_picture_has_every_length_and_contestant(run, tmp_path):
    pytest.importorskip("matplotlib")
    _, path, _ = run(Fake(FAKE))
    picture, again = tmp_path / "pictures" / "bench.svg", tmp_path / "again.svg"
    for each in (picture, again):
        show(path, each, lambda line: None)
    ElementTree.parse(picture)
    text = picture.read_text()
    assert all(f"<!-- {word} -->" in text for word in ("512", "1024", "2048", "wgdsl", "FA3", "cuDNN"))
    assert "<!-- head dim 64, bf16, full -->" in text and "<dc:date>" not in text
    assert again.read_bytes() == picture.read_bytes()


def test_a_suite_without_lengths_has_bars_of_ratios(tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "bench.svg"
    plot(Results(about={"card": "a fake"}, rows=[gemm(size) for size in ("4096", "8192")]), picture)
    text = picture.read_text()
    assert all(f"<!-- {word} -->" in text for word in ("bf16 4096", "bf16 8192", "wgdsl / cuBLAS", "gemm"))


def gemm(size: str):
    who = {n: {"microseconds": us, "rounds": [us]} for n, us in (("cuBLAS", 90.0), ("wgdsl", 100.0))}
    return with_ratios({"suite": "gemm", "case": f"bf16 {size}", "facts": {"dtype": "bf16"}, "work": 1e9, "contestants": who})


def test_a_panel_has_what_points_share_but_for_their_length():
    points = [(64, "full", 512), (64, "causal", 512), (64, "full", 1024)]
    rows = [
        {"suite": "attention", "contestants": {"FA3": {}}, "facts": {"head dim": d, "mask": m, "length": n}}
        for d, m, n in points
    ]
    found = by_suite([*rows, {**rows[0], "contestants": {}}, {"suite": "gemm", "contestants": {"FA3": {}}, "facts": {}}])
    assert {suite: {name: len(of) for name, of in panels.items()} for suite, panels in found.items()} == {
        "attention": {"head dim 64, full": 2, "head dim 64, causal": 1}, "gemm": {"": 1}
    }  # fmt: skip


def test_nothing_timed_makes_a_picture_too(tmp_path):
    pytest.importorskip("matplotlib")
    plot(Results(about={"card": "a fake"}), tmp_path / "bench.svg")
    ElementTree.parse(tmp_path / "bench.svg")
