"""Rules without behaviour: what is wrong with a role program whatever its inputs.

In: a kernel.  Out: every problem found (WG0701 to WG0710, WG0724).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics.model import Problem
from ..diagnostics.verify import IllFormedStep
from ..roles.model import Kernel
from ..roles.rules import broken
from ..roles.text import step_text
from ..targets.tma import box_problem
from .arrivals import arrival_problems
from .bars import bar_problems
from .bytes import byte_problems
from .memory import memory_problems
from .ranges import range_problems
from .reads import read_problems
from .registers import register_problems
from .rhythm import item_problems

# Names and shapes come first: the others look things up without asking.
COUNTS = (byte_problems, arrival_problems, register_problems, memory_problems, bar_problems)


def structural_problems(kernel: Kernel) -> list[Problem]:
    """Broken rules; if there are none, integers out of range; if all are in it, wrong counts and budgets."""
    return list(_rules(kernel)) or list(range_problems(kernel)) or [p for count in COUNTS for p in count(kernel)]


def _rules(kernel: Kernel) -> Iterator[Problem]:
    for rule, step, why in broken(kernel):
        span, text = (step.span, step_text(kernel, step)) if step is not None else (None, "")
        yield IllFormedStep(span=span, rule=rule.text, why=why, step=text)
    for m in kernel.maps:
        problem = box_problem(m.box, m.dtype.nbytes, m.swizzle)
        if problem is not None:
            yield IllFormedStep(rule="the copy engine takes the box of every map", why=f"map `{m.name}`: {problem}")
    yield from item_problems(kernel)
    yield from read_problems(kernel)
