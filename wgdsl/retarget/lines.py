"""lines: the placement of a schedule for a target whose threads copy and multiply for themselves.

In: the lines of one kernel in numbers, and the `Shape` that was chosen for it.  Out: its lines for the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..diagnostics.model import WgError
from ..diagnostics.retarget import NotCarried
from ..syntax import ast
from ..targets.registers import WARPS
from ..targets.target import Target
from .carried import Body, Carried
from .steps import Steps, body, overlapped, working

RING = 2  # slots: while one is read the other is filled
PLAIN = "plain: where one CTA begins or ends, another of its SM works"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What is open once the rules are applied. `tiles`: elements by index; `rows`: the index whose tile is shared out; `ring`:
    slots at most; `over`: what each staging buffer lies over."""

    tiles: Mapping[str, int]
    rows: str
    warps: int
    ring: int
    over: Mapping[str, str | None]

    @property
    def each(self) -> int:
        """Rows of a warp."""
        return self.tiles[self.rows] // self.warps


@dataclass(frozen=True, kw_only=True)
class Carry:
    """One kernel's schedule for the target. Lines first, then steps."""

    lines: tuple[Carried, ...]
    body: Body

    @property
    def items(self) -> tuple[ast.ScheduleItem, ...]:
        return (*(c.node for c in self.lines if c.node is not None), self.body.node)  # type: ignore[misc]


@dataclass(frozen=True, kw_only=True)
class Written:
    """What the rules ask of a schedule for one kernel. `outputs`: tensors that are written."""

    schedule: ast.Schedule
    outputs: frozenset[str]
    target: Target

    def of(self, kind: type) -> list:
        return [i for i in self.schedule.items if isinstance(i, kind)]

    @property
    def axis(self) -> str:
        return self.of(ast.StreamDecl)[0].axis

    @property
    def tiles(self) -> dict[str, int]:
        return {i: number(e) for d in self.of(ast.TileDecl) for i, e in d.entries}

    @property
    def role(self) -> ast.RoleDecl:
        """The one that multiplies."""
        name = working(self.of(ast.RoleBody), self.target.name).role
        return next(d for d in self.of(ast.RoleDecl) if d.name == name)

    @property
    def homes(self) -> list[ast.HomeDecl]:
        """Of inputs, in shared memory."""
        return [d for d in self.of(ast.HomeDecl) if d.kind == "smem" and d.engine == "tma" and d.tensor not in self.outputs]

    @property
    def staging(self) -> list[ast.HomeDecl]:
        return [d for d in self.of(ast.HomeDecl) if d.kind == "smem" and d.tensor in self.outputs]

    @property
    def once(self) -> list[str]:
        """Homes that are filled once an item."""
        return [d.name for d in self.homes if self.axis not in d.indices]

    def steps(self, ring: int) -> Steps:
        bodies = tuple(self.of(ast.RoleBody))
        depths = {d.name: min(number(d.ring), ring) for d in self.homes if self.axis in d.indices}
        return Steps(role=working(bodies, self.target.name), bodies=bodies, axis=self.axis, depths=depths)


def number(e: ast.Expr | None, default: int = 1) -> int:
    """A settled number of a schedule."""
    return int(e.value) if isinstance(e, ast.Number) else default


def carry(written: Written, shape: Shape) -> Carry:
    """The schedule in that shape. Raises WgError (WG1021) for what has no counterpart."""
    lines = _Lines(written, shape)
    return Carry(lines=tuple(lines.every()), body=body(written.steps(shape.ring)))


class _Lines:
    def __init__(self, written: Written, shape: Shape):
        self.written, self.shape = written, shape

    def every(self) -> Iterator[Carried]:
        yield self.tile()
        for item in self.written.schedule.items:
            if not isinstance(item, ast.TileDecl | ast.RoleBody | ast.KernelDecl):
                yield self.line(item)

    def tile(self) -> Carried:
        decls, shape = self.written.of(ast.TileDecl), self.shape
        entries = tuple((i, ast.Number(value=n)) for i, n in shape.tiles.items())
        changed = [i for i, n in self.written.tiles.items() if shape.tiles[i] != n]
        why = f"{', '.join(f'`{i}`' for i in changed)}: what accumulators and memory leave room for" if changed else ""
        return Carried(node=ast.TileDecl(entries=entries), was=tuple(decls), why=why)

    def line(self, item: ast.ScheduleItem) -> Carried:
        match item:
            case ast.StreamDecl() | ast.FuseDecl() | ast.CombineDecl() | ast.ApproximateDecl():
                return Carried(node=item, was=(item,))
            case ast.GridDecl():
                return self.grid(item)
            case ast.RoleDecl():
                return self.role(item)
            case ast.HomeDecl():
                return self.home(item)
            case ast.AccumulateDecl():
                return _dropped(item, "products there add to f32 registers whole")
            case ast.SkipDecl():
                return _dropped(item, "warps that copy for each other visit the same tiles")
            case ast.OptionDecl():
                return _dropped(item, "settled: the sizes here are found for its value")
            case ast.TuneDecl():
                return _dropped(item, "the sizes here are found by what fits the target")
        raise self.refused(item, "there is no rule for it")

    def refused(self, item: ast.Node, why: str) -> WgError:
        name = item.name if isinstance(item, ast.HomeDecl) else ""
        what = f"`{item.span.text.split()[0]} {name}".rstrip() + "`" if item.span else "this line"
        return WgError(NotCarried(span=item.span, directive=what, target=self.written.target.name, why=why))

    def grid(self, g: ast.GridDecl) -> Carried:
        if g.with_home is not None:
            raise self.refused(g, "`with` puts items on a barrier, and there is none")
        node = replace(g, persistent=None, joined=False)
        return Carried(node=node, was=(g,), why=PLAIN if g.persistent is not None else "")

    def role(self, d: ast.RoleDecl) -> Carried:
        own = self.written.role
        if d.name != own.name:
            return _dropped(d, f"folded into `{own.name}`: its threads copy for themselves")
        shape = self.shape
        bound = ast.Number(value=self.written.target.thread_registers)
        node = replace(d, count=ast.Number(value=shape.warps), unit="warp", registers=bound, split=shape.rows)
        ctas = "two CTAs" if shape.warps == WARPS else "one CTA"
        return Carried(node=node, was=(d,), why=f"{shape.each} rows a warp; registers for {ctas} an SM")

    def home(self, d: ast.HomeDecl) -> Carried:
        if d.kind == "regs" and d.name == d.tensor and d.cast is None:
            return _dropped(d, "a product has read its operand when it returns: one set is enough")
        if d.engine == "atomic":
            return _dropped(d, "the grid isn't dynamic any more: no items are handed out")
        if d.kind != "smem" or d.engine != "tma":
            raise self.refused(d, "only what is `by tma` has a counterpart: copies of threads")
        if d.cast is not None or d.times is not None or d.permute is not None:
            raise self.refused(d, "no copy of threads gives a tile another form")
        return self.output(d) if d.tensor in self.written.outputs else self.input(d)

    def input(self, d: ast.HomeDecl) -> Carried:
        copies = self.written.target.copies[0]
        depth = number(d.ring)
        streamed = self.written.axis in d.indices
        new = min(depth, self.shape.ring) if streamed else 1
        why = "copied by threads"
        if not streamed and depth > 1:
            why += ", and no next item needs a second slot"
        elif new < depth:
            why += f": {self.slots(new)}"
        node = replace(d, engine=copies, ring=ast.Number(value=new) if new > 1 else None)
        return Carried(node=node, was=(d,), why=why)

    def slots(self, count: int) -> str:
        """Why there aren't more."""
        if count > 1:
            return "one slot is read while the other is filled"
        under = overlapped(self.written.steps(RING))
        return "its slot is filled under the product of the other" if under else "there is memory for one slot"

    def output(self, d: ast.HomeDecl) -> Carried:
        over = self.shape.over[d.name]
        node = replace(d, engine=self.written.target.stores[0], ring=None, over=over)
        why = "stored by threads, 16 bytes at a time"
        if over != d.over:
            why += f", from where `{over}` was" if over is not None else ", from memory of its own: the ring may hold a tile"
        return Carried(node=node, was=(d,), why=why)


def _dropped(item: ast.Node, why: str) -> Carried:
    return Carried(node=None, was=(item,), why=why)


def row_index(written: Written) -> str:
    """The index whose tile warps share out: the one that was shared out, else that of the rows of a left operand in memory."""
    split = written.role.split
    if split in written.tiles:
        return str(split)
    homes = {d.name: d for d in written.homes}
    for s in _issues(written.steps(RING).role.steps):
        left = homes.get(s.left.id if isinstance(s.left, ast.Name) else s.left.base.id)
        for i in left.indices if left is not None else ():
            if i != written.axis and i in written.tiles:
                return i
    why = "no tiled index gives the rows of its products"
    role, target = written.role, written.target.name
    raise WgError(NotCarried(span=role.span, directive=f"role `{role.name}`", target=target, why=why))


def _issues(steps: Iterable[ast.Step]) -> Iterator[ast.IssueStep]:
    for s in steps:
        if isinstance(s, ast.IssueStep):
            yield s
        yield from _issues(getattr(s, "body", ()))
