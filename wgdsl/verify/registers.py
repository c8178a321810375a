"""Registers: what setmaxnreg may be asked for, the pool that all warpgroups share, and what a role's values need."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics.budget import Share
from ..diagnostics.model import Problem
from ..diagnostics.schedule import TileShape
from ..diagnostics.verify import Pool, RegisterCount, RegisterNeed, RegisterPool
from ..roles.model import FEW, Kernel, Mma, Registers, Role, SmemOperand, Value, Wgmma, walk
from ..roles.shares import share_of
from ..targets.choice import TARGETS
from ..targets.descriptor import matrix_layout
from ..targets.registers import FILE, count_problem, launch_registers
from ..targets.wgmma import BESIDE, abreast
from .packed import packed_in_place

CONSTANTS = 24  # addresses, ring positions, coordinates, and row values; measured on kernels of 64 to 256 columns
ROW_SHARE = {"warpgroup": 16, "warp": 14}  # of these for row values and flags: more where products take no fragments
SPARE = 8  # left to the assembler; with fewer it spills, or serialises products


def register_problems(kernel: Kernel) -> Iterator[Problem]:
    """Counts that setmaxnreg cannot take, more than the pool holds, or less than the values of a role need; if all are right, a
    result that is too wide for those at launch."""
    launch = launch_registers(kernel.threads * kernel.resident)
    found = list(_of_roles(kernel, launch))
    yield from found or _too_wide(kernel, launch)


def _of_roles(kernel: Kernel, launch: int) -> Iterator[Problem]:
    counts = {r.name: launch if r.registers is None else r.registers for r in kernel.roles}
    wrong = list(_counts(kernel, launch))
    yield from wrong
    pool = Pool(
        shares=tuple((r.name, r.count, counts[r.name]) for r in kernel.roles),
        launch=launch,
        file=FILE,
        resident=kernel.resident,
    )
    if not wrong and pool.asked > pool.granted:
        widest = max(kernel.roles, key=lambda r: counts[r.name])
        yield RegisterPool(span=widest.span, pool=pool)
    for r in kernel.roles:
        yield from _need(kernel, r, counts[r.name], pool)


def _too_wide(kernel: Kernel, launch: int) -> Iterator[TileShape]:
    """The assembler takes an instruction only if its result leaves some of the registers at launch, whatever roles ask for."""
    for s in (s for r in kernel.roles for s in walk(r.steps) if isinstance(s, Wgmma)):
        b = kernel.buffer(s.b.buffer)
        layout = matrix_layout(major=s.b.major, swizzle=b.swizzle, rows=b.rows, cols=b.cols, nbytes=b.dtype.nbytes)
        if abreast(s.n, layout, b.dtype.nbytes, launch):
            continue
        begins = f"a kernel of {kernel.threads} threads begins with {launch} registers a thread"
        rule = f"{begins}, and ptxas wants n / 2 + {BESIDE} for wgmma (C7602)"
        index = b.rows_index if s.b.major == "K" else b.cols_index
        yield TileShape(span=s.span, what="n of this product", value=s.n, rule=rule, index=index, shares=(share_of(b),))
        return


def _counts(kernel: Kernel, launch: int) -> Iterator[RegisterCount]:
    for r in kernel.roles:
        if r.registers is None:
            continue
        why = count_problem(r.registers)
        if why is not None:
            yield RegisterCount(span=r.span, role=r.name, count=r.registers, rule=why)
            continue
        step = r.steps[0]
        assert isinstance(step, Registers)
        if (r.registers < launch and step.direction != "dec") or (r.registers > launch and step.direction != "inc"):
            rule = f"the launch grants {launch}, so it can't `{step.direction}` to that"
            yield RegisterCount(span=step.span or r.span, role=r.name, count=r.registers, rule=rule)


def _need(kernel: Kernel, role: Role, registers: int, pool: Pool) -> Iterator[RegisterNeed]:
    values = [v for v in kernel.values if v.role == role.name and v.over is None]
    wide = sorted((v for v in values if v.kind not in FEW), key=lambda v: -v.registers)
    rows = sum(v.registers for v in values if v.kind in FEW)
    constants = CONSTANTS + max(0, rows - ROW_SHARE[TARGETS[kernel.target].unit])
    inside = packed_in_place(kernel, role)
    shares = [_share(v, inside.get(v.name)) for v in wide]
    shares.append(Share(name="addresses, positions and row values", amount=constants))
    fetched = max((_fragments(s, values) for s in walk(role.steps) if isinstance(s, Mma)), default=0)
    if fetched:
        shares.append(Share(name="fragments of operands in shared memory", amount=fetched))
    if wide and sum(s.amount for s in shares) > registers - SPARE:
        yield RegisterNeed(span=role.span, role=role.name, registers=registers, spare=SPARE, values=tuple(shares), pool=pool)


def _fragments(s: Mma, values: list[Value]) -> int:
    """Registers that ldmatrix fetches for one K step: the left operand's of all blocks, the right one's of 16 columns."""
    left = 4 * next(v.rows for v in values if v.kind == "tile") // 64 if isinstance(s.a, SmemOperand) else 0
    return left + 4


def _share(v: Value, inside: str | None) -> Share:
    shape = f"{v.rows} x {v.cols} {v.dtype}"
    if inside is not None:
        return Share(name=v.name, amount=0, detail=f"{shape}, in the registers of {inside}")
    return Share(name=v.name, amount=v.registers, detail=shape)
