"""A user's golden, proven on the GPU by the command line."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.shipped import ROOT
from wgdsl.tools import hardware

pytestmark = pytest.mark.gpu


def test_a_golden_is_proven(card, tmp_path):
    texts = re.findall(r"```wg\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "linear.wg").write_text(next(t for t in texts if "program linear" in t), "utf-8")

    def wgdsl(*words: str) -> str:
        done = subprocess.run([sys.executable, "-m", "wgdsl", "golden", *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "not yet proven" in wgdsl("update", "linear.wg")
    assert wgdsl("prove", "linear.wg").count("right") == 4
    assert "1 proven" in wgdsl("status")
    (row,) = hardware.load(tmp_path / "golden" / "hardware.json").values()
    assert row.card == card.name and row.runs == 4 and row.max_error > 0
