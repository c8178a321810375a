"""Values of options as a caller gives them: Python values, or texts from a command line.

In: what was given, and the option's default.  Out: the value in the type of the default. Programs and schedules read their
options alike.
"""

from __future__ import annotations

import math

OptionValue = bool | int | float | str


def coerced(given: object, default: bool | int | float) -> bool | int | float | None:
    """The value in the type of the default, None if it is of another; a text is read as a literal."""
    value = read_literal(given) if isinstance(given, str) else given
    if isinstance(default, bool) or isinstance(value, bool):
        return value if isinstance(default, bool) and isinstance(value, bool) else None
    if isinstance(default, int):
        return value.__index__() if hasattr(value, "__index__") else None  # type: ignore[union-attr]
    return float(value) if isinstance(value, int | float) and not math.isnan(value) else None


def expected(default: bool | int | float) -> str:
    """What kind of value an option with that default takes."""
    return "true or false" if isinstance(default, bool) else "an integer" if isinstance(default, int) else "a number"


def read_literal(text: str) -> object:
    """`true`, `3` or `0.5` as a value; any other text stays one."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for parse in (int, float):
        try:
            return parse(text)
        except ValueError:
            continue
    return text
