"""Hopper: tensor copies, mbarriers and asynchronous products of warpgroups."""

from __future__ import annotations

from .registers import HIGHEST
from .target import EIGHT_BITS, PLAIN, Target

HOPPER = "hopper"

SM_90A = Target(
    name="sm_90a",
    family=HOPPER,
    shared_sm=228 * 1024,
    shared_reserved=1024,
    shared_limit=232448,
    shared_alignment=1024,
    shared_slack=1024,
    named_barriers=16,
    threads=1024,
    sm_threads=2048,
    sm_ctas=32,
    unit="warpgroup",
    thread_registers=HIGHEST,
    products=("wgmma",),
    copies=("tma",),
    stores=("tma",),
    matrix_stores=True,
    elements=(*PLAIN, *EIGHT_BITS),
)

assert SM_90A.resident(threads=384, registers=168, shared=164_944) == 1
