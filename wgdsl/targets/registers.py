"""Registers a thread: what a launch grants, and how setmaxnreg may share it out (PTX ISA: "setmaxnreg")."""

from __future__ import annotations

FILE = 65536  # 32-bit registers of one SM
GRANULE = 8  # setmaxnreg and the launch count in eights
LOWEST = 24
HIGHEST = 240  # of what was measured; the instruction takes 256, a thread has 255
THREAD = 255  # that an instruction can name
WARPGROUP = 128  # threads
LANES = 32  # threads of a warp
WARPS = 4  # of a warpgroup


def launch_registers(threads: int) -> int:
    """Registers a thread of a CTA that has the SM to itself: what ptxas reports for `__launch_bounds__(threads, 1)`."""
    return min(FILE // threads // GRANULE * GRANULE, THREAD)


def count_problem(count: int) -> str | None:
    """Why setmaxnreg cannot take this count; None if it can."""
    if count % GRANULE or not LOWEST <= count <= HIGHEST:
        return f"{count} is not a multiple of {GRANULE} from {LOWEST} to {HIGHEST}"
    return None


assert [launch_registers(t) for t in (384, 512, 640)] == [168, 128, 96]
