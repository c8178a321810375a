"""cp.async: copies of threads that arrive later (PTX ISA: "Data Movement and Conversion Instructions: cp.async")."""

from .swizzle import CHUNK

CP_ASYNC_BYTES = CHUNK  # of one copy past L1: what a thread moves at once, aligned on both sides; the rest becomes 0
