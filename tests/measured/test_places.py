"""Which tables count for a program: those beside its file, the shipped ones of its target or family, and no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.measured.test_table import LONG, ROW, TABLE
from wgdsl.diagnostics.model import WgError
from wgdsl.foundation.resources import table_files
from wgdsl.measured import places
from wgdsl.measured.places import files_beside, rows_of
from wgdsl.measured.table import read_table, write_table
from wgdsl.targets.choice import TARGETS


@pytest.fixture(autouse=True)
def shipped(tmp_path, monkeypatch) -> Path:
    """A folder in place of the shipped one."""
    folder = tmp_path / "shipped"
    folder.mkdir()
    monkeypatch.setattr(places, "table_files", lambda: sorted(folder.glob("*.json")))
    return folder


@pytest.fixture
def own(tmp_path) -> Path:
    (tmp_path / "own").mkdir()
    return tmp_path / "own" / "my.wg"


def found(path, target="sm_90a", program="p", *, shipped=True) -> list[tuple[str, bool, int]]:
    return [(Path(m.path).name, m.shipped, m.number) for m in rows_of(program, target, path, shipped=shipped)]


def test_both_places(own, shipped):
    write_table(own.with_name("my.sm_90a.json"), replace(TABLE, rows=(LONG,)))
    write_table(shipped / "p.sm_90a.json", TABLE)
    assert found(own) == [("my.sm_90a.json", False, 1), ("p.sm_90a.json", True, 1), ("p.sm_90a.json", True, 2)]
    assert found(own, shipped=False) == [("my.sm_90a.json", False, 1)]
    assert found(None) == [("p.sm_90a.json", True, 1), ("p.sm_90a.json", True, 2)]


def test_names_beside_a_file(own):
    names = [
        "my.sm_90a.json",
        "my.sm_90a.h100.json",
        "my.p.sm_90a.json",
        "my.sm_80.json",
        "my.json",
        "other.sm_90a.json",
        "my2.sm_90a.json",
    ]
    for name in names:
        write_table(own.with_name(name), TABLE)
    assert sorted(p.name for p in files_beside(own)) == [
        "my.p.sm_90a.json",
        "my.sm_80.json",
        "my.sm_90a.h100.json",
        "my.sm_90a.json",
    ]
    assert {name for name, _, _ in found(own)} == {"my.p.sm_90a.json", "my.sm_90a.h100.json", "my.sm_90a.json"}


def test_a_table_says_itself_what_it_is_of(own):
    write_table(own.with_name("my.sm_90a.json"), replace(TABLE, program="q"))
    assert found(own) == [] and len(found(own, program="q")) == 2
    write_table(own.with_name("my.sm_90a.json"), replace(TABLE, target="sm_80"))
    assert found(own) == []


def test_a_target_without_a_table_uses_those_of_its_family(shipped):
    write_table(shipped / "p.sm_80.json", replace(TABLE, target="sm_80"))
    assert {name for name, _, _ in found(None, "sm_86")} == {"p.sm_80.json"} == {n for n, _, _ in found(None, "sm_120")}
    assert found(None) == [], "another family is no help"
    write_table(shipped / "p.sm_86.json", replace(TABLE, target="sm_86"))
    assert {name for name, _, _ in found(None, "sm_86")} == {"p.sm_86.json"} == {n for n, _, _ in found(None, "sm_89")}
    assert {name for name, _, _ in found(None, "sm_80")} == {"p.sm_80.json"}


@pytest.mark.parametrize("text, why", [("{", "JSON"), ('{"program": "p"}', "`target`")])
def test_a_table_that_is_none_is_never_passed_over(own, shipped, text, why):
    own.with_name("my.sm_90a.json").write_text(text)
    with pytest.raises(WgError, match=f"WG0660.*{why}"):
        found(own)
    own.with_name("my.sm_90a.json").unlink()
    (shipped / "p.sm_90a.json").write_text(text)
    with pytest.raises(WgError, match=f"WG0660.*{why}"):
        found(own)
    assert found(own, program="other") == [], "it concerns nobody else"


def test_where_a_row_stands(own):
    write_table(own.with_name("my.sm_90a.json"), replace(TABLE, rows=(ROW,)))
    (m,) = rows_of("p", "sm_90a", own, shipped=False)
    assert m.place == f"row 1 of {own.with_name('my.sm_90a.json')}" and m.made == "H, 2026-11-30"


def test_shipped_tables_are_named_for_what_they_hold():
    for path in table_files():
        table = read_table(path)
        assert path.name.startswith(f"{table.program}.{table.target}.") and table.target in TARGETS
