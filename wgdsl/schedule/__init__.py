"""Step: streamed graph + schedule -> role program (place, pipeline, sync)."""

from .lower import lower, stream_axis

__all__ = ["lower", "stream_axis"]
