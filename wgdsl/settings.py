"""`NAME=VALUE` texts of the command line, told apart by program and schedule: options, dims and types.

In: texts, and the program and schedule found.  Out: `Settings`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .diagnostics.model import WgError
from .diagnostics.runtime import UnknownSetting
from .driver import Settings
from .resolve.settle import option_decls
from .sources import Found
from .syntax import ast


def sort_settings(found: Found, texts: Iterable[str]) -> Settings:
    """Settings; an option's value stays a text. Raises WgError (WG0654) for names that program and schedule don't have."""
    program = found.program
    options = {d.name for d in program.items if isinstance(d, ast.OptionDecl)}
    options |= {d.name for d in option_decls(found.schedule.items)}
    types = {d.name for d in program.items if isinstance(d, ast.TypeDecl)}
    dims = {name for d in program.items if isinstance(d, ast.DimsDecl) for name, _ in d.entries}
    out: dict[str, dict[str, Any]] = {"options": {}, "types": {}, "dims": {}}
    for name, value in pairs(texts):
        if name in options:
            out["options"][name] = value
        elif name in types:
            out["types"][name] = value
        elif name in dims:
            out["dims"][name] = whole(name, value)
        else:
            raise WgError(UnknownSetting(text=name, known=tuple(sorted(options | types | dims))))
    return Settings(**out)


def pairs(texts: Iterable[str]) -> list[tuple[str, str]]:
    """The (name, value) of texts that hold one NAME=VALUE each, or several between commas. The last of a name counts."""
    return [split(part) for text in texts for part in text.split(",") if part.strip()]


def split(text: str) -> tuple[str, str]:
    """`NAME=VALUE` as (name, value). Raises WgError (WG0654) for another form."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise WgError(UnknownSetting(text=text, why=f"`{text}` isn't of the form NAME=VALUE"))
    return name.strip(), value.strip()


def numbers(texts: Iterable[str]) -> dict[str, int]:
    """`B=2,M=512` and the like as dims."""
    return {name: whole(name, value) for name, value in pairs(texts)}


def whole(name: str, value: str) -> int:
    """The value as an integer. Raises WgError (WG0654) if it is none."""
    try:
        return int(value.replace("_", ""))
    except ValueError:
        raise WgError(UnknownSetting(text=name, why=f"{name} is `{value}`, which isn't a whole number")) from None
