"""read_problems: integers read from tensors that steer a role, though they aren't the item's.

In: a kernel.  Out: every `read` in a loop or a branch on which a step of the protocol depends (WG0701): what an item does is
told by what is read at its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics.verify import IllFormedStep
from ..roles import model as m
from ..roles.model import Kernel, Step
from ..roles.text import step_text
from .control import items_of, steering

RULE = "what is read in a loop or a branch steers nothing"


def read_problems(kernel: Kernel) -> Iterator[IllFormedStep]:
    """Such reads."""
    for role in kernel.roles:
        every = list(m.walk(role.steps))
        reads = [s for s in every if isinstance(s, m.Read)]
        if not reads:
            continue
        items = items_of(role)
        first = {id(s) for s in items.body} if items is not None else set[int]()
        needed = _needed(every)
        for s in (s for s in reads if id(s) not in first and s.name in needed):
            why = f"`{s.name}` steers the role, and isn't read once for the whole item"
            cure = "read it directly in the body of `items`"
            yield IllFormedStep(span=s.span, rule=RULE, why=why, step=step_text(kernel, s), cure=cure)


def _needed(steps: list[Step]) -> set[str]:
    """The symbols on which steps of the protocol depend, through what is bound."""
    lets = [(s.name, s.value) for s in steps if isinstance(s, m.Let)]
    needed = {x for s in steps for p in steering(s) for x in p.symbols()}
    while more := {x for name, value in lets if name in needed for x in value.symbols()} - needed:
        needed |= more
    return needed
