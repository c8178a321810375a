"""Orders of events: which of the things that can happen next does happen. Time isn't modelled, so any of them may.

In: a seed, or nothing for the canonical order.  Out: an `Order`, which is plain data; `scheduler.py` follows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from ..roles.model import Kernel
from ..targets.registers import WARPS

COMPLETIONS = {
    "late": "completions as late as can be",
    "newest": "the newest copy first, as late as can be",
    "early": "completions as early as can be",
    "random": "completions at any time",
}


@dataclass(frozen=True, kw_only=True)
class Who:
    """The agents of one warpgroup of a role, or one of its warps. `alone`: the role has no other warpgroup."""

    role: str
    warpgroup: int
    warp: int | None = None
    alone: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        warp = f" warp {self.warp}" if self.warp is not None else ""
        return f"{self.role}{'' if self.alone else f' {self.warpgroup}'}{warp}"


@dataclass(frozen=True, kw_only=True)
class Order:
    """Every field at its default: the canonical order.

    turns: `blocked` = agents go round, each until it blocks; `random` = any that can go on, a step at a time.
    behind: agents that go on only when nothing else can happen. ahead: agents that go on whenever they can.
    completions: when what is in flight completes, a key of `COMPLETIONS`; late is: a copy when no agent can go on, the oldest
    first, a product or a store at the wait that covers it.
    then: the order that takes over, and this one again after it; `events`: how many events each lasts about.
    """

    turns: str = "blocked"
    behind: tuple[Who, ...] = ()
    ahead: tuple[Who, ...] = ()
    completions: str = "late"
    then: Order | None = None
    events: int = 0

    def __str__(self) -> str:
        if self == CANONICAL:
            return "canonical"
        parts = ["a step of any agent at a time"] if self.turns == "random" else []
        parts += [f"{w} as late as can be" for w in self.behind] + [f"{w} as early as can be" for w in self.ahead]
        text = ", ".join([*parts, COMPLETIONS[self.completions]])
        return f"{text}; in turn with: {self.then}" if self.then is not None else text


CANONICAL = Order()


def everyone(kernel: Kernel) -> tuple[Who, ...]:
    """Every warpgroup of every role."""
    return tuple(Who(role=r.name, warpgroup=w, alone=r.count == 1) for r in kernel.roles for w in range(r.count))


def single_warps(kernel: Kernel) -> tuple[Who, ...]:
    """Every warp of the roles that aren't one thread."""
    threads = {r.name for r in kernel.roles if r.elected}
    return tuple(replace(w, warp=k) for w in everyone(kernel) if w.role not in threads for k in range(WARPS))


Late = tuple[tuple[str, int], ...]  # role and warpgroup


def falling_behind(late: Late, order: Order = CANONICAL) -> Order:
    """The order with these warpgroups as late as can be."""
    return replace(order, behind=tuple(Who(role=role, warpgroup=w) for role, w in late)) if late else order


def order_of(seed: int | None, kernel: Kernel) -> Order:
    """The order that a seed means for a kernel; None: the canonical one."""
    if seed is None:
        return CANONICAL
    random = Random(f"order {seed}")
    first = _drawn(random, kernel)
    if random.random() < 0.7:
        return first
    return replace(first, then=_drawn(random, kernel), events=random.choice((8, 30, 100)))


def _drawn(random: Random, kernel: Kernel) -> Order:
    """One order, biased to the extremes: somebody falls far behind or runs far ahead, completions come at an end."""
    someone = (random.choice(everyone(kernel) if random.random() < 0.5 else single_warps(kernel) or everyone(kernel)),)
    completions = random.choice(("late", "late", "newest", "early", "early", "random"))
    kind = random.choice(("behind", "behind", "ahead", "random", "random"))
    if kind == "random":
        return Order(turns="random", completions=completions)
    drawn = Order(turns=random.choice(("blocked", "random")), completions=completions)
    return replace(drawn, behind=someone) if kind == "behind" else replace(drawn, ahead=someone)
