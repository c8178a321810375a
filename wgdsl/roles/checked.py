"""A role program that the structural checks have accepted: what the emitter and the simulator take.

Only `wgdsl.verify.check` makes one from a program; tests of the simulator's own faults use `simulate_unchecked`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .model import RoleProgram


@dataclass(frozen=True)
class Checked:
    """The program, unchanged."""

    program: RoleProgram
