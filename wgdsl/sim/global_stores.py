"""Stores to global memory: which elements, whether they may be, and then their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..diagnostics.sim import OutsideTensor, WrittenTwice
from .agent import Agent
from .integers import Integer

Put = Callable[[np.ndarray], None]


def claim(
    a: Agent, tensor: str, access: Sequence[Integer], where: np.ndarray, *, clipped: bool, add: bool, by: str = "sum"
) -> Put:
    """Say which elements the current step stores; what is returned stores their values. Bulk stores are clipped to the shape,
    threads must stay inside."""
    t, world = a.tensors[tensor], a.cta.world
    chosen, outside = t.choose(access, where)
    if outside is not None and not clipped and not world.lenient:
        raise a.fault(OutsideTensor, tensor=tensor, element=outside, shape=t.shape)
    if not world.lenient:
        twice = t.claim(chosen, len(world.log), add)
        if twice is not None:
            raise a.fault(WrittenTwice, tensor=tensor, element=twice[0], before=world.log[twice[1]])
        world.log.append(f"{a.name}{f' on {a.item}' if a.item is not None else ''}")
    return lambda values: t.put(chosen, values, add, by)
