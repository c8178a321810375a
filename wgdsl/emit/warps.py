"""Lowerings of products of single warps: mma.sync with operands by ldmatrix.

The address of a 16 x 16 piece of an operand is what holds for the lane (its line, and which half of the piece it fetches) and
what the piece adds. Pieces start on a multiple of 16 lines, so the swizzle of a lane's line is the same in all of them, and a
piece's first chunk is even: an exclusive or away.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..diagnostics.model import InternalError
from ..program.expr import FALSE, TRUE
from ..roles.model import Mma, RegOperand, SmemOperand
from ..targets import mma as m
from ..targets.swizzle import CHUNK, SWIZZLES
from .chunks import row_bits
from .context import RoleContext
from .control import condition
from .lowering import lowers


@lowers(Mma)
def mma(ctx: RoleContext, step: Mma) -> None:
    ctx.need_all_threads(step)
    acc, name = ctx.value(step.acc)
    blocks, steps, pairs = ctx.rows // 64, step.k // m.K, step.n // m.PAIR
    if step.k % m.K or step.n % m.PAIR:
        raise InternalError(f"a product of n = {step.n}, k = {step.k} is no run of m16n8k16 instructions in pairs")
    if step.zero != FALSE:
        _restart(ctx, step, name, acc.length)
    call = ctx.ptx("mma", step.dtype.name)
    with ctx.block():
        names, out = ctx.names(), ctx.out
        right = _Pieces(ctx, step.b, "b", "")
        left = None if isinstance(step.a, RegOperand) else _Pieces(ctx, step.a, "a", f"{ctx.thread()} / 32 * {16 * blocks}")
        b = names.fresh("b")
        out.unroll()
        with out.block(f"for (int k = 0; k < {steps}; ++k)"):
            if left is None:
                assert isinstance(step.a, RegOperand)
                source = ctx.value(step.a.value)[1]
                a = [
                    ", ".join(f"{source}[(2 * k + {q >> 1}) * {ctx.halves} + {2 * block + (q & 1)}]" for q in range(4))
                    for block in range(blocks)
                ]
            else:
                array = names.fresh("a")
                out.line(f"unsigned {array}[{blocks}][4];")
                for block in range(blocks):
                    out.line(left.fetch(f"{array}[{block}]", "k", str(block)))
                a = [", ".join(f"{array}[{block}][{q}]" for q in range(4)) for block in range(blocks)]
            out.unroll()
            with out.block(f"for (int pair = 0; pair < {pairs}; ++pair)"):
                out.line(f"unsigned {b}[4];")
                out.line(right.fetch(b, "k", "pair"))
                for half in range(2):
                    for block in range(blocks):
                        at = f"(2 * pair + {half}) * {4 * blocks} + {4 * block}"
                        out.line(f"{call}(&{name}[{at}], {a[block]}, {b}[{2 * half}], {b}[{2 * half + 1}]);")


def _restart(ctx: RoleContext, step: Mma, name: str, length: int) -> None:
    """What the accumulator held is ignored."""
    loop = (f"for (int at = 0; at < {length}; ++at)", [f"{name}[at] = 0.0f;"])
    if step.zero == TRUE:
        ctx.out.loop(*loop)
        return
    with ctx.block(f"if ({condition(ctx, step.zero)})"):
        ctx.out.loop(*loop)


@dataclass
class _Pieces:
    """The 16 x 16 pieces of one operand in shared memory. `first`: the warp's first line of a left operand."""

    ctx: RoleContext
    operand: SmemOperand
    which: str
    first: str

    def __post_init__(self) -> None:
        ctx, o = self.ctx, self.operand
        self.buffer = ctx.kernel.buffer(o.buffer)
        self.row = m.FETCHES[self.which, o.major]
        self.swizzle = SWIZZLES[self.buffer.swizzle]
        line = "lane % 16" if self.row.plain else "lane % 8 + lane / 16 * 8"
        side = "lane / 16" if self.row.plain else "lane / 8 % 2"
        ctx.lane()
        names, out = ctx.names(), ctx.out
        start, chunk = names.fresh("start"), names.fresh("chunk")
        along = self.first if o.major == "K" else ""
        lines = f"({along} + {line})" if along else f"({line})"
        address = f"{ctx.tile_address(self.buffer, o.part, o.slot)} + {lines} * {self.swizzle.span}"
        # where the left operand is MN-major, the warp's rows are chunks of every line
        self.skip = f"{self.first} / 8" if self.first and o.major == "MN" else ""
        if self.swizzle.chunks == 1:
            out.line(f"const unsigned {start} = {address} + {side} * {self.buffer.panel_bytes};")
            self.start, self.chunk = start, ""
            return
        out.line(f"const unsigned {start} = {address};")
        permuted = f" ^ {row_bits(f'({line})', self.buffer.swizzle)}" if self.swizzle.mask else ""
        out.line(f"const int {chunk} = {side}{permuted};")
        self.start, self.chunk = start, chunk

    def fetch(self, to: str, k: str, block: str) -> str:
        """The ldmatrix of K step `k` and block of 16 rows or columns."""
        down, across = (block, k) if self.operand.major == "K" else (k, block)
        lines = f"{down} * {16 * self.swizzle.span}"
        first = f"2 * {across}" if not self.skip else f"({self.skip} + 2 * {across})"  # of the chunks
        call = self.ctx.ptx("ldmatrix", self.row.transposed)
        return f"{call}({to}, {self.start} + {lines} + {self.place(first)});"

    def place(self, chunk: str) -> str:
        """The distance of a chunk in its line, of the lane's own half."""
        count, panel = self.swizzle.chunks, self.buffer.panel_bytes
        if count == 1:
            return f"{chunk} * {panel}"
        if self.buffer.panels == 1:
            return f"({self.chunk} ^ {chunk}) * {CHUNK}"
        return f"{chunk} / {count} * {panel} + ({self.chunk} ^ {chunk} % {count}) * {CHUNK}"
