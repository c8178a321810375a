"""From a run to lines, a file, a picture; and back from the file."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest

from tests.bench.arenas import CASES, Fake, plan
from wgdsl.bench.bench import held, show, told
from wgdsl.bench.match import hold
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
        "a fake: date 2026-11-30, clock and power no libnvidia-ml.so.1",
        "  without FA2: it is absent",
        *(
            f"attention  {case:24}  wgdsl 10 TFLOP/s  FA3 1.100 [0.990 1.210]  cuDNN 0.950 [0.950 0.950]  1702 MHz  three"
            for case in CASES
        ),
        f"attention: wgdsl to FA3: 1.100, least 1.100 at {CASES[0]} (3 points)",
        f"attention: wgdsl to cuDNN: 0.950, least 0.950 at {CASES[0]} (3 points)",
        f"attention: wgdsl to the best: 0.950, least 0.950 at {CASES[0]} (3 points)",
    ]
    row = json.loads(path.read_text().splitlines()[1])
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


def test_a_picture_has_every_case_and_peer(run, tmp_path):
    pytest.importorskip("matplotlib")
    _, path, _ = run(Fake(FAKE))
    picture = tmp_path / "pictures" / "bench.svg"
    show(path, picture, lambda line: None)
    ElementTree.parse(picture)
    text = picture.read_text()
    assert all(f"<!-- {case} -->" in text for case in CASES)
    assert all(f"<!-- wgdsl / {peer} -->" in text for peer in ("FA3", "cuDNN"))
