"""Step: role programs to CUDA C++ text. In: a checked `RoleProgram`. Out: for each kernel a text that NVRTC compiles."""

from .facts import Facts, facts
from .kernel import SHARED_SLACK, emit, emit_program, entry_name

__all__ = ["SHARED_SLACK", "Facts", "emit", "emit_program", "entry_name", "facts"]
