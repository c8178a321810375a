"""What a request leaves of the suites, and words that name nothing."""

from __future__ import annotations

import pytest

from wgdsl.bench.request import Request, cases_of, command_of, peers_here, peers_of, schedules_of
from wgdsl.bench.suites import SUITES
from wgdsl.diagnostics.model import WgError


def request(*suites: str, filters=None, **more) -> Request:
    return Request(suites=suites, filters=filters or {}, **more)


@pytest.mark.parametrize(
    "suite, count", [("attention", 72), ("lengths", 36), ("gemm", 6), ("dual_gemm", 6), ("ampere", 48), ("variants", 15)]
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
    assert schedules_of(case, ()) == {"wgdsl": None}
    assert schedules_of(case, ("two", "three")) == {"wgdsl two": "two", "wgdsl three": "three"}
    assert schedules_of(own, ()) == {"wgdsl": "biased"}


def test_contestants_are_named_without_folders_unless_these_tell_them_apart():
    case = cases_of(request("attention"))[0]
    assert schedules_of(case, ("a/b.wg", "a/c.wg {tile j 96}")) == {
        "wgdsl b.wg": "a/b.wg", "wgdsl c.wg {tile j 96}": "a/c.wg {tile j 96}"
    }  # fmt: skip
    assert list(schedules_of(case, ("a/b.wg", "c/b.wg", "two"))) == ["wgdsl a/b.wg", "wgdsl c/b.wg", "wgdsl two"]


def test_where_no_usual_peer_is_there_others_are_asked():
    window, gemm = (cases_of(request(suite))[0] for suite in ("variants", "gemm"))
    bias = next(c for c in cases_of(request("variants")) if c.name == "bias")
    assert peers_here(request(), window, {}) == ["FA3"]
    assert peers_here(request(), window, {"FA3": "it is absent"}) == ["Flex"]
    assert peers_here(request(), window, {"FA3", "Flex"}) == []
    assert peers_here(request(peers=("FA3",)), window, {"FA3"}) == [], "who is named alone isn't replaced"
    assert peers_here(request(), bias, {"FA3"}) == ["Flex"]
    assert peers_here(request(), gemm, {"cuBLAS"}) == []


@pytest.mark.parametrize(
    "words, told",
    [
        ("bench gemm --jsonl /root/out/x.jsonl --seed 3", "wgdsl bench gemm --jsonl x.jsonl --seed 3"),
        ("bench --fa3-site /tmp/site --plot=out/a.svg gemm", "wgdsl bench --fa3-site DIR --plot=a.svg gemm"),
        ("bench --schedule /home/me/s.wg --schedule two", "wgdsl bench --schedule s.wg --schedule two"),
        ("bench --fa3-site=/tmp/site --cases a/b", "wgdsl bench --fa3-site=DIR --cases a/b"),
        ("bench gemm --jsonl", "wgdsl bench gemm --jsonl"),
    ],
)
def test_a_command_is_told_without_where_files_lie(words, told):
    assert command_of(words.split()) == told


def test_words_of_a_command_keep_their_quotes():
    assert command_of(["bench", "--cases", "soft cap", "--jsonl", "a b/c d.jsonl"]) == (
        "wgdsl bench --cases 'soft cap' --jsonl 'c d.jsonl'"
    )


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
