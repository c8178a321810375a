"""Step: role programs to checked role programs. It shares no code with what derives the events."""

from .check import check, check_structure, verify

__all__ = ["check", "check_structure", "verify"]
