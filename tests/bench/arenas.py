"""Arenas without a GPU: contestants take as long as a test says."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import partial

from wgdsl.bench.case import Ground
from wgdsl.bench.match import Plan, Turn
from wgdsl.bench.request import Request, cases_of

CLOCKS = (1.0, 0.5, 2.0, 1.0, 1.0)  # what each round multiplies every time by
CASES = ("d64 bf16 full 512", "d64 bf16 full 1024", "d64 bf16 full 2048")


class Fake:
    """speeds: contestant -> microseconds of a call.  drift: contestant -> what the rounds multiply it by, beside the clock.
    wrong, fails, dies, hangs: who does so. absent: peers that aren't here. inputs: cases whose inputs can't be made."""

    def __init__(self, speeds: Mapping[str, float], drift=None, wrong=(), fails=(), dies=(), hangs=(), absent=(), inputs=()):
        self.speeds, self.drift = speeds, drift or {}
        self.wrong, self.fails, self.dies, self.hangs = wrong, fails, dies, hangs
        self.absent, self.inputs = absent, inputs
        self.order: list[tuple[str, int]] = []
        self.seeds: list[int] = []

    def about(self):
        return {"card": "a fake", "date": "2026-11-30", "clock and power": "no libnvidia-ml.so.1"}

    def missing(self, peer):
        return "it is absent" if peer in self.absent else ""

    def enter(self, case, seed):
        self.seeds.append(seed)
        if case.name in self.inputs:
            raise MemoryError("too large")
        self.turns = dict.fromkeys(self.speeds, -1)
        peers = {p: partial(self.built, p) for p in case.peers}
        return Ground(work=1e9, peers=peers, own=lambda kernel: lambda: kernel, check=self.check)

    def built(self, who):
        if who in self.dies:
            os._exit(9)
        if who in self.hangs:
            time.sleep(60)
        return lambda: who

    def kernel(self, own, candidate):
        return candidate

    def check(self, call, peer):
        assert peer == (call() in ("FA3", "cuDNN", "FA2", "Flex")), "who is ours is known"
        if call() in self.wrong:
            raise ArithmeticError("error 1 is above 0.1")
        return 0.001

    def turn(self, call, count):
        who = call()
        self.order.append((who, count))
        if who in self.fails:
            raise RuntimeError("launch\nfailed")
        if count > 3:
            self.turns[who] += 1
        number = max(0, self.turns[who])
        us = self.speeds[who] * CLOCKS[number] * self.drift.get(who, (1,) * 5)[number]
        return Turn(microseconds=[us] * count, mhz=1700.0 + number, watts=None)

    def lost(self):
        return False


def plan(*, suite="attention", cases=CASES, peers=("FA3", "cuDNN"), rounds=5, schedules=("three",), **more) -> Plan:
    request = Request(suites=(suite,), filters={}, cases=cases, peers=peers, rounds=rounds, **more)
    ours = {"wgdsl": schedules[0]} if len(schedules) == 1 else {f"wgdsl {s}": s for s in schedules}
    return Plan(request=request, picks={c.key: ours for c in cases_of(request)})
