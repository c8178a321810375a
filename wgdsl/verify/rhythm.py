"""The number of an item, and dims outside of items: what of them may steer the roles, so that all words of items can be tried.

In: a kernel.  Out: from which item of a CTA on, and after how many, what depends on an item's number comes round again; and
every step that depends on more (WG0701).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import lcm

from ..diagnostics.verify import IllFormedStep
from ..program.poly import Atom, Poly
from ..roles import model as m
from ..roles.model import Kernel, Step
from ..roles.text import step_text
from .control import conditions, decisive, items_of, polys_in, steering
from .letters import ORDINAL, free_dims

NUMBERS = "an item's number steers by comparison with a constant, or by its remainder"
MOST = 64  # items of a CTA that are told apart
DIMS = "outside of items no step of the protocol depends on a dim"
Rhythm = tuple[int, int]  # from which item on, after how many


def rhythm(kernel: Kernel) -> Rhythm:
    """Of a kernel without `item_problems`."""
    found = [r for _, r in _numbered(kernel) if r is not None]
    return max((first for first, _ in found), default=0), lcm(1, *(every for _, every in found))


def item_problems(kernel: Kernel) -> Iterator[IllFormedStep]:
    """Steps that an item's number, or outside of items a dim, steers in a way that isn't looked into."""
    for s, why, cure in _unlike(kernel).values():
        yield IllFormedStep(span=s.span, rule=NUMBERS, why=why, step=step_text(kernel, s), cure=cure)
    dims = free_dims(kernel)
    for role in kernel.roles:
        lets: dict[str, list[Poly]] = {}
        for s in m.walk(tuple(_outside(role.steps))):
            _bind(s, lets)
            if any(p.symbols() & dims for q in steering(s) for p in _put_in(q, lets, dims)):
                why = "a dim steers it, outside of items"
                yield IllFormedStep(span=s.span, rule=DIMS, why=why, step=step_text(kernel, s))


def _unlike(kernel: Kernel) -> dict[int, tuple[Step, str, str]]:
    """The steps that an item's number steers in another way, or that, with those before, tell too many items apart."""
    out: dict[int, tuple[Step, str, str]] = {}
    first, every = 0, 1
    for s, found in _numbered(kernel):
        if found is None:
            cure = "compare the number with a constant, or take its remainder by one"
            out[id(s)] = s, "the number of an item steers it in another way", cure
            continue
        begin, period = max(first, found[0]), lcm(every, found[1])
        if begin + period > MOST:
            why = f"items come round again only after {begin + period}, and {MOST} of a CTA can be told apart"
            out.setdefault(id(s), (s, why, "compare with a smaller number, or take a remainder by one"))
            continue
        first, every = begin, period
    return out


def _outside(steps: tuple[Step, ...]) -> Iterator[Step]:
    """The steps before and behind a role's items."""
    for s in steps:
        if isinstance(s, m.Elect):
            yield from _outside(s.body)
        elif not isinstance(s, m.Items):
            yield s


def _numbered(kernel: Kernel) -> Iterator[tuple[Step, Rhythm | None]]:
    """Each use of an item's number, and how it comes round again, if it does."""
    for role in kernel.roles:
        items = items_of(role)
        if items is None or not items.counted:
            continue
        lets: dict[str, list[Poly]] = {}
        for s in m.walk(items.body):
            _bind(s, lets)
            compared = [p for c in conditions(s) for p in polys_in(c)]
            for kind, polys in ((_periodic, decisive(s)), (_signs, compared)):
                found = (p for q in polys for p in _put_in(q, lets, {ORDINAL}))
                yield from ((s, kind(p)) for p in found if ORDINAL in p.symbols())


def _bind(s: Step, lets: dict[str, list[Poly]]) -> None:
    if isinstance(s, m.Let):
        lets.setdefault(s.name, []).append(s.value)
    if isinstance(s, m.Loop):  # a variable goes through what lies between its bounds
        lets.setdefault(s.var, []).extend((s.start, s.stop))


def _put_in(p: Poly, lets: dict[str, list[Poly]], wanted: set[str]) -> Iterator[Poly]:
    """The integer with what is bound put in, in every combination, where it leads to the wanted symbols."""
    names = [x for x in p.symbols() if x in lets and _leads(x, lets, wanted, frozenset())]
    if not names:
        yield p
        return
    for values in product(*(lets[x] for x in names)):
        inner = {k: v for k, v in lets.items() if k not in names}
        yield from _put_in(p.substitute(dict(zip(names, values, strict=True))), inner, wanted)


def _leads(name: str, lets: dict[str, list[Poly]], wanted: set[str], seen: frozenset[str]) -> bool:
    symbols, seen = {x for v in lets[name] for x in v.symbols()}, seen | {name}
    return bool(symbols & wanted) or any(x in lets and x not in seen and _leads(x, lets, wanted, seen) for x in symbols)


def _periodic(p: Poly) -> Rhythm | None:
    """Of an integer that takes an item's number only by its remainder."""
    periods = [_period(f) for monomial, _ in p.terms for f in monomial if ORDINAL in Poly((((f,), 1),)).symbols()]
    known = [n for n in periods if n is not None]
    return (0, lcm(1, *known)) if len(known) == len(periods) else None


def _period(f: object) -> int | None:
    """After how many items a remainder comes round again."""
    if not isinstance(f, Atom) or f.op != "mod":
        return None
    return _divisors(f)


def _divisors(f: Atom) -> int | None:
    """The product of all that is divided by within a remainder or quotient; None if there is more to it."""
    if f.op not in ("mod", "floordiv") or not f.args[1].constant:
        return None
    out = f.args[1].constant
    for a in (x for arg in f.args for monomial, _ in arg.terms for x in monomial if isinstance(x, Atom)):
        inner = _divisors(a)
        if inner is None:
            return None
        out *= inner
    return out


def _signs(p: Poly) -> Rhythm | None:
    """Of a comparison with 0: beside remainders, the number itself may be compared with a constant."""
    slope = p.coefficient(ORDINAL)
    if slope is None or not slope.constant:
        return _periodic(p)
    rest = p.substitute({ORDINAL: 0})
    if rest.constant is None:
        return None
    far = abs(rest.constant)
    return (-(-far // slope.constant) if slope.constant > 0 else far // -slope.constant + 1), 1
