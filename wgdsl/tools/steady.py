"""The steady loop of a role: the one in its steps, and the same one in the machine code.

In: a kernel of the role program, and its code.  Out: `Steady`, whose numbers are per tile of the streamed axis: one iteration
of the loop in the steps, however often the assembler or the schedule has unrolled it.

The two are matched by what they hold, matrix instructions or copies, and never by name or place: the assembler moves code. Of
several that match (a copy for each mask class), the one with the fewest instructions for its work is the steady one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ..roles import model as m
from ..roles.model import Kernel, Role, Step, Value, walk
from ..runtime.machine_code import Code, Instruction
from ..targets.machine import COPIES, INSTRUCTIONS, MATRIX, MatrixInstruction, flops
from ..targets.wgmma import M


@dataclass(frozen=True, kw_only=True)
class Product:
    """A product step. rows: of one group of 4 warps."""

    step: m.Wgmma | m.Mma
    engine: MatrixInstruction
    rows: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """(m, n, k) of one of its instructions."""
        return self.engine.shape(self.step.n, self.step.dtype.nbytes)

    @property
    def flops(self) -> int:
        """Of the whole product of one group of 4 warps."""
        return flops((self.rows, self.step.n, self.step.k))

    @property
    def instructions(self) -> int:
        """Those that each warp issues."""
        return self.flops * self.engine.warps // (flops(self.shape) * 4)


@dataclass(frozen=True, kw_only=True)
class Steady:
    """loop: in the steps, and its products.  code: the instructions of one pass through the loop of the machine code, which
    does `tiles` tiles.  warps: those that run it."""

    role: Role
    loop: m.Loop
    code: tuple[Instruction, ...]
    warps: int
    tiles: int
    products: tuple[Product, ...] = ()

    @property
    def slots(self) -> float:
        """Instructions that each warp issues, a tile."""
        return len(self.code) / self.tiles

    @property
    def flops(self) -> float:
        """Of all the role's warps, a tile."""
        return sum(p.flops for p in self.products) * self.role.count / self.loop.step


def products_of(kernel: Kernel, steps: tuple[Step, ...]) -> Iterator[Product]:
    """Every product among the steps; of two branches those of one, that with more."""
    for s in steps:
        if isinstance(s, m.Wgmma | m.Mma):
            yield Product(step=s, engine=INSTRUCTIONS[type(s).__name__], rows=rows_of(kernel.value(s.acc)))
        elif isinstance(s, m.If):
            yield from max((tuple(products_of(kernel, b)) for b in s.blocks()), key=lambda b: sum(p.flops for p in b))
        else:
            for b in s.blocks():
                yield from products_of(kernel, b)


def rows_of(value: Value) -> int:
    """Rows of a tile that a group of 4 warps holds."""
    return getattr(value, "rows", M)


def steady(kernel: Kernel, role: Role, code: Code) -> Steady | None:
    """The steady loop of a role; None if it has none, or the assembler left none of its kind."""
    warps = 1 if role.elected else 4 * role.count
    found: list[Steady] = []
    for loop in _innermost(role.steps):
        products = tuple(products_of(kernel, loop.body))
        for body, times in _alike(code, loop, products):
            found.append(Steady(role=role, loop=loop, code=body, warps=warps, tiles=times * loop.step, products=products))
    work = max((s.flops for s in found), default=0)
    return min((s for s in found if s.flops == work), key=lambda s: s.slots, default=None)


def _alike(code: Code, loop: m.Loop, products: tuple[Product, ...]) -> Iterator[tuple[tuple[Instruction, ...], int]]:
    """The loops of the machine code that may be this one: by its matrix instructions, or else by its copies."""
    issued = sum(p.instructions for p in products)
    copies = sum(isinstance(s, m.Tma) for s in walk(loop.body))
    if issued:
        yield from _matching(code, issued, MATRIX)
    elif copies:
        yield from _matching(code, copies, COPIES, without=MATRIX)


def _innermost(steps: tuple[Step, ...]) -> Iterator[m.Loop]:
    """Loops without another one in them."""
    for s in walk(steps):
        if isinstance(s, m.Loop) and not any(isinstance(x, m.Loop) for x in walk(s.body)):
            yield s


def _matching(
    code: Code, wanted: int, names: Collection[str], without: Collection[str] = ()
) -> Iterator[tuple[tuple[Instruction, ...], int]]:
    """Innermost loops that hold so many instructions of these names, or else a multiple of it, and how many times over."""
    held = {loop: sum(i.mnemonic in names for i in code[loop]) for loop in code.loops}
    whole = {
        loop: n // wanted
        for loop, n in held.items()
        if n
        and n % wanted == 0
        and not any(held[other] and loop.holds(other) for other in held)
        and not any(i.mnemonic in without for i in code[loop])
    }
    once = [loop for loop, times in whole.items() if times == 1]
    for loop in once or whole:
        yield code[loop], whole[loop]


def overlaps(engine: MatrixInstruction, code: tuple[Instruction, ...]) -> list[int]:
    """For each group of products that one pass issues, in order: how many instructions stand between its last matrix
    instruction and the wait that ends it, perhaps in the next pass. 0 where the engine waits by itself."""
    if not engine.asynchronous:
        return []
    flying: list[int] = []
    found: dict[int, int] = {}
    for at, i in enumerate(code * 3):  # a group may stay in flight into the next pass, and the first one starts with none
        if i.mnemonic in engine.mnemonics and engine.closes in i.operands:
            flying.append(at)
        elif i.named(engine.wait):
            pending = int(i.operands.rsplit(",", 1)[1], 0)
            done, flying = flying[: max(0, len(flying) - pending)], flying[max(0, len(flying) - pending) :]
            found |= {issued: at - issued - 1 for issued in done}
    return [found[k] for k in sorted(found) if len(code) <= k < 2 * len(code)]


def groups(steps: tuple[Step, ...]) -> list[tuple[str, ...]]:
    """The accumulators of each group of products that the steps issue, in order."""
    found: list[tuple[str, ...]] = []
    issued: list[str] = []
    for s in walk(steps):
        if isinstance(s, m.Wgmma | m.Mma):
            issued.append(s.acc)
        elif isinstance(s, m.Commit):
            found.append(tuple(issued))
            issued = []
    return found
