"""Step: program graph + arrays -> the right numbers, in NumPy float64: the oracle of tests and of `wgdsl run --check`."""

from .evaluate import evaluate
from .random import random_inputs
from .shapes import solve_dims

__all__ = ["evaluate", "random_inputs", "solve_dims"]
