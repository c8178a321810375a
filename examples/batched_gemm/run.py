"""Many matrix products with an epilogue, as one kernel: compiled, run on this machine's GPU or in the simulator, timed.

python examples/batched_gemm/run.py --bias --act gelu --shape 3,1000,777,512
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import wgdsl
from wgdsl.runtime import cuda
from wgdsl.tools.running import run, summary

PROGRAM = Path(__file__).with_name("batched_gemm.wg")


def on_gpu(kernel: wgdsl.Kernel, given: argparse.Namespace) -> None:
    """The call as a user writes it, on torch tensors, timed."""
    import torch

    z, size = 16, 2048
    element = {"f16": torch.float16, "bf16": torch.bfloat16}[given.dtype]
    a, b = (torch.randn(z, size, size, device="cuda").to(element) for _ in range(2))
    more = {"b": torch.randn(z, size, device="cuda").to(element)} if given.bias else {}
    more |= {"R": torch.randn(z, size, size, device="cuda").to(element)} if given.residual else {}
    c = kernel(A=a, B=b, **more)
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(20):
        kernel(A=a, B=b, **more, out=c)
    stop.record()
    stop.synchronize()
    seconds = start.elapsed_time(stop) / 20 / 1000
    rate = 2 * z * size**3 / seconds / 1e12
    print(f"{z} x {size}^3 on {torch.cuda.get_device_name()}: {1e6 * seconds:.0f} us, {rate:.0f} TFLOP/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", action="store_true", help="show the report too")
    parser.add_argument("--schedule", default="batched")
    parser.add_argument("--dtype", default="bf16", choices=["f16", "bf16"])
    parser.add_argument("--act", default="none", choices=["none", "relu", "gelu", "silu"])
    parser.add_argument("--bias", action="store_true")
    parser.add_argument("--residual", action="store_true")
    parser.add_argument("--shape", default="2,300,277,200", help="Z,M,N,K of the checked run")
    given = parser.parse_args()

    options = {"act": given.act, "bias": given.bias, "residual": given.residual}
    started = time.perf_counter()
    kernel = wgdsl.compile(PROGRAM, schedule=given.schedule, types={"T": given.dtype}, options=options)
    print(f"{kernel}: compiled in {time.perf_counter() - started:.1f} s")
    if given.demo:
        print(kernel.report)

    dims = dict(zip("ZMNK", map(int, given.shape.split(",")), strict=True))
    checked = run(kernel, dims, device="gpu" if cuda.available() else "sim", check=True)
    print("\n".join(summary(checked)))
    if not checked.right:
        raise SystemExit("the result is wrong")
    if cuda.available():
        on_gpu(kernel, given)


if __name__ == "__main__":
    main()
