"""A gated linear layer, act(A B1^T) * (A B2^T), as one kernel: compiled, run on this machine's GPU or in the simulator, timed.

python examples/dual_gemm/run.py --act gelu --shape 1000,777,512
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import wgdsl
from wgdsl.runtime import cuda
from wgdsl.tools.running import run, summary

PROGRAM = Path(__file__).with_name("dual_gemm.wg")


def on_gpu(kernel: wgdsl.Kernel, dtype: str) -> None:
    """The call as a user writes it, on torch tensors, timed."""
    import torch

    m, n, k = 8192, 14336, 4096
    element = {"f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    a, b1, b2 = (torch.randn(shape, device="cuda").to(element) for shape in ((m, k), (n, k), (n, k)))
    y = kernel(A=a, B1=b1, B2=b2)
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(20):
        kernel(A=a, B1=b1, B2=b2, out=y)
    stop.record()
    stop.synchronize()
    seconds = start.elapsed_time(stop) / 20 / 1000
    rate = 4 * m * n * k / seconds / 1e12
    print(f"{m} x {n} x {k} on {torch.cuda.get_device_name()}: {1e6 * seconds:.0f} us, {rate:.0f} TFLOP/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", action="store_true", help="show the report too")
    parser.add_argument("--schedule", default="dual")
    parser.add_argument("--dtype", default="bf16", choices=["f16", "bf16"])
    parser.add_argument("--act", default="silu", choices=["silu", "gelu", "gelu_tanh", "relu"])
    parser.add_argument("--shape", default="300,277,200", help="M,N,K of the checked run")
    given = parser.parse_args()

    started = time.perf_counter()
    kernel = wgdsl.compile(PROGRAM, schedule=given.schedule, types={"T": given.dtype}, options={"act": given.act})
    print(f"{kernel}: compiled in {time.perf_counter() - started:.1f} s")
    if given.demo:
        print(kernel.report)

    dims = dict(zip("MNK", map(int, given.shape.split(",")), strict=True))
    checked = run(kernel, dims, device="gpu" if cuda.available() else "sim", check=True)
    print("\n".join(summary(checked)))
    if not checked.right:
        raise SystemExit("the result is wrong")
    if cuda.available():
        on_gpu(kernel, given.dtype)


if __name__ == "__main__":
    main()
