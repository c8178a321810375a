"""Integer polynomials as C++: the same value as the polynomial, also where C++ would truncate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.emit.c_integers import evaluate
from wgdsl.diagnostics.model import InternalError
from wgdsl.emit.integers import Integers
from wgdsl.program.poly import Poly, ceildiv, floordiv, maximum, minimum, mod

NAMES = "abcd"


def integers(natural: str = "") -> Integers:
    return Integers({n: n for n in NAMES}, frozenset(natural), lambda name: f"ptx::{name}")


def polys() -> st.SearchStrategy[Poly]:
    leaf = st.one_of(st.integers(-200, 200).map(Poly.of), st.sampled_from(NAMES).map(Poly.of))
    divisors = st.sampled_from([2, 3, 8, 80, 128])

    def grow(inner: st.SearchStrategy[Poly]) -> st.SearchStrategy[Poly]:
        pairs = st.tuples(inner, inner)
        return st.one_of(
            pairs.map(lambda p: p[0] + p[1]),
            pairs.map(lambda p: p[0] - p[1]),
            pairs.map(lambda p: p[0] * p[1]),
            pairs.map(lambda p: minimum(*p)),
            pairs.map(lambda p: maximum(*p)),
            st.tuples(inner, divisors).map(lambda p: floordiv(*p)),
            st.tuples(inner, divisors).map(lambda p: mod(*p)),
        )

    return st.recursive(leaf, grow, max_leaves=6)


@given(polys(), st.lists(st.integers(-300, 300), min_size=4, max_size=4))
def test_value_for_any_sign(poly: Poly, at: list[int]):
    values = dict(zip(NAMES, at, strict=True))
    assert evaluate(integers().text(poly), **values) == poly.evaluate(values)


@given(polys(), st.lists(st.integers(0, 300), min_size=4, max_size=4))
def test_value_where_the_names_are_natural(poly: Poly, at: list[int]):
    values = dict(zip(NAMES, at, strict=True))
    ints = integers(NAMES)
    assert evaluate(ints.text(poly), **values) == poly.evaluate(values)
    assert not ints.is_natural(poly) or poly.evaluate(values) >= 0


@pytest.mark.parametrize(
    ("poly", "natural", "text"),
    [
        (ceildiv("a", 128), "a", "(a + 127) >> 7"),
        (ceildiv("a", 80), "a", "(a + 79) / 80"),
        (floordiv(Poly.of("a") - 1, 80), "a", "ptx::floor_div(a - 1, 80)"),
        (floordiv(Poly.of("a"), Poly.of("b")), "ab", "a / b"),
        (mod(Poly.of("a") - 1, 8), "a", "(a - 1) & 7"),
        (minimum("a", Poly.of("b") + 3) * 2, "", "min(a, b + 3) * 2"),
        (Poly.of("a") - Poly.of("b") - 1, "", "a - b - 1"),
        (-Poly.of("a"), "", "-a"),
    ],
)
def test_text(poly: Poly, natural: str, text: str):
    assert integers(natural).text(poly) == text


def test_a_name_that_nothing_binds():
    with pytest.raises(InternalError, match="nothing binds the integer 'x'"):
        integers().text(Poly.of("x"))
