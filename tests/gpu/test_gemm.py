"""Every shipped GEMM schedule on a GPU."""

from __future__ import annotations

import random

import pytest

import wgdsl
from wgdsl.foundation.resources import resource

torch = pytest.importorskip("torch")
from tests.gpu.support import Guarded, randn, worst  # noqa: E402

pytestmark = pytest.mark.gpu
PROGRAM = resource("examples", "gemm", "gemm.wg")
SCHEDULES = ("pipelined",)


def sizes(count: int, seed: int) -> list[tuple[int, int, int]]:
    rng = random.Random(seed)
    some = [0, 1, 2, 127, 128, 129, 255, 256, 257]
    return [
        (rng.choice([*some, rng.randint(1, 900)]), rng.choice([*some, rng.randint(1, 900)]), 8 * rng.randint(0, 80))
        for _ in range(count)
    ]


@pytest.mark.parametrize("bias", [False, True], ids=["plain", "bias"])
@pytest.mark.parametrize("layout", ["nk", "kn"])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_random_sizes(record, schedule, dtype, layout, bias):
    kernel = wgdsl.compile(PROGRAM, schedule=schedule, types={"T": dtype}, options={"layout": layout, "bias": bias})
    record.tries(kernel.cuda)
    largest, wrong = 0.0, []
    cases = sizes(26, seed=3)
    for seed, (m, n, k) in enumerate(cases):
        if layout == "kn":
            n = -(-n // 8) * 8  # rows of B are the copy engine's: multiples of 16 bytes
        b_shape = (n, k) if layout == "nk" else (k, n)
        inputs = {"A": randn(m, k, dtype=dtype, seed=seed), "B": randn(*b_shape, dtype=dtype, seed=seed + 100)}
        if bias:
            inputs["b"] = randn(n, dtype=dtype, seed=seed + 200)
        outs = [Guarded((m, n), dtype) for _ in range(2)]
        for out in outs:
            kernel(**inputs, out=out.array)
        torch.cuda.synchronize()
        assert all(out.untouched() for out in outs), f"wrote beside C: {m} {n} {k}"
        assert torch.equal(outs[0].memory, outs[1].memory), f"two runs differ: {m} {n} {k}"
        error, verdicts = worst(kernel, inputs, {"C": outs[0].array})
        largest = max(largest, error)
        wrong += [f"{m} {n} {k}: {v}" for v in verdicts if not v.right]
    record(kernel.cuda, f"gemm {schedule} {dtype} {layout}{' bias' if bias else ''}", largest, runs=2 * len(cases))
    assert not wrong, "\n".join(wrong[:10])


def test_output_rows_that_no_tensor_map_reaches():
    """Odd N, an odd row pitch, and a base that isn't a multiple of 16 bytes."""
    kernel = wgdsl.compile(PROGRAM, schedule="pipelined", types={"T": "bf16"})
    inputs = {"A": randn(150, 72, dtype="bf16", seed=1), "B": randn(133, 72, dtype="bf16", seed=2)}
    memory = torch.full((150, 301), 7.0, dtype=torch.bfloat16, device="cuda")
    out = memory[:, 1:134]
    kernel(**inputs, out=out)
    _, verdicts = worst(kernel, inputs, {"C": out})
    assert all(v.right for v in verdicts), verdicts
    assert (memory[:, :1] == 7).all() and (memory[:, 134:] == 7).all()
