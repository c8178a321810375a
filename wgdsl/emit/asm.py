"""Inline assembly with operand numbers dealt by a counter."""

from __future__ import annotations

from .writer import WIDTH


class Asm:
    """One asm statement. Declare outputs before inputs: that is how they are numbered."""

    def __init__(self, *, volatile: bool = True, memory: bool = False):
        self._head = "asm volatile" if volatile else "asm"
        self._memory = memory
        self._outputs: list[str] = []
        self._inputs: list[str] = []
        self._rows: list[str] = []

    def output(self, constraint: str, expression: str) -> str:
        """A register that is written ("=f") or read and written ("+f"). Returns its place, e.g. %0."""
        assert not self._inputs, "outputs are numbered before inputs"
        self._outputs.append(f'"{constraint}"({expression})')
        return f"%{len(self._outputs) - 1}"

    def input(self, constraint: str, expression: str) -> str:
        self._inputs.append(f'"{constraint}"({expression})')
        return f"%{len(self._outputs) + len(self._inputs) - 1}"

    def row(self, text: str) -> None:
        self._rows.append(text)

    def lines(self) -> list[str]:
        """C++ lines of the statement, relative to its own indentation."""
        parts = [", ".join(self._outputs), ", ".join(self._inputs), '"memory"' if self._memory else ""]
        while parts and not parts[-1]:
            parts.pop()
        quoted = [f'"{r}"' if len(self._rows) == 1 else f'"{r}\\n"' for r in self._rows]
        flat = f"{self._head}({quoted[0]}" + "".join(f" : {p}" if p else " :" for p in parts) + ");"
        if len(self._rows) == 1 and len(flat) <= WIDTH:
            return [flat]
        body = ["    " + piece for q in quoted for piece in _wrap_string(q)]
        for p in parts:
            body.extend("    " + piece for piece in _wrap_operands(p))
        return [f"{self._head}(", *body[:-1], body[-1] + ");"]


def _wrap_string(quoted: str) -> list[str]:
    """A string literal as several adjacent ones, broken after commas."""
    text, pieces = quoted[1:-1], []
    while len(text) > WIDTH - 10:
        cut = text.rfind(", ", 0, WIDTH - 10) + 2
        if cut < 2:
            break
        pieces.append(text[:cut])
        text = text[cut:]
    return [f'"{p}"' for p in (*pieces, text)]


def _wrap_operands(part: str) -> list[str]:
    rows, current = [], ": "
    for operand in part.split(", ") if part else []:
        if len(current) + len(operand) > WIDTH - 10:
            rows.append(current.rstrip())
            current = "  "
        current += operand + ", "
    return [*rows, current.rstrip(", ") if part else ":"]
