"""What a buffer takes of shared memory, as a share of a budget: for the errors of placement and of the verifier alike."""

from __future__ import annotations

from ..diagnostics.budget import Share
from .model import Buffer


def share_of(b: Buffer) -> Share:
    """The bytes of a buffer, parts x stages x bytes from one tile to the next; none if it lies over another."""
    if b.over is not None:
        return Share(name=b.name, amount=0, detail=f"over {b.over}")
    return Share(name=b.name, amount=b.total_bytes, detail=f"{b.parts} x {b.stages} x {b.stride}")
