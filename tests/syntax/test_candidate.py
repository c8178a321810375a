"""`three {tile j 96, ring Ks 3}`: what is read, what is printed, and what is refused."""

from __future__ import annotations

import pytest

from wgdsl.diagnostics.model import WgError
from wgdsl.syntax.candidate import Candidate, Picked, candidate, is_candidate


def two() -> Candidate:
    tile, ring = Picked(what="tile", name="j", value=96), Picked(what="ring", name="Ks", value=3)
    return Candidate(schedule="three", values=(tile, ring))


def test_a_candidate_is_printed_as_it_is_read():
    text = "three {tile j 96, ring Ks 3}"
    assert candidate(text) == two() and str(two()) == text
    assert candidate(" three{ tile j 96,ring  Ks 3, } ") == two()


def test_a_name_is_a_candidate_without_values():
    assert candidate("three") == candidate("three {}") == Candidate(schedule="three")
    assert str(candidate("three {}")) == "three"


@pytest.mark.parametrize("value, read", [("true", True), ("3", 3), ("0.5", 0.5), ("-1", -1), ("nk", "nk"), ("1e-3", 1e-3)])
def test_options_have_values_of_any_kind(value, read):
    (v,) = candidate(f"s {{option x {value}}}").values
    assert v.value == read and type(v.value) is type(read)
    assert candidate(str(Candidate(schedule="s", values=(v,)))).values == (v,)


@pytest.mark.parametrize(
    "text, why",
    [
        ("three {tile j = 96}", "no value of a `tune` entry"),
        ("three {tiles j 96}", "no value of a `tune` entry"),
        ("three {tile j}", "no value of a `tune` entry"),
        ("three {tile j 9.5}", "no whole number"),
        ("three {ring Ks true}", "no whole number"),
        ("three {tile j 96, ring Ks 3, tile j 80}", "`tile j` has two values"),
        ("three {tile j 96", "isn't a name with values"),
        ("", "isn't a name with values"),
    ],
)
def test_what_is_refused(text, why):
    with pytest.raises(WgError, match="WG0665") as e:
        candidate(text)
    assert why in e.value.problems[0].title()


@pytest.mark.parametrize(
    "given, yes",
    [
        ("three {tile j 96}", True),
        ("a.wg {ring Ks 2}", True),
        ("three {}", True),
        ("three", False),
        ("a.wg", False),
        ("wg 1\nschedule s for p on sm_90a { }", False),
        ("schedule s for p on sm_90a { }", False),
        (None, False),
    ],
)
def test_a_text_of_a_schedule_is_none(given, yes):
    assert is_candidate(given) is yes
