"""Attention on one tensor of queries, keys and values: compiled, run on this machine's GPU or in the simulator, checked.

python examples/attention_packed/run.py --causal --shape 2,1000,4
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import wgdsl
from wgdsl.runtime import cuda
from wgdsl.tools.running import run, summary

PROGRAM = Path(__file__).with_name("attention_packed.wg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", action="store_true", help="show the report too")
    parser.add_argument("--schedule", default="packed")
    parser.add_argument("--head-dim", type=int, default=128, choices=[64, 128])
    parser.add_argument("--dtype", default="bf16", choices=["f16", "bf16"])
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--shape", default="1,300,2", help="B,M,H of the checked run")
    given = parser.parse_args()

    started = time.perf_counter()
    kernel = wgdsl.compile(
        PROGRAM,
        schedule=given.schedule,
        dims={"D": given.head_dim},
        types={"T": given.dtype},
        options={"causal": given.causal},
    )
    print(f"{kernel}: compiled in {time.perf_counter() - started:.1f} s")
    if given.demo:
        print(kernel.report)

    dims = dict(zip("BMH", map(int, given.shape.split(",")), strict=True))
    checked = run(kernel, dims, device="gpu" if cuda.available() else "sim", check=True)
    print("\n".join(summary(checked)))
    if not checked.right:
        raise SystemExit("the result is wrong")


if __name__ == "__main__":
    main()
