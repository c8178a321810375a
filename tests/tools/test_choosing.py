"""`wgdsl choose`: the candidates in their order, which one is taken, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_choice import DEEP, GEMM, PIPELINED, SQUARE, alone, both, measure
from wgdsl.cli import main

__all__ = ["alone"]  # the fixture: a cache of its own, and no shipped tables


@pytest.fixture
def path(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("my.wg").write_text(GEMM)
    return Path("my.wg")


@pytest.fixture
def choose(capsys):
    def call(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as e:
            main(["choose", "my.wg", "--target", "sm_90a", "--set", "T=f16", *words])
        out, err = capsys.readouterr()
        return int(e.value.code or 0), out + err

    return call


def said(dims) -> list[str]:
    return ["--dims", *(f"{n}={v}" for n, v in dims.items())]


def test_a_row_that_fits(path, choose):
    both(path)
    code, text = choose(*said(DEEP))
    assert code == 0
    assert (
        text
        == """\
program gemm on sm_90a: 4 schedules, 2 rows of measured times
  for T = f16, bias = false, act = none, residual = false, layout = nk, M = 128, N = 128, K = 4096
  decided by row 2 of my.sm_90a.json (H)
  split            10.0 us  taken
  pipelined        40.0 us
  turns           202.0 us
  persistent  not measured
"""
    )


def test_how_near_the_row_is(path, choose):
    both(path)
    _, text = choose("--dims", "M=1000,N=1024,K=1024", "--set", "bias=true")
    assert "    the nearest row there is: bias = false for true, M = 1024 for 1000\n" in text
    assert "pipelined       200.0 us  taken" in text


def test_without_lengths_the_whole_decides(path, choose):
    both(path)
    _, text = choose()
    assert "decided by row 1 of my.sm_90a.json (H) and 1 that is equally near\n" in text
    assert "lengths of a call matter: `--dims` gives them" in text and "1.414  taken" in text


def test_lengths_that_do_not_matter_are_not_asked_for(path, choose):
    measure(path, (DEEP, {"turns": 1}), (SQUARE, {"turns": 2}))
    assert "matter" not in choose()[1]


def test_what_is_refused_says_why(path, choose):
    measure(path, (SQUARE, {"gone": 1, "turns": 2}))
    _, text = choose()
    assert "gone              1.0 us  refused: WG0651: no schedule for program `gemm` is called `gone`\n" in text
    assert "turns             2.0 us  taken\n" in text and "split       not measured\n" in text


def test_nobody_has_measured(path, choose):
    _, text = choose()
    assert "4 schedules, no measured times" in text and text.count(" cycles") == 4 and text.count("taken") == 1


def test_a_single_schedule(path, choose):
    Path("near.wg").write_text(PIPELINED)
    assert choose() == (0, "program gemm on sm_90a: 1 schedule, no measured times\n  pipelined  taken: there is no other\n")
    Path("near.wg").write_text(PIPELINED.replace("ring 3", "ring 30"))
    code, text = choose()
    assert code == 1 and "WG0708" in text and "what fits: " in text, "as it is compiled by its name"


def test_mistakes(path, choose):
    both(path)
    for words in (["--dims", "M"], ["--set", "Z=3"], ["--program", "other"], ["--target", "sm_9"]):
        code, text = choose(*words)
        assert code == 1 and "error[WG06" in text
