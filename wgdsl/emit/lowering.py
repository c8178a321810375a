"""The registry of lowerings: which function prints which step for which target."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..diagnostics.model import InternalError
from ..roles.model import Kernel, Step, walk

if TYPE_CHECKING:
    from .context import RoleContext

Lowering = Callable[["RoleContext", Any], None]
LOWERINGS: dict[tuple[type[Step], str], Lowering] = {}


def lowers(step: type[Step], target: str = "sm_90a"):
    """Registers the decorated function as the lowering of a step class."""

    def register(fn: Lowering) -> Lowering:
        key = (step, target)
        if key in LOWERINGS:
            one, two = (f"{f.__module__}.{f.__qualname__}" for f in (LOWERINGS[key], fn))
            raise InternalError(f"two lowerings of {step.__name__} for {target}: {one} and {two}")
        LOWERINGS[key] = fn
        return fn

    return register


def targets_of(step: type[Step]) -> list[str]:
    """The targets that a step class has a lowering for."""
    return sorted(t for s, t in LOWERINGS if s is step)


def require_lowerings(kernel: Kernel) -> None:
    """Raises InternalError that names every step of the kernel that its target has no lowering for."""
    used = {type(s) for role in kernel.roles for s in walk(role.steps)}
    missing = sorted((s for s in used if (s, kernel.target) not in LOWERINGS), key=lambda s: s.__name__)
    if missing:
        rows = [f"{s.__name__} (lowered for: {', '.join(targets_of(s)) or 'none'})" for s in missing]
        raise InternalError(f"kernel {kernel.name}: no lowering for {kernel.target} of {'; '.join(rows)}")


def lower(ctx: RoleContext, step: Step) -> None:
    """Print one step with its target's lowering."""
    LOWERINGS[type(step), ctx.kernel.target](ctx, step)
