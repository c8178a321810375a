"""Every shipped GEMM on a GPU: right numbers, nothing else written, the same twice."""

from __future__ import annotations

import random

import pytest

from tests.shipped import KERNELS, field_ids, gemm

torch = pytest.importorskip("torch")
from tests.gpu.support import ACTIVATIONS, DTYPES, Guarded, Tally, randn, worst  # noqa: E402

pytestmark = pytest.mark.gpu
GEMM = [k for k in KERNELS if k.program.startswith("examples/gemm/")]
RUNS = 100  # of each kernel


def sizes(count: int, seed: int) -> list[tuple[int, int, int]]:
    rng = random.Random(seed)

    def some() -> int:
        return rng.choice([0, 1, 2, 127, 128, 129, 255, 256, 257, rng.randint(1, 900), rng.randint(1, 900)])

    return [(some(), some(), 8 * rng.randint(0, 80)) for _ in range(count)]


def product(inputs, options, dtype) -> tuple[torch.Tensor, torch.Tensor]:
    a, b = inputs["A"].double(), inputs["B"].double()
    exact = a @ (b.T if options["layout"] == "nk" else b)
    if "b" in inputs:
        exact = exact + inputs["b"].double()
    exact = ACTIVATIONS[options.get("act", "none")](exact)
    if "R" in inputs:
        exact = exact + inputs["R"].double()
    return exact, exact.to(dtype).double()


@pytest.mark.parametrize("shipped", GEMM, ids=field_ids(GEMM))
def test_random_sizes(record, shipped):
    kernel, options, tally = shipped.compile(build=True), dict(shipped.options), Tally()
    for seed, (m, n, k) in enumerate(sizes(RUNS, seed=3)):
        if options["layout"] == "kn":
            n = -(-n // 8) * 8  # rows of B are the copy engine's: multiples of 16 bytes
        shape = (n, k) if options["layout"] == "nk" else (k, n)
        inputs = {"A": randn(m, k, dtype=shipped.dtype, seed=seed), "B": randn(*shape, dtype=shipped.dtype, seed=seed + 100)}
        if options["bias"]:
            inputs["b"] = randn(n, dtype=shipped.dtype, seed=seed + 200)
        if options.get("residual"):
            inputs["R"] = randn(m, n, dtype=shipped.dtype, seed=seed + 300)
        outs = [Guarded((m, n), shipped.dtype) for _ in range(2)]
        for out in outs:
            kernel(**inputs, out=out.array)
        torch.cuda.synchronize()
        assert all(out.untouched() for out in outs), f"wrote beside C: {m} {n} {k}"
        if not shipped.schedule.startswith("split"):  # which adds parts up in no order
            assert torch.equal(outs[0].memory, outs[1].memory), f"two runs differ: {m} {n} {k}"
        tally.add((m, n, k), outs[0].array, *product(inputs, options, DTYPES[shipped.dtype]))
    record(kernel.cuda, shipped.name, tally.largest, runs=2 * RUNS)
    assert not tally.wrong, f"{len(tally.wrong)} wrong\n" + "\n".join(tally.wrong[:10])


def test_output_rows_that_no_tensor_map_reaches():
    """Odd N, an odd row pitch, and a base that isn't a multiple of 16 bytes."""
    kernel = gemm("nk").compile(build=True)
    inputs = {"A": randn(150, 72, dtype="bf16", seed=1), "B": randn(133, 72, dtype="bf16", seed=2)}
    memory = torch.full((150, 301), 7.0, dtype=torch.bfloat16, device="cuda")
    out = memory[:, 1:134]
    kernel(**inputs, out=out)
    _, verdicts = worst(kernel, inputs, {"C": out})
    assert all(v.right for v in verdicts), verdicts
    assert (memory[:, :1] == 7).all() and (memory[:, 134:] == 7).all()
