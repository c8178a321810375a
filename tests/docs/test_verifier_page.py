"""The refusal on the page of the verifier is what the compiler says, and its table names every rule."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT
from wgdsl.cli import main
from wgdsl.diagnostics.catalogue import all_problems

PAGE = (ROOT / "docs" / "verifier.md").read_text("utf-8")
WAIT = "wait As.full[s] parity p"


def test_the_refusal_is_a_real_one(tmp_path, monkeypatch, capsys):
    (shown,) = re.findall(r"^```\n\$ wgdsl compile mine\.wg\n((?:.*\n)*?)```$", PAGE, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["explain", str(ROOT / "examples" / "gemm" / "gemm.wg"), "--schedule", "pipelined", "-o", "mine.wg"])
    lines = (tmp_path / "mine.wg").read_text("utf-8").splitlines(keepends=True)
    loop = max(k for k, line in enumerate(lines) if line.lstrip().startswith(WAIT))
    (tmp_path / "mine.wg").write_text("".join(lines[:loop] + lines[loop + 1 :]), "utf-8")
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["compile", "mine.wg"])
    seen = capsys.readouterr()
    assert (seen.out + seen.err).strip() == shown.strip()


def test_the_table_names_every_rule():
    named = set(re.findall(r"WG07\d\d", PAGE[: PAGE.index("## A refusal")]))
    assert named >= {code for code in all_problems() if "WG0701" <= code < "WG08"}
