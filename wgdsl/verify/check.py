"""check: refuse a role program that can race, hang, or read what hasn't arrived.

In: a role program.  Out: the same, as `Checked`. Rules without behaviour come first (`structural`), then the closure over all
words of items (`closure`). Raises WgError: WG0701 to WG0710 with every problem found, WG0711 on with one for each kernel.
"""

from __future__ import annotations

from ..diagnostics.model import WgError
from ..roles.checked import Checked
from ..roles.model import RoleProgram
from .closure import Exploration, explore
from .report import problem_of
from .structural import structural_problems


def check(program: RoleProgram) -> Checked:
    """The program, checked. Raises WgError with the problems found."""
    verify(program)
    return Checked(program)


def verify(program: RoleProgram) -> tuple[Exploration, ...]:
    """The same, with what was explored, kernel by kernel."""
    check_structure(program)
    explored = tuple(explore(k) for k in program.kernels)
    faults = [problem_of(e.fault) for e in explored if e.fault is not None]
    if faults:
        raise WgError(faults)
    return explored


def check_structure(program: RoleProgram) -> None:
    """Rules without behaviour alone. Raises WgError with every problem found."""
    problems = [p for k in program.kernels for p in structural_problems(k)]
    if problems:
        raise WgError(problems)
