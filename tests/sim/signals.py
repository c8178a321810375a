"""A role program without data: two roles that only signal each other, to show what a barrier does by itself."""

from __future__ import annotations

from wgdsl.program.poly import Poly
from wgdsl.roles.model import (
    Advance,
    Arrive,
    Barrier,
    Elect,
    Grid,
    GridAxis,
    Items,
    Kernel,
    Loop,
    Ring,
    Role,
    RoleProgram,
    Slot,
    Step,
    Wait,
)

ONE = Poly.of(1)
NONE = Poly.of(0)


def _repeat(*body: Step, times: int) -> tuple[Step, ...]:
    loop = Loop(var="t", start=NONE, stop=Poly.of(times), body=(*body, Advance(ring="A")))
    return (Items(body=(loop,)),)


def ping_pong(*, by: str = "warps", times: int = 4) -> RoleProgram:
    """`front` (one thread) waits until `back` is ready for the next signal, and gives it; `back` waits for it.

    by: what of `back` says that it is ready. If only one thread does, its other warps may still wait for the signal before.
    """
    slot = Slot(ring="A")
    ready = Arrive(barrier="A.empty", part=NONE, slot=slot, by=by)
    signal = Arrive(barrier="A.full", part=NONE, slot=slot, by="thread")
    front = _repeat(Wait(barrier="A.empty", part=NONE, slot=slot), signal, times=times)
    back = _repeat(ready if by == "warps" else Elect(body=(ready,)), Wait(barrier="A.full", part=NONE, slot=slot), times=times)
    kernel = Kernel(
        name="ping_pong",
        program="ping_pong",
        schedule="by_hand",
        target="sm_90a",
        grid=Grid(axes=(GridAxis(index="i", tile=1, blocks=ONE),)),
        threads=256,
        roles=(
            Role(name="front", first=0, count=1, registers=None, elected=True, steps=front),
            Role(name="back", first=1, count=1, registers=None, elected=False, steps=back),
        ),
        rings=(Ring(name="A", stages=1, buffers=(), full="A.full", empty="A.empty"),),
        buffers=(),
        barriers=(
            Barrier(name="A.full", ring="A", count=1, parts=1, stages=1),
            Barrier(name="A.empty", ring="A", count=4 if by == "warps" else 1, parts=1, stages=1, offset=8),
        ),
        values=(),
        maps=(),
        tensors=(),
        params=(),
        index_extents={},
        shared_bytes=16,
    )
    return RoleProgram(program="ping_pong", schedule="by_hand", target="sm_90a", kernels=(kernel,))
