"""Matrix instructions as the machine code shows them: who issues one, its shape, and whether it returns at once.

Shapes and operands: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions" and "Warp Level Matrix Instructions".
Mnemonics: CUDA Binary Utilities, "Instruction Set Reference".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import wgmma
from .descriptor import STEP_BYTES
from .registers import LANES, WARPS


@dataclass(frozen=True, kw_only=True)
class MatrixInstruction:
    """step: the step of role programs that uses it.  mnemonics: how SASS spells it.  warps: how many
    issue one together; each of them spends an issue slot.  asynchronous: the issue returns at once, and `wait` waits for the
    groups that an instruction with `closes` among its operands ends.  reads_shared: operands are read from shared memory by
    the engine itself, else only from registers.  m, n: of one instruction; n None is that of the product."""

    name: str
    step: str
    mnemonics: tuple[str, ...]
    warps: int
    asynchronous: bool
    reads_shared: bool
    m: int
    n: int | None
    wait: str = ""
    closes: str = ""

    def __post_init__(self):
        assert self.asynchronous == bool(self.wait and self.closes)
        assert self.m == 16 * self.warps, "16 rows of each warp"

    @property
    def issuer(self) -> str:
        return {1: "warp", WARPS: "warpgroup"}[self.warps]

    def shape(self, n: int, nbytes: int) -> tuple[int, int, int]:
        """(m, n, k) of one instruction of a product with so many columns, of operands of `nbytes` an element."""
        return self.m, self.n or n, STEP_BYTES // nbytes


INSTRUCTIONS = {
    e.step: e
    for e in (
        MatrixInstruction(
            name="wgmma", step="Wgmma", mnemonics=("HGMMA", "QGMMA", "IGMMA"), warps=WARPS, asynchronous=True,
            reads_shared=True, m=wgmma.M, n=None, wait="WARPGROUP.DEPBAR", closes="gsb0",
        ),
        MatrixInstruction(
            name="mma.sync", step="Mma", mnemonics=("HMMA", "IMMA", "QMMA"), warps=1, asynchronous=False,
            reads_shared=False, m=16, n=8,
        ),
    )
}  # fmt: skip

MATRIX = {mnemonic: e for e in INSTRUCTIONS.values() for mnemonic in e.mnemonics}
COPIES = ("UTMALDG",)  # bulk copies from global to shared memory


def flops(shape: tuple[int, int, int]) -> int:
    """Multiplications and additions of one m x n x k product."""
    m, n, k = shape
    return 2 * m * n * k


_MATRICES = re.compile(r"\.M[TX]?88(?:\.([24]))?\b")  # LDSM.16.M88.4, LDSM.16.MT88.4
_WIDTH = re.compile(r"\.(64|128)\b")  # LDS.U.128; 32 bits without


def loaded_bytes(op: str) -> int:
    """Bytes that one warp brings from shared memory into its registers by an instruction; 0 if it isn't such a one."""
    mnemonic = op.split(".")[0]
    if mnemonic == "LDSM":
        found = _MATRICES.search(op)
        return 128 * int(found[1] or 1) if found else 0
    if mnemonic == "LDS":
        found = _WIDTH.search(op)
        return LANES * int(found[1] if found else 32) // 8
    return 0
