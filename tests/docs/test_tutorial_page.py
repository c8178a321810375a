"""The tutorial, worked through: every file, command and output of it."""

from __future__ import annotations

import pytest

from tests.docs.pages import ROOT
from tests.docs.walk import Ran, differs, walk

PAGE = ROOT / "docs" / "tutorial.md"


def test_every_command_prints_what_the_page_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ran = list(walk(PAGE, capsys))
    assert len(ran) > 15
    assert [d for d in map(differs, ran) if d] == []


@pytest.mark.parametrize(
    "shown, same",
    [
        ("a\nb\nc\n", True),
        ("...\nb\n...\n", True),
        ("a\n...\n", True),
        ("...\nc\n", True),
        ("a\n...\nb\nc\n", True),
        ("a\nb\n", False),
        ("...\nb\n", False),
        ("b\n...\n", False),
        ("...\nc\n...\nb\n...\n", False),
        ("", False),
    ],
)
def test_what_is_left_out(shown, same):
    assert (differs(Ran("", "a\n\nb \nc\n", shown)) == "") == same
