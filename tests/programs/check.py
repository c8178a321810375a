"""Run a kernel in the simulator, or on a GPU, on odd sizes and hold it against the reference."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from wgdsl.runtime.kernel import Kernel
from wgdsl.tools.judge import judge

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


def wrong(kernel: Kernel, arrays: dict[str, np.ndarray], device: str = "sim") -> list[str]:
    """The outputs that miss the project's error bar (`wgdsl.tools.judge`), in words. NaN never passes."""
    given = kernel.interface.sort((), arrays, None)
    bound = kernel.bound(given)
    got = kernel(**arrays, device=device)
    names = [o.tensor for o in kernel.graph.outputs]
    results = dict(zip(names, got if len(names) > 1 else (got,), strict=True))
    verdicts = judge(kernel.graph, given.inputs, bound.scalars, bound.dims, results, kernel.approximated)
    return [str(v) for v in verdicts if not v.right]
