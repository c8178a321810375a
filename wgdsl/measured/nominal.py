"""The call at which schedules are compared by the cycle model, where nobody has measured any.

In: a kernel.  Out: a size for each dim that isn't fixed: LONG for what is cut into tiles or streamed; for what is only counted,
as heads and batches, so much that there are COUNT of all together. That fills the chip several times over.
"""

from __future__ import annotations

from ..roles.model import RoleProgram

LONG, COUNT = 2048, 64


def nominal(roles: RoleProgram, dims: tuple[str, ...]) -> dict[str, int]:
    """dims: those of a call."""
    counted = _symbols(roles, whole=False) - _symbols(roles, whole=True)
    each = max(1, round(COUNT ** (1 / len(counted)))) if counted else 1
    return {d: each if d in counted else LONG for d in dims}


def _symbols(roles: RoleProgram, *, whole: bool) -> set[str]:
    """The dims of the grid's axes: of those cut into tiles if `whole`, else of the others."""
    axes = [(k, a.index) for k in roles.kernels for a in k.grid.axes if (a.tile > 1) == whole]
    return {s for k, index in axes if index in k.index_extents for s in k.index_extents[index].symbols()}
