"""Lowerings of what steers a role: items, loops, branches, names, registers, ring positions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ..diagnostics.model import InternalError
from ..foundation.names import identifier
from ..program.expr import Affine, Const, Expr, Logic, Scalar
from ..program.poly import Poly, element, elements
from ..roles.model import (
    Advance,
    Elect,
    Fetch,
    GridAxis,
    If,
    Items,
    Leave,
    Let,
    Loop,
    PutItem,
    Read,
    Registers,
    Ring,
    Step,
    TakeItem,
)
from ..targets.sm_90a import HOPPER
from .context import RoleContext, stride_key
from .decode import decode, product
from .integers import PRIMARY, PRODUCT, SUM, Integers
from .lowering import lowers
from .writer import bare


def condition(ctx: RoleContext, e: Expr) -> str:
    """A uniform condition as C++."""
    if isinstance(e, Const):
        return "true" if e.value else "false"
    if isinstance(e, Scalar):
        return ctx.scope.get("scalar", e.name)
    if isinstance(e, Affine):
        return at_least_zero(ctx, e.poly)
    if isinstance(e, Logic) and e.op == "not":
        return refusal(ctx, e.args[0])
    if isinstance(e, Logic):
        parts = [condition(ctx, a) for a in e.args]
        nested = [isinstance(a, Logic) and a.op != "not" for a in e.args]
        return f" {'&&' if e.op == 'and' else '||'} ".join(f"({p})" if n else p for p, n in zip(parts, nested, strict=True))
    raise InternalError(f"{type(e).__name__} is no uniform condition: {e}")


def refusal(ctx: RoleContext, e: Expr) -> str:
    """The opposite of a uniform condition."""
    if isinstance(e, Const):
        return "false" if e.value else "true"
    if isinstance(e, Affine):
        return at_least_zero(ctx, -e.poly - 1)
    text = condition(ctx, e)
    return f"!{text}" if isinstance(e, Scalar) else f"!({text})"


def at_least_zero(ctx: RoleContext, p: Poly, ints: Integers | None = None) -> str:
    """`p >= 0`, with what is negative on the other side."""
    ints = ints or ctx.ints
    strict = int(p.number == -1)  # a - b - 1 >= 0 is a > b
    p = p + strict
    plus = Poly(tuple((m, c) for m, c in p.terms if c > 0))
    minus = Poly(tuple((m, -c) for m, c in p.terms if c < 0))
    if plus.constant == 0 and not strict and ints.is_natural(minus):
        return f"{ints.text(minus, SUM)} == 0"
    if minus.constant is not None:
        return f"{ints.text(plus, SUM)} {'>' if strict else '>='} {ints.text(minus, SUM)}"
    return f"{ints.text(minus, SUM)} {'<' if strict else '<='} {ints.text(plus, SUM)}"


@lowers(Items)
def items(ctx: RoleContext, step: Items) -> None:
    grid = ctx.kernel.grid
    if not grid.persistent:
        ctx.out.define("const int", "item", "blockIdx.x")
    first = 0 if grid.persistent or grid.order is not None else 1  # how many blocks the slowest axis has isn't needed there
    counts = dict(zip((a.index for a in grid.axes), _counts(ctx, grid.axes, first), strict=True))
    if not grid.persistent:
        decode(ctx, grid, counts)
        ctx.steps(step.body)
        return
    ctx.item_counts = counts
    ITEMS["joined" if step.joined else step.source](ctx, step, f"const int total = {product(counts.values())};")


def _strided(ctx: RoleContext, step: Items, total: str) -> None:
    ctx.out.line(total)
    head = "for (int item = blockIdx.x; item < total; item += gridDim.x)"
    with each_item(ctx, step, head):
        decode(ctx, ctx.kernel.grid, ctx.item_counts)
        ctx.steps(step.body)


def _counted(ctx: RoleContext, step: Items, total: str) -> None:
    """The loop of the role that takes items from the counter."""
    ctx.out.line(total)
    ctx.out.line("int item = blockIdx.x;")
    with each_item(ctx, step, "while (true)"):
        ctx.steps(step.body)
    set_back(ctx)


def set_back(ctx: RoleContext) -> None:
    """Behind the loop of the role that takes items from the counter."""
    given, left = (counter(ctx, k) for k in range(2))
    ctx.out.comment("the last CTA to leave sets the counter back")
    with ctx.block(f"if (atomicAdd({left}, 1) == gridDim.x - 1)"):
        ctx.out.line(f"atomicExch({given}, 0);")
        ctx.out.line(f"atomicExch({left}, 0);")


def _told(ctx: RoleContext, step: Items, total: str) -> None:
    """The loop of a role that reads items which another one has put down."""
    with each_item(ctx, step, "while (true)"):
        ctx.steps(step.body)


# how the loop over items is written, by where they come from; `joined.py` adds the one that learns of each in the one before
ITEMS = {"stride": _strided, "counter": _counted, "work": _told}


@contextmanager
def each_item(ctx: RoleContext, step: Items, head: str) -> Iterator[None]:
    name = ctx.bind("item.ordinal", True) if step.counted else ""
    if step.counted:
        ctx.out.line(f"int {name} = 0;")
    ctx.out.unroll(1)
    with ctx.block(head):
        yield
        if step.counted:
            ctx.out.line(f"++{name};")


def counter(ctx: RoleContext, which: int) -> str:
    """The address of the launch's counter of items given out (0), or of CTAs that have left (1)."""
    name = next(p.name for p in ctx.kernel.params if p.kind == "counter")
    return f"&{ctx.scope.get('counter', name)}[{ctx.scope.get('scalar', name)}][{which}]"


@lowers(Fetch)
def fetch(ctx: RoleContext, step: Fetch) -> None:
    _only_one(ctx, step)
    name = f"const int {ctx.ahead}" if ctx.ahead else "item"
    take = f"{name} = atomicAdd({counter(ctx, 0)}, 1) + gridDim.x;"
    if not step.reads:
        ctx.out.line(take)
        return
    ctx.out.unroll(1)
    with ctx.block("while (true)"):
        ctx.out.line(take)
        ctx.out.line("if (item >= total) break;")
        decode(ctx, ctx.kernel.grid, ctx.item_counts)
        ctx.steps(step.reads)
        ctx.out.line(f"if ({condition(ctx, step.only)}) break;")


@lowers(PutItem)
def put_item(ctx: RoleContext, step: PutItem) -> None:
    _only_one(ctx, step)
    to = ctx.tile_address(ctx.kernel.buffer(step.buffer), Poly(), step.slot)
    item = ctx.ahead if step.ahead else "item"
    ctx.out.line(f"{ctx.ptx('store_shared_int')}({to}, {item} < total ? {item} : -1);")


def _only_one(ctx: RoleContext, step: Step) -> None:
    if not ctx.elected:
        raise InternalError(f"{type(step).__name__} is for a role of one thread")


@lowers(TakeItem)
def take_item(ctx: RoleContext, step: TakeItem) -> None:
    ctx.need_all_threads(step)
    at = ctx.tile_address(ctx.kernel.buffer(step.buffer), Poly(), step.slot)
    item = ctx.ahead if step.ahead else "item"
    ctx.out.line(f"const int {item} = __shfl_sync(~0u, {ctx.ptx('load_shared_int')}({at}), 0);")


@lowers(Leave)
def leave(ctx: RoleContext, step: Leave) -> None:
    ctx.out.line(f"if ({'item >= total' if ctx.elected else 'item < 0'}) break;")
    decode(ctx, ctx.kernel.grid, ctx.item_counts)


def _counts(ctx: RoleContext, axes: tuple[GridAxis, ...], since: int) -> list[str]:
    """How many blocks each axis has, as a name or a number; none is declared for the axes before `since`."""
    out = []
    for k, axis in enumerate(axes):
        text = ctx.text(axis.blocks, PRIMARY)
        if k >= since and axis.blocks.constant is None and axis.blocks.bare is None:
            name = ctx.names().fresh(identifier(f"{axis.index}_blocks"))
            ctx.out.define("const int", name, bare(text))
            text = name
        out.append(text)
    return out


@lowers(Let)
def let(ctx: RoleContext, step: Let) -> None:
    text, natural = ctx.text(step.value), ctx.ints.is_natural(step.value)
    ctx.out.define("const int", ctx.bind(step.name, natural), text)


@lowers(Read)
def read(ctx: RoleContext, step: Read) -> None:
    """One load for each element. What is made of them may leave 32 bits before it is bounded."""
    natural = ctx.ints.is_natural(step.low)
    low, high = ctx.text(step.low), ctx.text(step.high)
    alone = not any(elements(step.value)) or any(step.value == element(a.tensor, a.args) for a in elements(step.value))
    said = replace(_with_elements(ctx, step.value), wide=not alone).text(step.value)
    if not alone:
        wide = ctx.names().fresh(identifier(f"{step.name}.said"))
        ctx.out.define("const long long", wide, said)
        low, high, said = f"(long long){low}", f"(long long){high}", wide
    bounded = f"min(max({said}, {low}), {high})"
    ctx.out.define("const int", ctx.bind(step.name, natural), bounded if alone else f"(int){bounded}")


def _with_elements(ctx: RoleContext, value: Poly) -> Integers:
    """The integers with those that stand in global memory: those at whose indices others stand come last."""
    ints = ctx.ints
    for a in elements(value):
        offsets = [Poly.of(p) for p in a.args]
        strides = [ctx.scope.get("stride", stride_key(a.tensor, k)) for k in range(len(offsets))]
        place = " + ".join(f"{ints.text(p, PRODUCT)} * {s}" for p, s in zip(offsets, strides, strict=True))
        ints = ints.with_element(a, f"{ctx.scope.get('pointer', a.tensor)}[{place}]")
    return ints


@lowers(Loop)
def loop(ctx: RoleContext, step: Loop) -> None:
    if step.mask.strip("{}"):
        ctx.out.comment(f"mask {step.mask}")
    ctx.out.forget_step()
    start, stop = ctx.text(step.start), ctx.text(step.stop)
    natural = ctx.ints.is_natural(step.start)
    outer = ctx.ints
    name = ctx.bind(step.var, natural)
    ctx.out.unroll(1)
    forward = f"++{name}" if step.step == 1 else f"{name} += {step.step}"
    with ctx.block(f"for (int {name} = {start}; {name} < {stop}; {forward})"):
        ctx.steps(step.body)
    ctx.ints = outer
    ctx.out.forget_step()


@lowers(If)
def branch(ctx: RoleContext, step: If) -> None:
    with ctx.block(f"if ({condition(ctx, step.cond)})"):
        ctx.out.forget_step()
        ctx.steps(step.then)
    ctx.out.forget_step()
    if step.other:
        with ctx.block("else"):
            ctx.steps(step.other)
    ctx.out.forget_step()


@lowers(Elect)
def elect(ctx: RoleContext, step: Elect) -> None:
    if ctx.elected:
        ctx.steps(step.body)
        return
    ctx.elected = True
    with ctx.block(f"if ({ctx.thread()} == 0)"):
        ctx.steps(step.body)
    ctx.elected = False


@lowers(Registers, HOPPER)
def registers(ctx: RoleContext, step: Registers) -> None:
    ctx.need_all_threads(step)
    name = {"inc": "setmaxnreg_inc", "dec": "setmaxnreg_dec"}[step.direction]
    ctx.out.line(f"{ctx.ptx(name)}<{step.count}>();")


@lowers(Advance)
def advance(ctx: RoleContext, step: Advance) -> None:
    ring = ctx.kernel.ring(step.ring)
    stage, phase = ctx.stage_name(ring.name), ctx.phase_name(ring.name)
    ctx.forget_slots(ring.name)
    if step.stages.constant != 1:
        return _advance_by(ctx, ring, step.stages)
    if ring.stages == 1:
        if ctx.has_phase(ring):
            ctx.out.line(f"{phase} ^= 1;")
        return
    if not ctx.has_phase(ring):
        ctx.out.line(f"{stage} = {stage} == {ring.stages - 1} ? 0 : {stage} + 1;")
        return
    with ctx.out.block(f"if (++{stage} == {ring.stages})"):
        ctx.out.line(f"{stage} = 0;")
        ctx.out.line(f"{phase} ^= 1;")


def _advance_by(ctx: RoleContext, ring: Ring, by: Poly) -> None:
    """Several stages at once: the phase turns once for each time round."""
    stage, phase = ctx.stage_name(ring.name), ctx.phase_name(ring.name)
    if ring.stages == 1:
        ctx.out.line(f"{phase} ^= {ctx.text(by, PRIMARY)} & 1;")
        return
    moved = ctx.names().fresh(f"{ring.name}_moved")
    ctx.out.define("const int", moved, f"{stage} + {ctx.text(by, SUM + 1)}")
    if ctx.has_phase(ring):
        ctx.out.line(f"{phase} ^= {moved} / {ring.stages} & 1;")
    ctx.out.line(f"{stage} = {moved} % {ring.stages};")
