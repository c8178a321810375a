"""filling: where in the loop of its one role each tile is filled.

In: the steps of the loop in their order, and what the schedule fills together.  Out: the same steps with the fills between
them, and an `await` where one barrier serves two of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..syntax import ast
from .carried import Carried
from .positions import leaves, name_of, tile

SHARED_OUT = "copied by all threads of the role"


@dataclass(frozen=True, kw_only=True)
class Group:
    """Homes that are filled in one step, and the steps that said so."""

    homes: tuple[str, ...]
    fills: tuple[ast.FillStep, ...]
    depth: int = 1

    def step(self, axis: str, ahead: int) -> ast.FillStep:
        return ast.FillStep(targets=tuple(tile(h, axis, ahead) for h in self.homes))


def groups_of(bodies: Iterable[ast.RoleBody], depths: Mapping[str, int]) -> list[Group]:
    """Every group of homes in the order of its first fill; the parts of a home (`Qs.0`, `Qs.rest`) are one."""
    found: dict[tuple[str, ...], list[ast.FillStep]] = {}
    for s in (s for b in bodies for s in leaves(b.steps) if isinstance(s, ast.FillStep)):
        found.setdefault(tuple(name_of(t).split(".")[0] for t in s.targets), []).append(s)
    return [Group(homes=h, fills=tuple(f), depth=depths.get(h[0], 1)) for h, f in found.items()]


def leading(groups: Iterable[Group], steps: Iterable[ast.Step]) -> list[Group]:
    """Those that the first products read: the ones in front of every other step."""
    read: set[str] = set()
    for s in steps:
        if isinstance(s, ast.IssueStep):
            read |= {name_of(s.left), name_of(s.right)}
        elif read:
            break
    return [g for g in groups if read & set(g.homes)]


def with_fills(steps: list[Carried], groups: list[Group], axis: str) -> list[Carried]:
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


def shallowest(groups: Iterable[Group]) -> int:
    return min(g.depth for g in groups)
