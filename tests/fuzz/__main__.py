"""Fuzz: `python -m tests.fuzz [COUNT [FIRST [TARGET]]] [--gpu] [--combinations] [--build] [--shrink]`.

COUNT cases by the seeds from FIRST on (100 from 0), of one target or both. A table of kinds, refusals by code, and for each
failure its seed, text and how to run it again. Shards are runs with another FIRST. Exit status 1 if a case failed or too many
were refused.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.fuzz.case import Case
from tests.fuzz.check import ALLOWED, Outcome, check
from tests.fuzz.choices import seeded
from tests.fuzz.combinations import combination
from tests.fuzz.generate import case
from tests.fuzz.shrink import shrunk

REFUSED_AT_MOST = 0.25


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=100)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("target", nargs="?", choices=("sm_90a", "sm_80"))
    parser.add_argument("--gpu", action="store_true", help="run on a GPU rather than in the simulator")
    parser.add_argument("--combinations", action="store_true", help="of attention's masks, scores, layouts and head dims")
    parser.add_argument("--build", action="store_true", help="compile the CUDA texts too")
    parser.add_argument("--verbose", action="store_true", help="a line for each case; texts of what was refused")
    parser.add_argument("--shrink", action="store_true", help="make the case of seed FIRST smaller, which fails")
    a = parser.parse_args()
    device = "gpu" if a.gpu else "sim"
    make = combination if a.combinations else case
    if a.shrink:
        small, outcome = shrunk(a.first, device, make)
        print(shown(small, outcome))
        return 1
    started = time.time()
    kinds, refused, failures, runs = Counter(), Counter(), [], 0
    for seed in range(a.first, a.first + a.count):
        one = make(seeded(seed))
        if a.target not in (None, one.target):
            continue
        begun = time.time()
        outcome = check(one, device, seed, a.build)
        runs += outcome.runs
        kinds[(one.target, one.schedule if a.combinations else one.kind, state(outcome))] += 1
        refused.update(outcome.refused)
        if outcome.failed:
            failures.append((seed, one, outcome))
            print(f"seed {seed}: FAILED: {outcome.wrong[0]}", flush=True)
        if a.verbose:
            print(f"seed {seed}: {one.target}, {one.kind}: {state(outcome)}, {time.time() - begun:.1f} s", flush=True)
            if outcome.refused:
                print(one.text + outcome.message)
    for seed, one, outcome in failures:
        print(f"\n--- seed {seed}", shown(one, outcome), sep="\n")
        print(f"again: python -m tests.fuzz 1 {seed}{' --gpu' * a.gpu}{' --combinations' * a.combinations}")
    print(table(kinds))
    total, no = sum(kinds.values()), sum(n for (_, _, s), n in kinds.items() if s == "refused")
    codes = ", ".join(f"{n} x {code} ({ALLOWED[code]})" for code, n in refused.most_common())
    took = f"{time.time() - started:.0f} s"
    print(f"{total} cases, {runs} runs, {no} refused, {len(failures)} failed, {took}. Refused: {codes or 'none'}")
    return int(bool(failures) or (total >= 40 and no > REFUSED_AT_MOST * total))


def shown(one: Case, outcome: Outcome) -> str:
    head = f"{one.target}, {one.kind}, {one.dtype}, options {one.options}, dims {one.dims}, sizes {one.sizes}"
    return "\n".join([head, one.text, *outcome.wrong, outcome.message])


def state(outcome: Outcome) -> str:
    return "failed" if outcome.failed else "refused" if outcome.refused else "right"


def table(kinds: Counter) -> str:
    rows = sorted({(t, k) for t, k, _ in kinds})
    head = f"{'target':8} {'kind':44} {'right':>6} {'refused':>8} {'failed':>7}"
    cells = [[kinds[(t, k, s)] for s in ("right", "refused", "failed")] for t, k in rows]
    lines = [f"{t:8} {k:44} {r:6} {n:8} {f:7}" for (t, k), (r, n, f) in zip(rows, cells, strict=True)]
    return "\n".join([head, *lines])


if __name__ == "__main__":
    sys.exit(main())
