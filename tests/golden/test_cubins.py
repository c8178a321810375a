"""Facts of the machine code of every shipped kernel: nothing spills, nothing is serialised, the instruction mix is as planned.

Counts are asserted, not totals, which move with the compiler. `u` is the number of copies of the stream's loop in the text.
"""

from __future__ import annotations

import re

import pytest

from tests.shipped import KERNELS, Shipped, field_ids
from wgdsl.roles.model import Kernel
from wgdsl.runtime.nvrtc import Compiled
from wgdsl.runtime.sass import disassemble
from wgdsl.runtime.verdict import complaints_of
from wgdsl.targets.registers import launch_registers

BN = 128


def count(sass: str, pattern: str) -> int:
    return len(re.findall(pattern, sass))


def copies(s: Shipped) -> tuple[int, int, int]:
    """(copies of S's product, of O's product, of the softmax) of an attention kernel."""
    causal = dict(s.options)["causal"]
    if s.schedule == "simple":  # one loop for tiles with a mask, one for those without
        return 2, 2, 2
    loops = 2 if causal else 1
    return loops + 1, loops + 1, loops + 1


@pytest.mark.parametrize("shipped", KERNELS, ids=field_ids())
def test_facts(shipped: Shipped):
    kernel = shipped.compile(build=True)
    for made in kernel.roles.kernels:
        one_kernel(made, kernel.binaries[made.name])
    sass = kernel.sass
    if shipped.program.startswith("examples/attention"):
        attention_facts(shipped, sass)
    if shipped.program.startswith("examples/dual_gemm"):
        slices = 4  # of 16 elements along k
        assert count(sass, r"\bHGMMA\.64x128x16") == 2 * 2 * slices, "both products, at the first slice and at later ones"
        assert count(sass, r"\bUTMASTG") == 2, "panels of a result"


def one_kernel(made: Kernel, binary: Compiled) -> None:
    (resources,) = binary.kernels
    assert complaints_of(made, binary) == [], "nothing spills, nothing is serialised (C75xx)"
    sass = disassemble(binary.cubin)
    assert count(sass, r"\b(LDL|STL)\b") == 0
    assert count(sass, r"\bHMMA\b") == 0
    limits = [r.registers for r in made.roles if r.registers is not None]
    assert count(sass, r"USETMAXREG") == len(limits)
    if limits:
        assert resources.registers == launch_registers(made.threads)
        assert max(int(r) for r in re.findall(r"\bR(\d+)\b", sass)) < max(limits)


def attention_facts(s: Shipped, sass: str) -> None:
    d, e = dict(s.dims)["D"], dict(s.dims)["E"]
    scores, outputs, softmaxes = copies(s)
    assert count(sass, rf"\bHGMMA\.64x{BN}x16") + (count(sass, rf"\bHGMMA\.64x{e}x16") if e != BN else 0) == (
        scores * d // 16 + outputs * BN // 16
    )
    assert count(sass, r"\bHGMMA.*\.tnspB") == outputs * BN // 16
    corrected = softmaxes if s.schedule == "simple" else softmaxes - 1
    assert count(sass, r"\bMUFU\.EX2") == softmaxes * BN // 2 + 2 * corrected
    arrives = count(sass, r"WARPGROUP\.ARRIVE")
    assert arrives == scores + outputs, "one fence for each product, not for each instruction"
    assert count(sass, r"\bSTSM") == e // 16 and count(sass, r"\bUTMASTG") == 1
