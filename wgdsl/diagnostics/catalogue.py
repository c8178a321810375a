"""The catalogue of user errors: every `Problem` of the modules of this package, by code.

A stage adds a module; nothing is registered by hand.
"""

from __future__ import annotations

import pkgutil
import re
from difflib import get_close_matches
from functools import cache
from importlib import import_module

from .model import InternalError, Problem


@cache
def all_problems() -> dict[str, type[Problem]]:
    """code -> class, sorted by code. Raises InternalError if two classes share a code."""
    package = __name__.rpartition(".")[0]
    path = import_module(package).__path__
    found: dict[str, type[Problem]] = {}
    for name in sorted(m.name for m in pkgutil.iter_modules(path)):
        for problem in problems_of(import_module(f"{package}.{name}")):
            other = found.setdefault(problem.code, problem)
            if other is not problem:
                raise InternalError(f"{problem.code} is both {_where(other)} and {_where(problem)}")
    return dict(sorted(found.items()))


def problems_of(module) -> list[type[Problem]]:
    """The problems that a module defines itself, in the order of their text."""
    own = (v for v in vars(module).values() if isinstance(v, type) and v.__module__ == module.__name__)
    return [c for c in own if issubclass(c, Problem) and c.code]


def help_text(code: str) -> str:
    """What `wgdsl help CODE` prints. Raises LookupError, with the nearest codes, for an unknown one."""
    known = all_problems()
    problem = known.get(code.upper())
    if problem is None:
        near = get_close_matches(code.upper(), known, n=3) or list(known)[:3]
        raise LookupError(f"no error has the code {code}; near it: {', '.join(near)}")
    return f"{problem.code}: {name_of(problem)}\n\n{problem.doc.strip()}\n"


def list_text() -> str:
    """What `wgdsl help` prints: every code with its name."""
    return "".join(f"{code}  {name_of(problem)}\n" for code, problem in all_problems().items())


def name_of(problem: type[Problem]) -> str:
    """Its name in words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", problem.__name__).lower()


def _where(problem: type[Problem]) -> str:
    return f"{problem.__module__}.{problem.__name__}"
