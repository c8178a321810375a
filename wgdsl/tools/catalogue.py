"""The catalogue of errors by code, for `wgdsl help CODE`."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from .. import diagnostics
from ..diagnostics.model import Problem


def catalogue() -> dict[str, type[Problem]]:
    """Every problem that has a code."""
    for module in pkgutil.iter_modules(diagnostics.__path__):
        import_module(f"{diagnostics.__name__}.{module.name}")
    found: dict[str, type[Problem]] = {}
    pending: list[type[Problem]] = [Problem]
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        if kind.code:
            found[kind.code] = kind
    return dict(sorted(found.items()))


def help_text(code: str) -> str | None:
    """What `wgdsl help` prints; None for an unknown code."""
    kind = catalogue().get(code.upper())
    if kind is None:
        return None
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in kind.__name__).strip()
    return f"{kind.code}: {words}\n\n{kind.doc.strip()}\n"
