"""Step: program graph + arrays -> the right numbers, in NumPy float64. The oracle of the tests; nothing else uses it."""

from .evaluate import evaluate
from .random import random_inputs
from .shapes import solve_dims

__all__ = ["evaluate", "random_inputs", "solve_dims"]
