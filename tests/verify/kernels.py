"""Small kernels for tests of the verifier."""

from __future__ import annotations

from dataclasses import replace

from tests.broken import right
from wgdsl.program.expr import Affine
from wgdsl.program.poly import Poly
from wgdsl.roles import model as m
from wgdsl.roles.model import Kernel, Role


def apart() -> Kernel:
    """Two roles that share nothing: one waits for ever, the other goes from item to item."""
    kernel = right("pipelined").kernels[0]
    alone = m.BarSync(id=Poly.of(1), threads=256)
    never = m.If(cond=Affine(poly=Poly.of("wg") - 5), then=(alone,))
    waits = m.If(cond=Affine(poly=-Poly.of("wg")), then=(alone,), other=(never,))
    writes = m.Zero(value="Acc", span=kernel.roles[0].span)
    roles = (
        Role(name="free", first=0, count=1, registers=None, elected=False, steps=(m.Items(body=(writes,)),)),
        Role(name="stuck", first=1, count=2, registers=None, elected=False, steps=(m.Items(body=(waits,)),)),
    )
    values = tuple(replace(v, role="free") for v in kernel.values if v.name == "Acc")
    grid = replace(kernel.grid, persistent=True)
    return replace(kernel, grid=grid, roles=roles, rings=(), buffers=(), barriers=(), values=values, maps=(), named_barriers=())
