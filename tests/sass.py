"""How SASS spells matrix instructions."""

from __future__ import annotations

import re

_WIDE = re.compile(r"^(?:HGMMA|QGMMA|IGMMA)\.(\d+)x(\d+)x(\d+)\b")  # HGMMA.64x128x16.F32.BF16
_NARROW = re.compile(r"^(?:HMMA|IMMA|QMMA)\.(16)(8)(8|16|32|64)\b")  # HMMA.16816.F32.BF16


def sass_shape(op: str) -> tuple[int, int, int]:
    """(m, n, k) of a matrix instruction as SASS spells it. Raises ValueError for another one."""
    found = _WIDE.match(op) or _NARROW.match(op)
    if found is None:
        raise ValueError(f"{op} is no matrix instruction with a known shape")
    return int(found[1]), int(found[2]), int(found[3])
