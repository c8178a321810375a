"""join: the role programs of a schedule's kernels, as one.

In: role programs in launch order, and for each the tensors that pass between kernels in memory of the run time's.  Out: one
`RoleProgram` with all kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from .model import Kernel, RoleProgram


def joined(
    programs: Sequence[RoleProgram], temporary: Iterable[frozenset[str]], schedule: str, more: Sequence[str] = ()
) -> RoleProgram:
    """All kernels under the name of the whole schedule. more: roundings beside those of the kernels."""
    kernels = [_marked(k, names) for p, names in zip(programs, temporary, strict=True) for k in p.kernels]
    roundings = dict.fromkeys([*(r for p in programs for r in p.roundings), *more])
    return replace(programs[0], schedule=schedule, kernels=tuple(kernels), roundings=tuple(roundings))


def _marked(k: Kernel, temporary: frozenset[str]) -> Kernel:
    return replace(k, tensors=tuple(replace(t, temporary=t.temporary or t.name in temporary) for t in k.tensors))
