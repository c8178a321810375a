"""GEMM beside cuBLAS (through torch): same inputs, same process, turn and turn about.

TFLOP/s count 2 * m * n * k operations. Ratios above 1 mean faster than cuBLAS. `--layout nk`: B has rows along k, as a linear
layer's weights do; `kn`: rows along n.

    python bench/gemm_vs_cublas.py --schedule pipelined --sizes 8192x8192x8192,4096x4096x4096
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import measure

PROGRAM = Path(__file__).parents[1] / "examples" / "gemm" / "gemm.wg"
# The square one is the measure; the others have tails in every dimension.
SIZES = "8192x8192x8192,4096x4096x4096,8191x8193x4096,1000x5000x2056,16384x2048x8192"
Size = tuple[int, int, int]


def reference_parts(a, b) -> list[tuple[object, object, float]]:
    """Some rows in float64, and the error there of rounding the result to the dtype."""
    import torch

    m = a.shape[0]
    rows = torch.unique(torch.cat([torch.arange(min(m, 32)), torch.randint(m, (64,)), torch.tensor([m - 1])])).cuda()
    exact = a[rows].double() @ b.double()  # b: [k, n], whatever its strides
    return [(rows, exact, float((exact.to(a.dtype).double() - exact).abs().max()))]


def cublas(a, b) -> Callable[[], object]:
    import torch

    out = torch.full((a.shape[0], b.shape[1]), float("nan"), device="cuda", dtype=a.dtype)
    return lambda: torch.matmul(a, b, out=out)


def own(a, b, schedule: str, target: str, dtype: str) -> Callable[[], object]:
    import torch

    import wgdsl

    layout = "kn" if b.is_contiguous() else "nk"
    stored = b if layout == "kn" else b.T
    kernel = wgdsl.compile(PROGRAM, schedule=schedule, target=target, types={"T": dtype}, options={"layout": layout})
    out = torch.full((a.shape[0], b.shape[1]), float("nan"), device="cuda", dtype=a.dtype)

    def call():
        kernel(A=a, B=stored, out={"C": out})
        return out

    return call


def contestants(given: argparse.Namespace) -> tuple[dict[str, Callable], list[str]]:
    """Name -> builder of (a, b); and which of them are peers."""
    ours = {
        f"wgdsl {s}": partial(own, schedule=s, target=given.target, dtype=given.dtype) for s in given.schedule or ["pipelined"]
    }
    return {"cuBLAS": cublas, **ours}, ["cuBLAS"]


def work_through(given: argparse.Namespace, journal: measure.Journal) -> None:
    import torch

    everyone, _ = contestants(given)
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[given.dtype]
    done = {row["case"] for row in journal.rows}
    for number, (m, n, k) in enumerate(given.sizes):
        name = f"{given.dtype} {given.layout} {m}x{n}x{k}"
        if name in done:
            continue
        torch.manual_seed(given.seed + number)
        a, b = (torch.randn(shape, device="cuda").to(dtype) for shape in ((m, k), (n, k)))
        b = b.T if given.layout == "nk" else b.T.contiguous()
        parts = reference_parts(a, b)
        builders = {who: partial(build, a, b) for who, build in everyone.items()}
        measure.run_case(
            journal,
            name,
            builders,
            lambda who, call, parts=parts: measure.proven(call, parts, 2.0),
            given,
            2.0 * m * n * k,
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
    parser.add_argument("--layout", default="nk", choices=["nk", "kn"])
    given = measure.arguments(parser)
    if given.child:
        return work_through(given, measure.begin(given))
    everyone, peers = contestants(given)
    measure.report(measure.supervise(given), list(everyone), peers, given.json)


if __name__ == "__main__":
    main()
