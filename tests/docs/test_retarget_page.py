"""The page on retargeting shows what the command prints and writes, and what it shows is right."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import wgdsl
from tests.docs.pages import ROOT, blocks
from wgdsl.cli import main
from wgdsl.diagnostics import retarget
from wgdsl.diagnostics.catalogue import problems_of
from wgdsl.tools.running import run

PAGE = ROOT / "docs" / "retarget.md"


def test_the_command_and_its_file(tmp_path, monkeypatch, capsys):
    (shown,) = (text for words, text in blocks(PAGE, "") if not words and text.startswith("$ "))
    ((_, text),) = (b for b in blocks(PAGE) if b[0] == "retargeted")
    command, report = shown.split("\n", 1)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit:
        main(shlex.split(command)[2:])
    assert not exit.value.code
    assert capsys.readouterr().out == report
    assert Path("two_80.wg").read_text("utf-8") == text


def test_the_schedule_computes_what_the_program_says():
    ((_, text),) = (b for b in blocks(PAGE) if b[0] == "retargeted")
    attention = ROOT / "examples" / "attention" / "attention.wg"
    kernel = wgdsl.compile(attention, schedule=text, target="sm_80", dims={"D": 128, "E": 128}, build=False)
    assert run(kernel, {"B": 1, "G": 1, "R": 2, "M": 130, "N": 75}, device="sim", check=True).right


def test_every_refusal_is_on_the_page():
    page = PAGE.read_text("utf-8")
    assert all(problem.code in page for problem in problems_of(retarget))
