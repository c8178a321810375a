"""The prover never says more than is true: its answers against every point of small boxes."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wgdsl.analyse.bounds import undetermined
from wgdsl.analyse.extents import quotient
from wgdsl.analyse.prove import proven
from wgdsl.program.poly import Poly, floordiv, maximum, minimum, mod

G, R, M, N, g, r, i, j = (Poly.of(n) for n in ("G", "R", "M", "N", "g", "r", "i", "j"))
BOX = {"g": G, "r": R, "i": M, "j": M + 2}


def points(box, dims=("G", "R", "M", "N"), top=3):
    """Every value of the dims up to `top` and of the indices in the box."""
    for sizes in product(range(top + 1), repeat=len(dims)):
        values = dict(zip(dims, sizes, strict=True))
        ranges = [range(e.evaluate(values)) for e in box.values()]
        for at in product(*ranges):
            yield {**values, **dict(zip(box, at, strict=True))}


@pytest.mark.parametrize(
    "p",
    [
        i,
        M - 1 - i,
        G * R - 1 - (g * R + r),
        M + 1 - j,
        2 * M + 3 - i - j,
        M - 1 - minimum(i, j),
        maximum(i, j) - i,
        M - 1 - floordiv(i, 2),
        3 - mod(i, 4),
        mod(i, 4),
        i - 2 * floordiv(i, 2),
        M - 1 - floordiv(3 * i + 2, 3),
    ],
    ids=str,
)
def test_true_bounds_are_proven(p):
    assert proven(p, BOX)
    assert all(p.evaluate(v) >= 0 for v in points(BOX))


@pytest.mark.parametrize(
    "p", [i - 1, M - 2 - i, G * R - 2 - (g * R + r), M - 1 - j, N - i, i - j, N - M, -floordiv(i + 1, M)], ids=str
)
def test_false_bounds_are_not_proven(p):
    assert not proven(p, BOX)
    assert any(p.evaluate(v) < 0 for v in points(BOX))


def test_facts_are_used():
    assert not proven(N - 1 - i, BOX)
    assert proven(N - 1 - i, BOX, (N - M,))
    assert proven(N - 1 - i - j, {"i": M, "j": R}, (N - M, N - i - j - 1))


def test_an_empty_box_holds_for_anything():
    assert proven(Poly.of(-1), {"i": Poly()})


atoms = st.sampled_from([g, r, i, j, G, R, M, N, Poly.of(1)])
products = st.lists(atoms, min_size=1, max_size=2).map(lambda ps: ps[0] * ps[-1] if len(ps) > 1 else ps[0])
linear = st.lists(st.tuples(st.integers(-2, 2), products), min_size=1, max_size=4).map(
    lambda ts: sum((p * c for c, p in ts), Poly())
)
operations = st.sampled_from([floordiv, mod, minimum, maximum])
wrapped = st.tuples(operations, linear, linear, st.integers(1, 3), st.integers(-2, 2)).map(
    lambda t: t[0](t[1], t[3] if t[0] in (floordiv, mod) else t[2]) * t[4] + t[2]
)


@given(st.one_of(linear, wrapped))
def test_what_is_proven_is_true(p):
    if proven(p, BOX):
        assert all(p.evaluate(v) >= 0 for v in points(BOX, top=2))


@given(linear, linear, linear)
def test_what_is_proven_from_facts_is_true(p, f, h):
    if proven(p, BOX, (f, h)):
        seen = [v for v in points(BOX, top=2) if f.evaluate(v) >= 0 and h.evaluate(v) >= 0]
        assert all(p.evaluate(v) >= 0 for v in seen)


@pytest.mark.parametrize(
    "access, left",
    [
        ((g * R + r, i), ()),
        ((r * G + g, i), ()),
        ((i, g + r), ("g", "r")),
        ((i + g, g, r), ()),
        ((i + g, r), ("g", "i")),
        ((2 * i, g, 3 * r + 1), ()),
        ((floordiv(i, 4), mod(i, 4), g, r), ()),
        ((floordiv(i, 4), mod(i, 5), g, r), ("i",)),
        ((i * G + g + r * 0, N), ("r",)),
        ((g * (R - 1) + r, i), ("g", "r")),
        ((g * R - r, M - i), ()),
        ((r - g * R, -2 * i), ()),
    ],
    ids=str,
)
def test_left_sides_that_write_once(access, left):
    box = {"g": G, "r": R, "i": M}
    assert undetermined(access, box) == left
    if not left:
        assert writes_once(access, box)


def writes_once(access, box) -> bool:
    seen = set()
    for v in points(box, top=3):
        place = (v["G"], v["R"], v["M"], v["N"], *(p.evaluate(v) for p in access))
        if place in seen:
            return False
        seen.add(place)
    return True


@given(st.tuples(linear, linear))
def test_a_left_side_that_is_accepted_writes_once(access):
    box = {"g": G, "r": R}
    if not undetermined(access, box) and not any({"i", "j"} & p.symbols() for p in access):
        assert writes_once(access, box)


@given(linear, atoms, st.sampled_from([1, 2, -1]))
def test_quotients_multiply_back(p, factor, c):
    q = quotient(p * factor * c, factor * c)
    assert q == p
