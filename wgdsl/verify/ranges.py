"""range_problems: integers that don't fit 32 bits, divisors that can be 0, and plain numbers too large to be looked into.

In: a kernel.  Out: the steps with such an integer (WG0724). Each symbol lies between bounds: a dim between 0 and `SIZE`, an
index in its axis, a variable in its loop, what a `let` names between those of its value; a product of dims that is an axis of
a tensor is as small as a dim. What a step computes of them is bounded term by term, as the text does it, so that nothing
overflows on the way either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace

from ..diagnostics.verify import IntegerRange
from ..program.expr import Expr
from ..program.expr import walk as parts_of
from ..program.poly import Atom, Factor, Monomial, Poly, Symbol, elements
from ..roles import model as m
from ..roles.limits import LARGEST
from ..roles.model import Kernel, Role, Step
from ..roles.text import step_text
from .control import steering

SIZE = 2**24  # of a dim that the call gives: up to this every integer fits
ROUNDS = 2**16  # of loops on plain numbers, nested ones multiplied
FAR = 2**18  # by which a step of the protocol is moved, or with which a branch compares
ITEMS = 2**24  # of a CTA
BEYOND = 2**10  # of the last tile, elements outside of the tensor

Bounds = tuple[int, int]
INT, LONG = (-LARGEST, LARGEST), (1 - 2**63, 2**63 - 1)  # of a kernel's integers; of what a `read` makes of elements
ELEMENT = (-LARGEST - 1, LARGEST)


@dataclass(frozen=True)
class Known:
    """Bounds of symbols; all others are dims. `axes`: products of dims that are extents of tensors; `dims`: an index -> the dim
    that it is under. `within`: how far integers may go."""

    of: Mapping[str, Bounds]
    axes: frozenset[tuple[str, ...]] = frozenset()
    dims: Mapping[str, str] = field(default_factory=dict)
    within: Bounds = INT

    def binding(self, name: str, bounds: Bounds) -> Known:
        """The same with one more symbol, or one that hides an outer one."""
        return replace(self, of={**self.of, name: bounds}, dims={k: v for k, v in self.dims.items() if k != name})

    def is_axis(self, factors: Monomial) -> bool:
        """Whether a product of dims and indices is under the extent of a tensor's axis."""
        names = tuple(sorted(self.dims.get(f.name, f.name) if isinstance(f, Symbol) else "" for f in factors))
        return names in self.axes


def range_problems(kernel: Kernel) -> Iterator[IntegerRange]:
    """What is wrong with the integers of a kernel's steps: of each step the first."""
    try:
        known = {role.name: _outside(kernel, role) for role in kernel.roles}
    except _Wrong as e:
        span = kernel.roles[0].span if kernel.roles else None
        yield IntegerRange(span=span, step=f"indices of {kernel.name}", part=e.part, why=e.why, cure=e.cure)
        return
    for role in kernel.roles:
        yield from _Walk(kernel, role).problems(known[role.name])


@dataclass(eq=False)
class _Wrong(Exception):
    part: str
    why: str
    cure: str


@dataclass
class _Walk:
    kernel: Kernel
    role: Role
    found: dict[int, IntegerRange] = field(default_factory=dict)

    def problems(self, known: Known) -> Iterator[IntegerRange]:
        self.block(self.role.steps, known, 1)
        yield from self.found.values()

    def block(self, steps: tuple[Step, ...], known: Known, rounds: int) -> None:
        for s in steps:
            inner, times = known, rounds
            try:
                for p in _polys(s):
                    _bounds(p, known)
                if isinstance(s, m.Read) and any(elements(s.value)):
                    _bounds(s.value, replace(known, within=LONG))
                if isinstance(s, m.Loop):
                    inner, times = self.loop(s, known, rounds)
                _steers(s, known)
            except _Wrong as e:
                text = step_text(self.kernel, s)
                self.found.setdefault(id(s), IntegerRange(span=s.span, step=text, part=e.part, why=e.why, cure=e.cure))
                return  # what follows is bounded by it
            if isinstance(s, m.Let):
                known = known.binding(s.name, _bounds(s.value, known))
            if isinstance(s, m.Read):
                known = known.binding(s.name, (_bounds(s.low, known)[0], _bounds(s.high, known)[1]))
            for block in s.blocks():
                self.block(block, inner, times)

    def loop(self, s: m.Loop, known: Known, rounds: int) -> tuple[Known, int]:
        (least, first), (last, most) = _bounds(s.start, known), _bounds(s.stop, known)
        if (least, last) == (first, most):
            rounds *= max(len(range(least, most, s.step)), 1)
        if rounds > ROUNDS:
            why = f"comes to {rounds} rounds, and {ROUNDS} of loops on plain numbers can be looked into"
            cure = "leave the dim free on which they depend, or let the loop run less often"
            raise _Wrong(f"{s.start} .. {s.stop - 1}", why, cure)
        return known.binding(s.var, (least, max(most - 1, least))), rounds


def _outside(kernel: Kernel, role: Role) -> Known:
    """What is known of the symbols that no step binds."""
    of = {"wg": (0, role.count - 1), "item.ordinal": (0, ITEMS), "item.follows": (0, 1), "item.begun": (0, 1)}
    under: dict[str, str] = {}
    for name, extent in kernel.index_extents.items():
        of[name] = 0, _bounds(extent, Known(of))[1] + BEYOND
        under |= {name: extent.bare} if extent.bare is not None else {}
    for a in kernel.grid.axes:
        names = [f"{prefix}{a.index}{'.lo' if a.tile > 1 else ''}" for prefix in ("", m.NEXT)]
        most = max(_bounds(a.blocks, Known(of))[1] - 1, 0) * a.tile
        of |= dict.fromkeys(names, (0, most))
        under |= dict.fromkeys(names, a.blocks.bare) if a.blocks.bare is not None else {}
    extents = (t for x in kernel.tensors for p in x.shape for t, _ in p.terms)
    axes = frozenset(tuple(sorted(str(f) for f in t)) for t in extents if len(t) > 1)
    return Known(of, axes, under)


def _steers(s: Step, known: Known) -> None:
    """What decides about steps, beside how often loops run."""
    for p in steering(s) if not isinstance(s, m.Loop) else ():
        far = max([abs(n) for n in _plain(p)], default=0)
        if far > FAR:
            why = f"holds {far}, and numbers up to {FAR} that decide about steps can be looked into"
            raise _Wrong(str(p), why, "a smaller number")
    if isinstance(s, m.Advance) and _bounds(s.stages, known)[1] < 0:
        raise _Wrong(str(s.stages), "moves the ring back", "advance by 0 or more")


def _plain(p: Poly) -> Iterator[int]:
    """The integers that stand by themselves, in what is divided too."""
    for monomial, c in p.terms:
        if not monomial:
            yield c
        for f in (f for f in monomial if isinstance(f, Atom)):
            for a in f.args[: 1 if f.op in ("floordiv", "mod") else None]:
                yield from _plain(a)


def _polys(s: Step) -> Iterator[Poly]:
    """The integers that a step computes in 32 bits."""
    if isinstance(s, m.Read):
        wide = list(elements(s.value))  # their sum is computed in 64 bits
        yield from (s.low, s.high, *(p for a in wide for p in a.args), *(() if wide else (s.value,)))
        return
    for f in fields(s):
        yield from _in(getattr(s, f.name)) if not f.metadata.get("region") else ()


def _in(x: object) -> Iterator[Poly]:
    if isinstance(x, Poly):
        yield x
    elif isinstance(x, Expr):
        yield from (p for e in parts_of(x) for f in fields(e) for p in _in(_leaf(getattr(e, f.name))))
    elif isinstance(x, tuple):
        for each in x:
            yield from _in(each)
    elif isinstance(x, m.SmemOperand | m.Axis | m.MapOp | m.ReduceOp | m.RoomOp | m.VoteOp):
        for f in fields(x):
            yield from _in(getattr(x, f.name))


def _leaf(x: object) -> object:
    """What of an expression's field isn't under it, and seen by itself."""
    if isinstance(x, tuple):
        return tuple(each for each in x if isinstance(each, Poly))
    return x if isinstance(x, Poly) else None


def _bounds(p: Poly, known: Known) -> Bounds:
    """Between what an integer lies. Raises _Wrong if it, or what it is made of, can leave 32 bits on the way."""
    terms = [_term(t, c, known) for t, c in p.terms]
    low, high = sum(min(a, 0) for a, _ in terms), sum(max(b, 0) for _, b in terms)
    _fits(p, low, high, known)
    return sum(a for a, _ in terms), sum(b for _, b in terms)


def _term(factors: Monomial, c: int, known: Known) -> Bounds:
    low, high = (0, SIZE) if known.is_axis(factors) else (1, 1)
    for f in () if known.is_axis(factors) else factors:
        low, high = _extremes(low, high, *_factor(f, known))
        _fits(Poly(((factors, c),)), low, high, known)
    return min(c * low, c * high), max(c * low, c * high)


def _factor(f: Factor, known: Known) -> Bounds:
    if isinstance(f, Symbol):
        return known.of.get(f.name, (0, SIZE))
    quotient = f.op in ("floordiv", "mod") and known.within == LONG  # taken in 32 bits
    bounds = [_bounds(a, replace(known, within=ELEMENT) if quotient else known) for a in f.args]
    if f.op == "element":
        return ELEMENT
    if f.op in ("min", "max"):
        pick = min if f.op == "min" else max
        return pick(a for a, _ in bounds), pick(b for _, b in bounds)
    (low, high), (least, most) = bounds
    if least <= 0 <= most:
        why, cure = f"divides by `{f.args[1]}`, which can be 0", f"divide by `max({f.args[1]}, 1)`"
        raise _Wrong(str(f), why, cure)
    if f.op == "mod":
        return (0, most - 1) if least > 0 else (least + 1, 0)
    ends = [a // b for a in (low, high) for b in (least, most)]
    return min(ends), max(ends)


def _extremes(a: int, b: int, c: int, d: int) -> Bounds:
    ends = (a * c, a * d, b * c, b * d)
    return min(ends), max(ends)


def _fits(p: Poly, low: int, high: int, known: Known) -> None:
    least, most = known.within
    if low < least or high > most:
        size = high if high >= -low else low
        whose = "what is made of elements goes" if known.within == LONG else "a kernel's integers go"
        why = f"can come to {size} at sizes up to {SIZE}, and {whose} up to {most}"
        raise _Wrong(str(p), why, "smaller numbers, fewer factors, or products of `f32(...)`")
