"""simulate: run a role program with NumPy tiles.

In: a checked role program, arrays, scalars and dims.  Out: the arrays that it writes. Outputs start as NaN (integers as the
smallest i32), so that an element nobody writes shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ..program.functions import single
from ..roles.checked import Checked
from ..roles.model import Grid, Kernel, RoleProgram
from .agent import Item
from .cta import Cta
from .integers import value_of
from .orders import Late, falling_behind, order_of
from .tensors import Tensor, make_tensor, shape_of
from .world import World

STEP_LIMIT = 2_000_000  # of one CTA


def simulate(
    checked: Checked,
    arrays: Mapping[str, np.ndarray],
    scalars: Mapping[str, float] | None = None,
    dims: Mapping[str, int] | None = None,
    *,
    sms: int = 2,
    seed: int | None = None,
    late: Late = (),
) -> dict[str, np.ndarray]:
    """Outputs by name, in their own element types.

    arrays: every input (rounded to its type); an output too, if elements that nobody writes should keep what they hold.
    scalars: every scalar that the program uses; a flag parameter may stand here too, else it is true where the tensor's rows
    suit its map. dims: every free dim. sms: CTAs of a persistent grid. seed: of the order of events (`order_of`); None is the
    canonical one. late: warpgroups of roles that go on only when nothing else can happen. Raises WgError
    (WG08xx) for a fault, ValueError for bad arguments.
    """
    return simulate_unchecked(checked.program, arrays, scalars, dims, sms=sms, seed=seed, late=late)


def simulate_unchecked(
    program: RoleProgram,
    arrays: Mapping[str, np.ndarray],
    scalars: Mapping[str, float] | None = None,
    dims: Mapping[str, int] | None = None,
    *,
    sms: int = 2,
    seed: int | None = None,
    late: Late = (),
    limit: int = STEP_LIMIT,
) -> dict[str, np.ndarray]:
    """The same for a program that no check has seen: for tests of what the simulator catches by itself."""
    dims, scalars = dict(dims or {}), dict(scalars or {})
    tensors: dict[str, Tensor] = {}
    with np.errstate(all="ignore"):
        for kernel in program.kernels:
            _launch(kernel, tensors, arrays, scalars, dims, sms, seed, late, limit)
    written = {t.name for k in program.kernels for t in k.tensors if t.written and not t.temporary}
    return {name: t.stored() for name, t in tensors.items() if name in written}


def _launch(
    kernel: Kernel,
    tensors: dict[str, Tensor],
    arrays: Mapping[str, np.ndarray],
    scalars: Mapping[str, float],
    dims: Mapping[str, int],
    sms: int,
    seed: int | None,
    late: Late,
    limit: int,
) -> None:
    for arg in kernel.tensors:
        if arg.name not in tensors:
            if not arg.written and (arg.temporary or arg.name not in arrays):
                raise ValueError(f"no array is given for {arg.name}")
            given = arrays.get(arg.name) if not arg.temporary else None
            tensors[arg.name] = make_tensor(arg, shape_of(arg, dims), given if given is None else np.asarray(given))
        if arg.written:
            tensors[arg.name].forget_writers()
    missing = sorted({x.name for p in kernel.params for x in p.scalars} - {*scalars})
    if missing:
        raise ValueError(f"no value is given for {', '.join(missing)}")
    numbers = {p.name: single(p.value, scalars) for p in kernel.params if p.value is not None}
    known = {**_flags(kernel, tensors), **scalars, **numbers}
    world = World(kernel=kernel, dims=dims, scalars=known, tensors=tensors, limit=limit)
    items, order = items_of(kernel, dims), falling_behind(late, order_of(seed, kernel))
    ctas = min(len(items), sms) if kernel.grid.persistent else len(items)
    for c in range(ctas):
        Cta(world, items[c::ctas], c, order, seed).run()


def _flags(kernel: Kernel, tensors: Mapping[str, Tensor]) -> dict[str, float]:
    """Flag parameters: whether a contiguous tensor's rows suit its map (strides in multiples of 16 bytes)."""
    out = {}
    for p in kernel.params:
        if p.kind == "flag" and p.tensor is not None:
            t = tensors[p.tensor]
            strides = [int(np.prod(t.shape[k + 1 :])) * t.dtype.nbytes for k in range(len(t.shape) - 1)]
            out[p.name] = float(all(s % 16 == 0 for s in strides))
    return out


def items_of(kernel: Kernel, dims: Mapping[str, int]) -> list[Item]:
    """All work items in their order."""
    axes = {a.index: a for a in kernel.grid.axes}
    blocks = {a.index: max(0, int(value_of(a.blocks, dims))) for a in kernel.grid.axes}
    out = []
    for number, at in enumerate(_blocks(kernel.grid, blocks, dims)):
        bound = {f"{i}.lo" if axes[i].tile > 1 else i: k * axes[i].tile for i, k in at.items()}
        out.append(Item(number, bound))
    return out


def _blocks(grid: Grid, blocks: dict[str, int], dims: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """The block of each axis, item by item; without an order the last axis is fastest."""
    if grid.order is None:
        yield from _nest(tuple(blocks), blocks)
        return
    order = grid.order
    heads = list(_nest(order.inner, blocks))
    size = len(heads) if order.size is None else int(value_of(order.size, dims))
    for start in range(0, len(heads), max(size, 1)):
        for outer in _nest(order.outer, blocks):
            turned = {i: blocks[i] - 1 - k if i == order.reversed else k for i, k in outer.items()}
            yield from ({**head, **turned} for head in heads[start : start + size])


def _nest(axes: tuple[str, ...], blocks: dict[str, int]) -> Iterator[dict[str, int]]:
    for at in np.ndindex(*(blocks[i] for i in axes)):
        yield dict(zip(axes, at, strict=True))
