"""The assembler's log (`ptxas -v`), read: what each kernel takes, and what the assembler complains about.

In: the log's text.  Out: `Resources` for each entry function, in the order of the log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_STATIC = re.compile(r"(\d+) bytes smem")
_COMPLAINT = re.compile(r"\((C\d+)\)\s*(.*)")
_WARNING = re.compile(r"ptxas\s+.*?:?\s*warning\s*:\s*(.*)", re.IGNORECASE)
_FUNCTION = re.compile(r"function '(\w+)'")


@dataclass(frozen=True, kw_only=True)
class Complaint:
    """A message of the assembler. `number` is its four digits (7512), or empty; `function` the kernel it names, or empty."""

    number: str
    text: str
    function: str = ""


@dataclass(frozen=True, kw_only=True)
class Resources:
    """One entry function. `registers` is the count at launch; setmaxnreg changes it for each role afterwards."""

    name: str
    target: str
    registers: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared: int = 0
    barriers: int = 0
    complaints: tuple[Complaint, ...] = ()


def complaints(log: str) -> tuple[Complaint, ...]:
    """Messages with a code, and warnings; each once."""
    found = []
    for line in log.splitlines():
        coded = _COMPLAINT.search(line)
        warned = None if coded else _WARNING.search(line)
        if not (coded or warned):
            continue
        text = (coded[2] if coded else warned[1]).strip()  # type: ignore[index]
        named = _FUNCTION.search(text)
        found.append(Complaint(number=coded[1][1:] if coded else "", text=text, function=named[1] if named else ""))
    return tuple(dict.fromkeys(found))


def read_log(log: str) -> tuple[Resources, ...]:
    """The resources of every entry function; a complaint that names none goes to all of them."""
    said = complaints(log)
    parts = _ENTRY.split(log)[1:]
    names = parts[0::3]

    def mine(name: str) -> tuple[Complaint, ...]:
        return tuple(c for c in said if c.function == name or c.function not in names)

    return tuple(_resources(parts[at], parts[at + 1], parts[at + 2], mine(parts[at])) for at in range(0, len(parts), 3))


def _resources(name: str, target: str, text: str, said: tuple[Complaint, ...]) -> Resources:
    def number(pattern: re.Pattern[str], group: int = 1) -> int:
        found = pattern.search(text)
        return int(found[group]) if found else 0

    return Resources(
        name=name,
        target=target,
        registers=number(_USED),
        stack=number(_STACK, 1),
        spill_stores=number(_STACK, 2),
        spill_loads=number(_STACK, 3),
        shared=number(_STATIC),
        barriers=number(_BARRIERS),
        complaints=said,
    )
