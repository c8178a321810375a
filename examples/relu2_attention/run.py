"""Attention whose weights are squares of the positive scores: compiled, run on a GPU or in the simulator, checked, timed.

python examples/relu2_attention/run.py --shape 1,300,257,2,64,64 --causal
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import wgdsl
from wgdsl.runtime import cuda
from wgdsl.tools.running import run, summary

PROGRAM = Path(__file__).with_name("relu2_attention.wg")


def on_gpu(kernel: wgdsl.Kernel, given: argparse.Namespace, dims: dict[str, int]) -> None:
    """The call as a user writes it, on torch tensors, timed."""
    import torch

    widths = (dims["D"], dims["D"], dims["E"])
    b, s, h = 4, 4096, 16
    element = {"f16": torch.float16, "bf16": torch.bfloat16}[given.dtype]
    q, k, v = (torch.randn(b, s, h, d, device="cuda").to(element) for d in widths)
    work = 2 * b * h * s * s * (dims["D"] + dims["E"]) * (0.5 if given.causal else 1.0)
    what = f"b {b}, s {s}, h {h}"
    out = kernel(Q=q, K=k, V=v)
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(20):
        kernel(Q=q, K=k, V=v, out=out)
    stop.record()
    stop.synchronize()
    seconds = start.elapsed_time(stop) / 20 / 1000
    print(f"{what} on {torch.cuda.get_device_name()}: {1e6 * seconds:.0f} us, {work / seconds / 1e12:.0f} TFLOP/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", action="store_true", help="show the report too")
    parser.add_argument("--schedule", help="the first one that suits the target, unless named")
    parser.add_argument("--target", choices=["sm_80", "sm_90a"], help="this machine's, unless named")
    parser.add_argument("--dtype", default="bf16", choices=["f16", "bf16"])
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--shape", default="1,300,257,2,64,64", help="B,M,N,H,D,E of the checked run")
    given = parser.parse_args()
    dims = dict(zip("BMNHDE", map(int, given.shape.split(",")), strict=True))

    started = time.perf_counter()
    kernel = wgdsl.compile(
        PROGRAM,
        schedule=given.schedule,
        target=given.target,
        types={"T": given.dtype},
        dims={n: dims[n] for n in "DE"},
        options={"causal": given.causal},
    )
    print(f"{kernel}: compiled in {time.perf_counter() - started:.1f} s")
    if given.demo:
        print(kernel.report)

    checked = run(kernel, dims, device="gpu" if cuda.available() else "sim", check=True)
    print("\n".join(summary(checked)))
    if not checked.right:
        raise SystemExit("the result is wrong")
    if cuda.available():
        on_gpu(kernel, given, dims)


if __name__ == "__main__":
    main()
