"""Counts from the role program against the SASS."""

from __future__ import annotations

import pytest

from tests.emit.facts import facts
from tests.emit.hand import attention, gemm
from tests.emit.toolchain import compile_text
from wgdsl.emit import emit
from wgdsl.roles.model import Kernel


@pytest.mark.parametrize("kernel", [gemm(), attention(), attention(d=64, n=64, causal=True)], ids=["gemm", "128", "64"])
def test_facts(kernel: Kernel):
    f, c = facts(kernel), compile_text(emit(kernel))
    assert (f.products, f.fences, f.waits) == (c.count("HGMMA"), c.count("WARPGROUP.ARRIVE"), c.count("WARPGROUP.DEPBAR"))
    assert (f.powers, f.matrices) == (c.count("MUFU.EX2"), c.count("STSM"))
    assert (f.loads, f.stores) == (c.count("UTMALDG"), c.count("UTMASTG"))


def test_attention_in_numbers():
    f = facts(attention(d=128, n=128))
    assert (f.products, f.fences, f.waits, f.powers, f.matrices) == (32, 4, 4, 130, 8)
