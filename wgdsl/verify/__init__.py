"""Step: role programs to checked role programs. It shares no code with what derives the events."""

from .structural import check

__all__ = ["check"]
