"""Lowerings of tensor copies."""

from __future__ import annotations

from ..roles.model import Tma, TmaStore
from ..targets.sm_90a import HOPPER
from .context import RoleContext
from .lowering import lowers


@lowers(Tma, HOPPER)
def tma(ctx: RoleContext, step: Tma) -> None:
    buffer = ctx.kernel.buffer(step.buffer)
    to = ctx.tile_address(buffer, step.part, step.slot, step.panel)
    if step.rows_part:
        to += f" + {step.rows_part * (buffer.panel_bytes // step.parts)}"
    bar = ctx.barrier_address(ctx.kernel.barrier(step.barrier), step.barrier_part, step.slot)
    coords = ", ".join(ctx.text(c) for c in step.coords)
    call = ctx.ptx("tma_load", len(step.coords))
    ctx.out.line(f"{call}({to}, {ctx.scope.get('map', step.map)}, {coords}, {bar});")


@lowers(TmaStore, HOPPER)
def tma_store(ctx: RoleContext, step: TmaStore) -> None:
    source = ctx.tile_address(ctx.kernel.buffer(step.buffer), step.part, step.slot, step.panel)
    coords = ", ".join(ctx.text(c) for c in step.coords)
    call = ctx.ptx("tma_add" if step.add else "tma_store", len(step.coords))
    ctx.out.line(f"{call}({ctx.scope.get('map', step.map)}, {coords}, {source});")
