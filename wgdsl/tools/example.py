"""A program's own script: compiled for this machine or a named target, checked on its GPU or in the simulator, timed on a GPU.

In: the script's path and docstring, and sizes.  Out: lines to print, exit status 1 where the result is wrong.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from ..driver import compile
from ..runtime import cuda
from ..runtime.kernel import Kernel
from .running import run, summary
from .work import work

REPEATS = 20  # of a timed launch


def main(
    script: str,
    about: str | None,
    *,
    shape: Mapping[str, int],
    large: Mapping[str, int],
    fixed: str = "",
    causal: bool = False,
    dtypes: Sequence[str] = ("bf16", "f16"),
) -> None:
    """The script. shape: dims of the checked run, unless `--shape` gives others, in this order.  large: those of the timed one,
    the others as in the checked run.  fixed: names of dims that are compiled in.  causal: whether the program has that option.
    dtypes: choices of its type `T`, the usual one first.
    Raises SystemExit if the result is wrong, WgError as `wgdsl.compile`."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", action="store_true", help="show the report too")
    parser.add_argument("--schedule", help="the first one that suits the target, unless named")
    parser.add_argument("--target", help="this machine's, unless named")
    parser.add_argument("--dtype", default=dtypes[0], choices=dtypes)
    if causal:
        parser.add_argument("--causal", action="store_true")
    parser.add_argument("--shape", default=",".join(map(str, shape.values())), help=f"{','.join(shape)} of the checked run")
    given = parser.parse_args()
    numbers = given.shape.split(",")
    if len(numbers) != len(shape) or not all(n.isdecimal() for n in numbers):
        parser.error(f"--shape takes {len(shape)} numbers: {','.join(shape)}")
    dims = dict(zip(shape, map(int, numbers), strict=True))

    started = time.perf_counter()
    kernel = compile(
        Path(script).with_suffix(".wg").with_stem(Path(script).parent.name),
        schedule=given.schedule,
        target=given.target,
        types={"T": given.dtype},
        dims={n: dims[n] for n in dims if n in fixed},
        options={"causal": given.causal} if causal else {},
    )
    print(f"{kernel}: compiled in {time.perf_counter() - started:.1f} s")
    if given.demo:
        print(kernel.report)

    checked = run(kernel, dims, device="gpu" if cuda.available() else "sim", check=True)
    print("\n".join(summary(checked)))
    if not checked.right:
        raise SystemExit("the result is wrong")
    if cuda.available():
        print("\n".join(timed(kernel, {**dims, **large})))


def timed(kernel: Kernel, dims: Mapping[str, int]) -> list[str]:
    """Lines on a run on the GPU at these dims."""
    done = run(kernel, dims, device="gpu", repeats=REPEATS)
    rate = work(kernel.graph, {**kernel.graph.fixed, **done.bound.dims}, done.inputs) / median(done.seconds) / 1e12
    return [*summary(done), f"  {rate:.0f} TFLOP/s"]
