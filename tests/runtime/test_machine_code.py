"""SASS read back: instructions, and which branches make a loop."""

from __future__ import annotations

import pytest

from wgdsl.runtime.machine_code import Code, Instruction, Loop, read_code

SPINNING = """
        .text.kernel:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR8], R2 ;
        /*0020*/              @!P0 BRA `(.L_x_3) ;
.L_x_2:
        /*0030*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], RZ, !UPT ;
        /*0040*/               @P1 BRA `(.L_x_1) ;
        /*0050*/               @P2 BRA.U.ANY `(.L_x_2) ;
        /*0060*/                   EXIT ;
.L_x_3:
        /*0070*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR8], R2 ;
        /*0080*/              @!P0 BRA `(.L_x_3) ;
        /*0090*/                   BRA `(.L_x_2) ;
.L_x_4:
        /*00a0*/                   BRA `(.L_x_4);
"""


@pytest.fixture
def code() -> Code:
    return read_code(SPINNING)


def test_instructions(code):
    product = code.instructions[3]
    operands = "R24, gdesc[UR4], RZ, !UPT"
    assert product == Instruction(guard="", op="HGMMA.64x128x16.F32.BF16", operands=operands)
    assert product.mnemonic == "HGMMA" and product.named("HGMMA", "QGMMA") and not product.named("HGM")
    branch = code.instructions[2]
    assert (branch.guard, branch.target, branch.leaves) == ("@!P0", ".L_x_3", False)
    assert code.instructions[6].leaves and code.instructions[9].leaves


def test_a_way_back_from_a_wait_is_no_loop(code):
    """The steady loop, and the wait that spins; neither its way back, nor what repeats only where lanes disagree."""
    assert code.loops == (Loop(start=1, stop=5), Loop(start=7, stop=9), Loop(start=10, stop=11))
    assert [i.mnemonic for i in code[code.loops[0]]] == ["SYNCS", "BRA", "HGMMA", "BRA"]


@pytest.mark.parametrize("operands, leaves", [("`(.L_x_1)", True), ("UP0, `(.L_x_1)", False)])
def test_branches_that_may_fall_through(operands, leaves):
    i = Instruction(guard="", op="BRA", operands=operands)
    assert i.leaves == leaves and i.target == ".L_x_1"
    assert not Instruction(guard="", op="BRA.DIV", operands="UR4, `(.L_x_1)").leaves


def test_loops_nest():
    outer, inner = Loop(start=2, stop=9), Loop(start=3, stop=9)
    assert outer.holds(inner) and not inner.holds(outer) and not outer.holds(outer)
