"""Schedules are chosen and compiled before anything is timed, each thing once."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from wgdsl.bench import picks as module
from wgdsl.bench.picks import Building, Choice, Refused, build, choose, picks_of, refusals
from wgdsl.bench.request import Request, cases_of
from wgdsl.driver import Settings, field_for
from wgdsl.tools.progress import Silent
from wgdsl.tools.workers import Died

LENGTHS = {"--head-dims": ("64", "128"), "--dtypes": ("bf16",), "--masks": ("full",), "--lengths": ("512", "16384")}


class Pool:
    """Does the work here, or as a test says; keeps what it was asked."""

    def __init__(self, **results):
        self.results, self.asked = results, []

    def each(self, work, tasks, until):
        self.asked.append((work.__name__, tasks))
        yield from ((t, r) for t in tasks if (r := self.results[work.__name__](t)) is not ...)


def picked(pool, schedules=()):
    cases = cases_of(Request(suites=("attention",), filters=LENGTHS))
    return picks_of(cases, {c.key: schedules for c in cases}, pool, Silent(), time.monotonic() + 100)  # pyright: ignore[reportArgumentType]


def longest(task: Choice):
    return [f"two_{task.own.dims['D']}" if dict(x)["M"] > 1000 else "three" for x in task.lengths]


def test_a_program_chooses_once_for_all_its_lengths():
    pool = Pool(choose=longest, build=lambda t: None)
    found = picked(pool)
    assert [of["wgdsl"] for of in found.candidates.values()] == ["three", "two_64", "three", "two_128"]
    (_, choices), (_, buildings) = pool.asked
    assert len(choices) == 2 and len(buildings) == 4  # `three` is another kernel at each head dim
    assert list(refusals(found)) == []


def test_what_is_named_is_built_once_for_all_lengths():
    pool = Pool(build=lambda t: None, choose=lambda t: [])
    found = picked(pool, schedules=("two", "three"))
    assert set(map(str, found.candidates.values())) == {"{'wgdsl two': 'two', 'wgdsl three': 'three'}"}
    assert len(pool.asked[-1][1]) == 4


@pytest.mark.parametrize(
    "pool, why",
    [
        (Pool(choose=lambda t: Refused(why="WG0501: no"), build=lambda t: None), "WG0501: no"),
        (Pool(choose=longest, build=lambda t: Refused(why="WG0502: no")), "WG0502: no"),
        (Pool(choose=longest, build=lambda t: Died()), "it ended the process that worked on it"),
        (Pool(choose=lambda t: ..., build=lambda t: None), "no schedule was chosen in time"),
        (Pool(choose=longest, build=lambda t: ...), "it wasn't compiled in time"),
    ],
    ids=["choosing", "compiling", "dying", "no time to choose", "no time to compile"],
)
def test_who_has_nothing_to_run_is_named(pool, why):
    found = picked(pool)
    assert set(map(len, found.candidates.values())) == {0}
    assert {(who, w) for _, who, w in refusals(found)} == {("wgdsl", why)} and len(list(refusals(found))) == 4


def test_the_work_of_a_process(monkeypatch):
    own = replace(cases_of(Request(suites=("gemm",), filters={}))[0].own, target="sm_90a", lengths={})
    lengths = tuple(tuple({"M": m, "N": 4096, "K": 4096}.items()) for m in (64, 4096))
    there = field_for(own.program, target="sm_90a", settings=Settings(types=own.types, options=own.options))
    small, large = choose(Choice(own=own, lengths=lengths))  # pyright: ignore[reportGeneralTypeIssues]
    assert {small.split(" {")[0], large.split(" {")[0]} <= {*there.names}
    monkeypatch.setattr(module, "compile", lambda given, **more: None)
    assert build(Building(own=own, candidate=large)) is None
    monkeypatch.undo()
    refused = build(Building(own=own, candidate="nobody"))
    assert isinstance(refused, Refused) and refused.why.startswith("WG06")
