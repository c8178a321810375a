"""The page of errors says what the catalogue says."""

from __future__ import annotations

from tests.docs import errors


def test_the_page_is_made_of_the_catalogue():
    assert errors.PAGE.read_text("utf-8") == errors.page(), "run `python -m tests.docs.errors`"
