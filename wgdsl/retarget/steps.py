"""steps: the lists of steps of a schedule's roles as the one list of a role that copies for itself.

In: the role that multiplies, every role's steps, and which homes are streamed, with the depths of their rings.  Out: a `Body`.

Products are done when they are issued, so a tile is done with in its own iteration: steps stand in the order in which they
reached one tile, all at its position. What the first products read is filled a tile ahead of them, everything else at the start
of the iteration, so that it arrives under them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..diagnostics.model import WgError
from ..diagnostics.retarget import NotCarried
from ..syntax import ast
from .carried import Body, Carried
from .filling import SHARED_OUT, Group, groups_of, leading, with_fills
from .positions import at_own_tile, leaves, offset

AT_ONCE = "products are done when they are issued"
OWN_TILE = "products block, so a tile is done with in its own iteration"
MOVED = "in the order in which steps reach one tile"
BY_WARPS = "by single warps"


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
    groups = groups_of(given.bodies, given.depths)
    streamed = [g for g in groups if set(g.homes) & given.depths.keys()]
    waits = [s for b in given.bodies if b != given.role for s in leaves(b.steps) if isinstance(s, ast.AwaitStep)]
    steps, dropped = _in_order(loop, given.axis)
    return Body(
        role=given.role.role,
        axis=given.axis,
        before=(*(_once(g) for g in groups if g not in streamed), *_outside((*waits, *before))),
        loop=(*with_fills(steps, streamed, given.axis), *dropped),
        after=tuple(_outside(after)),
    )


def working(bodies: Iterable[ast.RoleBody], target: str) -> ast.RoleBody:
    """The role that does more than fill and wait. Raises WgError (WG1021) if several do, or none does."""
    bodies = tuple(bodies)
    found = [b for b in bodies if any(not isinstance(s, ast.FillStep | ast.AwaitStep) for s in leaves(b.steps))]
    if len(found) > 1:
        why = f"`{found[0].role}` multiplies too, and on {target} one role fills, multiplies and stores"
        raise WgError(NotCarried(span=found[1].span, directive=f"role `{found[1].role}`", target=target, why=why))
    if not found:
        what, why = "a schedule without products", "no role does more than fill"
        raise WgError(NotCarried(span=bodies[0].span, directive=what, target=target, why=why))
    return found[0]


def overlapped(given: Steps) -> bool:
    """Whether something is read behind the first products: its copy runs under them."""
    streamed = [g for g in groups_of(given.bodies, given.depths) if set(g.homes) & given.depths.keys()]
    steps, _ = _in_order(_sections(given.role)[1], given.axis)
    return len(leading(streamed, (c.node for c in steps if c.node is not None))) < len(streamed)  # type: ignore[misc]


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


def _once(g: Group) -> Carried:
    """A fill before the loop."""
    return Carried(node=ast.FillStep(targets=tuple(ast.Name(id=h) for h in g.homes)), was=g.fills, why=SHARED_OUT)


def _outside(steps: Iterable[ast.Step]) -> Iterator[Carried]:
    """Steps outside the loop, but for fills."""
    for s in steps:
        if isinstance(s, ast.AwaitStep):
            yield Carried(node=None, was=(s,), why="derived: the first step that reads it waits for it")
        elif isinstance(s, ast.TurnStep):
            yield Carried(node=None, was=(s,), why=f"{AT_ONCE}: there is nothing to take turns at")
        elif not isinstance(s, ast.FillStep):
            yield Carried(node=s, was=(s,))


def _in_order(loop: list[ast.Step], axis: str) -> tuple[list[Carried], list[Carried]]:
    """The steps in the order in which they reach one tile; and what is dropped."""
    timed: list[tuple[int, Carried]] = []
    dropped: list[Carried] = []
    computed = [offset(s, axis) or 0 for s in leaves(loop) if isinstance(s, ast.ComputeStep)]
    last = max(computed, default=0) - 1  # of the iteration before
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
