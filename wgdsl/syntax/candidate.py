"""A schedule with some of its numbers chosen, as a tuner writes it: `three {tile j 96, ring Ks 3}`.

In: the text.  Out: a `Candidate`, and back. It stands wherever the name of a schedule does; a name alone is one too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..diagnostics.model import WgError
from ..diagnostics.runtime import BadCandidate
from .options import OptionValue

COUNTED = ("tile", "ring", "registers", "warpgroups")  # what has a whole number; an `option` has any value
_TEXT = re.compile(r"\s*(?P<schedule>[^\s{}]+)\s*(?:\{(?P<values>[^{}\n]*)\}\s*)?")
_VALUE = re.compile(r"\s*(?P<what>[a-z]+)\s+(?P<name>\w+)\s+(?P<value>[\w.+-]+)\s*")


@dataclass(frozen=True, kw_only=True)
class Picked:
    """The value of one entry: `tile j 96`. what: tile, ring, registers, warpgroups or option."""

    what: str
    name: str
    value: OptionValue

    def __str__(self) -> str:
        return f"{self.what} {self.name} {shown(self.value)}"


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """schedule: a name, or the path of a file. values: none for the schedule as it is written."""

    schedule: str
    values: tuple[Picked, ...] = ()

    def __str__(self) -> str:
        return f"{self.schedule} {{{', '.join(map(str, self.values))}}}" if self.values else self.schedule


def is_candidate(given: object) -> bool:
    """Whether this is a name with values in braces behind it. No `.wg` text has a single word before its first brace."""
    found = _TEXT.fullmatch(given) if isinstance(given, str) else None
    return found is not None and found["values"] is not None


def candidate(text: str) -> Candidate:
    """What a text names. Raises WgError (WG0665) for another form."""
    found = _TEXT.fullmatch(text)
    if found is None:
        raise WgError(BadCandidate(text=text, why="it isn't a name with values in braces"))
    values = tuple(_picked(text, part) for part in (found["values"] or "").split(",") if part.strip())
    twice = [v for n, v in enumerate(values) if any((v.what, v.name) == (o.what, o.name) for o in values[:n])]
    if twice:
        raise WgError(BadCandidate(text=text, why=f"`{twice[0].what} {twice[0].name}` has two values"))
    return Candidate(schedule=found["schedule"], values=values)


def shown(value: OptionValue) -> str:
    """A value as it is written."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _picked(text: str, part: str) -> Picked:
    found = _VALUE.fullmatch(part)
    if found is None or found["what"] not in (*COUNTED, "option"):
        raise WgError(BadCandidate(text=text, why=f"`{part.strip()}` is no value of a `tune` entry"))
    what, name, value = found["what"], found["name"], found["value"]
    if what == "option":
        return Picked(what=what, name=name, value=_read(value))
    if not value.isdecimal():
        raise WgError(BadCandidate(text=text, why=f"`{value}` is no whole number"))
    return Picked(what=what, name=name, value=int(value))


def _read(value: str) -> OptionValue:
    if value in ("true", "false"):
        return value == "true"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
