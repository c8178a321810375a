"""`wgdsl targets`: what each architecture has, and which steps of a role program are emitted for it.

In: the rows of `targets/` and the registry of lowerings.  Out: text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..driver import lowered_steps
from ..roles.model import Step
from ..targets.choice import TARGETS
from ..targets.registers import FILE, GRANULE, HIGHEST, LOWEST
from ..targets.target import Target
from ..targets.tma import TMA
from ..targets.wgmma import INSTRUCTIONS, N_MAX, N_STEP, M, supported


def targets_text() -> str:
    """The table, deterministic."""
    lowered = lowered_steps()
    lines = [line for t in TARGETS.values() for line in (*_target(t), "")]
    return "\n".join([*lines, *_steps(lowered)]) + "\n"


def _target(t: Target) -> Iterator[str]:
    yield t.name
    for engine in t.products:
        yield from _named(f"product  {engine}", PRODUCTS[engine]() if engine in PRODUCTS else ())
    for engine in t.copies:
        yield from _named(f"copy     {engine}", COPIES[engine]() if engine in COPIES else ())
    yield f"  threads    at most {t.threads} a CTA, {t.named_barriers - 1} named barriers"
    yield f"  registers  {FILE} an SM; {LOWEST} to {HIGHEST} a thread of a role, in steps of {GRANULE}"
    yield f"  shared     {t.shared_limit} bytes a CTA, of {t.shared_sm} an SM; tiles start on {t.shared_alignment} bytes"


def _named(head: str, rows: Iterable[str]) -> Iterator[str]:
    yield f"  {head}"
    yield from (f"             {row}" for row in rows)


def _wgmma() -> Iterator[str]:
    for i in INSTRUCTIONS.values():
        major = "either operand K- or MN-major" if i.transposable else "operands K-major"
        later = "" if supported(i.dtype) else " (not yet in schedules)"
        yield f"{i.dtype}: m {M}, n {N_STEP} to {N_MAX} in steps of {N_STEP}, k in steps of {i.k}; f32 sums; {major}{later}"


def _tma() -> Iterator[str]:
    yield f"boxes of at most {TMA.box} along each of at most {TMA.rank} axes"
    yield f"strides in multiples of {TMA.stride_multiple} bytes"


PRODUCTS = {"wgmma": _wgmma}
COPIES = {"tma": _tma}


def _steps(lowered: dict[str, frozenset[str]]) -> Iterator[str]:
    """Which step is emitted for which target; a step without any runs in the simulator alone."""
    targets = [t for t in TARGETS if t in lowered] + [t for t in lowered if t not in TARGETS]
    names = sorted({s.__name__ for s in Step.__subclasses__()} | set().union(*lowered.values()))
    width = max(map(len, names))
    yield f"{'step':<{width}}  {'  '.join(targets)}"
    for name in names:
        marks = ("yes" if name in lowered[t] else "-" for t in targets)
        cells = (f"{mark:<{len(t)}}" for mark, t in zip(marks, targets, strict=True))
        yield f"{name:<{width}}  {'  '.join(cells)}".rstrip()
