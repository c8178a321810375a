"""The way through a role that some call takes: its steps in order with their paths, for sizes and flags of one's choice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..program.expr import Affine, Expr, conjuncts
from ..program.poly import Poly
from ..roles import model as m
from ..roles.model import Kernel, Role, Step
from .model import Path

SIZES = (600, 600)  # of a dim that the grid cuts, and of another: several tiles, the last one in part
ITEMS = 4  # of a CTA that gets several


class _Integers(dict[str, int]):
    """What is bound; else the first grid index or item, or a dim."""

    def __init__(self, kernel: Kernel, wg: int, sizes: tuple[int, int], flags: bool):
        gridded = {x for a in kernel.grid.axes for x in a.blocks.symbols()}
        super().__init__({**dict.fromkeys(gridded, sizes[0]), **{a.index: 0 for a in kernel.grid.axes}}, wg=wg)
        self.size, self.flags = sizes[1], flags

    def __missing__(self, name: str) -> int:
        return 0 if name.endswith(".lo") or name.startswith("item.") else self.size


def trace(
    kernel: Kernel, role: Role, wg: int = 0, sizes: tuple[int, int] = SIZES, flags: bool = True
) -> Iterator[tuple[Path, Step]]:
    """The steps of one warpgroup of a role, without the blocks around them; advances by numbers."""
    items = ITEMS if kernel.grid.persistent else 1
    yield from _steps(role.steps, (), _Integers(kernel, wg, sizes, flags), items)


def _steps(steps: tuple[Step, ...], prefix: Path, env: _Integers, items: int) -> Iterator[tuple[Path, Step]]:
    for n, s in enumerate(steps):
        inside = (*prefix, n, 0)
        if isinstance(s, m.Let):
            env[s.name] = s.value.evaluate(env)
        elif isinstance(s, m.Begun):
            env["item.begun"] = s.value.evaluate(env)
        elif isinstance(s, m.NextItem):
            env["item.follows"] = int(env["item.ordinal"] < items - 1)
            env |= {f"{m.NEXT}{name}": value for name, value in env.items() if not name.startswith(m.NEXT)}
        elif isinstance(s, m.Items):
            for k in range(items):
                env["item.ordinal"] = k
                yield from _steps(s.body, inside, env, items)
            leave = next((k for k, x in enumerate(s.body) if isinstance(x, m.Leave)), 0)
            yield from _steps(s.body[:leave], inside, env, items)
        elif isinstance(s, m.Loop):
            for k in range(s.start.evaluate(env), s.stop.evaluate(env), s.step):
                env[s.var] = k
                yield from _steps(s.body, inside, env, items)
        elif isinstance(s, m.If):
            holds = _holds(s.cond, env)
            yield from _steps(s.then if holds else s.other, (*prefix, n, int(not holds)), env, items)
        elif isinstance(s, m.Elect):
            yield from _steps(s.body, inside, env, items)
        elif isinstance(s, m.Advance):
            yield (*prefix, n), replace(s, stages=Poly.of(s.stages.evaluate(env)))
        else:
            yield (*prefix, n), s


def _holds(cond: Expr, env: _Integers) -> bool:
    """Whether a condition on integers holds; others are flags."""
    return all(p.poly.evaluate(env) >= 0 if isinstance(p, Affine) else env.flags for p in conjuncts(cond))
