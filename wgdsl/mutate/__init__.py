"""Step: a role program to its mutants, the same program with one written event broken (or changed so that it may still hold).

It shares no code with what derives the events, nor with what checks them.
"""

from .knowledge import known_otherwise
from .model import MAY_PASS, MUST_REJECT, Mutant, Operator
from .operators import OPERATORS, mutants, operator

__all__ = ["MAY_PASS", "MUST_REJECT", "OPERATORS", "Mutant", "Operator", "known_otherwise", "mutants", "operator"]
