"""The GPU on which contestants run, by way of torch.

Every call is timed alone by CUDA events, after a write that empties the L2 cache. The device idles first, so that the host is
ahead of it throughout.
"""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..driver import compile
from ..runtime.timing import FLUSH
from ..tools.hardware import find_card, today
from ..tools.supervised import Journal
from .attention_peers import missing
from .case import Call, Case, Ground, Own
from .gauge import Gauge, gauge
from .match import Plan, Turn, hold
from .request import Request

IDLE = 1_000_000  # cycles
WARM = 2  # calls before those that count
PACKAGES = {"FA4": "flash-attn-4", "Triton": "triton"}  # of peers, and of what compiles FlexAttention


class TorchArena:
    """See `match.Arena`."""

    def __init__(self, request: Request):
        import torch

        self.torch, self.request = torch, request
        self.scratch = torch.empty(FLUSH, dtype=torch.uint8, device="cuda")
        self.gauge = gauge(str(torch.cuda.get_device_properties(0).uuid))

    def about(self) -> dict[str, Any]:
        torch, r = self.torch, self.request
        card = find_card()
        return {
            "card": torch.cuda.get_device_name(),
            "driver": card.driver if card else "unknown",
            "date": today(),
            "command": r.command,
            "rounds": r.rounds,
            "ms": r.ms,
            "seed": r.seed,
            "clock and power": self.gauge if isinstance(self.gauge, str) else "by NVML",
            "versions": {
                "torch": torch.__version__,
                "CUDA": torch.version.cuda,
                "cuDNN": torch.backends.cudnn.version(),
                **{p: v for p, package in PACKAGES.items() if (v := _version(package))},
            },
        }

    def missing(self, peer: str) -> str:
        return missing(peer, self.request.site)

    def enter(self, case: Case, seed: int) -> Ground:
        self.torch.manual_seed(seed)
        return case.ground(self.request.site)

    def kernel(self, own: Own, candidate: str) -> Any:
        return compile(
            own.program,
            schedule=candidate,
            target=own.target,
            dims=own.dims,
            types=own.types,
            options=own.options,
        )

    def turn(self, call: Call, count: int) -> Turn:
        cuda = self.torch.cuda
        for _ in range(WARM):
            call()
        events = [(cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)) for _ in range(count)]
        cuda._sleep(IDLE)
        for start, stop in events:
            self.scratch.zero_()
            start.record()
            call()
            stop.record()
        mhz, watts = (self.gauge.mhz(), self.gauge.watts()) if isinstance(self.gauge, Gauge) else (None, None)
        cuda.synchronize()
        return Turn(microseconds=[1000 * start.elapsed_time(stop) for start, stop in events], mhz=mhz, watts=watts)

    def lost(self) -> bool:
        try:
            self.torch.cuda.synchronize()
        except Exception:
            return True
        return False


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def run_match(plan: Path, journal: Path) -> None:
    """The work of the process. Python's own end may hang in a peer's threads: there is nothing to save."""
    given = Plan.read(plan)
    hold(given, Journal(journal), TorchArena(given.request))
    os._exit(0)
