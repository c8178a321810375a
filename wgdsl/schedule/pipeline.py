"""pipeline: the loop of a role, expanded into copies with every offset resolved.

In: the body of a `for` and the trip.  Out: an `Expansion`: prologue copies, steady loops (one for each mask class) and drain
copies, each a list of the items that run in it.

A step at offset d on tile j + d runs in iteration j when 0 <= j + d < n; the loop runs j from -max(d) to n - 1 - min(d).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..diagnostics.model import WgError
from ..diagnostics.schedule import NotYetSupported, TileNotNamed, UnknownName
from ..program.poly import Poly, maximum, minimum
from ..syntax import ast
from .mask import Partial, Trip

MAX_COPIES = 4
ZERO = Poly()


@dataclass(frozen=True, kw_only=True)
class Item:
    """One step of the loop body. offset None: it runs in every iteration. turn: number of its `in turn` block."""

    step: ast.Step
    offset: int | None
    turn: int | None = None
    once: bool = False


@dataclass(frozen=True, kw_only=True)
class Copy:
    """kind: prologue, steady, drain. `j`: the iteration; a steady copy is a loop over [start, stop) and `j` its variable.

    low, high: the least and the greatest offset of the loop's steps.  turns: the `in turn` blocks of which every step is in
    range. masks: predicates to test where a step computes.
    """

    kind: str
    j: Poly
    items: tuple[Item, ...]
    turns: frozenset[int]
    masks: tuple[Partial, ...] = ()
    low: int = 0
    high: int = 0
    start: Poly = ZERO
    stop: Poly = ZERO


@dataclass(frozen=True, kw_only=True)
class Expansion:
    """`once`: what runs in place of the loop's `once` blocks if there is no iteration (n = 0)."""

    copies: tuple[Copy, ...]
    once: tuple[Item, ...]
    guarded: bool  # copies other than loops exist: n > 0 must be tested


def offset_of(target: ast.Name | ast.Index, axis: str) -> int | None:
    """The offset d in `X[.., j + d, ..]`; None if the streamed axis isn't mentioned."""
    if isinstance(target, ast.Name):
        return None
    for e in target.indices:
        d = _shift(e, axis)
        if d is not None:
            return d
    raise WgError(TileNotNamed(span=target.span, target=ast_text(target), axis=axis))


def ast_text(node: ast.Node) -> str:
    return node.span.text if node.span else ""


def _shift(e: ast.Expr, axis: str) -> int | None:
    if isinstance(e, ast.Name):
        return 0 if e.id == axis else None
    if isinstance(e, ast.Binary) and e.op in ("+", "-") and isinstance(e.right, ast.Number) and isinstance(e.right.value, int):
        base = _shift(e.left, axis)
        return None if base is None else base + (e.right.value if e.op == "+" else -e.right.value)
    return None


def step_offset(step: ast.Step, axis: str) -> int | None:
    """The offset of a step: that of its operands on the streamed axis, which must agree."""
    if isinstance(step, ast.FillStep):
        return _agree(step, [offset_of(t, axis) for t in step.targets])
    if isinstance(step, ast.IssueStep):
        return _agree(step, [offset_of(t, axis) for t in (step.target, step.left, step.right)])
    if isinstance(step, ast.RescaleStep | ast.FinishStep):
        return None
    if isinstance(step, ast.ComputeStep | ast.PackStep | ast.ProbeStep) and isinstance(step.target, ast.Name):
        raise WgError(TileNotNamed(span=step.target.span, target=step.target.id, axis=axis))
    return offset_of(step.target, axis)  # type: ignore[union-attr]


def _agree(step: ast.Step, offsets: list[int | None]) -> int | None:
    found = {d for d in offsets if d is not None}
    if len(found) > 1:
        raise WgError(NotYetSupported(span=step.span, what="a step whose operands stand at different offsets"))
    return found.pop() if found else None


def flatten(body: tuple[ast.Step, ...], axis: str) -> tuple[Item, ...]:
    """The body as a list, with `in turn` blocks numbered and `once` marked."""

    def go(steps: tuple[ast.Step, ...], turn: int | None, once: bool) -> Iterator[Item]:
        nonlocal turns
        for s in steps:
            if isinstance(s, ast.TurnStep):
                turns += 1
                yield from go(s.body, turns - 1, once)
            elif isinstance(s, ast.OnceStep):
                yield from go(s.body, turn, True)
            elif isinstance(s, ast.ForStep):
                raise WgError(NotYetSupported(span=s.span, what="a `for` inside a `for`"))
            else:
                yield Item(step=s, offset=step_offset(s, axis), turn=turn, once=once)

    turns = 0
    return tuple(go(body, None, False))


def expand(loop: ast.ForStep, trip: Trip, masked: bool) -> Expansion:
    """All copies of the loop. `masked`: whether the role tests predicates, so that loops split at mask boundaries."""
    if loop.axis != trip.axis:
        raise WgError(UnknownName(span=loop.span, what="streamed index", name=loop.axis, known=(trip.axis,)))
    items = flatten(loop.body, trip.axis)
    offsets = [i.offset for i in items if i.offset is not None] or [0]
    high, low = max(offsets), min(offsets)
    if high - low > 1:
        cure = f"offsets here span {low} to {high}; keep them within one of each other"
        raise WgError(NotYetSupported(span=loop.span, what="a pipeline deeper than one iteration", cure=cure))
    parts = _Parts(items, trip, masked, high, low)
    return Expansion(copies=tuple(parts.copies()), once=tuple(i for i in items if i.once), guarded=high > low)


@dataclass(frozen=True)
class _Parts:
    items: tuple[Item, ...]
    trip: Trip
    masked: bool
    high: int
    low: int

    def copies(self) -> Iterator[Copy]:
        first, last = self.trip.first, self.trip.last
        if self.high > self.low:
            items = [i for i in self.items if i.offset in (None, self.high)]
            yield self.copy("prologue", first - self.high, items, self.all_masks)
        yield from self.steady()
        if self.high > self.low:
            yield self.copy("drain", last - self.high, [i for i in self.items if i.offset in (None, self.low)], self.all_masks)

    def copy(self, kind: str, j: Poly, items: list[Item], masks: tuple[Partial, ...], **kw) -> Copy:
        first = kind == "prologue"
        kept = tuple(i for i in items if not i.once or first or self.high == self.low)
        turns = self.complete(items)
        return Copy(kind=kind, j=j, items=kept, turns=turns, masks=masks, low=self.low, high=self.high, **kw)

    def complete(self, items: list[Item]) -> frozenset[int]:
        turns = {i.turn for i in self.items if i.turn is not None}
        return frozenset(t for t in turns if all(i in items for i in self.items if i.turn == t))

    def compute_offset(self) -> int | None:
        found = {i.offset for i in self.items if isinstance(i.step, ast.ComputeStep)}
        if len(found) > 1:
            raise WgError(NotYetSupported(span=self.items[0].step.span, what="`compute` steps at different offsets"))
        return found.pop() if found else None

    @property
    def all_masks(self) -> tuple[Partial, ...]:
        return self.trip.partials if self.masked else ()

    def steady(self) -> Iterator[Copy]:
        """Loops over [-low, n - high), split where a predicate changes between partial and full."""
        var = Poly.of(f"{self.trip.axis}.pos")
        start, stop = self.trip.first - self.low, self.trip.last - self.high
        d = self.compute_offset()
        if not self.masked or d is None:
            yield self.copy("steady", var, list(self.items), (), start=start, stop=stop)
            return
        first = d - self.low  # the smallest position computed here
        segments = self.segments(first)
        for k, (edge, masks) in enumerate(segments):
            last = k == len(segments) - 1
            end = stop if last else minimum(edge - d, stop)
            yield self.copy("steady", var, list(self.items), masks, start=start, stop=end)
            if end == stop:  # what differs lies in the drain
                return
            start = maximum(start, end)

    def segments(self, first: int) -> list[tuple[Poly, tuple[Partial, ...]]]:
        """(end position, masks) of each mask class from position `first` on, counted from the role's first."""
        live = [p for p in self.trip.partials if not (p.stop is not None and (p.stop.constant or first + 1) <= first)]
        everywhere = tuple(p for p in live if p.everywhere)
        prefix = tuple(p for p in live if p.prefix)
        suffix = tuple(p for p in live if not p.prefix and not p.everywhere)
        n = self.trip.last
        out: list[tuple[Poly, tuple[Partial, ...]]] = []
        if prefix:
            out.append((maximum(*(p.stop for p in prefix if p.stop is not None)), (*prefix, *suffix, *everywhere)))
        edge = minimum(*(p.start for p in suffix)) if suffix else n
        out.append((edge, everywhere))
        if suffix:
            out.append((n, (*suffix, *everywhere)))
        if len(out) + (self.high - self.low) * 2 > MAX_COPIES + 1:
            return [(n, tuple(live))]
        return out
