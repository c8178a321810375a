"""compute: what a `compute` step evaluates, as register operations.

A step evaluates everything that its target needs beyond products and earlier computes, and advances the states among it.
A state that no step needs belongs to the last compute.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..diagnostics.model import WgError
from ..diagnostics.schedule import DoneTwice, NotYetSupported, UnknownName
from ..foundation.dtypes import F32
from ..program.expr import Apply, Cmp, Expr, Load, Reg, Select, apply, conjunction, const, loads, rewrite
from ..program.graph import IDENTITY, Map, Reduce
from ..program.poly import Poly
from ..program.streamed import OLD_SUFFIX, State, Streamed
from ..roles.model import OUTWEIGHS, Axis, CompleteOp, MapOp, Op, ReduceOp, RoomOp, Value, VoteOp
from ..syntax import ast
from ..targets.wgmma import M
from . import centre
from .centre import Centred, centred
from .lazy import correction_exponent
from .named import closure, display, resolve


@dataclass(kw_only=True)
class Assignment:
    """Which nodes and states each compute step evaluates, by the step's place in the role's list."""

    nodes: dict[int, tuple[str, ...]]

    def after(self, step: int) -> tuple[str, ...]:
        return tuple(n for k, names in self.nodes.items() if k > step for n in names)


def assign(streamed: Streamed, steps: list[ast.ComputeStep], products: frozenset[str]) -> Assignment:
    """Give each tile node and each state that isn't a product to one compute step."""
    taken: set[str] = set(products)
    out: dict[int, tuple[str, ...]] = {}
    for k, s in enumerate(steps):
        name = s.target.id if isinstance(s.target, ast.Name) else s.target.base.id
        targets = targets_of(streamed, name)
        if not targets:
            known = tuple(display(streamed, n) for n in streamed.order)
            raise WgError(UnknownName(span=s.span, what="tile value", name=name, known=known))
        needed = set().union(*(closure(streamed, t) for t in targets))
        wanted = needed - taken
        if needed and not wanted:
            first = next((f.span for f in steps[:k] if f.target == s.target), None)
            raise WgError(DoneTwice(span=s.span, verb="computed", name=name, first=first))
        out[k] = tuple(n for n in streamed.order if n in wanted)
        taken |= wanted
    rest = [s.name for s in streamed.states if s.name not in taken and not s.is_contract]  # products may be another role's
    if rest and out:
        last = max(out)
        wanted = set().union(*(closure(streamed, r) for r in rest)) - taken
        out[last] = (*out[last], *(n for n in streamed.order if n in wanted))
    return Assignment(nodes=out)


def targets_of(streamed: Streamed, name: str) -> tuple[str, ...]:
    """What `compute NAME` advances: a tile value or state, or all states that an output of that name reads."""
    node = resolve(streamed, name)
    if node:
        return (node,)
    read = (x.tensor for o in streamed.outputs if o.tensor == name for x in loads(o.value))
    return tuple(t for t in dict.fromkeys(read) if (s := streamed.state(t)) is not None and not s.is_contract)


@dataclass(kw_only=True)
class Computer:
    """Turns assigned nodes into operations for one role, and places their registers."""

    streamed: Streamed
    role: str
    rows: int = M  # of its register tiles
    values: dict[str, Value] = field(default_factory=dict)
    home: dict[str, str] = field(default_factory=dict)  # node -> value that holds it
    reading: dict[str, str] = field(default_factory=dict)  # guarded state -> row value that exponents of this tile read
    held: dict[tuple[str, tuple[Poly, ...]], str] = field(default_factory=dict)  # access of a tensor -> its tile in registers
    lazy: dict[str, float] = field(default_factory=dict)  # state -> growth, in log2, up to which it stays where it is
    followed: set[str] = field(default_factory=set)  # states that are scaled to where a lazy one moved, ahead of their own turn
    shifted: set[str] = field(default_factory=set)  # tile nodes whose tile has been moved with it, likewise
    raised: dict[str, int] = field(default_factory=dict)  # tile node -> the power of two by which its tile is larger
    coarse: frozenset[str] = frozenset()  # tile nodes that are rounded to 8 bits

    def declare(self, value: Value) -> str:
        self.values.setdefault(value.name, value)
        return value.name

    def row(self, name: str, partial: bool = False) -> str:
        return self.declare(Value(name=name, role=self.role, kind="row", dtype=F32, partial=partial, rows=self.rows))

    def is_partial(self, s: State) -> bool:
        """Whether lanes may keep their own share of a state: a sum that nothing in the loop reads."""
        read = any(x.tensor == s.name for n in self.streamed.tile for e in n.exprs() for x in loads(e))
        return s.node.op == "sum" and not read and not any(s.name in t.references for t in self.streamed.states)

    def state_value(self, s: State) -> str:
        return self.row(display(self.streamed, s.name), partial=self.is_partial(s))

    def initial(self, names: tuple[str, ...], rows: Axis) -> list[Op]:
        """States before anything has been seen."""
        out: list[Op] = []
        for n in names:
            s = self.streamed.state(n)
            if s is not None:
                start = s.start if s.start is not None else const(float(IDENTITY[s.node.op]))
                out.append(MapOp(dst=self.state_value(s), expr=start, rows=rows))
                kept = {} if (room := self.room(s)) is None else {room: const(0.0)}
                kept |= {name: centre.nothing(raised) for name, (_, raised) in self.offsets(s, rows).items()}
                out += (MapOp(dst=name, expr=e, rows=rows) for name, e in kept.items())
        return out

    def correction_name(self, s: State) -> str:
        """One row value for each distinct correction."""
        distinct = list(dict.fromkeys(t.correction for t in self.streamed.states if t.correction is not None))
        assert s.correction is not None
        k = distinct.index(s.correction)
        return f"{display(self.streamed, s.references[0])}.corr{k or ''}"

    def flag(self, state: str) -> str:
        """Whether a lazy state moved in this warp."""
        return self.declare(Value(name=f"{state}.grown", role=self.role, kind="flag", dtype=F32))

    def tile(self, name: str, cols: int, over: str | None = None) -> str:
        return self.declare(Value(name=name, role=self.role, kind="tile", dtype=F32, cols=cols, over=over, rows=self.rows))

    def weight(self, s: State) -> str | None:
        """The sum that tells what a summand scaled to a lazy state weighs."""
        if s.name not in self.lazy:
            return None
        scaled = (t.name for t in self.streamed.states if s.name in t.references and not t.is_contract)
        return next(scaled, None)

    def room(self, s: State) -> str | None:
        """The row value that says how far a lazy state may stay behind; None where there is no sum to tell."""
        weight = self.weight(s)
        found = None if weight is None else self.streamed.state(weight)
        return None if found is None else self.row(f"{self.state_value(s)}.room", partial=self.is_partial(found))

    def exponents(self, s: State, rows: Axis) -> dict[str, Centred]:
        """Tile node -> its exponent `(x - r) * c` around a lazy state r. What lies far has to be told by the room. A thread
        with four rows has no registers to spare for their offsets."""
        if self.room(s) is None or self.rows > M:
            return {}
        varying = frozenset((rows.index, self.streamed.axis))
        found = ((n, centred(n.body, s.name, varying)) for n in self.streamed.tile if isinstance(n, Map))
        return {n.name: replace(c, raised=self.raised_in(n.name, n.body, c)) for n, c in found if c is not None}

    def raised_in(self, name: str, body: Expr, c: Centred) -> int:
        """By how much an exponent is to be larger: only that of an exponential can be."""
        return self.raised.get(name, 0) if isinstance(body, Apply) and body.fn == "exp2" and body.args[0] == c.whole else 0

    def offsets(self, s: State, rows: Axis) -> dict[str, tuple[Expr, int]]:
        """Row value -> the factor c with which it holds r * c, and by how much less."""
        factors = centre.distinct(self.exponents(s, rows).values())
        return {self.row(f"{self.state_value(s)}.off{k or ''}"): c for k, c in enumerate(factors)}

    def offset(self, s: State, c: Centred, rows: Axis) -> str:
        return next(name for name, factor in self.offsets(s, rows).items() if factor == (c.c, c.raised))

    def raised_state(self, s: State) -> int:
        """The power of two by which a sum is larger, since a tile that it is made of is."""
        return sum(self.raised.get(x.tensor, 0) for x in loads(s.node.body))

    def outweighs(self, s: State) -> float:
        """How much of a lane's share of a sum one summand may be. What is rounded to 8 bits shows four times as soon."""
        return OUTWEIGHS / 4 if any(x.tensor in self.coarse for x in loads(s.node.body)) else OUTWEIGHS

    def moved_flag(self, s: State) -> str | None:
        """The flag without which the correction of a state is no step; None if it always is one."""
        reference = self.streamed.state(s.references[0]) if s.references else None
        return self.flag(self.state_value(reference)) if reference is not None and reference.name in self.lazy else None

    def ops(
        self,
        names: tuple[str, ...],
        later: tuple[str, ...],
        rows: Axis,
        cols: Axis,
        masks: tuple[Expr, ...],
        first: bool,
        partial: Expr | None = None,
    ) -> list[Op]:
        """The operations of one compute step. `later`: nodes of later steps. `first`: statically the first tile. `partial`:
        whether the tile has to be tested at all, where that is known at run time alone."""
        work = _Ops(self, names, later, rows, cols, conjunction(*masks), bool(masks), first)
        if partial is not None:
            work.when = self.declare(Value(name="tile.partial", role=self.role, kind="flag", dtype=F32, rows=self.rows))
            work.emit(VoteOp(dst=work.when, cond=partial, rows=rows))
        for product in work.products():
            work.mask_product(product)
        for n in names:
            work.node(n)
        work.close()
        return work.out


def _raised(body: Expr, power: int) -> Expr:
    """An expression times a power of two: of an exponential the exponent is larger, which costs nothing."""
    if isinstance(body, Apply) and body.fn == "exp2":
        return apply("exp2", apply("add", body.args[0], const(float(power))))
    return apply("mul", body, const(2.0**power))


@dataclass
class _Ops:
    computer: Computer
    names: tuple[str, ...]
    later: tuple[str, ...]
    rows: Axis
    cols: Axis
    predicate: Expr
    masked: bool
    first: bool
    out: list[Op] = field(default_factory=list)
    running: dict[str, str] = field(default_factory=dict)  # state -> row value that holds it in this tile
    moved: list[tuple[str, str]] = field(default_factory=list)
    corrected: set[str] = field(default_factory=set)
    when: str | None = None  # the flag without which nothing has to be masked

    @property
    def streamed(self) -> Streamed:
        return self.computer.streamed

    def emit(self, op: Op) -> None:
        self.out.append(op)

    def products(self) -> list[str]:
        """Tile products that the nodes of this step read."""
        found = []
        for n in self.names:
            node = self.streamed.tile_node(n) or getattr(self.streamed.state(n), "node", None)
            for e in node.exprs() if node else ():
                for x in loads(e):
                    if isinstance(self.streamed.tile_node(x.tensor), Reduce) and x.tensor not in found:
                        found.append(x.tensor)
        return found

    def mask_product(self, name: str) -> None:
        if name in self.streamed.masks and self.masked:
            value = self.computer.home[name]
            self.emit(self.mask(value, name))

    def mask(self, value: str, name: str) -> MapOp:
        """What a node has in place of its elements outside."""
        fill = const(self.streamed.fills[name])
        select = Select(cond=self.read(self.predicate), then=Reg(name=value), other=fill)
        return MapOp(dst=value, expr=select, rows=self.rows, cols=self.cols, when=self.when)

    def map(self, dst: str, e: Expr) -> MapOp:
        return MapOp(dst=dst, expr=e, rows=self.rows, cols=self.cols)

    def read(self, e: Expr) -> Expr:
        def one(x: Expr) -> Expr | None:
            if not isinstance(x, Load):
                return None
            if x.tensor in self.computer.home:
                return Reg(name=self.computer.home[x.tensor])
            if (x.tensor, x.access) in self.computer.held:
                return Reg(name=self.computer.held[x.tensor, x.access])
            if x.tensor.endswith(OLD_SUFFIX):
                s = self.streamed.state(x.tensor.removesuffix(OLD_SUFFIX))
                return Reg(name=self.computer.state_value(s)) if s else None
            s = self.streamed.state(x.tensor)
            if s is None:
                return None
            known = self.running.get(x.tensor) or self.computer.reading.get(x.tensor)
            return Reg(name=known or self.computer.state_value(s))

        return rewrite(e, one)

    def node(self, name: str) -> None:
        state = self.streamed.state(name)
        if state is not None:
            return self.state(state)
        node = self.streamed.tile_node(name)
        assert node is not None and not isinstance(node, Reduce)
        body = node.body  # type: ignore[union-attr]
        masked = name in self.streamed.masks and self.masked
        around = None if self.first else self.around(name)
        if around is not None:
            body = self.shift(name, body, *around)
        if name in self.computer.raised and (around is None or not around[1].raised):
            body = _raised(body, self.computer.raised[name])
        if isinstance(body, Load) and body.tensor in self.computer.home and not masked:
            self.computer.home[name] = self.computer.home[body.tensor]
            return
        value = self.place(name, [x.tensor for x in loads(body)])
        e = self.read(body)
        if masked and self.when is None:
            e = Select(cond=self.read(self.predicate), then=e, other=const(self.streamed.fills[name]))
        if e != Reg(name=value):
            self.emit(self.map(value, e))
        if masked and self.when is not None:
            self.emit(self.mask(value, name))
        self.computer.home[name] = value

    def around(self, name: str) -> tuple[State, Centred] | None:
        """The lazy state around which a node's exponent lies."""
        found = (
            (s, self.computer.exponents(s, self.rows).get(name)) for s in self.streamed.states if s.name in self.computer.lazy
        )
        return next(((s, c) for s, c in found if c is not None), None)

    def shift(self, name: str, body: Expr, s: State, c: Centred) -> Expr:
        """The body over kept offsets. Where one would be large, the tile itself is moved beforehand."""
        value = self.place(name, [x.tensor for x in loads(body)])
        x = self.read(c.x)
        if not (isinstance(x, Reg) and self.registers(x.name) == self.registers(value)):
            self.emit(self.map(value, x))
            x = Reg(name=value)
        offset = self.computer.offset(s, c, self.rows)
        if name not in self.computer.shifted:
            self.move(s, x, offset, c.raised)
        self.computer.shifted.discard(name)
        return c.around(body, x, Reg(name=offset))

    def move(self, s: State, x: Reg, offset: str, raised: int) -> None:
        """A tile by what its offset leaves to it, in the warps in which the state moves."""
        moved = apply("sub", x, centre.base(self.reference(s), offset, raised))
        grown = self.computer.flag(self.computer.state_value(s))
        self.emit(MapOp(dst=x.name, expr=moved, rows=self.rows, cols=self.cols, when=grown))

    def shift_ahead(self, s: State) -> None:
        """The tiles of exponents that nothing else reads, where the state moves: exponents of a later step need no branch."""
        ahead = [n for n in (*self.names, *self.later) if n != s.name]
        packed = [t.name for t in self.streamed.states if t.is_contract]
        for name, c in self.computer.exponents(s, self.rows).items():
            if name not in ahead or not isinstance(c.x, Load) or c.x.tensor not in self.computer.home:
                continue
            still = {x.tensor for n in (*ahead, *packed) if n != name for e in self.exprs(n) for x in loads(e)}
            if not self.is_needed(c.x.tensor, still):
                self.move(s, Reg(name=self.computer.home[c.x.tensor]), self.computer.offset(s, c, self.rows), c.raised)
                self.computer.shifted.add(name)

    def registers(self, value: str) -> str:
        """The value in whose registers one lies."""
        return self.computer.values[value].over or value

    def place(self, name: str, sources: list[str]) -> str:
        """Registers for a tile node: those of an operand that nothing reads any more, else its own."""
        shown = display(self.streamed, name)
        still = self.read_after(name) - {name}
        for source in sources:
            value = self.computer.home.get(source)
            if value is None or self.is_needed(source, still):
                continue
            base = self.registers(value)
            if not isinstance(self.streamed.tile_node(name), Map):
                return value
            return self.computer.tile(shown, self.cols.count, over=base)
        return self.computer.tile(shown, self.cols.count)

    def read_after(self, name: str) -> set[str]:
        """What is read behind a node or state of this step, in it and in later ones."""
        after = self.names[self.names.index(name) + 1 :] + self.later
        packed = (s.node.body for s in self.streamed.states if s.is_contract)
        return {x.tensor for e in (*packed, *(e for n in after for e in self.exprs(n))) for x in loads(e)}

    def is_needed(self, node: str, still: set[str]) -> bool:
        """Whether what a node's registers hold is read under any of these names."""
        value = self.computer.home[node]
        return node in still or any(self.computer.home.get(s) == value for s in still)

    def exprs(self, name: str) -> tuple[Expr, ...]:
        node = self.streamed.tile_node(name)
        if node is not None:
            return node.exprs()
        state = self.streamed.state(name)
        return (state.node.body,) if state else ()

    def state(self, s: State) -> None:
        if s.node.op not in ("sum", "max", "min"):
            raise WgError(NotYetSupported(span=s.node.span, what=f"`{s.node.op}` along the streamed axis"))
        value = self.computer.state_value(s)
        referenced = any(s.name in t.references for t in self.streamed.states)
        dst, lazy = value, s.name in self.computer.lazy and not self.first
        if referenced and not self.first:
            dst = self.computer.row(f"{value}.new", partial=lazy)
            self.moved.append((value, dst))
        if s.correction is not None and s.references[0] in self.computer.lazy and not self.first:
            self.follow(s)
        src = self.read(s.node.body)
        if s.name in self.streamed.masked_states and self.masked:
            src = Select(cond=self.read(self.predicate), then=src, other=const(float(IDENTITY[s.node.op])))
        start: Expr | None = s.start
        if not self.first:
            start = Reg(name=value)
            if s.correction is not None and s.references[0] not in self.computer.lazy:
                start = apply("mul", start, Reg(name=self.correct(s)))
            elif s.kept is not None:
                start = Select(cond=self.read(s.kept), then=start, other=const(float(IDENTITY[s.node.op])))
        lanes = "partial" if lazy or self.computer.is_partial(s) else "full"
        self.emit(ReduceOp(dst=dst, op=s.node.op, src=src, start=start, rows=self.rows, cols=self.cols, lanes=lanes))
        self.running[s.name] = dst
        self.computer.followed.discard(s.name)
        self.weigh(s)
        self.computer.reading.pop(s.name, None)
        guarded = self.guarded(s)
        if lazy and dst != value:
            self.stay(s, value, dst, guarded)
        elif guarded:
            self.guard(s, dst)
        if s.name in self.computer.lazy and self.first:
            self.centre(s)
        for t in self.streamed.states:
            if t.correction is not None and s.name in t.references and not self.first:
                self.correct(t)

    def guarded(self, s: State) -> bool:
        """Whether rows of this tile may have seen nothing yet."""
        return s.name in self.streamed.guarded and (self.masked or not self.streamed.unguarded_when_full)

    def reference(self, s: State) -> str:
        """The row value that exponents subtract, where nothing moves it meanwhile."""
        value = self.computer.state_value(s)
        return self.computer.row(f"{value}.ref") if self.guarded(s) else value

    def guard(self, s: State, dst: str, when: str | None = None) -> None:
        """While a row has seen nothing its maximum is infinite; exponents then subtract 0 instead."""
        ref = self.computer.row(f"{self.computer.state_value(s)}.ref")
        nothing = Cmp(op="eq", left=Reg(name=dst), right=const(float(IDENTITY[s.node.op])))
        self.emit(MapOp(dst=ref, expr=Select(cond=nothing, then=const(0.0), other=Reg(name=dst)), rows=self.rows, when=when))
        self.running[s.name] = self.computer.reading[s.name] = ref

    def stay(self, s: State, value: str, new: str, guarded: bool) -> None:
        """A lazy state takes its new value only in warps in which some row grew by more than the limit, which each lane looks
        at for its own columns; elsewhere all that is scaled to it stays so, and the correction is no step."""
        self.moved.remove((value, new))
        moving = next(t for t in self.streamed.states if s.name in t.references)
        grown = self.computer.flag(value)
        exponent = self.read(correction_exponent(moving))
        room = self.computer.room(s)
        limit = const(-self.computer.lazy[s.name]) if room is None else Reg(name=room)
        self.emit(VoteOp(dst=grown, cond=Cmp(op="lt", left=exponent, right=limit), rows=self.rows))
        self.emit(CompleteOp(value=new, op=s.node.op, when=grown))
        if guarded:
            self.guard(s, new, when=grown)
        self.correct(moving, when=grown)
        for t in self.streamed.states:
            if s.name in t.references and t.name in (*self.names, *self.later):
                self.follow(t)
        self.centre(s, when=grown)
        self.emit(MapOp(dst=value, expr=Reg(name=new), rows=self.rows, when=grown))
        self.shift_ahead(s)
        self.running[s.name] = value
        self.computer.reading.pop(s.name, None)
        if guarded and self.shown(s):
            self.guard(s, value)

    def shown(self, s: State) -> bool:
        """Whether anything in the tile reads a lazy state but by kept offsets."""
        kept = self.computer.exponents(s, self.rows)
        return any(x.tensor == s.name for n in self.streamed.order if n not in kept for e in self.exprs(n) for x in loads(e))

    def centre(self, s: State, when: str | None = None) -> None:
        """What hangs on a lazy state alone, computed where it moves."""
        r = Reg(name=self.running[s.name])
        for name, (c, raised) in self.computer.offsets(s, self.rows).items():
            self.emit(MapOp(dst=name, expr=centre.offset(r, self.read(c), raised), rows=self.rows, when=when))

    def weigh(self, s: State) -> None:
        """After a row's sum: how far the lazy state that it is scaled to may now stay behind. Sums only grow meanwhile."""
        for t in self.streamed.states:
            name = self.computer.room(t) if self.computer.weight(t) == s.name else None
            if name is not None:
                when = None if self.first else self.computer.moved_flag(s)
                offsets = {o: raised for o, (_, raised) in self.computer.offsets(t, self.rows).items()}
                far = centre.far(self.computer.state_value(t), offsets)
                total, limit = self.running[s.name], self.computer.lazy[t.name]
                weight = self.computer.outweighs(s) / 2 ** self.computer.raised_state(s)
                self.emit(RoomOp(dst=name, total=total, limit=limit, rows=self.rows, far=far, when=when, weight=weight))

    def follow(self, s: State) -> None:
        """What was accumulated so far, scaled to where the lazy state has moved; once a tile."""
        if s.name in self.computer.followed:
            return
        self.computer.followed.add(s.name)
        value, corr = self.computer.state_value(s), self.correct(s)
        scaled = apply("mul", Reg(name=value), Reg(name=corr))
        self.emit(MapOp(dst=value, expr=scaled, rows=self.rows, when=self.computer.moved_flag(s)))

    def correct(self, s: State, when: str | None = None) -> str:
        """The factor by which what was accumulated so far is corrected, computed once a tile."""
        name = self.computer.row(self.computer.correction_name(s))
        if name not in self.corrected and all(r in self.running for r in s.references):
            assert s.correction is not None
            self.emit(MapOp(dst=name, expr=self.read(s.correction), rows=self.rows, when=when))
            self.corrected.add(name)
        return name

    def close(self) -> None:
        for value, new in self.moved:
            self.emit(MapOp(dst=value, expr=Reg(name=new), rows=self.rows))
