"""The dual GEMM, silu(A B1^T) * (A B2^T), beside two cuBLAS products and one fused elementwise kernel, turn and turn about.

TFLOP/s count 4 * m * n * k operations. Ratios above 1 mean faster than the peer. The peers are given their choice: `cuBLAS x 2`
multiplies twice; `cuBLAS joined` multiplies once by both matrices, laid beside each other beforehand. Both round the products
to the dtype between the kernels, and are held to the error of that.

    python bench/dual_gemm_vs_cublas.py --schedule dual --schedule dual_three --sizes 8192x8192x8192,8192x14336x4096
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import measure

PROGRAM = Path(__file__).parents[1] / "examples" / "dual_gemm" / "dual_gemm.wg"
SIZES = "8192x8192x8192,8192x14336x4096,4096x4096x4096,8191x8193x4096"
# torch's own generator of elementwise kernels makes one kernel of this
GATED = """template <typename T> T gated(T g, T u) {
  float x = static_cast<float>(g);
  return static_cast<T>(x / (1.0f + expf(-x)) * static_cast<float>(u));
}"""
PEERS = ["cuBLAS x 2", "cuBLAS joined"]
Size = tuple[int, int, int]


def reference_parts(a, b1, b2, rounded_between: bool) -> list[tuple[object, object, float]]:
    """Some rows in float64, and the error there of rounding the result (and, if so, the products) to the dtype."""
    import torch

    m = a.shape[0]
    rows = torch.unique(torch.cat([torch.arange(min(m, 32)), torch.randint(m, (64,)), torch.tensor([m - 1])])).cuda()
    gate, up = (a[rows].double() @ b.double().T for b in (b1, b2))
    exact = torch.nn.functional.silu(gate) * up
    if rounded_between:
        gate, up = (x.to(a.dtype).double() for x in (gate, up))
    rounded = (torch.nn.functional.silu(gate) * up).to(a.dtype).double()
    return [(rows, exact, float((rounded - exact).abs().max()))]


def twice(a, b1, b2) -> Callable[[], object]:
    import torch

    gated = torch.cuda.jiterator._create_jit_fn(GATED)
    gate, up = (torch.empty((a.shape[0], b1.shape[0]), device="cuda", dtype=a.dtype) for _ in range(2))

    def call():
        torch.matmul(a, b1.T, out=gate)
        torch.matmul(a, b2.T, out=up)
        return gated(gate, up)

    return call


def joined(a, b1, b2) -> Callable[[], object]:
    import torch

    gated = torch.cuda.jiterator._create_jit_fn(GATED)
    n, both = b1.shape[0], torch.cat([b1, b2])
    out = torch.empty((a.shape[0], 2 * n), device="cuda", dtype=a.dtype)

    def call():
        torch.matmul(a, both.T, out=out)
        return gated(out[:, :n], out[:, n:])

    return call


def own(a, b1, b2, schedule: str, target: str, dtype: str) -> Callable[[], object]:
    import torch

    import wgdsl

    kernel = wgdsl.compile(PROGRAM, schedule=schedule, target=target, types={"T": dtype})
    out = torch.full((a.shape[0], b1.shape[0]), float("nan"), device="cuda", dtype=a.dtype)

    def call():
        kernel(A=a, B1=b1, B2=b2, out={"Y": out})
        return out

    return call


def contestants(given: argparse.Namespace) -> dict[str, Callable]:
    """Name -> builder of (a, b1, b2)."""
    schedules = given.schedule or ["dual"]
    ours = {f"wgdsl {s}": partial(own, schedule=s, target=given.target, dtype=given.dtype) for s in schedules}
    return {**dict(zip(PEERS, (twice, joined), strict=True)), **ours}


def work_through(given: argparse.Namespace, journal: measure.Journal) -> None:
    import torch

    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[given.dtype]
    done = {row["case"] for row in journal.rows}
    for number, (m, n, k) in enumerate(given.sizes):
        name = f"{given.dtype} {m}x{n}x{k}"
        if name in done:
            continue
        torch.manual_seed(given.seed + number)
        # factors of the size that a layer has: f16 holds their products
        a, b1, b2 = (torch.randn(shape, device="cuda").to(dtype) for shape in ((m, k), (n, k), (n, k)))
        b1, b2 = (b * k**-0.5 for b in (b1, b2))
        parts = {peer: reference_parts(a, b1, b2, peer) for peer in (False, True)}
        builders = {who: partial(build, a, b1, b2) for who, build in contestants(given).items()}
        measure.run_case(
            journal,
            name,
            builders,
            lambda who, call, parts=parts: measure.proven(call, parts[who in PEERS], 2.0),
            given,
            4.0 * m * n * k,
        )


def sizes(text: str) -> list[Size]:
    out = []
    for word in text.split(","):
        m, n, k = (int(x) for x in word.split("x"))
        out.append((m, n, k))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=sizes, default=sizes(SIZES), metavar="MxNxK,...")
    parser.add_argument("--dtype", default="bf16", choices=["f16", "bf16"])
    given = measure.arguments(parser)
    if given.child:
        return work_through(given, measure.begin(given))
    measure.report(measure.supervise(given), list(contestants(given)), PEERS, given.json)


if __name__ == "__main__":
    main()
