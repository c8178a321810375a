"""The catalogue gathers itself, and refuses two errors of one code."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass

import pytest

from wgdsl.diagnostics import analyse, catalogue
from wgdsl.diagnostics.catalogue import all_problems, help_text
from wgdsl.diagnostics.hints import nearest
from wgdsl.diagnostics.model import InternalError, Problem


def test_every_class_is_there_under_its_code():
    known = all_problems()
    assert list(known) == sorted(known) and {"WG0101", "WG0201"} <= set(known)
    assert all(re.fullmatch(r"WG\d{4}", code) and cls.code == code for code, cls in known.items())


@pytest.mark.parametrize("problem", all_problems().values(), ids=lambda c: c.code)
def test_every_class_is_frozen_data_with_a_documentation(problem):
    assert is_dataclass(problem) and problem.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert problem.doc.strip(), f"{problem.__name__} has nothing to say in `wgdsl help {problem.code}`"
    assert problem.title is not Problem.title
    assert all(f.kw_only for f in fields(problem))


def test_a_code_used_twice_is_found(monkeypatch):
    twin = type("Twin", (Problem,), {"code": "WG0101", "__module__": analyse.__name__})
    monkeypatch.setattr(analyse, "Twin", twin, raising=False)
    all_problems.cache_clear()
    try:
        with pytest.raises(InternalError, match=r"WG0101 is both wgdsl.*Twin and wgdsl.*Unreadable"):
            all_problems()
    finally:
        all_problems.cache_clear()


def test_help_of_a_code():
    text = help_text("wg0110")
    assert text.startswith("WG0110: unclosed\n\n") and "fails:" in text and text.endswith("\n")
    assert help_text("WG0103").startswith("WG0103: bad character\n")


def test_help_of_an_unknown_code_names_near_ones():
    with pytest.raises(LookupError, match=r"WG9999.*WG"):
        help_text("WG9999")


@pytest.mark.parametrize(
    "word, meant", [("fil", "fill"), ("desc", "descending"), ("awiat", "await"), ("x", ""), ("", ""), ("zebra", "")]
)
def test_nearest(word, meant):
    assert nearest(word, ("fill", "await", "descending", "finish")) == meant


def test_modules_come_from_the_package():
    assert catalogue.problems_of(catalogue) == []
