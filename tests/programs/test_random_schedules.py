"""Random legal schedules, never written by anybody: accepted by the verifier, right in the simulator in many orders of events,
and then on a GPU at the first try."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.programs.random_schedules import Drawn, legal
from wgdsl.runtime.kernel import Kernel
from wgdsl.tools.judge import judge

START = 5000  # another number draws other schedules
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
SMALL = {"attention": ((70, 200), (200, 70), (130, 0)), "gemm": ((70, 136, 200), (130, 264, 40))}
LARGE = {
    "attention": ((1, 1), (300, 700), (257, 129), (64, 2000), (1000, 333)),
    "gemm": ((300, 520, 1000), (1, 8, 8), (129, 264, 72)),
}


def inputs(one: Drawn, size: tuple[int, ...], seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)

    def values(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(DTYPES[one.dtype])

    if one.program == "gemm":
        m, n, k = size
        return {"A": values(m, k), "B": values(n, k)} | ({"b": values(n)} if one.options["bias"] else {})
    (m, n), d = size, one.dims["D"]
    return {"Q": values(2, m, 4, d), "K": values(2, n, 2, d), "V": values(2, n, 2, d)}


def results(kernel: Kernel, arrays: dict[str, np.ndarray], device: str, seed: int | None = None) -> dict[str, np.ndarray]:
    if device == "gpu":
        got = kernel(**arrays, device=device)
        names = [o.tensor for o in kernel.graph.outputs]
        return dict(zip(names, got if len(names) > 1 else (got,), strict=True))
    given = kernel.interface.sort((), arrays, None)
    bound = kernel.bound(given)
    return dict(kernel.forms.backends["sim"](given.inputs, bound.scalars, bound.dims, seed))


def wrong(kernel: Kernel, arrays: dict[str, np.ndarray], got: dict[str, np.ndarray]) -> list[str]:
    given = kernel.interface.sort((), arrays, None)
    bound = kernel.bound(given)
    verdicts = judge(kernel.graph, given.inputs, bound.scalars, bound.dims, got, kernel.approximated)
    return [str(v) for v in verdicts if not v.right]


def simulated(count: int, seeds: int) -> None:
    for one in legal(count, START):
        kernel = one.compile()
        for size in SMALL[one.program]:
            arrays = inputs(one, size, one.seed)
            first = results(kernel, arrays, "sim")
            assert wrong(kernel, arrays, first) == [], one.text
            for seed in range(seeds):
                again = results(kernel, arrays, "sim", seed)
                assert all(np.array_equal(first[n], again[n], equal_nan=True) for n in first), (one.text, size, seed)


def test_in_the_simulator():
    simulated(3, 4)


@pytest.mark.slow
def test_ten_in_fifty_orders():
    simulated(10, 50)


@pytest.mark.gpu
def test_ten_on_the_gpu():
    for one in legal(10, START):
        kernel = one.compile(build=True)
        for size in LARGE[one.program]:
            arrays = inputs(one, size, one.seed)
            first, second = (results(kernel, arrays, "gpu") for _ in range(2))
            assert wrong(kernel, arrays, first) == [], (one.text, size)
            assert all(np.array_equal(first[n].view(np.uint8), second[n].view(np.uint8)) for n in first), (one.text, size)
