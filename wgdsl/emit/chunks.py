"""Copies of threads between global and shared memory, 16 bytes at once: cp.async on the way in, plain stores on the way out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..foundation.names import identifier
from ..program.poly import Atom, Poly, Symbol
from ..roles.model import Axis, Buffer, CommitCopies, CopyAsync, CopyOut, Read, WaitCopies, walk
from ..targets.registers import WARPGROUP
from ..targets.swizzle import CHUNK, SWIZZLES
from .context import RoleContext, stride_key
from .integers import PRODUCT, SUM, Integers
from .lowering import lowers


def row_bits(row: str, swizzle: int) -> str:
    """What a row's chunks are permuted by."""
    s = SWIZZLES[swizzle]
    return f"({row} >> {s.row_shift} & {s.mask})" if s.row_shift else f"({row} & {s.mask})"


@lowers(CopyAsync)
def copy_async(ctx: RoleContext, step: CopyAsync) -> None:
    """Each thread copies one chunk of a line and those of lines further down."""
    ctx.need_all_threads(step)
    buffer = ctx.kernel.buffer(step.buffer)
    threads = WARPGROUP * ctx.role.count
    title = f"{step.buffer} = {step.tensor}[{', '.join(map(str, step.access))}]"
    ctx.out.comment(title)
    with ctx.block():
        _Copies(ctx, buffer, step.tensor, step.access, step.rows, step.cols, threads).load(step)


@lowers(CommitCopies)
def commit_copies(ctx: RoleContext, step: CommitCopies) -> None:
    ctx.out.line(f"{ctx.ptx('cp_async_commit')}();")


@lowers(WaitCopies)
def wait_copies(ctx: RoleContext, step: WaitCopies) -> None:
    ctx.out.line(f"{ctx.ptx('cp_async_wait')}<{step.pending}>();")


def copy_wide(ctx: RoleContext, step: CopyOut) -> None:
    """`CopyOut` in pieces of 16 bytes."""
    buffer = ctx.kernel.buffer(step.buffer)
    ctx.out.comment(f"{step.tensor}[{', '.join(map(str, step.access))}], 16 bytes at once")
    with ctx.block():
        _Copies(ctx, buffer, step.tensor, step.access, step.rows, step.cols, WARPGROUP).store(step)


def moved(p: Poly, index: str, by: int) -> int | None:
    """By how much an integer grows when an index grows by so much; None if that isn't always the same."""
    total = 0
    for factors, c in p.terms:
        if index not in Poly(((factors, c),)).symbols():
            continue
        f = factors[0]
        grown = by if isinstance(f, Symbol) else _moved_part(f, index, by)
        if len(factors) > 1 or grown is None:
            return None
        total += c * grown
    return total


def _moved_part(a: Atom, index: str, by: int) -> int | None:
    """The same of a quotient or a remainder."""
    divisor, grown = a.args[-1].constant, moved(a.args[0], index, by)
    if a.op not in ("floordiv", "mod") or not divisor or grown is None or grown % divisor:
        return None
    return grown // divisor if a.op == "floordiv" else 0


@dataclass
class _Copies:
    """A tile shared out to threads in chunks of 16 bytes."""

    ctx: RoleContext
    buffer: Buffer
    tensor: str
    access: tuple[Poly, ...]
    rows: Axis
    cols: Axis
    threads: int

    @property
    def elements(self) -> int:
        """Elements of a chunk."""
        return CHUNK // self.buffer.dtype.nbytes

    @property
    def chunks(self) -> int:
        """Chunks of a line."""
        return self.buffer.cols // self.elements

    @property
    def even(self) -> bool:
        """Whether a thread stays in its column of chunks, and its lines in one swizzle."""
        apart = self.threads // self.chunks
        return self.threads % self.chunks == 0 and apart % 8 == 0 and self.buffer.rows % apart == 0

    def load(self, step: CopyAsync) -> None:
        def one(to: str, source: str, inside: str) -> str:
            return f"{self.ctx.ptx('cp_async')}({to}, {source}, {inside});"

        self.each(step, one)

    def store(self, step: CopyOut) -> None:
        load, store = self.ctx.ptx("load_shared_16"), self.ctx.ptx("store_global_16")

        def one(to: str, source: str, inside: str) -> str:
            return f"if ({inside}) {store}({source}, {load}({to}));"

        self.each(step, one)

    def each(self, step: CopyAsync | CopyOut, one: Callable[[str, str, str], str]) -> None:
        """`one`: the statement for a chunk at an address in shared memory, a pointer, and whether or how far it is inside."""
        ctx, names, out = self.ctx, self.ctx.names(), self.ctx.out
        who = ctx.thread() if self.threads == WARPGROUP else ctx.role_thread()
        tile = names.fresh("tile")
        out.line(f"const unsigned {tile} = {ctx.tile_address(self.buffer, step.part, step.slot)};")
        line, chunk = names.fresh("line"), names.fresh("chunk")
        down = self.down()
        if self.even and down is not None:
            apart = self.threads // self.chunks
            out.line(f"const int {line} = {who} / {self.chunks}, {chunk} = {who} % {self.chunks};")
            at, ints = self.bound(line, chunk)
            out.line(f"const unsigned to = {tile} + {self.offset(line, chunk)};")
            pointer = self.pointer(ints)
            kind = "const char*" if isinstance(step, CopyAsync) else "char*"
            out.line(f"{kind} from = ({kind})({pointer});")
            out.line(f"const long long down = {down} * {self.buffer.dtype.nbytes};")
            inside = self.inside(step, ints, at, f" + {apart} * k")
            body = [one(f"to + k * {apart * SWIZZLES[self.buffer.swizzle].span}", "from + k * down", inside)]
            out.loop(f"for (int k = 0; k < {self.buffer.rows // apart}; ++k)", body)
            return
        count = self.buffer.rows * self.chunks
        out.unroll(4)
        with out.block(f"for (int k = {who}; k < {count}; k += {self.threads})"):
            out.line(f"const int {line} = k / {self.chunks}, {chunk} = k % {self.chunks};")
            at, ints = self.bound(line, chunk)
            kind = "const char*" if isinstance(step, CopyAsync) else "char*"
            out.line(
                one(f"{tile} + {self.offset(line, chunk)}", f"({kind})({self.pointer(ints)})", self.inside(step, ints, at, ""))
            )

    def bound(self, line: str, chunk: str) -> tuple[dict[str, str], Integers]:
        """Declare the element's indices."""
        ctx, ints, at = self.ctx, self.ctx.ints, {}
        for axis, place in ((self.rows, line), (self.cols, f"{chunk} * {self.elements}")):
            name = at[axis.index] = ctx.names().fresh(identifier(f"{axis.index}_at"))
            origin = ctx.text(axis.origin, SUM)
            ctx.out.line(f"const int {name} = {place if origin == '0' else f'{origin} + {place}'};")
            ints = ints.binding(axis.index, name, ctx.ints.is_natural(axis.origin))
        return at, ints

    def pointer(self, ints: Integers) -> str:
        terms = [
            f"{ints.text(p, PRODUCT)} * {self.ctx.scope.get('stride', stride_key(self.tensor, k))}"
            for k, p in enumerate(self.access)
            if p.constant != 0
        ]
        return " + ".join([self.ctx.scope.get("pointer", self.tensor), *terms])

    def down(self) -> str | None:
        """Elements from a line to a thread's next one; None if that isn't always the same."""
        steps = [moved(p, self.rows.index, self.threads // self.chunks) for p in self.access]
        if None in steps:
            return None
        strides = (self.ctx.scope.get("stride", stride_key(self.tensor, k)) for k in range(len(steps)))
        terms = [f"{n}LL * {stride}" for n, stride in zip(steps, strides, strict=True) if n]
        return terms[0] if len(terms) == 1 else f"({' + '.join(terms) or '0'})"

    def offset(self, line: str, chunk: str) -> str:
        s = SWIZZLES[self.buffer.swizzle]
        if s.chunks == 1:
            return f"{chunk} * {self.buffer.panel_bytes} + {line} * {s.span}"
        inner = f"{chunk} % {s.chunks}" if self.buffer.panels > 1 else chunk
        panel = f"{chunk} / {s.chunks} * {self.buffer.panel_bytes} + " if self.buffer.panels > 1 else ""
        return f"{panel}{line} * {s.span} + ({inner} ^ {row_bits(line, self.buffer.swizzle)}) * {CHUNK}"

    def inside(self, step: CopyAsync | CopyOut, ints: Integers, at: dict[str, str], further: str) -> str:
        """How many bytes of a chunk are there, for a copy in; whether it is there, for one out."""
        shape = self.ctx.kernel.tensor(self.tensor).shape
        extents = {p.bare: n for p, n in zip(self.access, shape, strict=True)} | self.ctx.kernel.index_extents
        row = self.rows_inside(step, ints, f"{at[self.rows.index]}{further}", extents[self.rows.index])
        last = extents[self.cols.index]
        whole = last.constant is not None and self.cols.origin.constant == 0 and last.constant == self.cols.count
        col, nbytes = at[self.cols.index], self.buffer.dtype.nbytes
        end = ints.text(last, SUM + 1)
        if isinstance(step, CopyOut):
            return row if whole else f"{row} && {col} < {end}"
        left = str(CHUNK) if whole else f"max(min(({end} - {col}) * {nbytes}, {CHUNK}), 0)"
        return f"{row} ? {left} : 0"

    def rows_inside(self, step: CopyAsync | CopyOut, ints: Integers, row: str, extent: Poly) -> str:
        """Whether a row is there: below the step's limit or its index' extent; where a tensor has said the place, inside the
        array."""
        if isinstance(step, CopyOut) and step.limit is not None:
            return f"{row} < {ints.text(step.limit, SUM + 1)}"
        read = {s.name for s in walk(self.ctx.role.steps) if isinstance(s, Read)}
        shape = self.ctx.kernel.tensor(self.tensor).shape
        said = [(p, n) for p, n in zip(self.access, shape, strict=True) if p.symbols() & read]
        if not any(self.rows.index in p.symbols() for p, _ in said):
            said.append((Poly.of(self.rows.index), extent))
        at = ints.binding(self.rows.index, f"({row})" if len(said) > 1 or said[0][0].bare is None else row, True)
        above = [f"{at.text(p, SUM)} >= 0" for p, _ in said if not at.is_natural(p)]
        return " && ".join([*above, *(f"{at.text(p, SUM)} < {ints.text(n, SUM + 1)}" for p, n in said)])
