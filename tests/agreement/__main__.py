"""`python -m tests.agreement [COUNT [FIRST]]`: how the two judges see that many seeded cases."""

from __future__ import annotations

import sys

from tests.agreement.cases import seeded
from tests.agreement.verdicts import table, verdict


def main(count: int = 300, first: int = 0) -> None:
    found = {seed: verdict(seeded(seed)) for seed in range(first, first + count)}
    print(table(found.values()))
    for seed, v in found.items():
        if v.missed or (v.refused and not v.wrong):
            what = type(v.fault).__name__ if v.wrong else "right"
            print(f"seed {seed}: {what}, {v.refused or 'accepted'}: {v.case.changes}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
