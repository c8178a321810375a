"""User names as C++ identifiers. `tests/emit/test_scope.py` keeps those of one kernel apart."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wgdsl.foundation.names import RESERVED, identifier


@pytest.mark.parametrize("name", ["Q", "Ks", "acc", "tid", "smem", "x_1", "scale", "O", "expf_", "inf", "w_x"])
def test_a_name_that_c_allows_is_unchanged(name):
    assert identifier(name) == name


@pytest.mark.parametrize(
    "name, out",
    [
        ("double", "double_"),
        ("float4", "float4_"),
        ("exp", "exp_"),
        ("NULL", "NULL_"),
        ("P.max", "P_max"),
        ("Qs.0", "Qs_0"),
        ("__x", "x"),
        ("a__b", "a_b"),
        ("_", "name"),
        ("1a", "n_1a"),
        ("µ", "xb5_"),
    ],
)
def test_mangled(name, out):
    assert identifier(name) == out


@given(st.text(min_size=1) | st.sampled_from(sorted(RESERVED)))
def test_always_an_ascii_identifier_that_means_nothing_else(name):
    out = identifier(name)
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", out) and "__" not in out and len(out) < 120 and out not in RESERVED
