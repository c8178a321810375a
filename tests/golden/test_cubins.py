"""Facts of the machine code of every shipped kernel: nothing spills, nothing is serialised, the instruction mix is as planned.

Counts are asserted, not totals, which move with the compiler.
"""

from __future__ import annotations

import re

import pytest

from tests.shipped import KERNELS, Shipped, field_ids
from wgdsl.program.expr import Apply
from wgdsl.program.expr import walk as expr_walk
from wgdsl.roles.model import Compute, CopyAsync, Kernel, Mma, SmemOperand, StoreShared, TmaStore, Transpose, Wgmma, walk
from wgdsl.runtime.nvrtc import Compiled
from wgdsl.runtime.sass import disassemble
from wgdsl.runtime.verdict import complaints_of
from wgdsl.targets.descriptor import STEP_BYTES
from wgdsl.targets.registers import launch_registers
from wgdsl.targets.wgmma import BESIDE


def count(sass: str, pattern: str) -> int:
    return len(re.findall(pattern, sass))


@pytest.mark.parametrize("shipped", KERNELS, ids=field_ids())
def test_facts(shipped: Shipped):
    kernel = shipped.compile(build=True)
    for made in kernel.roles.kernels:
        one_kernel(made, kernel.binaries[made.name], alone=len(kernel.roles.kernels) == 1)
    if shipped.program.startswith("examples/attention"):
        exponentials(kernel.roles.kernels[0], kernel.sass)


def one_kernel(made: Kernel, binary: Compiled, alone: bool) -> None:
    (resources,) = binary.kernels
    assert complaints_of(made, binary) == [], "nothing spills, nothing is serialised (C75xx)"
    sass = disassemble(binary.cubin)
    assert count(sass, r"\b(LDL|STL)\b") == 0
    if made.target != "sm_90a":
        return by_warps(made, sass, alone)
    assert count(sass, r"\bHMMA\b") == 0
    limits = [r.registers for r in made.roles if r.registers is not None]
    assert count(sass, r"USETMAXREG") == len(limits)
    if limits:
        assert resources.registers == launch_registers(made.threads)
        assert max(int(r) for r in re.findall(r"\bR(\d+)\b", sass)) < max(limits)
    products(made, sass, alone)
    stores(made, sass)


def products(made: Kernel, sass: str, alone: bool) -> None:
    """Each product takes so many instructions as its k asks for, twice as many if its n is too wide for the registers at
    launch, and one fence. In one of several kernels (a short loop) the
    compiler may join copies that end alike."""
    steps = [s for r in made.roles for s in walk(r.steps)]
    issued = [s for s in steps if isinstance(s, Wgmma)]
    widest = 2 * (launch_registers(made.threads * made.resident) - BESIDE)
    steps_of = {s.acc: s.k * s.dtype.nbytes // STEP_BYTES * -(-s.n // widest) for s in issued}
    planned, found = sum(steps_of[s.acc] for s in issued), count(sass, r"\b[HQ]GMMA")
    assert count(sass, r"\bQGMMA") == (found if issued and issued[0].dtype.nbytes == 1 else 0)
    turned = sum(steps_of[s.acc] for s in issued if s.b.major == "MN")
    if alone:
        assert found == planned and count(sass, r"\bHGMMA.*\.tnspB") == turned
    assert sum(steps_of.values()) <= found <= planned
    assert count(sass, r"WARPGROUP\.ARRIVE") * planned == found * len(issued), "one fence for each product"
    assert count(sass, r"\bHGMMA.*\.tnspB") <= turned


def by_warps(made: Kernel, sass: str, alone: bool) -> None:
    """Products and fetches of warps: as many as the role program asks of each warp."""
    steps = [s for r in made.roles for s in walk(r.steps)]
    rows = {v.name: v.rows for v in made.values}
    products = [s for s in steps if isinstance(s, Mma)]
    assert count(sass, r"\bHGMMA|UTMA|SYNCS|USETMAXREG") == 0
    if not products:
        return
    planned = sum(rows[s.acc] // 64 * s.n // 8 * s.k // 16 for s in products)
    pieces = sum(s.k // 16 * (s.n // 16 + rows[s.acc] // 64 * isinstance(s.a, SmemOperand)) for s in products)
    turned = sum(s.k // 16 * s.n // 16 for s in products if s.b.major == "MN")
    found = count(sass, r"\bHMMA\.16816")
    assert found == planned if alone else 0 < found <= planned
    if alone:
        assert count(sass, r"\bLDSM") == pieces and count(sass, r"\bLDSM\.16\.MT88") == turned
    assert count(sass, r"\bLDGSTS\.E\.BYPASS\.128") >= sum(isinstance(s, CopyAsync) for s in steps) > 0


def exponentials(made: Kernel, sass: str) -> None:
    """As many as the role program has, for each thread."""
    ops = [o for r in made.roles for s in walk(r.steps) if isinstance(s, Compute) for o in s.ops]
    taken = [(o, x) for o in ops for e in o.exprs for x in expr_walk(e) if isinstance(x, Apply) and x.fn == "exp2"]
    assert count(sass, r"\bMUFU\.EX2") == sum(
        o.rows.count // 32 * (1 if o.cols is None else o.cols.count // 4) for o, _ in taken
    )


def stores(made: Kernel, sass: str) -> None:
    written = [s for r in made.roles for s in walk(r.steps) if isinstance(s, StoreShared)]
    tiles = [made.buffer(s.buffer) for s in written]
    turned = [made.buffer(s.buffer) for r in made.roles for s in walk(r.steps) if isinstance(s, Transpose)]
    planned = sum(b.cols // 16 for b in tiles if b.dtype.nbytes == 2) + sum(-(-b.rows // 64) * b.cols // 32 for b in turned)
    assert count(sass, r"\bSTSM") == planned
    assert count(sass, r"\bUTMASTG") == sum(isinstance(s, TmaStore) for r in made.roles for s in walk(r.steps))
