"""The softmax of every row of a product, in two kernels: compiled, run on this machine's GPU or in the simulator, checked.

python examples/row_softmax/run.py --shape 1000,777,128
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import wgdsl
from wgdsl.runtime import cuda
from wgdsl.tools.running import run, summary

PROGRAM = Path(__file__).with_name("row_softmax.wg")


def on_gpu(kernel: wgdsl.Kernel, dtype: str, k: int) -> None:
    """The call as a user writes it, on torch tensors, timed. What passes between the kernels is the run time's affair."""
    import torch

    size = 8192
    element = {"f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    a, b = (torch.randn(size, k, device="cuda").to(element) for _ in range(2))
    p = kernel(A=a, B=b)
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(20):
        kernel(A=a, B=b, out=p)
    stop.record()
    stop.synchronize()
    print(f"{size} x {size} x {k} on {torch.cuda.get_device_name()}: {1000 * start.elapsed_time(stop) / 20:.0f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", action="store_true", help="show the report too")
    parser.add_argument("--schedule", default="two_pass")
    parser.add_argument("--dtype", default="bf16", choices=["f16", "bf16"])
    parser.add_argument("--shape", default="300,277,128", help="M,N,K of the checked run; K is fixed at compile time")
    given = parser.parse_args()
    dims = dict(zip("MNK", map(int, given.shape.split(",")), strict=True))

    started = time.perf_counter()
    kernel = wgdsl.compile(PROGRAM, schedule=given.schedule, types={"T": given.dtype}, dims={"K": dims["K"]})
    print(f"{kernel}: compiled in {time.perf_counter() - started:.1f} s")
    if given.demo:
        print(kernel.report)

    checked = run(kernel, dims, device="gpu" if cuda.available() else "sim", check=True)
    print("\n".join(summary(checked)))
    if not checked.right:
        raise SystemExit("the result is wrong")
    if cuda.available():
        on_gpu(kernel, given.dtype, dims["K"])


if __name__ == "__main__":
    main()
