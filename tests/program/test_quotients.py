"""quotients: the same value, with what divides evenly taken out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wgdsl.program.poly import Poly, floordiv, maximum, minimum, mod
from wgdsl.program.quotients import quotient, settled

Q, M = Poly.of("i"), Poly.of("M")


def test_the_least_of_multiples():
    assert str(settled(floordiv(minimum(8 * Q + 128, 8 * M) - 1, 8))) == "min(i + 16, M) - 1"
    assert str(quotient(minimum(3 * Q, M), 3)) == "(min(3 * i, M)) / (3)"


def test_a_common_factor():
    assert quotient(8 * M + 127, 128) == floordiv(M + 15, 16)
    assert quotient(6 * Q + 9 * M + 5, 3) == 2 * Q + 3 * M + 1


leaves = st.integers(-200, 200).map(Poly.of) | st.sampled_from((Q, M, 8 * Q, 8 * M, 3 * Q + 128))
divisors = st.sampled_from((1, 2, 3, 8, 64, 128))


def branches(inner: st.SearchStrategy[Poly]) -> st.SearchStrategy[Poly]:
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, c: c * a, inner, st.integers(-8, 8)),
        st.builds(minimum, inner, inner),
        st.builds(maximum, inner, inner),
        st.builds(floordiv, inner, divisors),
        st.builds(mod, inner, divisors),
    )


@given(st.recursive(leaves, branches, max_leaves=8), st.integers(-300, 300), st.integers(-300, 300))
def test_it_has_the_same_value(p: Poly, i: int, m: int):
    at = {"i": i, "M": m}
    assert settled(p).evaluate(at) == p.evaluate(at)
