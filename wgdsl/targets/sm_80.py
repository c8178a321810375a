"""Ampere, and what came after it with the same instructions: cp.async, ldmatrix and mma.sync of single warps.

Limits from the CUDA C++ Programming Guide, "Compute Capabilities" (shared memory and threads of an SM and of a CTA).
"""

from __future__ import annotations

from .registers import THREAD
from .target import EIGHT_BITS, PLAIN, Target

AMPERE = "ampere"


def _target(name: str, shared_sm: int, sm_threads: int, sm_ctas: int, more: tuple[str, ...] = ()) -> Target:
    return Target(
        name=name,
        family=AMPERE,
        shared_sm=shared_sm,
        shared_reserved=1024,
        shared_limit=shared_sm - 1024,
        shared_alignment=128,
        shared_slack=0,
        named_barriers=16,
        threads=1024,
        sm_threads=sm_threads,
        sm_ctas=sm_ctas,
        unit="warp",
        thread_registers=THREAD,
        products=("mma",),
        copies=("cp_async",),
        stores=("copy",),
        matrix_stores=False,
        elements=(*PLAIN, *more),
    )


SM_80 = _target("sm_80", 164 * 1024, 2048, 32)
SM_86 = _target("sm_86", 100 * 1024, 1536, 16)
SM_89 = _target("sm_89", 100 * 1024, 1536, 24, EIGHT_BITS)
SM_120 = _target("sm_120", 100 * 1024, 1536, 24, EIGHT_BITS)

assert SM_80.resident(threads=128, registers=242, shared=65_536) == 2
