"""Hardware as data: one file per PTX family of frozen rows that assert their own arithmetic."""

from .sm_90a import SM_90A, launch_registers, swizzle_for

__all__ = ["SM_90A", "launch_registers", "swizzle_for"]
