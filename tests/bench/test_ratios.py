"""Ratios are medians over the rounds, of times of the same round."""

from __future__ import annotations

import pytest

from wgdsl.bench.ratios import BEST, Ratio, grouped, ratio, summaries, summary_line, with_ratios


def row(case="one", suite="attention", **rounds):
    names = {"wgdsl_two": "wgdsl two"}
    who = {
        names.get(n, n): {"microseconds": sorted(r)[len(r) // 2], "rounds": r, "mhz": None, "watts": None, "max_error": 0.0}
        for n, r in rounds.items()
    }
    return {"suite": suite, "case": case, "key": f"{suite}: {case}", "facts": {}, "work": 1e9, "contestants": who}


def test_the_median_of_the_rounds_isnt_the_ratio_of_the_medians():
    mine, theirs = [1.0, 2.0, 4.0], [4.0, 2.0, 4.4]
    assert ratio(mine, theirs) == Ratio(ratio=pytest.approx(1.1), least=1.0, most=4.0)


def test_the_best_peer_is_who_comes_off_best():
    found = with_ratios(row(FA3=[110.0, 130.0], cuDNN=[105.0, 115.0], wgdsl=[100.0, 100.0]))
    assert found["ratios"]["wgdsl"]["FA3"] == {"ratio": pytest.approx(1.2), "least": 1.1, "most": 1.3}
    assert (found["ratio_best"], found["best"]) == (pytest.approx(1.1), "cuDNN")
    assert found["contestants"]["wgdsl"]["tflops"] == pytest.approx(10.0)
    assert found["contestants"]["FA3"]["spread"] == pytest.approx(20 / 120)


def test_of_several_of_ours_the_best_counts():
    found = with_ratios(row(FA3=[100.0], wgdsl=[125.0], wgdsl_two=[80.0]))
    assert (found["ratio_best"], found["best"]) == (1.25, "FA3")
    assert found["ratios"]["wgdsl"]["FA3"]["ratio"] == 0.8


@pytest.mark.parametrize("rounds", [{"wgdsl": [1.0]}, {"FA3": [1.0]}, {}], ids=["no peer", "not ours", "nobody"])
def test_alone_nobody_has_a_ratio(rounds):
    assert with_ratios(row(**rounds))["ratio_best"] is None


def test_a_summary_has_the_mean_the_least_and_what_is_below():
    rows = [with_ratios(row(c, FA3=[us], cuDNN=[160.0], wgdsl=[100.0])) for c, us in (("a", 80.0), ("b", 125.0))]
    rows.append(with_ratios(row("c", "gemm", cuBLAS=[200.0], wgdsl=[100.0])))
    found = {(s.suite, s.peer): s for s in summaries(rows)}
    assert list(found) == [
        ("attention", "FA3"), ("attention", "cuDNN"), ("attention", BEST), ("gemm", "cuBLAS"), ("gemm", BEST)
    ]  # fmt: skip
    best = found["attention", BEST]
    assert (best.mean, best.least, best.at, best.points) == (pytest.approx(1.0), 0.8, "a", 2)
    assert best.below == {"a": 0.8}
    assert found["gemm", BEST].mean == 2.0 and found["gemm", BEST].below == {}


def point(d, mask, us, suite="attention"):
    """A point of its own name."""
    made = with_ratios(row(f"d{d} {mask} {us:g}", suite, FA3=[us], wgdsl=[100.0]))
    return {**made, "facts": {"head dim": d, "mask": mask, "dtype": "bf16"}}


def test_points_have_means_by_head_dim_and_mask():
    rows = [point(64, "full", 200.0), point(64, "full", 50.0), point(64, "causal", 110.0), point(128, "full", 90.0)]
    found = {tuple(s.facts.values()): s for s in grouped(rows) if s.peer == BEST}
    assert {facts: (s.points, round(s.mean, 6)) for facts, s in found.items()} == {
        (64, "full"): (2, 1.0), (64, "causal"): (1, 1.1), (128, "full"): (1, 0.9)
    }  # fmt: skip
    assert found[64, "full"].least == 0.5


def test_one_group_is_no_group():
    assert grouped([point(64, "full", 200.0), with_ratios(row("c", "gemm", cuBLAS=[200.0], wgdsl=[100.0]))]) == []


def test_the_line_of_a_summary_says_all_of_it():
    line = summary_line([point(64, "full", 200.0), point(128, "full", 90.0)])["summary"]
    assert [(s["facts"], s["peer"], s["points"], round(s["mean"], 6)) for s in line if s["peer"] == BEST] == [
        ({}, BEST, 2, round(1.8**0.5, 6)), ({"head dim": 64, "mask": "full"}, BEST, 1, 2.0),
        ({"head dim": 128, "mask": "full"}, BEST, 1, 0.9),
    ]  # fmt: skip
    assert (line[0]["contestant"], line[0]["least"], line[0]["at"]) == ("wgdsl", 0.9, "d128 full 90")
