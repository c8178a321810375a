"""Programs of the cases, as edits of the shipped attention, and calls of them: in the simulator, or on a GPU.

Queries, keys and values are [B, heads, rows, elements] as in the reference; the kernel gets views of them in its own order.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.handover.reference import TYPES
from tests.programs.edits import ATTENTION, edit
from wgdsl.driver import compile
from wgdsl.runtime.bind import shape_of
from wgdsl.runtime.kernel import Kernel
from wgdsl.tools.running import unwritten

DEVICES = ("sim", pytest.param("gpu", marks=pytest.mark.gpu))
SCHEDULES = ("fa3", "fa2")  # for sm_90a, for sm_80
SCORE = "S[b,g,r,i,j] * scale"
_MASKED = f"X[b,g,r,i,j] = {SCORE} where not causal or j <= i + N - M"
_SOFTMAX = "P[b,g,r,i,j] = softmax[j] X[b,g,r,i,j]"
_LSE = "L[b,h,i] = logsumexp[j] X[b,g,r,i,j]"
_SUNK = """m[b,g,r,i] = max(max[j] X[b,g,r,i,j], {0}, -1e30)
p[b,g,r,i,j] = exp(X[b,g,r,i,j] - m[b,g,r,i])
l[b,g,r,i] = sum[j] p[b,g,r,i,j] + exp({0} - m[b,g,r,i])
P[b,g,r,i,j] = p[b,g,r,i,j] / l[b,g,r,i]"""
_SUNK_LSE = "L[b,h,i] = log(l[b,g,r,i]) + m[b,g,r,i]"


def program(score: str = SCORE, where: str = "", declared: str = "", sink: str = "") -> str:
    """The shipped attention with another score, mask and sink, and with further declarations (one a line)."""
    masked = f"X[b,g,r,i,j] = {score}" + (f" where {where}" if where else "")
    text = edit(ATTENTION, (_MASKED, masked), ("in scale", f"{declared}\nin scale"))
    return edit(text, (_SOFTMAX, _SUNK.format(sink)), (_LSE, _SUNK_LSE)) if sink else text


@cache
def made(text: str, schedule: str, dtype: str, d: int = 64, e: int | None = None, **options: Any) -> Kernel:
    """A kernel of a shipped schedule, for head dims d and e."""
    target = "sm_80" if schedule.startswith("fa2") or "extends fa2" in text else "sm_90a"
    fixed = {"dims": {"D": d, "E": e or d}, "types": {"T": dtype}, "options": options}
    return compile(text, schedule=schedule, target=target, build=False, **fixed)


def rows_first(x: np.ndarray) -> np.ndarray:
    """[B, heads, rows, elements] as [B, rows, heads, elements], and back."""
    return x.swapaxes(1, 2)


def attend(
    kernel: Kernel, device: str, q: np.ndarray, k: np.ndarray, v: np.ndarray, **more: Any
) -> tuple[np.ndarray, np.ndarray]:
    """O [B, H, M, E] and L [B, H, M] of one call."""
    arrays = {"Q": rows_first(q), "K": rows_first(k), "V": rows_first(v)}
    got = call(kernel, device, arrays, **more)
    return rows_first(got["O"]), got["L"]


def call(kernel: Kernel, device: str, arrays: Mapping[str, np.ndarray], **more: Any) -> dict[str, np.ndarray]:
    """The results by name. `more`: scalars, dims and further arrays. Results hold NaN before the call, and on a GPU lie between
    canaries that have to stand afterwards."""
    given = {**arrays, **more}
    bound = kernel.bound(kernel.interface.sort((), given, None))
    shapes = {o.tensor: (shape_of(o, bound), o.dtype) for o in kernel.graph.outputs}
    if device == "gpu":
        return _on_gpu(kernel, given, {name: (shape, dtype.name) for name, (shape, dtype) in shapes.items()})
    out = {name: unwritten(shape, dtype) for name, (shape, dtype) in shapes.items()}
    kernel(**given, out=out, device=device)
    return out


def _on_gpu(
    kernel: Kernel, given: Mapping[str, Any], shapes: Mapping[str, tuple[tuple[int, ...], str]]
) -> dict[str, np.ndarray]:
    import torch

    from tests.gpu.support import Guarded, to_numpy

    out = {name: Guarded(shape, dtype) for name, (shape, dtype) in shapes.items()}
    moved = {name: to_gpu(x) if isinstance(x, np.ndarray) else x for name, x in given.items()}
    kernel(**moved, out={name: g.array for name, g in out.items()})
    torch.cuda.synchronize()
    assert all(g.untouched() for g in out.values()), "written beside the results"
    return {name: to_numpy(g.array) for name, g in out.items()}


def to_gpu(x: np.ndarray) -> Any:
    """A torch tensor on the GPU with the same strides, a view of a copy of all the memory that `x` is a view of."""
    import torch

    whole = x
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    bits = {2: np.int16, 4: np.int32, 1: np.int8}[x.itemsize]
    assert whole.flags.c_contiguous and whole.itemsize == x.itemsize
    memory = torch.from_numpy(whole.reshape(-1).view(bits)).cuda()
    memory = memory.view(getattr(torch, {"bool": "bool", "int32": "int32"}.get(x.dtype.name, x.dtype.name)))
    start = (x.__array_interface__["data"][0] - whole.__array_interface__["data"][0]) // x.itemsize
    return torch.as_strided(memory, x.shape, [s // x.itemsize for s in x.strides], start)


def numpy_type(dtype: str) -> np.dtype:
    return TYPES[dtype]
