"""A random role program for sm_80 before it is disturbed."""

from __future__ import annotations

from tests.agreement.shapes import Choose
from tests.sim.copying import Copying


def copying(choose: Choose) -> Copying:
    """Any right shape: a tile is copied to a slot that nobody reads any more."""
    chain = choose(("", "", "plain"))
    early = choose((False, True))
    ahead = choose((1, 1, 2, 0)) if early else choose((1, 1, 2))
    return Copying(
        groups=choose((1, 2, 3)),
        stages=max(1, ahead + choose((1, 1, 2, 3))),
        ahead=ahead,
        early=early,
        apart=choose((False, False, True)),
        pair=not chain and choose((True, True, False)),
        chain=chain,
        store=choose(("registers", "staged", "over") if chain else ("registers", "staged")),
        persistent=choose((True, False)),
    )
