"""Which row is nearest, and the order of candidates that follows from it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wgdsl.measured.nearest import Ranked, Ranking, Shape, fixed_distance, length_distance
from wgdsl.measured.places import Measured
from wgdsl.measured.table import Row

SHAPE = Shape(types={"T": "bf16"}, options={"causal": False}, fixed={"D": 128}, lengths={"M": 4096})


def row(number=1, *, card="H", shipped=True, T="bf16", causal=False, times=None, **dims) -> Measured:
    times = times or {f"best of {number}".replace(" ", "_"): 1.0}
    body = Row(types={"T": T}, options={"causal": causal}, dims={"D": 128, "M": 4096, **dims}, microseconds=times)
    return Measured(row=body, number=number, path="p.json", card=card, date="", shipped=shipped, text="")


def ranking(rows, shape) -> list[Ranked]:
    return list(Ranking(rows, shape).candidates(shape.lengths))


def nearest(rows, shape) -> tuple[Measured, ...]:
    return tuple(Ranking(rows, shape).nearest)


def best(rows, shape=SHAPE) -> str:
    return ranking(rows, shape)[0].candidate


def test_a_row_of_the_same_shape_is_at_no_distance():
    assert fixed_distance(row(), SHAPE) == length_distance(row(), SHAPE.lengths) == 0


def test_lengths_are_compared_by_their_logarithms():
    rows = [row(1, M=1024), row(2, M=8192)]
    for length, number in ((512, 1), (2048, 1), (3000, 2), (10**6, 2), (0, 1)):
        assert best(rows, Shape(fixed={"D": 128}, lengths={"M": length})) == f"best_of_{number}"


def test_what_is_fixed_counts_before_any_length():
    assert best([row(1, D=64), row(2, M=2**20)]) == "best_of_2"
    assert best([row(1, causal=True), row(2, M=2**20)]) == "best_of_2"
    assert best([row(1, T="f16"), row(2, M=2**20)]) == "best_of_2"


def test_a_dim_that_is_twice_as_large_is_farther_than_an_option_and_that_than_a_type():
    assert best([row(1, D=64), row(2, causal=True)]) == "best_of_2"
    assert best([row(1, causal=True), row(2, T="f16")]) == "best_of_2"
    assert best([row(1, T="f32"), row(2, T="f16")]) == "best_of_2", "a type of the same size is nearer"


def test_options_and_dims_that_only_one_side_has_are_no_obstacle():
    shape = Shape(types={"T": "bf16"}, options={"causal": False, "lse": True}, fixed={"D": 128, "E": 128})
    assert best([row(1, causal=True), row(2)], shape) == "best_of_2"
    assert best([row(1), row(2, E=128)], shape) == "best_of_2", "a row that says it is nearer"
    assert best([row(1)], Shape()) == "best_of_1"


def test_of_equal_rows_those_beside_the_program_come_first_then_those_of_the_card():
    assert best([row(1), row(2, shipped=False)]) == "best_of_2"
    shape = Shape(fixed={"D": 128}, card="H")
    assert best([row(1, card="G"), row(2, card="H")], shape) == "best_of_2"
    assert best([row(1, card="G", shipped=False), row(2, card="H")], shape) == "best_of_1"
    assert best([row(1, M=4096, card="G"), row(2, M=8192, card="H")], SHAPE) == "best_of_1", "distance before both"


def test_a_tie_is_decided_by_ratios_and_not_by_times():
    """The long row would outvote the short one in a sum of times."""
    short = row(1, M=2048, times={"a": 10, "b": 30})
    long = row(2, M=8192, times={"a": 200, "b": 100})
    found = ranking([short, long], SHAPE)
    assert [r.candidate for r in found] == ["a", "b"] and [r.microseconds for r in found] == [None, None]
    assert [round(r.ratio, 3) for r in found] == [1.414, 1.732] and found[0].rows == (short, long)


def test_a_candidate_that_a_tied_row_has_not_timed_counts_as_its_slowest():
    short = row(1, M=2048, times={"a": 10, "b": 11, "d": 20})
    long = row(2, M=8192, times={"c": 100, "b": 110, "a": 400})
    assert [r.candidate for r in ranking([short, long], SHAPE)] == ["b", "c", "a", "d"]


def test_candidates_of_farther_rows_follow():
    rows = [row(1, M=8192, times={"a": 1, "b": 2}), row(2, times={"b": 3, "c": 4}), row(3, D=64, times={"d": 1, "c": 2})]
    found = ranking(rows, SHAPE)
    assert [(r.candidate, r.microseconds) for r in found] == [("b", 3), ("c", 4), ("a", 1), ("d", 1)]


def test_equal_times_are_ordered_by_name():
    assert [r.candidate for r in ranking([row(times={"b": 1, "a": 1})], SHAPE)] == ["a", "b"]


def test_the_rows_that_lengths_choose_from():
    rows = [row(1, M=512), row(2, M=8192), row(3, causal=True), row(4, D=64)]
    assert [m.number for m in nearest(rows, SHAPE)] == [1, 2]
    assert [m.number for m in nearest(rows, Shape(types={"T": "bf16"}, options={"causal": True}, fixed={"D": 96}))] == [3]
    assert nearest([], SHAPE) == ()


sizes = st.integers(0, 2**31)


@given(st.lists(st.tuples(sizes, sizes, st.booleans()), min_size=1, max_size=6), sizes, sizes, st.randoms())
def test_the_order_of_rows_does_not_matter(parts, D, M, random):
    rows = [row(n, D=d, M=m, causal=c, times={"a": 1 + n, "b": 5}) for n, (d, m, c) in enumerate(parts)]
    shape = Shape(types={"T": "bf16"}, options={"causal": True}, fixed={"D": D}, lengths={"M": M})
    found = [r.candidate for r in ranking(rows, shape)]
    random.shuffle(rows)
    assert [r.candidate for r in ranking(rows, shape)] == found and sorted(found) == ["a", "b"]
    assert {m.number for m in ranking(rows, shape)[0].rows} <= {m.number for m in nearest(rows, shape)}
