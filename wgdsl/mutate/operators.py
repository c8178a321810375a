"""The operators, declared beforehand: what is broken, and what a verifier owes the mutants.

In: a role program.  Out: its mutants, in the order of this table, kernel by kernel. One that breaks nothing by a rule says by
which (`exempt`); the rules are predicates on the role program: `domains.py`, `paths.py`, `single.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..roles import model as m
from ..roles.model import RoleProgram
from .model import MAY_PASS, MUST_REJECT, Mutant, Operator
from .single import (
    Make,
    altered,
    as_before,
    deeper,
    deleted,
    doubled,
    last_release,
    other_arrivals,
    other_bytes,
    other_parity,
    other_threads,
    preceded,
    unfollowed,
)
from .swaps import swapped
from .whole import larger, other_counts, smaller, too_small

BARS = (m.BarSync, m.BarArrive)
_Row = tuple[str, str, Make]
BREAKING: tuple[_Row, ...] = (
    ("no-wait", "a wait on an mbarrier is deleted", deleted(m.Wait)),
    ("no-wait-group", "a wait for products is deleted", deleted(m.WaitGroup, rule=as_before)),
    ("no-wait-store", "a wait for stores is deleted", deleted(m.WaitStore, rule=as_before)),
    ("no-wait-copies", "a wait for copies of threads is deleted", deleted(m.WaitCopies, rule=as_before)),
    ("no-arrive", "an arrival or release is deleted", deleted(m.Arrive)),
    ("no-last-release", "the last copy alone of a release is deleted", last_release),
    ("no-expect", "the arrival that expects a copy's bytes is deleted", deleted(m.Expect)),
    ("no-copy", "a bulk copy is deleted", deleted(m.Tma)),
    ("no-copy-threads", "a copy of threads is deleted", deleted(m.CopyAsync)),
    ("no-commit", "the commit of products is deleted", deleted(m.Commit, rule=as_before)),
    ("no-commit-store", "the commit of stores is deleted", deleted(m.CommitStore, rule=as_before)),
    ("no-commit-copies", "the commit of copies of threads is deleted", deleted(m.CommitCopies, rule=as_before)),
    ("no-fence-async", "a proxy fence is deleted", deleted(m.FenceAsync, rule=as_before)),
    ("no-fence-wgmma", "a fence before products is deleted", deleted(m.FenceWgmma, rule=as_before)),
    ("no-bar", "a step on a named barrier is deleted", deleted(*BARS, rule=unfollowed)),
    ("no-advance", "an advance in a ring is deleted", deleted(m.Advance, rule=as_before)),
    ("more-in-flight", "one group of products more stays in flight", altered((m.WaitGroup,), deeper(1), as_before)),
    ("more-stores", "one group of stores more stays in flight", altered((m.WaitStore,), deeper(1), as_before)),
    ("more-copies", "one group of copies more stays in flight", altered((m.WaitCopies,), deeper(1), as_before)),
    ("wrong-count", "an mbarrier is made for one arrival more or less", other_counts),
    ("wrong-arrivals", "an arrival counts once more or less", altered((m.Arrive,), other_arrivals)),
    ("wrong-threads", "a step on a named barrier counts a warpgroup more or less", altered(BARS, other_threads)),
    ("wrong-bytes", "other bytes are expected than come", altered((m.Expect,), other_bytes)),
    ("wrong-parity", "the parity of a wait is flipped", altered((m.Wait,), other_parity)),
    ("ring-too-small", "a ring has fewer stages than a role holds at once", too_small),
    ("swap", "a step stands behind the first one that depends on it", swapped),
)
LENIENT: tuple[_Row, ...] = (
    ("fewer-in-flight", "one group of products less stays in flight", altered((m.WaitGroup,), deeper(-1))),
    ("fewer-stores", "one group of stores less stays in flight", altered((m.WaitStore,), deeper(-1))),
    ("fewer-copies", "one group of copies less stays in flight", altered((m.WaitCopies,), deeper(-1))),
    ("ring-smaller", "a ring has one stage less, but as many as a role holds at once", smaller),
    ("ring-larger", "a ring has one stage more", larger),
    ("wait-again", "a wait for products stands twice", doubled(m.WaitGroup)),
    ("wait-copies-again", "a wait for copies of threads stands twice", doubled(m.WaitCopies)),
    ("extra-fence-async", "a proxy fence stands before a named barrier", preceded(BARS, m.FenceAsync(), "a fence before it")),
    ("extra-fence-wgmma", "a fence stands before a commit", preceded((m.Commit,), m.FenceWgmma(), "a fence before it")),
)
OPERATORS = (
    *(Operator(name=name, expects=MUST_REJECT, text=text, make=make) for name, text, make in BREAKING),
    *(Operator(name=name, expects=MAY_PASS, text=text, make=make) for name, text, make in LENIENT),
)


def operator(name: str) -> Operator:
    """The operator of that name. Raises LookupError."""
    found = next((o for o in OPERATORS if o.name == name), None)
    if found is None:
        raise LookupError(f"no operator is called `{name}`")
    return found


def mutants(program: RoleProgram, operators: Iterable[Operator] = OPERATORS) -> Iterator[Mutant]:
    """Every mutant of a program, exempt ones too; what comes out like the program itself is none."""
    number = 0
    for o in operators:
        for k, kernel in enumerate(program.kernels):
            for v in o.make(kernel):
                if v.kernel != kernel:
                    kernels = (*program.kernels[:k], v.kernel, *program.kernels[k + 1 :])
                    changed = replace(program, kernels=kernels)
                    yield Mutant(number=number, operator=o, variant=v, program=changed, original=kernel)
                    number += 1
