"""Dims by a function written out for the program: the same as one equation after another, or none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.graphs import GROUPED, SHAPES
from wgdsl.diagnostics.model import WgError
from wgdsl.program.poly import Poly, compiled, floordiv, maximum, minimum, mod
from wgdsl.runtime.bind import Binder, _Solver

P = Poly.of
NAMES = ("M", "N", "class")
leaves = st.one_of(st.integers(-9, 9).map(P), st.sampled_from(NAMES).map(P))


def grown(smaller):
    pairs, divisors = st.tuples(smaller, smaller), st.integers(1, 7)
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] * p[1]),
        pairs.map(lambda p: minimum(*p)),
        pairs.map(lambda p: maximum(*p)),
        st.tuples(smaller, divisors).map(lambda p: floordiv(*p)),
        st.tuples(smaller, divisors).map(lambda p: mod(*p)),
        smaller.map(lambda p: -p),
    )


@given(st.lists(st.recursive(leaves, grown, max_leaves=8), max_size=4), st.tuples(*[st.integers(-50, 50)] * len(NAMES)))
def test_compiled_polynomials(polys, values):
    at = dict(zip(NAMES, values, strict=True))
    assert compiled(polys)(at) == tuple(p.evaluate(at) for p in polys)


sizes = st.integers(0, 4)


def slowly(binder: Binder, shapes, dims) -> dict[str, int] | None:
    """The dims by one equation after another; None if something is wrong."""
    try:
        solved = _Solver(binder.graph, dims).solve(list(binder._equations(shapes)))
    except WgError:
        return None
    return {**solved, **{name: extent.evaluate(solved) for name, extent in binder.graph.derived.items()}}


@given(
    st.tuples(*[sizes] * 3),
    st.tuples(*[sizes] * 3),
    st.sampled_from([16, 15]),
    st.booleans(),
    st.sampled_from([{"W": 1}, {"W": 1, "R": 2}]),
)
def test_the_same_dims_or_none(q, k, last, swapped, dims):
    binder = Binder(GROUPED)
    shapes = {"Q": (*q, last), "K": (*k, 16)}
    shapes = dict(reversed(shapes.items())) if swapped else shapes
    known = {**GROUPED.fixed, **dims}
    solve = binder._new_solver(tuple(shapes), tuple(dims))
    assert solve is not None
    if solve(tuple(shapes.values()), known):
        assert known == slowly(binder, shapes, dims)
    else:
        assert slowly(binder, shapes, dims) is None or 0 in (*q, *k), "only a factor of 0 is left to the other"


def test_usual_calls_are_solved_at_once(monkeypatch):
    monkeypatch.setattr(_Solver, "solve", lambda *_: pytest.fail("one equation after another"))
    assert Binder(GROUPED).bind(SHAPES, {"W": 1}, {}).dims["R"] == 4


def test_what_cannot_be_solved_in_turn_is_left_to_the_other():
    binder = Binder(GROUPED)
    assert binder._new_solver(("Q",), ("W",)) is None, "G and R are in one equation"
    assert binder._new_solver(("Q", "K"), ()) is None, "W is in none"
    assert binder._new_solver(("Q", "K"), ("W", "D")) is None, "D is fixed"


def test_defaults_follow_the_dims():
    binder = Binder(replace(GROUPED, requires=()))
    windows = [binder.bind({"Q": (2, 7, 8, 16), "K": (2, n, 2, 16)}, {"W": 1}, {}).scalars["window"] for n in (3, 5, 3)]
    assert windows == [3, 5, 3]
