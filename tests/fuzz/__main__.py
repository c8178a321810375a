"""Fuzz: `python -m tests.fuzz [COUNT [FIRST [TARGET]]] [--gpu] [--combinations] [--jobs N] [--build] [--shrink]`.

COUNT cases by the seeds from FIRST on (100 from 0), of one target or both. A table of kinds, refusals by code, and for each
failure its seed, text and how to run it again. Runs with another FIRST are shards; `--jobs` shares one out among processes.
Exit status 1 if a case failed or too many were refused.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from functools import partial

from tests.fuzz.case import Case
from tests.fuzz.check import ALLOWED, Outcome
from tests.fuzz.choices import seeded
from tests.fuzz.shards import MAKERS, REFUSED_AT_MOST, Done, each, one
from tests.fuzz.shrink import shrunk


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=100)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("target", nargs="?", choices=("sm_90a", "sm_80"))
    parser.add_argument("--gpu", action="store_true", help="run on a GPU rather than in the simulator")
    parser.add_argument("--combinations", action="store_true", help="of attention's masks, scores, layouts and head dims")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--build", action="store_true", help="compile the CUDA texts too")
    parser.add_argument("--verbose", action="store_true", help="a line for each case; texts of what was refused")
    parser.add_argument("--shrink", action="store_true", help="make the case of seed FIRST smaller, which fails")
    a = parser.parse_args()
    device, what = "gpu" if a.gpu else "sim", "combination" if a.combinations else "program"
    if a.shrink:
        print(shown(*shrunk(a.first, device, MAKERS[what])))
        return 1
    started, done = time.time(), []
    work = partial(one, what=what, target=a.target, device=device, build=a.build)
    for d in each(work, range(a.first, a.first + a.count), a.jobs):
        done.append(d)
        if d.outcome.failed:
            print(f"seed {d.seed}: FAILED: {d.outcome.wrong[0]}", flush=True)
        if a.verbose:
            print(f"seed {d.seed}: {d.target}, {d.kind}: {state(d.outcome)}, {d.seconds:.1f} s", flush=True)
    for d in done:
        if d.outcome.failed or (a.verbose and d.outcome.refused):
            print(f"\n--- seed {d.seed}", shown(MAKERS[what](seeded(d.seed)), d.outcome), sep="\n")
            print(f"again: python -m tests.fuzz 1 {d.seed}{' --gpu' * a.gpu}{' --combinations' * a.combinations}")
    print("\n".join(summary(done)), f"{time.time() - started:.0f} s", sep="; ")
    refused, failed = (sum(state(d.outcome) == s for d in done) for s in ("refused", "failed"))
    return int(failed > 0 or (len(done) >= 40 and refused > REFUSED_AT_MOST * len(done)))


def shown(made: Case, outcome: Outcome) -> str:
    head = f"{made.target}, {made.kind}, {made.dtype}, options {made.options}, dims {made.dims}, sizes {made.sizes}"
    return "\n".join([head, made.text, *outcome.wrong, outcome.message])


def state(outcome: Outcome) -> str:
    return "failed" if outcome.failed else "refused" if outcome.refused else "right"


def summary(done: list[Done]) -> list[str]:
    """A table of kinds, and a line for all."""
    kinds = Counter((d.target, d.kind, state(d.outcome)) for d in done)
    lines = [f"{'target':8} {'kind':44} {'right':>6} {'refused':>8} {'failed':>7}"]
    for target, kind in sorted({(t, k) for t, k, _ in kinds}):
        right, refused, failed = (kinds[(target, kind, s)] for s in ("right", "refused", "failed"))
        lines.append(f"{target:8} {kind:44} {right:6} {refused:8} {failed:7}")
    codes = Counter(code for d in done for code in d.outcome.refused)
    why = ", ".join(f"{n} x {code} ({ALLOWED[code]})" for code, n in codes.most_common()) or "none"
    states = Counter(state(d.outcome) for d in done)
    runs = sum(d.outcome.runs for d in done)
    return [*lines, f"{len(done)} cases, {runs} runs, {states['failed']} failed, {states['refused']} refused ({why})"]


if __name__ == "__main__":
    sys.exit(main())
