"""WG102x: what `wgdsl retarget` can't carry over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .model import Problem


@dataclass(frozen=True, kw_only=True)
class NotCarried(Problem):
    """`directive` has no counterpart on `target`."""

    code: ClassVar[str] = "WG1021"
    doc: ClassVar[str] = """`wgdsl retarget` changes each directive of a schedule by a rule, or drops it and says why.
What has no counterpart, and can't be left out without changing the kernel, is refused.

fails:
  role left : 1 warpgroup, registers 200
  role right : 1 warpgroup, registers 200
works:
  role math : 2 warpgroups, registers 240, split i
"""
    directive: str
    why: str
    target: str = ""

    def title(self) -> str:
        return f"{self.directive} can't be carried over" + (f" to {self.target}" if self.target else "")

    def label(self) -> str:
        return self.why

    def help(self) -> str:
        return "retarget a schedule without it, or write this one by hand: `schedules/ampere` has examples"


@dataclass(frozen=True, kw_only=True)
class NothingFits(Problem):
    """`least`: why the smallest tiles that were tried don't fit."""

    code: ClassVar[str] = "WG1022"
    doc: ClassVar[str] = """`wgdsl retarget` tries tiles from those of the schedule downwards, and takes the first whose
accumulators, operands and buffers fit. With very wide heads none does.

fails:
  wgdsl retarget three --to sm_80 --set D=1024 E=1024
works:
  wgdsl retarget three --to sm_80 --set D=128 E=128
"""
    schedule: str
    target: str
    tried: int
    least: str

    def title(self) -> str:
        return f"no tiles of `{self.schedule}` fit {self.target}: {self.tried} were tried"

    def notes(self) -> tuple[str, ...]:
        return (f"the last ones: {self.least}",)

    def help(self) -> str:
        return "fix smaller dims, or write the schedule by hand: `schedules/ampere` has examples"


@dataclass(frozen=True, kw_only=True)
class NoRetarget(Problem):
    """There are rules from one family of targets to another only."""

    code: ClassVar[str] = "WG1023"
    doc: ClassVar[str] = """`wgdsl retarget` turns a schedule for sm_90a into one for sm_80, sm_86, sm_89 or sm_120.

fails:
  wgdsl retarget three --to sm_90a
works:
  wgdsl retarget three --to sm_80
"""
    schedule: str
    source: str
    target: str
    known: tuple[str, ...]
    explicit: bool = False

    def title(self) -> str:
        if self.explicit:
            return f"`{self.schedule}` is an explicit form, whose steps are those of {self.source}"
        return f"there are no rules from {self.source}, which `{self.schedule}` is for, to {self.target}"

    def help(self) -> str:
        if self.explicit:
            return "name the schedule that it was derived from"
        return "`wgdsl retarget` goes from sm_90a to " + ", ".join(self.known)
