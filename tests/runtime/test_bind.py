"""Dims from shapes: what follows from what, and what is said when shapes disagree."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.graphs import GROUPED, SHAPES
from wgdsl.diagnostics.model import WgError
from wgdsl.runtime.bind import Binder, call_dims, signature


def bound(shapes=SHAPES, dims=None, scalars=None, graph=GROUPED):
    return Binder(graph).bind(shapes, {"W": 1} if dims is None else dims, scalars or {})


def problem(*args, **named):
    with pytest.raises(WgError) as e:
        bound(*args, **named)
    (only,) = e.value.problems
    return only


@given(b=st.integers(0, 5), g=st.integers(1, 9), r=st.integers(1, 9), m=st.integers(0, 900), n=st.integers(0, 900))
def test_head_ratio_follows(b, g, r, m, n):
    dims = bound({"Q": (b, m, g * r, 16), "K": (b, n, g, 16)}).dims
    assert dims == {"B": b, "G": g, "R": r, "M": m, "N": n, "H": g * r, "D": 16, "W": 1}


@pytest.mark.parametrize("heads, groups", [(33, 2), (3, 2), (2, 4)])
def test_ratio_with_a_remainder_is_refused_with_both_counts(heads, groups):
    found = problem({"Q": (2, 7, heads, 16), "K": (2, 9, groups, 16)})
    assert found.code == "WG0605"
    assert f"H = G * R = {heads} (Q axis 2)" in found.title() and f"G = {groups} (K axis 2)" in found.title()


@pytest.mark.parametrize("heads, groups", [(8, 2), (9, 3), (6, 1)])
def test_whole_ratios(heads, groups):
    assert bound({"Q": (2, 7, heads, 16), "K": (2, 9, groups, 16)}).dims["R"] == heads // groups


def test_no_heads_leave_the_ratio_open():
    assert bound({"Q": (2, 7, 0, 16), "K": (2, 9, 0, 16)}).dims["H"] == 0
    assert problem({"Q": (2, 7, 4, 16), "K": (2, 9, 0, 16)}).code == "WG0604"


def test_disagreement_names_both_places():
    assert problem({**SHAPES, "K": (3, 90, 2, 16)}).title() == "B is 3 from K axis 0 but 2 from Q axis 0"
    assert problem({**SHAPES, "L": (2, 8, 76)}).title() == "M is 76 from L axis 2 but 77 from Q axis 1"
    assert problem({**SHAPES, "O": (2, 77, 9, 16)}).code == "WG0605"


def test_fixed_extent():
    found = problem({**SHAPES, "Q": (2, 77, 8, 32)})
    assert found.code == "WG0624" and "Q axis 3 has 32 elements, but the kernel was compiled for 16" in found.title()
    assert "{'D': 32}" in found.help()


def test_rank():
    found = problem({**SHAPES, "Q": (2, 77, 16)})
    assert found.code == "WG0601" and "expected [B, M, H, 16]" in found.notes()


def test_call_parameters():
    assert call_dims(GROUPED) == ("W",)
    assert problem(dims={}).title() == "nothing in the call determines W"
    assert problem(dims={"W": 1, "M": 5}).title() == "M is 77 from Q axis 1 but 5 from the call"
    assert problem(dims={"W": 1, "D": 8}).code == "WG0606"


def test_a_dim_of_2_to_31_is_refused():
    assert problem({"Q": (2, 2**31, 8, 16), "K": (2, 9, 2, 16)}).code == "WG0620"


def test_defaults_are_of_this_call():
    scalars = bound().scalars
    assert scalars == {"scale": 0.25, "window": 90}


def test_require():
    found = problem(scalars={"scale": -1.0})
    assert found.code == "WG0615" and found.notes() == ("scale is -1.0",)
    assert problem(scalars={"scale": float("nan")}).code == "WG0615"


def test_missing_scalar():
    graph = replace(GROUPED, scalars=(replace(GROUPED.scalars[0], default=None),))
    assert problem(graph=graph).title() == "argument `scale` is missing"


def test_signature():
    assert signature(GROUPED) == "kernel(Q, K, scale=..., window=..., W=..., out={'O': ..., 'L': ...})"
