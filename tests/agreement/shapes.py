"""A random role program before it is disturbed: a right skeleton, or one whose rings are too short for its order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Choose = Callable[[Sequence[Any]], Any]  # one of several, the simplest first


@dataclass(frozen=True, kw_only=True)
class RingShape:
    """`pair`: it holds both operands of a product, the left one with a part for each warpgroup; else the right one alone.
    `ahead`: filled one tile earlier than the others."""

    stages: int = 2
    pair: bool = True
    ahead: bool = False


@dataclass(frozen=True, kw_only=True)
class Shape:
    """`roles`: the warpgroups of each consumer role. `loader`: the one thread that fills is the role, or elected inside or
    around its items. `idle`: a role that ends at once. `chain`: the second ring's left operand is made from the first ring's
    product (``: each ring has a product of its own; plain, deferred, overlap: when O is awaited). `depth`: products in flight
    where a ring's slot is released. `peel`: the first tile in a copy of its own. `release`: by the warps, by one thread of each
    warpgroup, or by one of the role. `skip`: which tiles a warpgroup passes over: by a test of each (branch), by loops of their
    own for those that its number or the item says (loops, item), or all where it has no rows. `trips`: tiles of an item, by a
    dim or by the item. `store`: from registers, staged in shared memory, or over Q."""

    rings: tuple[RingShape, ...]
    roles: tuple[int, ...] = (2,)
    producers: int = 1
    loader: str = "role"
    chain: str = ""
    depth: int = 0
    peel: bool = False
    clear: bool = False
    release: str = "warps"
    turns: bool = False
    skip: str = ""
    trips: str = "dim"
    store: str = "registers"
    store_wait: str = "before"
    q_stages: int = 1
    q_late: bool = False
    idle: bool = False
    persistent: bool = True

    @property
    def warpgroups(self) -> int:
        return sum(self.roles)

    @property
    def passes_over(self) -> bool:
        """Whether the tiles that a warpgroup doesn't read follow in a loop of their own."""
        return self.skip in ("loops", "item")

    @property
    def flawed(self) -> bool:
        """Whether a barrier of a whole role stands where it can't: in a turn, or where its warpgroups free rings in another
        order, so that one arrives for a slot that the other still reads."""
        if self.release != "role" or max(self.roles) == 1:
            return False
        in_a_turn = self.turns and self.chain in ("plain", "deferred")
        return in_a_turn or (self.chain == "overlap" and self.skip in ("loops", "rows"))

    @property
    def has_q(self) -> bool:
        return bool(self.chain) or any(not r.pair for r in self.rings)


YES_NO = (False, False, False, True)


def shape(choose: Choose) -> Shape:
    """Any skeleton."""
    chain = choose(("", "", "plain", "deferred", "overlap"))
    count = 2 if chain else choose((1, 1, 2, 3))
    rings = tuple(
        RingShape(
            stages=choose((2, 2, 1, 3, 4)), pair=not chain and choose((True, True, False)), ahead=r == 0 and choose(YES_NO)
        )
        for r in range(count)
    )
    roles = choose(((2,), (1,), (1, 1), (1, 2), (3,), (4,), (1, 1, 1)))
    warpgroups = sum(roles)
    own = bool(chain) or any(not r.pair for r in rings)
    skip = choose(("", "", "loops", "item", "rows")) if chain else choose(("", "", "branch", "loops", "item", "rows"))
    persistent = choose((True, True, False))
    return Shape(
        rings=rings,
        roles=roles,
        producers=choose((1, 1, 2)) if count > 1 else 1,
        loader=choose(("role", "inside")),
        chain=chain,
        depth=0 if chain or skip == "branch" else choose((0, 1, 1, 2)),
        peel=choose((False, True)),
        clear=skip == "branch" or choose((False, True)),
        release=choose(("warps", "warps", "thread", "role")),
        turns=warpgroups > 1 and choose(YES_NO),
        skip=skip,
        trips=choose(("dim", "dim", "item")),
        store=choose(("registers", "registers", "staged", "over") if own else ("registers", "staged")),
        store_wait=choose(("before", "after")),
        q_stages=choose((1, 2)),
        q_late=choose(YES_NO),
        idle=choose(YES_NO) and not persistent,
        persistent=persistent,
    )
