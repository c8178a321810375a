"""Many cases, one after the other or shared out among processes."""

from __future__ import annotations

import faulthandler
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

from tests.fuzz.check import LIMIT, Outcome, check
from tests.fuzz.choices import seeded
from tests.fuzz.combinations import combination
from tests.fuzz.generate import case

REFUSED_AT_MOST = 0.25
MAKERS = {"program": case, "combination": combination}


@dataclass(frozen=True, kw_only=True)
class Done:
    seed: int
    kind: str
    target: str
    outcome: Outcome
    seconds: float


def each(work: partial[Done | None], seeds: range, jobs: int) -> Iterator[Done]:
    if jobs == 1:
        yield from filter(None, map(work, seeds))
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from filter(None, pool.map(work, seeds))


def one(seed: int, what: str, target: str | None, device: str, build: bool) -> Done | None:
    """The case of a seed; None if it is for another target. A kernel that hangs ends the process, which says where it is."""
    made = MAKERS[what](seeded(seed))
    if target not in (None, made.target):
        return None
    faulthandler.dump_traceback_later(2 * LIMIT, exit=True)
    begun = time.time()
    outcome = check(made, device, seed, build)
    faulthandler.cancel_dump_traceback_later()
    kind = made.schedule if what == "combination" else made.kind
    return Done(seed=seed, kind=kind, target=made.target, outcome=outcome, seconds=time.time() - begun)


def right(seeds: range, device: str = "sim", what: str = "program") -> None:
    """Asserts that every case of these seeds is right, and few are refused."""
    refused = 0
    for seed in seeds:
        outcome = check(MAKERS[what](seeded(seed)), device, seed)
        again = f"python -m tests.fuzz 1 {seed}{' --combinations' * (what == 'combination')}{' --gpu' * (device == 'gpu')}"
        assert not outcome.failed, (again, outcome.wrong, outcome.message)
        refused += bool(outcome.refused)
    assert refused <= max(2, REFUSED_AT_MOST * len(seeds))
