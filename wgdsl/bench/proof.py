"""Is the result of a call right? On the GPU, beside some rows in float64."""

from __future__ import annotations

from collections.abc import Sequence

from .case import Call

Part = tuple[object, object, float]
FLOOR = 1e-5  # of the largest value: what sums in f32 may be off by


def proven(call: Call, parts: Sequence[Part], slack: float) -> float:
    """The largest absolute error of a call's result (a tensor); raises ArithmeticError if it is wrong, partial or not
    repeatable.

    parts: (index into the result, float64 reference of that part, error that rounding to the dtype alone makes there). The
    bar of each is `slack` times that error, and `FLOOR` of the largest reference. Whoever writes in place fills the result with
    NaN before.
    """
    import torch

    first = call().clone()
    second = call()
    torch.cuda.synchronize()
    if missing := int((~torch.isfinite(first)).sum()):
        raise ArithmeticError(f"{missing} elements are not finite")
    if not torch.equal(first, second):
        raise ArithmeticError("two runs differ")
    return max(_error(first[index], reference, rounding, slack) for index, reference, rounding in parts)


def _error(found, reference, rounding: float, slack: float) -> float:
    error = float((found.double() - reference).abs().max())
    bar = slack * rounding + FLOOR * float(reference.abs().max())
    if not error <= bar:
        raise ArithmeticError(f"error {error:.3g} is above {bar:.3g}")
    return error


def torch_dtype(name: str):
    """torch's dtype of that name here."""
    import torch

    return {"f16": torch.float16, "bf16": torch.bfloat16}[name]


def some_rows(length: int, edge: int, between: int):
    """The first and the last rows and some between, on the GPU."""
    import torch

    last = length - 1 - torch.arange(min(length, edge))
    return torch.unique(torch.cat([torch.arange(min(length, edge)), torch.randint(length, (between,)), last])).cuda()
