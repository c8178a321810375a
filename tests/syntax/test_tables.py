"""The kept LALR tables: used, rebuilt when they are spoilt, and never needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.shipped import ROOT

PARSE = (
    "from wgdsl.foundation.source import Source; from wgdsl.syntax.parser import parse; "
    "print(parse(Source('a.wg', open('examples/gemm/gemm.wg').read())).programs[0].name)"
)


def parsed(folder) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PARSE], cwd=ROOT, env={"WGDSL_CACHE_DIR": str(folder)}, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_kept_and_read_again(tmp_path):
    assert parsed(tmp_path) == "gemm"
    (kept,) = tmp_path.iterdir()
    assert kept.suffix == ".tables"
    assert parsed(tmp_path) == "gemm" and [*tmp_path.iterdir()] == [kept]


@pytest.mark.parametrize("content", [b"", b"no tables", None])
def test_spoilt_tables_are_built_anew(tmp_path, content):
    parsed(tmp_path)
    (kept,) = tmp_path.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2] if content is None else content)
    assert parsed(tmp_path) == "gemm"


def test_a_folder_that_is_a_file(tmp_path):
    path = tmp_path / "taken"
    path.write_text("")
    assert parsed(path) == "gemm"
