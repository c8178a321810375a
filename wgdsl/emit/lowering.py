"""The registry of lowerings: which function prints which step for which target."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..diagnostics.model import InternalError
from ..roles.model import Kernel, Step, walk
from ..targets.choice import FAMILIES, TARGETS

if TYPE_CHECKING:
    from .context import RoleContext

Lowering = Callable[["RoleContext", Any], None]
LOWERINGS: dict[tuple[type[Step], str], Lowering] = {}  # by step and family


def lowers(step: type[Step], *families: str):
    """Registers the decorated function as the lowering of a step class for families of targets; for all of them by default."""

    def register(fn: Lowering) -> Lowering:
        for family in families or FAMILIES:
            key = (step, family)
            if key in LOWERINGS:
                one, two = (f"{f.__module__}.{f.__qualname__}" for f in (LOWERINGS[key], fn))
                raise InternalError(f"two lowerings of {step.__name__} for {family}: {one} and {two}")
            LOWERINGS[key] = fn
        return fn

    return register


def lowered(target: str) -> frozenset[type[Step]]:
    """The step classes that have a lowering for a target."""
    return frozenset(s for s, family in LOWERINGS if family == TARGETS[target].family)


def targets_of(step: type[Step]) -> list[str]:
    """The targets that a step class has a lowering for."""
    return [t for t in TARGETS if step in lowered(t)]


def require_lowerings(kernel: Kernel) -> None:
    """Raises InternalError that names every step of the kernel that its target has no lowering for."""
    used = {type(s) for role in kernel.roles for s in walk(role.steps)}
    missing = sorted(used - lowered(kernel.target), key=lambda s: s.__name__)
    if missing:
        rows = [f"{s.__name__} (lowered for: {', '.join(targets_of(s)) or 'none'})" for s in missing]
        raise InternalError(f"kernel {kernel.name}: no lowering for {kernel.target} of {'; '.join(rows)}")


def lower(ctx: RoleContext, step: Step) -> None:
    """Print one step with its target's lowering."""
    LOWERINGS[type(step), ctx.target.family](ctx, step)
