"""What a request leaves of the suites, and words that name nothing."""

from __future__ import annotations

import pytest

from wgdsl.bench.request import Request, cases_of, peers_of, schedules_of
from wgdsl.bench.suites import SUITES
from wgdsl.diagnostics.model import WgError


def request(*suites: str, filters=None, **more) -> Request:
    return Request(suites=suites, filters=filters or {}, **more)


@pytest.mark.parametrize(
    "suite, count", [("attention", 72), ("lengths", 36), ("gemm", 6), ("dual_gemm", 4), ("ampere", 12), ("variants", 15)]
)
def test_the_suites_have_their_points(suite, count):
    cases = cases_of(request(suite))
    assert len(cases) == len({c.key for c in cases}) == count
    assert all(peers_of(request(suite), c) for c in cases)


def test_all_of_them_without_a_name():
    assert list(dict.fromkeys(c.suite for c in cases_of(request()))) == list(SUITES)


def test_sixteen_thousand_tokens_and_a_width_of_two_thousand():
    for c in cases_of(request("attention")):
        x = c.own.lengths
        assert x["B"] * x["M"] == 16384 and x["G"] * x["D"] == 2048 and x["M"] == x["N"] == c.facts["length"]


def test_filters_leave_what_they_name():
    filters = {"--head-dims": ("64",), "--masks": ("causal",), "--dtypes": ("f16",), "--lengths": ("512", "16384")}
    assert [c.name for c in cases_of(request("attention", filters=filters))] == ["d64 f16 causal 512", "d64 f16 causal 16384"]


def test_a_filter_leaves_suites_alone_that_have_no_such_fact():
    cases = cases_of(request("gemm", "attention", filters={"--lengths": ("512",)}))
    assert {c.suite for c in cases} == {"gemm", "attention"} and len(cases) == 6 + 12


def test_cases_are_named_by_how_they_begin():
    cases = cases_of(request("variants", cases=("window", "soft cap")))
    assert [c.name for c in cases] == [*(f"window {w}" for w in (256, 512, 1024, 2048, 4096)), "soft cap"]


def test_a_suite_has_its_target_unless_one_is_named():
    assert {c.own.target for c in cases_of(request("ampere"))} == {"sm_80"}
    assert {c.own.target for c in cases_of(request("gemm", target="sm_90a"))} == {"sm_90a"}


def test_peers_are_the_usual_or_those_that_are_named():
    case = cases_of(request("attention"))[0]
    assert peers_of(request(), case) == ["FA3", "cuDNN"]
    assert peers_of(request(peers=("FA2", "FA3")), case) == ["FA3", "FA2"]
    assert peers_of(request(peers=("all",)), case) == list(case.peers)


def test_schedules_are_named_or_chosen():
    case, own = cases_of(request("attention"))[0], cases_of(request("variants", cases=("bias",)))[0]
    assert schedules_of(request(), case) == {"wgdsl": None}
    assert schedules_of(request(schedules=("two", "three")), case) == {"wgdsl two": "two", "wgdsl three": "three"}
    assert schedules_of(request(schedules=("two",)), own) == {"wgdsl": "biased"}


@pytest.mark.parametrize(
    "given, code, said",
    [
        (request("atention"), "WG1016", "no suite `atention`"),
        (request("gemm", peers=("FA3",)), "WG1016", "no peer `FA3`"),
        (request("attention", filters={"--lengths": ("513",)}), "WG1016", "no length `513`"),
        (request("attention", filters={"--dtypes": ("fp16",)}), "WG1016", "no dtype `fp16`"),
        (request("variants", cases=("windows",)), "WG1016", "no case `windows`"),
        (request("gemm", rounds=0), "WG1015", "`--rounds 0`"),
        (request("gemm", ms=-1.0), "WG1015", "`--ms -1`"),
        (request("gemm", jobs=0), "WG1015", "`--jobs 0`"),
    ],
)
def test_what_is_refused(given, code, said):
    with pytest.raises(WgError, match=code) as caught:
        cases_of(given)
    assert said in caught.value.problems[0].title()
