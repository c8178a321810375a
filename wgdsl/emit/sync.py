"""Lowerings of events: mbarriers, named barriers, fences, groups."""

from __future__ import annotations

from ..roles.model import (
    Arrive,
    BarArrive,
    BarSync,
    Commit,
    CommitStore,
    Expect,
    FenceAsync,
    FenceWgmma,
    Wait,
    WaitGroup,
    WaitStore,
)
from ..targets.sm_90a import HOPPER
from .context import RoleContext
from .lowering import lowers


@lowers(Wait, HOPPER)
def wait(ctx: RoleContext, step: Wait) -> None:
    address = ctx.barrier_address(ctx.kernel.barrier(step.barrier), step.part, step.slot)
    ctx.out.line(f"{ctx.ptx('mbarrier_wait')}({address}, {ctx.phase(step.slot, step.flip)});")


@lowers(Expect, HOPPER)
def expect(ctx: RoleContext, step: Expect) -> None:
    address = ctx.barrier_address(ctx.kernel.barrier(step.barrier), step.part, step.slot)
    _one_thread(ctx, f"{ctx.ptx('mbarrier_expect')}({address}, {step.nbytes});")


@lowers(Arrive, HOPPER)
def arrive(ctx: RoleContext, step: Arrive) -> None:
    address = ctx.barrier_address(ctx.kernel.barrier(step.barrier), step.part, step.slot)
    if step.count > 1:
        return _one_thread(ctx, f"{ctx.ptx('mbarrier_arrive_times')}({address}, {step.count});")
    call = f"{ctx.ptx('mbarrier_arrive')}({address});"
    if step.by == "thread":
        _one_thread(ctx, call)
        return
    ctx.need_all_threads(step)
    ctx.out.line(f"if ({ctx.lane()} == 0) {call}")


def _one_thread(ctx: RoleContext, call: str) -> None:
    ctx.out.line(call if ctx.elected else f"if ({ctx.thread()} == 0) {call}")


@lowers(FenceWgmma, HOPPER)
def fence_wgmma(ctx: RoleContext, step: FenceWgmma) -> None:
    ctx.need_all_threads(step)
    ctx.out.line(f"{ctx.ptx('wgmma_fence')}();")


@lowers(Commit, HOPPER)
def commit(ctx: RoleContext, step: Commit) -> None:
    ctx.need_all_threads(step)
    ctx.out.line(f"{ctx.ptx('wgmma_commit')}();")


@lowers(WaitGroup, HOPPER)
def wait_group(ctx: RoleContext, step: WaitGroup) -> None:
    ctx.need_all_threads(step)
    ctx.out.line(f"{ctx.ptx('wgmma_wait')}<{step.pending}>();")
    for name in step.values:
        ctx.out.line(f"{ctx.ptx('ready')}({ctx.value(name)[1]});")


@lowers(FenceAsync, HOPPER)
def fence_async(ctx: RoleContext, step: FenceAsync) -> None:
    ctx.out.line(f"{ctx.ptx('fence_async')}();")


@lowers(BarSync)
def bar_sync(ctx: RoleContext, step: BarSync) -> None:
    ctx.need_all_threads(step)
    ctx.out.line(f"{ctx.ptx('bar_sync')}({ctx.text(step.id)}, {step.threads});")


@lowers(BarArrive)
def bar_arrive(ctx: RoleContext, step: BarArrive) -> None:
    ctx.need_all_threads(step)
    ctx.out.line(f"{ctx.ptx('bar_arrive')}({ctx.text(step.id)}, {step.threads});")


@lowers(CommitStore, HOPPER)
def commit_store(ctx: RoleContext, step: CommitStore) -> None:
    ctx.out.line(f"{ctx.ptx('tma_store_commit')}();")


@lowers(WaitStore, HOPPER)
def wait_store(ctx: RoleContext, step: WaitStore) -> None:
    name = "tma_store_wait_read" if step.read else "tma_store_wait"
    ctx.out.line(f"{ctx.ptx(name)}<{step.pending}>();")
