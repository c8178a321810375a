"""search: the tiles of a carried schedule.

In: a schedule for one kernel, and a trial that lowers a changed one.  Out: the first shape that fits, from the tiles of the
schedule downwards.

Warps share out as many rows as give the products most to read from each copy: 4 warps of 32 rows, of which two CTAs share an
SM; where accumulators leave no room for that, 8 warps of 16 rows, or 4 of 16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from ..diagnostics.budget import Budgeted
from ..diagnostics.model import WgError
from ..diagnostics.retarget import NothingFits
from ..roles.model import Kernel, Mma, RoleProgram, SmemOperand, walk
from ..syntax import ast
from ..targets.mma import M
from ..targets.registers import WARPS
from ..targets.target import Target
from .lines import RING, Carry, Shape, Written, carry, number, row_index
from .steps import overlapped

WARPS_ROWS_CTAS = ((4, 128, 2), (8, 128, 1), (4, 64, 2), (4, 128, 1), (4, 64, 1))
SIZES = (256, 128, 96, 80, 64, 48, 32)  # of the other tiles
WIDE = 208  # registers a thread for accumulators and operands: addresses, row values and fragments need the others
FRAGMENT = 4  # registers of what one ldmatrix fetches
STEPS = 2  # of K, whose fragments are held at a time: one is fetched under the products of the other
SWIZZLE = 64  # bytes of a row of a panel with which ldmatrix meets no bank twice

Trial = Callable[[ast.Schedule], RoleProgram]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A shape with what it takes. `kernel`: of its products; `wide`: registers of accumulators and operands."""

    shape: Shape
    carry: Carry
    kernel: Kernel
    wide: int
    ctas: int


def search(written: Written, trial: Trial) -> Fit:
    """The first shape that fits. Raises WgError: WG1022 if none does, WG1021 or that of the trial for what can't be said."""
    least, tried = "", 0
    failed: WgError | None = None
    for shape, ctas in _shapes(written):
        carried = carry(written, shape)
        tried += 1
        try:
            program = trial(_schedule(written, carried))
        except WgError as e:
            failed, least = failed or _beyond(e), "; ".join(p.title() for p in e.problems)
            continue
        kernel = next(k for k in program.kernels if k.values)
        why = _too_much(kernel, written.target, ctas)
        if not why:
            return Fit(shape=shape, carry=carried, kernel=kernel, wide=wide(kernel), ctas=ctas)
        least = why
    if failed is not None:
        raise failed
    s = written.schedule
    raise WgError(NothingFits(span=s.span, schedule=s.name, target=written.target.name, tried=tried, least=least))


def wide(kernel: Kernel) -> int:
    """Registers a thread of accumulators and of the operand that a product reads: packed, or fragments of one in memory."""
    tiles = [v for v in kernel.values if v.kind == "tile"]
    packed = sum(v.registers for v in kernel.values if v.kind == "operand")
    fetched = any(isinstance(s, Mma) and isinstance(s.a, SmemOperand) for r in kernel.roles for s in walk(r.steps))
    rows = max(v.rows for v in tiles) if tiles else 0
    return sum(v.registers for v in tiles) + max(packed, STEPS * FRAGMENT * (rows // (WARPS * M) + 1) if fetched else 0)


def _schedule(written: Written, carried: Carry) -> ast.Schedule:
    s = written.schedule
    return ast.Schedule(name=s.name, program=s.program, target=written.target.name, items=carried.items, span=s.span)


def _beyond(e: WgError) -> WgError | None:
    """An error that no other size mends."""
    return None if all(isinstance(p, Budgeted) for p in e.problems) else e


def _too_much(kernel: Kernel, target: Target, ctas: int) -> str:
    """What of it doesn't fit; empty if all does."""
    if wide(kernel) > WIDE:
        return f"accumulators and operands take {wide(kernel)} registers, of {WIDE}"
    room = target.shared_sm // ctas - target.shared_reserved
    if target.shared_bytes(kernel.shared_bytes) > room:
        return f"buffers take {kernel.shared_bytes} bytes of shared memory, of {room} for each of {ctas} CTAs"
    narrow = [b for b in kernel.buffers if b.swizzle < SWIZZLE]
    return f"rows of `{narrow[0].name}` have too few bytes for conflict-free reads" if narrow else ""


def _shapes(written: Written) -> Iterator[tuple[Shape, int]]:
    """Every shape that is tried, with how many CTAs are to share an SM; the best first."""
    rows, role = row_index(written), written.role
    tiles = written.tiles
    most = tiles[rows] * (1 if role.split == rows else number(role.count))
    others = [i for i in tiles if i not in (rows, written.axis)]
    for ring, (warps, count, ctas) in _orders(overlapped(written.steps(RING))):
        if count > max(most, WARPS * M):
            continue
        # The stream's tile first: fewer columns cost less than twice as many barriers.
        for sizes in product(*(_sizes(tiles[i]) for i in (written.axis, *others))):
            chosen = {rows: count, **dict(zip((written.axis, *others), sizes, strict=True))}
            for over in _stagings(written):
                yield Shape(tiles={i: chosen[i] for i in tiles}, rows=rows, warps=warps, ring=ring, over=over), ctas


def _orders(overlapping: bool) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """Slots, with warps, rows and CTAs.

    Where the copy of one operand runs under the product of another, one slot each is enough, and larger tiles are worth more
    than a second one. Else nothing runs under copies with one slot, and it comes last.
    """
    return product((1, RING) if overlapping else (RING, 1), WARPS_ROWS_CTAS)


def _sizes(size: int) -> list[int]:
    return [size, *(n for n in SIZES if n < size)]


def _stagings(written: Written) -> list[dict[str, str | None]]:
    """What each staging buffer may lie over: what is filled once an item, or nothing."""
    names = [d.name for d in written.staging]
    return [dict(zip(names, chosen, strict=True)) for chosen in product((*written.once, None), repeat=len(names))]
