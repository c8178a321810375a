"""Step: role programs to CUDA C++ text. In: a checked `RoleProgram`. Out: for each kernel a text that NVRTC compiles."""

from .kernel import emit, emit_program, entry_name, marks_name
from .lowering import LOWERINGS, lowered

__all__ = ["LOWERINGS", "emit", "emit_program", "entry_name", "lowered", "marks_name"]
