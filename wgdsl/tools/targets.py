"""`wgdsl targets`: what each architecture has, and which steps of a role program are emitted for it.

In: the rows of `targets/` and the registry of lowerings.  Out: text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..driver import lowered_steps
from ..roles.model import Step
from ..targets.choice import TARGETS, serves
from ..targets.cp_async import CP_ASYNC_BYTES
from ..targets.engines import MMA, WGMMA
from ..targets.registers import FILE, GRANULE, LOWEST, WARPS
from ..targets.target import Target
from ..targets.tma import TMA
from ..targets.wgmma import INSTRUCTIONS


def targets_text() -> str:
    """The table, deterministic."""
    lowered = lowered_steps()
    lines = [line for t in TARGETS.values() for line in (*_target(t), "")]
    return "\n".join([*lines, *_steps(lowered)]) + "\n"


def _target(t: Target) -> Iterator[str]:
    yield t.name
    earlier = [name for name in TARGETS if name != t.name and serves(name, t.name)]
    if earlier:
        yield f"  engines    as {earlier[0]}; takes schedules on {', '.join(earlier)} too"
    else:
        yield from _engines(t)
    each = f"in {t.unit}s" + (f", {WARPS} or a multiple" if t.unit == "warp" else "")
    yield f"  threads    at most {t.threads} a CTA, {t.sm_threads} an SM; roles {each}; {t.named_barriers - 1} named barriers"
    yield f"  registers  {FILE} an SM; {LOWEST} to {t.thread_registers} a thread of a role, in steps of {GRANULE}"
    yield f"  shared     {t.shared_limit} bytes a CTA, of {t.shared_sm} an SM; tiles start on {t.shared_alignment} bytes"


def _engines(t: Target) -> Iterator[str]:
    for kind, engines, texts in (("product", t.products, PRODUCTS), ("copy", t.copies, COPIES), ("store", t.stores, STORES)):
        for engine in engines:
            yield from _named(f"{kind:<7}  {engine}", texts[engine]() if engine in texts else ())


def _named(head: str, rows: Iterable[str]) -> Iterator[str]:
    yield f"  {head}"
    yield from (f"             {row}" for row in rows)


def _wgmma() -> Iterator[str]:
    n = f"m {WGMMA.rows}, n {WGMMA.n_step} to {WGMMA.n_max} in steps of {WGMMA.n_step}"
    for i in INSTRUCTIONS.values():
        major = "either operand K- or MN-major" if i.transposable else "operands K-major"
        sums = "f32 sums" if i.transposable else "f32 sums of about 14 bits"
        yield f"{i.dtype}: {n}, k in steps of {i.k}; {sums}; {major}"


def _mma() -> Iterator[str]:
    """Of four warps, which share the rows of a tile out as a warpgroup does."""
    m = f"m {MMA.rows} to {MMA.rows * MMA.blocks} for {WARPS} warps in steps of {MMA.rows}"
    n = f"n {MMA.n_step} to {MMA.n_max} in steps of {MMA.n_step}"
    for dtype, step in MMA.k_steps.items():
        yield f"{dtype}: {m}, {n}, k in steps of {step}; f32 sums; either operand K- or MN-major"


def _tma() -> Iterator[str]:
    yield f"boxes of at most {TMA.box} along each of at most {TMA.rank} axes"
    yield f"strides in multiples of {TMA.stride_multiple} bytes"


def _cp_async() -> Iterator[str]:
    yield f"by the threads of a role, {CP_ASYNC_BYTES} bytes each at a time: the innermost axis of a tile has stride 1"
    yield f"addresses and strides in multiples of {CP_ASYNC_BYTES} bytes"


def _copy() -> Iterator[str]:
    yield f"by the threads of a role, out of staging, {CP_ASYNC_BYTES} bytes each at a time where the array allows it"


PRODUCTS = {"wgmma": _wgmma, "mma": _mma}
COPIES = {"tma": _tma, "cp_async": _cp_async}
STORES = {"copy": _copy}


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
