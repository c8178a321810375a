"""The written legality of a role program: what the form itself demands, before anything is counted.

Each rule looks at one kernel and yields what breaks it: the step (or None for a declaration) and why. `RULES` is the table;
`broken` runs all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from math import gcd, prod

from ..foundation.dtypes import F32, I32
from ..program.expr import Expr, indices_of, loads, polys_of, regs
from ..program.expr import walk as parts_of
from ..program.poly import Poly, Symbol, elements
from . import model as m
from .model import Kernel, Role, Step, walk

Found = tuple[Step | None, str]

ONE_THREAD = (m.Fetch, m.PutItem, m.Expect, m.Tma, m.TmaStore, m.CommitStore, m.WaitStore)
ALL_THREADS = (
    m.Registers, m.Wgmma, m.FenceWgmma, m.Commit, m.WaitGroup, m.FenceAsync, m.BarSync, m.BarArrive, m.Compute, m.Pack, m.Move,
    m.Zero, m.Forget, m.TakeItem, m.StoreShared, m.ReadShared, m.CopyOut, m.StoreGlobal, m.ClearRows, m.Mma, m.CopyAsync,
    m.Transpose,
    m.CommitCopies, m.WaitCopies, m.Classify, m.ListTile, m.Tally,
)  # fmt: skip


MMA_STEP, MMA_COLUMNS, MMA_TYPES = 16, 256, ("bf16", "f16")  # of a product of warps
CHUNK = 16  # bytes that a thread copies at once
ELEMENTS = ("f32", "f16", "bf16", "i32")  # that a thread takes out of shared memory for its registers
COLUMNS = 8  # of a tile that threads read from shared memory, together; rows that a swizzle goes round in
KEYS = 32  # columns of an 8-bit operand in registers: a multiple of these
ROWS_OF_WARP = 16  # that a warp writes at once of a tile which it transposes


@dataclass(frozen=True)
class Rule:
    text: str
    check: Callable[[Kernel], Iterator[Found]]


def broken(kernel: Kernel) -> Iterator[tuple[Rule, Step | None, str]]:
    """Everything that breaks a rule. A kernel whose names don't resolve is looked at no further."""
    named = [(NAMES, s, why) for s, why in NAMES.check(kernel)]
    yield from named
    if named:
        return
    for rule in RULES[1:]:
        for step, why in rule.check(kernel):
            yield rule, step, why


# Names.
_KINDS = {
    "origin": lambda k: [b.name for b in k.buffers],
    "buffer": lambda k: [b.name for b in k.buffers],
    "ring": lambda k: [r.name for r in k.rings],
    "barrier": lambda k: [b.name for b in k.barriers],
    "map": lambda k: [x.name for x in k.maps],
    "tensor": lambda k: [t.name for t in k.tensors],
}
_VALUES = {"acc", "src", "dst", "value", "some", "every", "count"}


def _names(k: Kernel) -> Iterator[Found]:
    known = {kind: set(names(k)) for kind, names in _KINDS.items()}
    for kind, names in _KINDS.items():
        listed = names(k)
        for name in sorted({n for n in listed if listed.count(n) > 1}):
            yield None, f"{kind} `{name}` is declared twice"
    for b in k.buffers:
        yield from _declared(None, "ring", b.ring, known)
        if b.over is not None:
            yield from _declared(None, "buffer", b.over, known)
    for r in k.rings:
        for name in r.buffers:
            yield from _declared(None, "buffer", name, known)
        for name in (r.full, r.empty):
            if name is not None:
                yield from _declared(None, "barrier", name, known)
    for x in (*k.maps, *k.params):
        if x.tensor is not None:
            yield from _declared(None, "tensor", x.tensor, known)
    for role in k.roles:
        values = {v.name for v in k.values if v.role == role.name}
        for s in walk(role.steps):
            yield from _step_names(s, known, values)


def _declared(step: Step | None, kind: str, name: str, known: dict[str, set[str]]) -> Iterator[Found]:
    if name not in known[kind]:
        yield step, f"there is no {kind} `{name}`"


def _step_names(s: Step, known: dict[str, set[str]], values: set[str]) -> Iterator[Found]:
    for part in (s, *(v for f in fields(s) if isinstance(v := getattr(s, f.name), m.SmemOperand | m.Slot | m.RegOperand))):
        for f in fields(part):
            v = getattr(part, f.name)
            if f.name in _KINDS and isinstance(v, str):
                yield from _declared(s, f.name, v, known)
            if f.name in _VALUES and isinstance(v, str) and v not in values:
                yield s, f"there is no value `{v}` in this role"
    for op in s.ops if isinstance(s, m.Compute) else ():
        for name in (op.dst, *sorted(set().union(*(regs(e) for e in op.exprs)))):
            if name not in values:
                yield s, f"there is no value `{name}` in this role"


# Arguments.
def _arguments(k: Kernel) -> Iterator[Found]:
    """A map, and the pointer and strides of a tensor that threads address themselves."""
    have = {(p.kind, p.tensor if p.kind == "pointer" else p.name) for p in k.params}
    have |= {("stride", f"{p.tensor}.{p.axis}") for p in k.params if p.kind == "stride"}
    for role in k.roles:
        for s in walk(role.steps):
            for kind, name in _needed(k, s):
                if (kind, name) not in have:
                    yield s, f"the kernel has no argument `{kind} {name}`"
            if isinstance(s, m.Fetch) and not any(p.kind == "counter" for p in k.params):
                yield s, "the kernel has no counter to take items from"


def _needed(k: Kernel, s: Step) -> Iterator[tuple[str, str]]:
    if isinstance(s, m.Tma | m.TmaStore):
        yield "map", s.map
    direct = [s.tensor] if isinstance(s, m.CopyOut | m.StoreGlobal | m.CopyAsync | m.ListTile | m.Tally) else []
    direct += [a.tensor for a in elements(s.value)] if isinstance(s, m.Read) else []
    for name in (*direct, *(x.tensor for e in m.exprs(s) for x in loads(e))):
        yield "pointer", name
        yield from (("stride", f"{name}.{axis}") for axis in range(len(k.tensor(name).shape)))


# Threads.
def _threads(k: Kernel) -> Iterator[Found]:
    for role in k.roles:
        yield from _by(role.steps, one=role.elected)


def _by(steps: tuple[Step, ...], one: bool) -> Iterator[Found]:
    for s in steps:
        single = isinstance(s, ONE_THREAD) or (isinstance(s, m.Arrive) and s.by == "thread")
        whole = isinstance(s, ALL_THREADS) or (isinstance(s, m.Arrive) and s.by == "warps")
        if single and not one:
            yield s, "this step is for one thread, and all threads of the warpgroup would execute it"
        if whole and one and not isinstance(s, m.Registers):
            yield s, "this step is for a whole warpgroup, and one thread would execute it"
        for block in s.blocks():
            yield from _by(block, one or isinstance(s, m.Elect))


def _registers(k: Kernel) -> Iterator[Found]:
    for role in k.roles:
        every = [s for s in walk(role.steps) if isinstance(s, m.Registers)]
        if role.registers is None:
            yield from ((s, f"role `{role.name}` has no register count") for s in every)
            continue
        if len(every) != 1 or role.steps[0] is not every[0]:
            yield None, f"role `{role.name}` sets its registers {len(every)} times; it does so once, first of all"
        elif every[0].count != role.registers:
            yield every[0], f"role `{role.name}` has {role.registers} registers"


def _warpgroups(k: Kernel) -> Iterator[Found]:
    taken = [w for r in k.roles for w in range(r.first, r.first + r.count)]
    if sorted(taken) != list(range(k.threads // 128)) or k.threads % 128:
        yield None, f"the roles take warpgroups {taken} of a CTA of {k.threads} threads"


# Rings.
def _rings(k: Kernel) -> Iterator[Found]:
    for r in k.rings:
        for name in r.buffers:
            b = k.buffer(name)
            if b.ring != r.name or b.stages != r.stages:
                yield None, f"buffer `{name}` has ring `{b.ring}` and {b.stages} stages, ring `{r.name}` has {r.stages}"
        for name in (r.full, r.empty):
            if name is not None and (k.barrier(name).ring != r.name or k.barrier(name).stages != r.stages):
                yield None, f"barrier `{name}` doesn't belong to ring `{r.name}` of {r.stages} stages"


def _slots(k: Kernel) -> Iterator[Found]:
    """A barrier or buffer is addressed at a position in its own ring, not further back than that goes round."""
    rings = {b.name: b.ring for b in (*k.barriers, *k.buffers)}
    for role in k.roles:
        for s in walk(role.steps):
            for part in (s, *(getattr(s, f) for f in ("a", "b") if isinstance(getattr(s, f, None), m.SmemOperand))):
                slot = getattr(part, "slot", None)
                for name in (getattr(part, f, None) for f in ("buffer", "barrier")):
                    if slot is not None and name is not None and rings[name] != slot.ring:
                        yield s, f"`{name}` belongs to ring `{rings[name]}`, not `{slot.ring}`"
                if slot is not None and slot.lag > k.ring(slot.ring).stages:
                    yield s, f"`s-{slot.lag}` is too far back: ring `{slot.ring}` has {k.ring(slot.ring).stages} stages"


def _arrivals(k: Kernel) -> Iterator[Found]:
    for role in k.roles:
        for s in walk(role.steps):
            if isinstance(s, m.Arrive) and s.by == "warps" and s.count != 1:
                yield s, f"each warp would arrive {s.count} times"


# Items.
def _joined(k: Kernel) -> Iterator[Found]:
    """Of what follows an item only joined items say anything, and they say it once, in every item."""
    for role in k.roles:
        known = set()
        for s in (s for s in walk(role.steps) if isinstance(s, m.Items) and s.joined):
            directly = [x for x in s.body if isinstance(x, m.NextItem)]
            if len(directly) != 1:
                yield s, f"its body names the next item {len(directly)} times"
            if any(isinstance(x, m.Begun) for x in walk(s.body[:-1])):
                yield s, "`begun` is its last step"
            known |= {id(x) for x in walk(s.body)}
        for s in walk(role.steps):
            if _of_next(s) and id(s) not in known:
                yield s, "it tells of the next item, which items learn of only where they are joined"


def _of_next(s: Step) -> bool:
    return isinstance(s, m.NextItem | m.Begun) or (isinstance(s, m.PutItem | m.TakeItem) and s.ahead)


# Shapes.
def _copies(k: Kernel) -> Iterator[Found]:
    for role in k.roles:
        for s in walk(role.steps):
            if isinstance(s, m.Tma | m.TmaStore):
                yield from _copy(k, s)


def _copy(k: Kernel, s: m.Tma | m.TmaStore) -> Iterator[Found]:
    x, b = k.map(s.map), k.buffer(s.buffer)
    rows, rest = divmod(box_elements(x), b.panel_cols)
    parts = s.parts if isinstance(s, m.Tma) else 1
    if len(s.coords) != len(x.dims) or len(x.box) != len(x.dims):
        yield s, f"map `{x.name}` has {len(x.dims)} dimensions"
    elif x.swizzle != b.swizzle or x.dtype != b.dtype:
        yield s, f"map `{x.name}` moves {x.dtype} in swizzle {x.swizzle}, `{b.name}` holds {b.dtype} in swizzle {b.swizzle}"
    elif isinstance(s, m.Tma) and parts > 1 and (rows * parts != b.rows or rows % COLUMNS or not 0 <= s.rows_part < parts):
        yield s, f"the box of map `{x.name}` is no {parts}th part of the rows of a panel of `{b.name}`"
    elif rest or x.box[0] != b.panel_cols or s.panel + panels_of(x, b) > b.panels or (rows > b.rows and rows % b.rows):
        yield s, f"the box of map `{x.name}` is neither whole panels of `{b.name}` nor rows of one"


def panels_of(x: m.TensorMap, b: m.Buffer) -> int:
    """The panels that one copy with a map fills, or the one of which it brings the first rows."""
    return max(box_elements(x) // (b.rows * b.panel_cols), 1)


def box_elements(x: m.TensorMap) -> int:
    """Elements of one copy with a map."""
    out = 1
    for n in x.box:
        out *= n
    return out


def _products(k: Kernel) -> Iterator[Found]:
    for role in k.roles:
        values = {v.name: v for v in k.values if v.role == role.name}
        for s in walk(role.steps):
            if isinstance(s, m.Wgmma | m.Mma):
                yield from _product(k, s, values)
            if isinstance(s, m.Mma):
                yield from _warp_product(s)
            if isinstance(s, m.Transpose):
                yield from _transposed(s, k.buffer(s.buffer), k.buffer(s.origin))
            if isinstance(s, m.ReadShared):
                yield from _elements(s, values[s.dst], k.buffer(s.buffer))
            if isinstance(s, m.StoreShared):
                x, b = values[s.src], k.buffer(s.buffer)
                if x.kind == "tile" and (x.rows, x.cols) != (b.rows, b.cols):
                    yield s, f"`{x.name}` has {x.rows} x {x.cols} elements, a tile of `{b.name}` {b.rows} x {b.cols}"


def _transposed(s: m.Transpose, b: m.Buffer, a: m.Buffer) -> Iterator[Found]:
    if (b.rows, b.cols) != (a.cols, a.rows) or a.dtype != b.dtype or a.dtype.nbytes != 1:
        of = f"`{a.name}`, {a.rows} x {a.cols} of {a.dtype}"
        yield s, f"`{b.name}`, {b.rows} x {b.cols} of {b.dtype}, is no transpose of {of}"
    elif a.cols % ROWS_OF_WARP or a.rows % KEYS:
        yield s, f"a tile of {a.rows} x {a.cols} is no multiple of {KEYS} x {ROWS_OF_WARP}"
    if s.origin_slot.ring != a.ring:
        yield s, f"`{a.name}` belongs to ring `{a.ring}`, not `{s.origin_slot.ring}`"


def _elements(s: m.ReadShared, x: m.Value, b: m.Buffer) -> Iterator[Found]:
    if x.kind != "elements" or (x.rows, x.cols, x.dtype) != (b.rows, b.cols, b.dtype):
        of = f"{x.rows} x {x.cols} of {x.dtype}"
        yield s, f"`{x.name}` is a {x.kind} value, {of}: what is read is `elements`, {b.rows} x {b.cols} of {b.dtype}"
    if b.dtype.name not in ELEMENTS or b.cols % COLUMNS:
        yield s, f"threads read {', '.join(ELEMENTS)} in groups of {COLUMNS} columns, not {b.cols} columns of {b.dtype}"


def _product(k: Kernel, s: m.Wgmma | m.Mma, values: dict[str, m.Value]) -> Iterator[Found]:
    acc = values[s.acc]
    if acc.kind != "tile" or acc.cols != s.n:
        yield s, f"`{s.acc}` is a {acc.kind} of {acc.cols} columns, the product has n {s.n}"
    if acc.rows != m.ROWS and isinstance(s, m.Wgmma):
        yield s, f"`{s.acc}` has {acc.rows} rows, the product {m.ROWS}"
    if isinstance(s.a, m.RegOperand):
        a = values[s.a.value]
        if a.kind != "operand" or (a.rows, a.cols) != (acc.rows, s.k) or a.dtype != s.dtype:
            yield s, f"`{a.name}` is a {a.kind} of {a.cols} columns of {a.dtype}, the product has k {s.k} of {s.dtype}"
    for operand, rows in ((s.a, acc.rows), (s.b, s.n)):
        if isinstance(operand, m.SmemOperand):
            b = k.buffer(operand.buffer)
            shape = (rows, s.k) if operand.major == "K" else (s.k, rows)
            if shape[0] > b.rows or shape[1] > b.cols or b.dtype != s.dtype:
                tile = f"a tile of `{b.name}`, {b.rows} x {b.cols} of {b.dtype}"
                yield s, f"{tile}, is no {operand.major}-major operand of this product"


def _warp_product(s: m.Mma) -> Iterator[Found]:
    if s.n % MMA_STEP or s.k % MMA_STEP or not 0 < s.n <= MMA_COLUMNS or s.k <= 0:
        yield (
            s,
            f"a product of warps has n and k in steps of {MMA_STEP}, n at most {MMA_COLUMNS}: this one has n {s.n}, k {s.k}",
        )
    if s.dtype.name not in MMA_TYPES:
        yield s, f"a product of warps takes {' and '.join(MMA_TYPES)}, not {s.dtype}"


# Copies of threads.
def _chunks(k: Kernel) -> Iterator[Found]:
    """Copies of 16 bytes at once."""
    tiles = {f"{prefix}{a.index}.lo": a.tile for a in k.grid.axes for prefix in ("", m.NEXT)}
    for role in k.roles:
        for s in walk(role.steps):
            if isinstance(s, m.Let):
                tiles[s.name] = _unit(s.value, tiles)
            if isinstance(s, m.CopyAsync) or (isinstance(s, m.CopyOut) and s.wide):
                yield from _chunk(k, s, tiles)


def _chunk(k: Kernel, s: m.CopyAsync | m.CopyOut, units: Mapping[str, int]) -> Iterator[Found]:
    b, t = k.buffer(s.buffer), k.tensor(s.tensor)
    at = [k for k, p in enumerate(s.access) if s.cols.index in p.symbols()]
    alone = [k for k in at if s.access[k].bare == s.cols.index]
    if (s.rows.count, s.cols.count) != (b.rows, b.cols):
        yield s, f"it copies {s.rows.count} x {s.cols.count} elements, and a tile of `{b.name}` has {b.rows} x {b.cols}"
    elif b.dtype != t.dtype:
        yield s, f"`{b.name}` holds {b.dtype}, `{t.name}` {t.dtype}"
    elif len(s.access) != len(t.shape) or s.rows.index == s.cols.index or len(at) != 1 or at != alone:
        yield s, f"`{s.cols.index}` stands alone in one index of `{t.name}`, and in no other"
    elif not any(s.rows.index in p.symbols() for p in s.access):
        yield s, f"no index of `{t.name}` holds `{s.rows.index}`"
    elif b.cols * b.dtype.nbytes % CHUNK or _unit(s.cols.origin, units) * b.dtype.nbytes % CHUNK:
        yield s, f"its rows begin and end at multiples of {CHUNK} bytes"
    elif isinstance(s, m.CopyOut) and not _stored_whole(k, s, t.shape[at[0]]):
        yield s, f"rows of `{t.name}` may end within {CHUNK} bytes: it has to be copied element by element"


def _unit(p: Poly, units: Mapping[str, int]) -> int:
    """What a sum is a multiple of, at least: `units` has those of symbols."""
    of = (abs(c) * prod(units.get(f.name, 1) if isinstance(f, Symbol) else 1 for f in t) for t, c in p.terms)
    return gcd(*of)


def _stored_whole(k: Kernel, s: m.CopyOut, length: Poly) -> bool:
    """Whether rows are whole chunks, or the kernel is told of the tensor's, and they are stored up to the end."""
    extent = k.index_extents.get(s.cols.index, length)
    told = extent == length and any(p.kind == "flag" and p.tensor == s.tensor for p in k.params)
    return told or (extent.constant is not None and extent.constant * k.tensor(s.tensor).dtype.nbytes % CHUNK == 0)


def _values(k: Kernel) -> Iterator[Found]:
    eight = {v.name for v in k.values if v.kind == "operand" and v.dtype.nbytes == 1}
    turned = any(isinstance(s, m.Transpose) for role in k.roles for s in walk(role.steps))
    for s in (s for role in k.roles for s in walk(role.steps)):
        if isinstance(s, m.Pack) and s.dst in eight and k.v8 is None and not turned:
            yield s, f"no columns lie in the order v8, as `{s.dst}` of 8 bits needs them"
        if isinstance(s, m.StoreShared | m.ReadShared) and k.v8 is not None and k.buffer(s.buffer).cols_index == k.v8:
            yield s, f"columns along `{k.v8}` lie in the order v8 in registers, and not in `{s.buffer}`"
    for role in k.roles:
        rows = sorted({v.rows for v in k.values if v.role == role.name and v.kind != "flag"})  # one for each warp
        if len(rows) > 1:
            yield None, f"the tiles of `{role.name}` have {' and '.join(map(str, rows))} rows: those of a role are equally high"
        values = {v.name: v for v in k.values if v.role == role.name}
        for v in values.values():
            other = values.get(v.over or "")
            if v.over is not None and (other is None or (other.kind, other.rows, other.cols) != (v.kind, v.rows, v.cols)):
                yield None, f"`{v.name}` of `{role.name}` can't live in the registers of `{v.over}`: another kind or size"
        yield from _uses(role, values)


def _uses(role: Role, values: dict[str, m.Value]) -> Iterator[Found]:
    for s in walk(role.steps):
        if isinstance(s, m.Classify | m.ListTile):
            yield from ((s, f"`{n}` is no flag") for n in (s.some, s.every) if values[n].kind != "flag")
        if isinstance(s, m.ListTile | m.Tally) and values[s.count].kind != "count":
            yield s, f"`{s.count}` is no count"
        if isinstance(s, m.Pack) and (values[s.dst].kind, values[s.src].kind) != ("operand", "tile"):
            yield s, f"`{s.dst}` must be an operand and `{s.src}` a tile"
        if (
            isinstance(s, m.Pack)
            and values[s.dst].dtype.nbytes == 1
            and (values[s.dst].cols % KEYS or values[s.dst].rows != m.ROWS)
        ):
            yield s, f"`{s.dst}` has no {m.ROWS} rows and a multiple of {KEYS} columns"
        if isinstance(s, m.Zero) and values[s.value].kind not in ("tile", "count"):
            yield s, f"`{s.value}` is no tile and no count"


def _lists(k: Kernel) -> Iterator[Found]:
    """Warps agree on the tile that they have classified just before, all of them, and the list can hold it."""
    for role in k.roles:
        yield from _agreed(role, role.steps)
        for s in (s for s in walk(role.steps) if isinstance(s, m.ListTile | m.Tally)):
            t, axes = k.tensor(s.tensor), len(s.access) + isinstance(s, m.ListTile)
            if t.dtype != I32 or len(t.shape) != axes or not t.written:
                yield s, f"`{t.name}` is to be written, of i32, and have {axes} axes"
        for items in (s for s in walk(role.steps) if isinstance(s, m.Items)):
            yield from _counted(items)


def _counted(items: m.Items) -> Iterator[Found]:
    """In front of a list stands how long it is: whoever goes through it would else go on without an end."""
    at = {id(s): n for n, step in enumerate(items.body) for s in walk((step,))}
    for s in (s for s in walk(items.body) if isinstance(s, m.ListTile)):
        place = (s.tensor, s.count, (*s.access, Poly()))
        tallies = [n for n, t in enumerate(items.body) if isinstance(t, m.Tally) and (t.tensor, t.count, t.access) == place]
        if len(tallies) != 1 or tallies[0] < at[id(s)]:
            yield s, f"`tally` stores `{s.count}` in front of the list once, behind the last tile"


def _agreed(role: Role, steps: tuple[Step, ...]) -> Iterator[Found]:
    for before, s in zip((None, *steps), (*steps, None), strict=True):
        flags = (before.some, before.every) if isinstance(before, m.Classify) else None
        if isinstance(s, m.ListTile) and flags != (s.some, s.every):
            yield s, "the tile isn't classified just before"
        if flags is not None and not isinstance(s, m.ListTile):
            yield before, "nobody agrees on the tile just behind"
        if isinstance(s, m.ListTile) and s.threads != role.count * 128:
            yield s, f"role `{role.name}` has {role.count * 128} threads"
        for block in s.blocks() if s is not None else ():
            yield from _agreed(role, block)


def _adds(k: Kernel) -> Iterator[Found]:
    for role in k.roles:
        for s in walk(role.steps):
            if getattr(s, "add", False):
                tensor = k.map(s.map).tensor if isinstance(s, m.TmaStore) else s.tensor  # type: ignore[attr-defined]
                if k.tensor(tensor).dtype != F32:
                    yield s, f"`{tensor}` holds {k.tensor(tensor).dtype}, and several CTAs add to it"


def _items(k: Kernel) -> Iterator[Found]:
    """An item's number is bound only where items are counted."""
    for role in k.roles:
        for items in (s for s in walk(role.steps) if isinstance(s, m.Items) and not s.counted):
            for s in walk(items.body):
                if isinstance(s, m.If) and "item.ordinal" in indices_of(s.cond):
                    yield s, "it asks for the item's number, and the items aren't counted"


def _reads(k: Kernel) -> Iterator[Found]:
    """What elements say is the same for all roles, and one name is bound to one such integer."""
    found: dict[str, m.Read] = {}
    for role in k.roles:
        for s in (s for s in walk(role.steps) if isinstance(s, m.Read)):
            if found.setdefault(s.name, s) != s:
                yield s, f"`{s.name}` is another integer elsewhere"
            if s.name.startswith(m.NEXT):
                yield s, "nothing is read for the item that follows"
            for t in (k.tensor(a.tensor) for a in elements(s.value)):
                if t.written or t.dtype != I32:
                    what = "written here" if t.written else f"of {t.dtype}"
                    yield s, f"`{t.name}` is {what}, and integers are read from inputs of i32"
    yield from _differing(k)
    for s in (s for role in k.roles for s in walk(role.steps)):
        if isinstance(s, m.Let | m.Loop) and (s.name if isinstance(s, m.Let) else s.var) in found:
            yield s, "it binds a name that is read elsewhere"
        if any(True for p in _integers(s) for _ in elements(p)):
            yield s, "elements of tensors stand in `read` only"


def _differing(k: Kernel) -> Iterator[Found]:
    """Integers that are read once an item, by what differs between those that read them: roles bind names of their own, and
    warpgroups have numbers."""
    bodies = [items.body for r in k.roles for items in walk(r.steps) if isinstance(items, m.Items)]
    reads = [[s for s in body if isinstance(s, m.Read)] for body in bodies]
    shared = {s.name for n, some in enumerate(reads) for s in some if any(s in other for other in reads[:n] + reads[n + 1 :])}
    for body, some in zip(bodies, reads, strict=True):
        lets = {s.name: s.value.symbols() for s in walk(body) if isinstance(s, m.Let)}
        own = {"wg"}
        while more := {name for name, symbols in lets.items() if symbols & own} - own:
            own |= more
        for s in some:
            if other := s.value.symbols() & (own | lets.keys() if s.name in shared else own):
                yield s, f"`{min(other)}` isn't the same for all that read it"


def _integers(s: object) -> Iterator[Poly]:
    """The integers of a step, but for what a `read` is made for."""
    for f in fields(s):  # type: ignore[arg-type]
        v = getattr(s, f.name)
        for x in v if isinstance(v, tuple) else (v,):
            if isinstance(x, Poly) and not (isinstance(s, m.Read) and f.name == "value"):
                yield x
            elif isinstance(x, Expr):
                yield from (p for e in parts_of(x) for p in polys_of(e))
            elif isinstance(x, m.Axis | m.Op | m.SmemOperand):
                yield from _integers(x)


def _once(k: Kernel) -> Iterator[Found]:
    """Items are gone through once."""
    for role in k.roles:
        outside = [s for s in _unelected(role.steps) if isinstance(s, m.Items)]
        for s in (s for s in walk(role.steps) if isinstance(s, m.Items)):
            if not any(s is x for x in outside[:1]):
                yield s, "a role goes through its items once, and not in a branch or a loop"


def _given(k: Kernel) -> Iterator[Found]:
    """Where a role has its items from."""
    for role in k.roles:
        for items in (s for s in walk(role.steps) if isinstance(s, m.Items)):
            inside = list(walk(items.body))
            fetches = [s for s in inside if isinstance(s, m.Fetch)]
            always = [s for s in _unelected(items.body) if isinstance(s, m.Fetch)]
            if items.source == "counter" and (len(fetches) != 1 or len(always) != 1):
                yield items, "items from the counter take one `fetch item`, outside of branches and loops"
            if items.source != "stride" and not items.joined and not any(isinstance(s, m.Leave) for s in items.body):
                yield items, f"items from {items.source} end at a `leave if no item` directly in their body, which is missing"
            if items.source != "counter" and fetches:
                yield fetches[0], "`fetch item` belongs to items from the counter"
            for f in (f for f in fetches if any(s not in items.body or not isinstance(s, m.Read) for s in f.reads)):
                yield f, "what items are passed over by is read of each item first"
            yield from (found for f in fetches for found in _of_another_item(items, f))
            taken = [s for s in inside if isinstance(s, m.TakeItem)]
            if taken and items.source != "work":
                yield taken[0], "`take item` belongs to items from work"
            directly = [s for s in items.body if isinstance(s, m.TakeItem | m.Leave)]
            if items.source == "work" and not items.joined and (len(taken) != 1 or directly[:1] != taken):
                yield items, "items from work take one `take item`, directly in their body, before they leave"


_BINDING = m.Let | m.Read | m.Loop


def _of_another_item(items: m.Items, f: m.Fetch) -> Iterator[Found]:
    """What an item is passed over by is bound of that item: not of the one before."""
    bound = {"item.ordinal", *(s.var if isinstance(s, m.Loop) else s.name for s in walk(items.body) if isinstance(s, _BINDING))}
    for s in (*f.reads, f):
        polys = (s.value, s.low, s.high) if isinstance(s, m.Read) else ()
        said = set().union(*(p.symbols() for p in polys)) if polys else indices_of(f.only)
        for name in sorted(said & bound):
            yield s, f"`{name}` is another item's there: it isn't read of the item that may be passed over"
        bound -= {s.name} if isinstance(s, m.Read) else set()


def _unelected(steps: tuple[Step, ...]) -> Iterator[Step]:
    for s in steps:
        if isinstance(s, m.Elect):
            yield from _unelected(s.body)
        else:
            yield s


NAMES = Rule("every name is declared once, and where it is used", _names)
RULES = (
    NAMES,
    Rule("a map is an argument, and so are the pointer and the strides of a tensor that threads address", _arguments),
    Rule("bulk copies and their events are one thread's; what a warpgroup does together is all threads'", _threads),
    Rule("a role with a register count sets it, once, first of all", _registers),
    Rule("the roles share out the CTA's warpgroups", _warpgroups),
    Rule("a ring's buffers and barriers have its stages", _rings),
    Rule("a buffer or barrier is addressed at a position in its own ring, as many back as that has stages at most", _slots),
    Rule("one thread may arrive several times, each of the warps arrives once", _arrivals),
    Rule("joined items name the next one once, directly in their body, and say last whether they have begun it", _joined),
    Rule("a copy's box fills whole panels of its buffer, in its type and swizzle", _copies),
    Rule("a product's operands and accumulator have its shape and type, a tile that is written its buffer's shape", _products),
    Rule("a copy of threads moves a whole tile, in pieces of 16 bytes", _chunks),
    Rule("what several CTAs add to holds f32", _adds),
    Rule("integers are read from inputs, the same for all roles, and bound by `read` under a name of their own", _reads),
    Rule("a role goes through its items once, outside of branches and loops", _once),
    Rule("items come from one place: the grid, the counter by one fetch each, or what another role has put", _given),
    Rule("an item's number is asked for only where items are counted", _items),
    Rule("a value is used as what it is; two names for the same registers have one kind and size", _values),
    Rule("the warps of a role agree on the tile that they have classified just before, and list it in a tensor of i32", _lists),
)
