"""Attention from its program and a schedule: compiled, run on this machine's GPU or in the simulator, checked, timed.

python examples/attention/run.py --demo
python examples/attention/run.py --schedule simple --causal --dtype f16 --shape 2,1000,1000,1,4
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import wgdsl
from wgdsl.runtime import cuda
from wgdsl.tools.running import Run, run, summary

PROGRAM = Path(__file__).with_name("attention.wg")
WARPS = {64: "fa2", 128: "fa2_narrow"}  # schedules for sm_80, by head dim


def on_gpu(kernel: wgdsl.Kernel, given: argparse.Namespace) -> None:
    """The call as a user writes it, on torch tensors, timed."""
    import torch

    b, s, h, d = 4, 4096, 16, given.head_dim
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[given.dtype]
    q, k, v = (torch.randn(b, s, h, d, device="cuda").to(dtype) for _ in range(3))
    out = kernel(Q=q, K=k, V=v)  # a namedtuple of O and L, on the current stream
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(20):
        kernel(Q=q, K=k, V=v, out=out._asdict())
    stop.record()
    stop.synchronize()
    seconds = start.elapsed_time(stop) / 20 / 1000
    work = 4 * b * h * s * s * d * (0.5 if given.causal else 1.0)
    what = f"b {b}, s {s}, h {h}, d {d} on {torch.cuda.get_device_name()}"
    print(f"{what}: {1e6 * seconds:.0f} us, {work / seconds / 1e12:.0f} TFLOP/s")


def for_other_targets(given: argparse.Namespace, dims: dict[str, int]) -> None:
    """The same program by a schedule for warps, on every target that takes it; the first one is run, too."""
    for target in ("sm_80", "sm_86", "sm_89", "sm_120"):
        kernel = compiled(given, WARPS[given.head_dim], target)
        print(f"{kernel}: compiled")
        if target == "sm_80":
            report(run(kernel, dims, device="gpu" if cuda.available() else "sim", check=True))


def compiled(given: argparse.Namespace, schedule: str, target: str = "auto") -> wgdsl.Kernel:
    return wgdsl.compile(
        PROGRAM,
        schedule=schedule,
        target=target,
        dims={"D": given.head_dim, "E": given.head_dim},
        types={"T": given.dtype},
        options={"causal": given.causal},
    )


def report(checked: Run) -> None:
    print("\n".join(summary(checked)))
    if not checked.right:
        raise SystemExit("the result is wrong")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", action="store_true", help="show the report, and compile for the other targets too")
    parser.add_argument("--schedule", default="fa3")
    parser.add_argument("--head-dim", type=int, default=128, choices=[64, 128])
    parser.add_argument("--dtype", default="bf16", choices=["f16", "bf16"])
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--shape", default="1,300,257,1,2", help="B,M,N,G,R of the checked run")
    given = parser.parse_args()

    started = time.perf_counter()
    kernel = compiled(given, given.schedule)
    print(f"{kernel}: compiled in {time.perf_counter() - started:.1f} s")
    if given.demo:
        print(kernel.report)

    dims = dict(zip("BMNGR", map(int, given.shape.split(",")), strict=True))
    report(run(kernel, dims, device="gpu" if cuda.available() else "sim", check=True))
    if given.demo:
        for_other_targets(given, dims)
    if cuda.available():
        on_gpu(kernel, given)


if __name__ == "__main__":
    main()
