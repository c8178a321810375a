"""torch's own comparison of tensors with ones that were seen before.

In: tensors.  Out: a check of as many others: the same types, dispatch keys, element types, devices, shapes and strides, and
requiring a gradient or not as the first did. One that is passed twice fails. torch makes it for its compiler (`TensorGuards`),
in C++: five tensors take a quarter of a microsecond. It isn't public, so it is tried out before it is trusted; without it
calls are only slower.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

Check = Callable[..., bool]


def check_of(tensors: Sequence[Any]) -> Check | None:
    """Whether tensors are like these; None if this torch can't tell."""
    return _made(tensors) if _trusted() else None


def _made(tensors: Sequence[Any]) -> Check:
    sizes, strides = [[*t.shape] for t in tensors], [[*t.stride()] for t in tensors]
    guards = sys.modules["torch"]._C._dynamo.guards.TensorGuards
    return guards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check


@cache
def _trusted() -> bool:
    """Whether the check is there and tells apart all that it has to."""
    try:
        torch = sys.modules["torch"]
        with torch.inference_mode(False), torch.enable_grad():
            return _tells_apart(torch)
    except (AttributeError, TypeError, RuntimeError):
        return False


def _tells_apart(torch: Any) -> bool:
    one = torch.zeros(2, 3)
    others = [
        torch.zeros(3, 2),
        torch.zeros(3, 2).t(),
        torch.zeros(2, 3, 1),
        torch.zeros(2, 3, dtype=torch.int32),
        torch.zeros(2, 3, device="meta"),
        torch.zeros(2, 3, requires_grad=True),
        torch.nn.Parameter(torch.zeros(2, 3), requires_grad=False),
        torch._neg_view(torch.zeros(2, 3)),
        torch.zeros(2, 3).to_sparse(),
    ]
    check = _made([one, one])
    same = check(one, torch.zeros(2, 3)) and check(torch.ones(4, 3)[1:3], one)
    return same and not any(check(one, x) for x in others)
