"""`python -m tests.agreement [COUNT [FIRST [TARGET]]]`: how the two judges see that many seeded cases."""

from __future__ import annotations

import sys

from tests.agreement.cases import seeded
from tests.agreement.verdicts import table, verdict


def main(count: int | str = 300, first: int | str = 0, target: str = "sm_90a") -> None:
    count, first = int(count), int(first)
    found = {seed: verdict(seeded(seed, target)) for seed in range(first, first + count)}
    print(table(found.values()))
    for seed, v in found.items():
        if v.missed or (v.refused and not v.wrong):
            what = type(v.fault).__name__ if v.wrong else "right"
            print(f"seed {seed}: {what}, {v.refused or 'accepted'}: {v.case.changes}")


if __name__ == "__main__":
    main(*sys.argv[1:])
