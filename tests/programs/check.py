"""Run a kernel in the simulator, or on a GPU, on odd sizes and hold it against the reference."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from wgdsl.runtime.kernel import Kernel

DEVICES = ("sim", pytest.param("gpu", marks=pytest.mark.gpu))
DTYPES = {"f32": np.float32, "f16": np.float16}


def inputs(program: str, sizes: dict[str, int], seed: int = 0) -> dict[str, np.ndarray]:
    """Random arrays for every `in NAME: TYPE[...]` of the text. Small positive ones where the type is f32."""
    rng = np.random.default_rng(seed)
    out = {}
    for name, dtype, shape in re.findall(r"^in (\w+): (\w+)\[([^\]]*)\]", program, re.M):
        extents = tuple(sizes[x.strip()] for x in shape.split(","))
        values = rng.standard_normal(extents)
        out[name] = (abs(values) * 0.3).astype(np.float32) if dtype == "f32" else values.astype(ml_dtypes.bfloat16)
    return out


def wrong(kernel: Kernel, arrays: dict[str, np.ndarray], device: str = "sim", slack: float = 0.01) -> list[str]:
    """Outputs that differ from the reference by more than rounding to bf16 explains. NaN never passes."""
    got, want = (kernel(**arrays, device=d) for d in (device, "reference"))
    found = []
    names = [o.tensor for o in kernel.graph.outputs]
    for name, x, y in zip(names, _each(got, names), _each(want, names), strict=True):
        x = np.asarray(x).astype(np.float64)
        same = np.isinf(x) & (x == y)
        off = np.abs(np.where(same, 0.0, x) - np.where(same, 0.0, y)).max(initial=0.0)
        largest = np.abs(y[np.isfinite(y)]).max(initial=0.0)
        if not off <= slack * largest + 2e-3:
            found.append(f"{name}: off by {off} of {largest}")
    return found


def _each(result, names):
    return result if len(names) > 1 else (result,)
