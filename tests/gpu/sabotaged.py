"""The process of a contest, in which one candidate is broken once it is loaded.

python -m tests.gpu.sabotaged CONTEST JOURNAL CANDIDATE HOW
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from wgdsl.runtime.kernel import Kernel
from wgdsl.tools.contest import Contest, hold
from wgdsl.tools.supervised import Journal
from wgdsl.tools.track import GpuTrack, on_gpu

BROKEN = {"writes nothing": "return;", "crashes": "*(volatile int*)8 = 1;", "hangs": "for (;;) __nanosleep(1000);"}


def broken(kernel: Kernel, how: str) -> Kernel:
    """The kernel with a mistake where its text begins."""
    at = kernel.cuda.index("{", kernel.cuda.index("__global__")) + 1
    return kernel.with_cuda(f"{kernel.cuda[:at]}\n  {BROKEN[how]}\n{kernel.cuda[at:]}")


def sabotaged(track: GpuTrack, victim: str, how: str) -> Callable[[str], None]:
    """A track's `load`, which breaks the victim."""
    load = track.load

    def loads(name: str) -> None:
        load(name)
        if name == victim:
            track.kernels[name] = broken(track.kernels[name], how)

    return loads


def main(contest: str, journal: str, victim: str, how: str) -> None:
    with on_gpu(Contest.read(Path(contest))) as track:
        track.load = sabotaged(track, victim, how)  # pyright: ignore[reportAttributeAccessIssue]
        hold(track.contest, Journal(Path(journal)), track)


if __name__ == "__main__":
    main(*sys.argv[1:])
