"""Targets by name.

In: what a caller writes.  Out: the name of an architecture, spelled as NVIDIA does.
"""

from __future__ import annotations

import re

from ..diagnostics.model import WgError
from ..diagnostics.runtime import UnknownTarget
from .sm_80 import SM_80, SM_86, SM_89, SM_120
from .sm_90a import SM_90A

TARGETS = {t.name: t for t in (SM_90A, SM_80, SM_86, SM_89, SM_120)}
FAMILIES = tuple(dict.fromkeys(t.family for t in TARGETS.values()))
_SPELLING = re.compile(r"(?:sm_?)?(\d{2,3})([af]?)")


def resolve(target: str | None) -> str | None:
    """The architecture that is meant; None for `auto`. One that wgdsl can't emit is kept, for the schedule to refuse.

    Raises WgError (WG0653) for what names no architecture.
    """
    if target is None or target.lower() == "auto":
        return None
    found = _SPELLING.fullmatch(target.strip().lower())
    if found is None:
        raise WgError(UnknownTarget(target=target, known=tuple(TARGETS)))
    return f"sm_{found[1]}{found[2]}"
