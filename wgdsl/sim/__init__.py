"""Step: checked role programs to numbers, on the CPU. The definition of what each step of a role program means."""

from .simulate import simulate, simulate_unchecked

__all__ = ["simulate", "simulate_unchecked"]
