"""steps: the lists of steps of a schedule's roles as the one list of a role that copies for itself.

In: the role that multiplies, every role's steps, and which homes are streamed, with the depths of their rings.  Out: a `Body`.

Products are done when they are issued, so a tile is done with in its own iteration: steps stand in the order in which they
reached one tile, all at its position. What the first products read is filled a tile ahead of them, everything else at the start
of the iteration, so that it arrives under them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.retarget import NotCarried
from ..syntax import ast
from .carried import Body, Carried

AT_ONCE = "products are done when they are issued"
OWN_TILE = "products block, so a tile is done with in its own iteration"
MOVED = "in the order in which steps reach one tile"
BY_WARPS = "by single warps"
SHARED_OUT = "copied by all threads of the role"


@dataclass(frozen=True, kw_only=True)
class Group:
    """Homes that are filled in one step, and the steps that said so."""

    homes: tuple[str, ...]
    fills: tuple[ast.FillStep, ...]
    depth: int = 1

    def step(self, axis: str, ahead: int) -> ast.FillStep:
        return ast.FillStep(targets=tuple(tile(h, axis, ahead) for h in self.homes))


@dataclass(frozen=True, kw_only=True)
class Steps:
    """What the list of steps depends on. `depths`: of the ring of each streamed home; the others are filled once an item."""

    role: ast.RoleBody
    bodies: tuple[ast.RoleBody, ...]
    axis: str
    depths: Mapping[str, int]


def body(given: Steps) -> Body:
    """The one list. Raises WgError (WG1021) for what it can't say."""
    before, loop, after = _sections(given.role)
    groups = _groups(given)
    streamed = [g for g in groups if set(g.homes) & given.depths.keys()]
    once = [Carried(node=ast.FillStep(targets=tuple(ast.Name(id=h) for h in g.homes)), was=g.fills, why=SHARED_OUT)
            for g in groups if g not in streamed]  # fmt: skip
    steps, dropped = _in_order(loop, given.axis)
    return Body(
        role=given.role.role,
        axis=given.axis,
        before=(*once, *(_outside(s) for s in before)),
        loop=(*_with_fills(steps, streamed, given.axis), *dropped),
        after=tuple(_outside(s) for s in after),
    )


def working(bodies: Iterable[ast.RoleBody], target: str) -> ast.RoleBody:
    """The role that does more than fill. Raises WgError (WG1021) if several do, or none does."""
    bodies = tuple(bodies)
    found = [b for b in bodies if any(not isinstance(s, ast.FillStep) for s in leaves(b.steps))]
    if len(found) > 1:
        why = f"`{found[0].role}` multiplies too, and on {target} one role fills, multiplies and stores"
        raise WgError(NotCarried(span=found[1].span, directive=f"role `{found[1].role}`", target=target, why=why))
    if not found:
        raise WgError(NotCarried(span=bodies[0].span, directive="a schedule without products", target=target, why="nothing uses them"))
    return found[0]


def overlapped(given: Steps) -> bool:
    """Whether something is read behind the first products: its copy runs under them."""
    streamed = [g for g in _groups(given) if set(g.homes) & given.depths.keys()]
    steps, _ = _in_order(_sections(given.role)[1], given.axis)
    return len(leading(streamed, (c.node for c in steps if c.node is not None))) < len(streamed)  # type: ignore[misc]


def shallowest(groups: Iterable[Group]) -> int:
    return min(g.depth for g in groups)


# Names and positions.


def name_of(t: ast.Name | ast.Index) -> str:
    return t.id if isinstance(t, ast.Name) else t.base.id


def tile(home: str, axis: str, ahead: int = 0) -> ast.Index:
    index: ast.Expr = ast.Name(id=axis)
    if ahead:
        index = ast.Binary(op="+", left=index, right=ast.Number(value=ahead))
    return ast.Index(base=ast.Name(id=home), indices=(index,))


def offset(node: Any, axis: str) -> int | None:
    """d in `axis + d`, wherever it stands in a step; None if the axis isn't mentioned."""
    if isinstance(node, ast.Name):
        return 0 if node.id == axis else None
    if isinstance(node, ast.Binary) and isinstance(node.left, ast.Name) and isinstance(node.right, ast.Number):
        sign = {"+": 1, "-": -1}.get(node.op)
        return sign * int(node.right.value) if sign and node.left.id == axis else None
    if isinstance(node, ast.Index):
        return next((d for i in node.indices if (d := offset(i, axis)) is not None), None)
    parts = [getattr(node, f.name) for f in fields(node) if f.name != "span"] if isinstance(node, ast.Step) else []
    return next((d for p in parts if isinstance(p, ast.Index) and (d := offset(p, axis)) is not None), None)


def at_own_tile(node: Any, axis: str) -> Any:
    """The step with every `axis + d` as `axis`."""
    if isinstance(node, ast.Index):
        return replace(node, indices=tuple(ast.Name(id=axis) if offset(i, axis) is not None else i for i in node.indices))
    if not isinstance(node, ast.Step):
        return node
    new = {f.name: at_own_tile(getattr(node, f.name), axis) for f in fields(node) if f.name != "span"}
    return replace(node, **new)


def leaves(steps: Iterable[ast.Step]) -> Iterator[ast.Step]:
    for s in steps:
        if isinstance(s, ast.ForStep | ast.OnceStep | ast.TurnStep):
            yield from leaves(s.body)
        else:
            yield s


# What is filled.


def _groups(given: Steps) -> list[Group]:
    """Every group of homes in the order of its first fill; the parts of a home (`Qs.0`, `Qs.rest`) are one."""
    found: dict[tuple[str, ...], list[ast.FillStep]] = {}
    for s in (s for b in given.bodies for s in leaves(b.steps) if isinstance(s, ast.FillStep)):
        found.setdefault(tuple(name_of(t).split(".")[0] for t in s.targets), []).append(s)
    return [Group(homes=h, fills=tuple(f), depth=given.depths.get(h[0], 1)) for h, f in found.items()]


def leading(groups: Iterable[Group], steps: Iterable[ast.Step]) -> list[Group]:
    """Those that the first products read: the ones in front of every other step."""
    read: set[str] = set()
    for s in steps:
        if isinstance(s, ast.IssueStep):
            read |= {name_of(s.left), name_of(s.right)}
        elif read:
            break
    return [g for g in groups if read & set(g.homes)]


def _with_fills(steps: list[Carried], groups: list[Group], axis: str) -> list[Carried]:
    """The steps of the loop, with what they read filled in time."""
    first = leading(groups, (c.node for c in steps if isinstance(c.node, ast.Step)))
    others = [g for g in groups if g not in first]
    ahead = [_fill(g, axis, 1, ", a tile ahead") for g in first]
    now = [_fill(g, axis, 0, ", under the product before its own") for g in others]
    readers = [n for n, c in enumerate(steps) if _reads(c.node, first)]
    if not first:
        return [*now, *steps]
    if not others and shallowest(first) > 1:
        return [_await(first[-1], axis, "tells that it is there, and that the tile before has been read"), *ahead, *steps]
    if shallowest(groups) > 1:
        at = _first_run_end(steps, first)
        return [*now, *steps[:at], *ahead, *steps[at:]]
    at = readers[-1] + 1  # one slot: its next tile comes when this one has been read by all
    then = [g for g in others if not any(_reads(c.node, [g]) for c in steps[:at])]
    meet = [_await(then[0], axis, f"tells that it is there, and that `{first[0].homes[0]}` has been read")] if then else []
    start = [_await(first[-1], axis, "tells that it is there, and that the slots filled next have been read")] if now else []
    return [*start, *now, *steps[:at], *meet, *ahead, *steps[at:]]


def _first_run_end(steps: list[Carried], first: list[Group]) -> int:
    """Behind the last of the first products that reads what is filled ahead."""
    end = 0
    for n, c in enumerate(steps):
        if _reads(c.node, first):
            end = n + 1
        elif end and not isinstance(c.node, ast.IssueStep):
            break
    return end


def _reads(node: ast.Node | None, groups: Iterable[Group]) -> bool:
    homes = {h for g in groups for h in g.homes}
    return isinstance(node, ast.IssueStep) and bool({name_of(node.left), name_of(node.right)} & homes)


def _fill(g: Group, axis: str, ahead: int, why: str) -> Carried:
    return Carried(node=g.step(axis, ahead), was=g.fills, why=SHARED_OUT + why)


def _await(g: Group, axis: str, why: str) -> Carried:
    return Carried(node=ast.AwaitStep(target=tile(g.homes[0], axis)), why=why)


# The steps of the role itself.


def _sections(role: ast.RoleBody) -> tuple[list[ast.Step], list[ast.Step], list[ast.Step]]:
    """Before the loop, in it, and behind; a turn around the loop is opened."""
    steps: list[ast.Step] = []
    for s in role.steps:
        steps += [s, *s.body] if isinstance(s, ast.TurnStep) else [s]
    loops = [n for n, s in enumerate(steps) if isinstance(s, ast.ForStep)]
    if len(loops) != 1:
        what = "a second loop" if loops else "a role without a loop"
        span = steps[loops[1]].span if loops else role.span
        raise WgError(NotCarried(span=span, directive=what, target="", why="the steps of a tile have to stand in one loop"))
    loop = steps[loops[0]]
    assert isinstance(loop, ast.ForStep)
    return steps[: loops[0]], list(loop.body), steps[loops[0] + 1 :]


def _outside(s: ast.Step) -> Carried:
    """A step outside the loop."""
    if isinstance(s, ast.AwaitStep):
        return Carried(node=None, was=(s,), why="derived: the first step that reads it waits for it")
    if isinstance(s, ast.TurnStep):
        return Carried(node=None, was=(s,), why=f"{AT_ONCE}: there is nothing to take turns at")
    return Carried(node=s, was=(s,))


def _in_order(loop: list[ast.Step], axis: str) -> tuple[list[Carried], list[Carried]]:
    """The steps in the order in which they reach one tile; and what is dropped."""
    timed: list[tuple[int, Carried]] = []
    dropped: list[Carried] = []
    last = max((d for s in leaves(loop) if isinstance(s, ast.ComputeStep) and (d := offset(s, axis)) is not None), default=0) - 1
    for s in _opened(loop):
        if isinstance(s, ast.FillStep):
            continue
        why = _dropped(s)
        if why:
            dropped.append(Carried(node=None, was=(s,), why=why))
            continue
        if isinstance(s, ast.RescaleStep):  # it applies the corrections of the compute before it
            timed.append((last, Carried(node=s, was=(s,))))
            continue
        d = offset(s, axis) or 0
        last = d if isinstance(s, ast.ComputeStep) else last
        timed.append((d, _at_own_tile(s, axis)))
    ordered = [c for _, c in sorted(timed, key=lambda t: -t[0])]
    moved = [c for _, c in timed] != ordered
    return [replace(c, why=c.why or MOVED) if moved and _moved(c, timed, ordered) else c for c in ordered], dropped


def _moved(c: Carried, timed: list[tuple[int, Carried]], ordered: list[Carried]) -> bool:
    """Whether another step now stands before it."""
    old = [x for _, x in timed]
    return old.index(c) != ordered.index(c)


def _opened(steps: Iterable[ast.Step]) -> Iterator[ast.Step]:
    """The steps, each block followed by what stands in it."""
    for s in steps:
        yield s
        if isinstance(s, ast.TurnStep | ast.OnceStep):
            yield from _opened(s.body)


def _dropped(s: ast.Step) -> str:
    """Why a step has nothing to say any more; empty if it has."""
    if isinstance(s, ast.AwaitStep):
        return AT_ONCE
    if isinstance(s, ast.TurnStep):
        return f"its steps stay; {AT_ONCE}: there is nothing to take turns at"
    if isinstance(s, ast.OnceStep):
        kept = [x for x in leaves(s.body) if not isinstance(x, ast.AwaitStep | ast.FillStep)]
        if kept:
            raise WgError(NotCarried(span=s.span, directive="`once`", target="", why="its steps would run for every tile"))
        return "nothing is left in it"
    return ""


def _at_own_tile(s: ast.Step, axis: str) -> Carried:
    new = at_own_tile(s, axis)
    if isinstance(new, ast.IssueStep):
        new = replace(new, engine="mma")
        return Carried(node=new, was=(s,), why=BY_WARPS if not offset(s, axis) else f"{BY_WARPS}; {OWN_TILE}")
    return Carried(node=new, was=(s,), why=OWN_TILE if offset(s, axis) else "")
