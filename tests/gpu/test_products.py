"""Batched, dual and scaled GEMMs and the softmax of rows, all that are shipped, on a GPU: right, nothing else written, the same
twice."""

from __future__ import annotations

import pytest

import wgdsl
from tests.shipped import KERNELS, ROOT, field_ids

torch = pytest.importorskip("torch")
from tests.gpu.support import ACTIVATIONS, DTYPES, Guarded, Tally, randn, saturated, short_sums  # noqa: E402
from tests.gpu.test_gemm import sizes  # noqa: E402

pytestmark = pytest.mark.gpu
RUNS = 60  # of each kernel
BATCHED = [k for k in KERNELS if k.program.startswith("examples/batched_gemm")]
SOFTMAX = [k for k in KERNELS if k.program.startswith("examples/row_softmax")]
SCALED = [k for k in KERNELS if k.program.startswith("examples/gemm_scaled")]
DUAL = [k for k in KERNELS if k.program.startswith("examples/dual_gemm")]


def run_twice(kernel, inputs, shape, dtype, what) -> torch.Tensor:
    """The result, written between canaries, the same twice."""
    outs = [Guarded(shape, dtype) for _ in range(2)]
    for out in outs:
        kernel(**inputs, out=out.array)
    torch.cuda.synchronize()
    assert all(out.untouched() for out in outs), f"wrote beside the result: {what}"
    assert torch.equal(outs[0].memory, outs[1].memory), f"two runs differ: {what}"
    return outs[0].array


@pytest.mark.parametrize("shipped", BATCHED, ids=field_ids(BATCHED))
def test_batched(record, shipped):
    kernel, options, tally = shipped.compile(build=True), dict(shipped.options), Tally()
    for seed, (m, n, k) in enumerate(sizes(RUNS, seed=5)):
        z = seed % 4
        named = {"A": (z, m, k), "B": (z, n, k)}
        named |= {"b": (z, n)} if options.get("bias") else {}
        named |= {"R": (z, m, n)} if options.get("residual") else {}
        inputs = {x: randn(*shape, dtype=shipped.dtype, seed=seed + 100 * at) for at, (x, shape) in enumerate(named.items())}
        exact = inputs["A"].double() @ inputs["B"].double().transpose(1, 2)
        exact = exact + inputs["b"].double()[:, None] if "b" in inputs else exact
        exact = ACTIVATIONS[options.get("act", "none")](exact)
        exact = exact + inputs["R"].double() if "R" in inputs else exact
        got = run_twice(kernel, inputs, (z, m, n), shipped.dtype, (z, m, n, k))
        tally.add((z, m, n, k), got, exact, exact.to(DTYPES[shipped.dtype]).double())
    record(kernel.cuda, shipped.name, tally.largest, runs=2 * RUNS)
    assert not tally.wrong, f"{len(tally.wrong)} wrong\n" + "\n".join(tally.wrong[:10])


@pytest.mark.parametrize("shipped", DUAL, ids=field_ids(DUAL))
def test_dual(record, shipped):
    kernel, options, tally = shipped.compile(build=True), dict(shipped.options), Tally()
    columns = options.get("layout", "nk") == "nk"
    for seed, (m, n, k) in enumerate(sizes(RUNS, seed=7)):
        n = n if columns else -(-n // 8) * 8  # rows of B are the copy engine's: multiples of 16 bytes
        wide = (n, k) if columns else (k, n)
        inputs = {
            x: randn(*shape, dtype=shipped.dtype, seed=seed + 100 * at) * (1 if x == "A" else max(k, 1) ** -0.5)
            for at, (x, shape) in enumerate({"A": (m, k), "B1": wide, "B2": wide}.items())
        }
        gate, up = (inputs["A"].double() @ (b.double().T if columns else b.double()) for b in (inputs["B1"], inputs["B2"]))
        exact = ACTIVATIONS[options.get("act", "silu")](gate) * up
        got = run_twice(kernel, inputs, (m, n), shipped.dtype, (m, n, k))
        tally.add((m, n, k), got, exact, exact.to(DTYPES[shipped.dtype]).double())
    record(kernel.cuda, shipped.name, tally.largest, runs=2 * RUNS)
    assert not tally.wrong, f"{len(tally.wrong)} wrong\n" + "\n".join(tally.wrong[:10])


@pytest.mark.parametrize("shipped", SCALED, ids=field_ids(SCALED))
def test_scaled(record, shipped):
    """Rows are the copy engine's: multiples of 16 bytes."""
    kernel, tally, result = shipped.compile(build=True), Tally(), shipped.types["U"]
    act = ACTIVATIONS[dict(shipped.options).get("act", "none")]
    for seed, (m, n, k) in enumerate(sizes(RUNS, seed=11)):
        k = -(-k // 16) * 16
        a, b = (randn(rows, k, dtype=shipped.dtype, seed=seed + 100 * at) for at, rows in enumerate((m, n)))
        rows, columns = randn(m, dtype="f32", seed=seed + 200), randn(n, dtype="f32", seed=seed + 300)
        scales = rows.double()[:, None] * columns.double()
        exact = act(a.double() @ b.double().T * scales)
        got = run_twice(kernel, {"A": a, "B": b, "a": rows, "b": columns}, (m, n), result, (m, n, k))
        tally.add((m, n, k), got, exact, saturated(act(short_sums(a, b) * scales), result))
    record(kernel.cuda, shipped.name, tally.largest, runs=2 * RUNS)
    assert not tally.wrong, f"{len(tally.wrong)} wrong\n" + "\n".join(tally.wrong[:10])


@pytest.mark.parametrize("dtype", ["e4m3", "e5m2"])
@pytest.mark.parametrize("k", [32, 64, 256])
def test_sums_of_8_bits_bit_by_bit(dtype, k):
    """With scales of 1 and f32 results a kernel shows what the matrix engine makes of its operands."""
    path = ROOT / "examples" / "gemm_scaled" / "gemm_scaled.wg"
    kernel = wgdsl.compile(path, schedule="scaled_128", types={"T": dtype, "U": "f32"})
    a, b = (randn(rows, k, dtype=dtype, seed=k + rows) for rows in (96, 128))
    got = kernel(A=a, B=b, a=torch.ones(96, device="cuda"), b=torch.ones(128, device="cuda"))
    assert torch.equal(got.double(), short_sums(a, b))


@pytest.mark.parametrize("shipped", SOFTMAX, ids=field_ids(SOFTMAX))
def test_row_softmax(record, shipped):
    kernel, k, tally = shipped.compile(build=True), dict(shipped.dims)["K"], Tally()
    for seed, (m, n, _) in enumerate(sizes(RUNS, seed=9)):
        inputs = {
            x: randn(rows, k, dtype=shipped.dtype, seed=seed + 100 * at)
            for at, (x, rows) in enumerate({"A": m, "B": n}.items())
        }
        scale = torch.tensor(k**-0.5, dtype=torch.float32).double().item()
        exact = torch.softmax(inputs["A"].double() @ inputs["B"].double().T * scale, -1)
        got = run_twice(kernel, inputs, (m, n), shipped.dtype, (m, n))
        tally.add((m, n), got, exact, exact.to(DTYPES[shipped.dtype]).double())
    record(kernel.cuda, shipped.name, tally.largest, runs=2 * RUNS)
    assert not tally.wrong, f"{len(tally.wrong)} wrong\n" + "\n".join(tally.wrong[:10])
