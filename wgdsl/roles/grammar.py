"""The grammar of the explicit form, made of the rows.

Out: the part of `grammar/wg.lark` between `BEGIN` and `END`. `python -m wgdsl.roles.grammar` writes it there; a test says when
that has to be done again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..foundation.resources import grammar_path
from .rows import TABLES, Maybe, Piece, Row, Words

BEGIN = "// Explicit form: written by `python -m wgdsl.roles.grammar` out of the rows of wgdsl/roles/rows.py."
END = "// End of the explicit form."
_HEAD = """
explicit: "roles" NAME "for" NAME "on" NAME _x_with? "{" (x_from | x_head | x_kernel | BROKEN)* "}"
_x_with: "with" x_setting ("," x_setting)*
x_setting: NAME "=" (NAME | "-"? NUMBER | "true" | "false")
x_from: "from" STRING
x_kernel: "kernel" name "{" (x_declaration | x_role | BROKEN)* "}"
x_block{role}: "{" x_trail (x_value | x_step | BROKEN)* "}"
x_block{steps}: "{" x_trail (x_step | BROKEN)* "}"
x_block{ops}: "{" x_trail (x_op | BROKEN)* "}"
x_trail: STRING? x_at?
x_at: "@" NUMBER x_text? ("of" STRING)?
x_text: STRING
x_sums: (sum ("," sum)*)?
x_names: name ("," name)*
x_axis: name "=" sum "+:" sum
x_axes: x_grid_axis ("," x_grid_axis)*
x_grid_axis: name "in" sum ("by" sum)?
x_dims: x_dim ("," x_dim)*
x_dim: "axis" sum ("x" sum)? "<" sum
x_box: name "[" x_extent ("," x_extent)* "]" "by" name x_coords?
x_extent: sum ("+:" sum)?
x_order: "(" (name ("," name)*)? ")" ("of" sum)? "under" "(" (x_outer ("," x_outer)*)? ")"
x_outer: name "reversed"?
x_coords: "at" "(" sum ("," sum)* ")"
x_operand: ref ("k_major" | "mn_major")?
x_mask: "{" (x_class ("," x_class)*)? "}"
x_class: name (":" NAME)?
"""
_BLOCK = re.compile(r"x_block\{(\w+)\}: (.*)")
# The rule of each codec.
RULES = {
    **dict.fromkeys(("name", "new", "ring", "buffer", "barrier", "map", "tensor", "value", "dtype"), "name"),
    **dict.fromkeys(("int", "poly", "stop"), "sum"),
    **dict.fromkeys(("polys", "ints"), "x_sums"),
    **dict.fromkeys(("values", "buffers"), "x_names"),
    **dict.fromkeys(("event", "tile", "stage"), "index"),
    **dict.fromkeys(("expr", "predicate"), "expr"),
    "text": "x_text",
    "reduction": "REDUCER",
    "operand": "x_operand",
    "axis": "x_axis",
    "number": "number",
    "order": "x_order",
    "grid_axes": "x_axes",
    "dims": "x_dims",
    "box": "x_box",
    "mask": "x_mask",
    "role": "x_block_role",
    "steps": "x_block_steps",
    "ops": "x_block_ops",
}


def rules() -> str:
    """The rules, from BEGIN to END."""
    head = _BLOCK.sub(r"x_block_\1: \2 -> x_block", _HEAD.strip())
    return "\n".join([BEGIN, "", head, "", *_tables(), END])


def _tables() -> Iterator[str]:
    for name, table in TABLES.items():
        first, *rest = (f"{_row(row)} -> line" for row in table)
        yield f"x_{name}: {first}"
        yield from (f"    | {alternative}" for alternative in rest)
        yield ""


def _row(row: Row) -> str:
    """What stands behind a line that opens a block stands in the block."""
    text = _pieces(row.pieces)
    return text if "x_block" in text else f"{text} x_trail"


def _pieces(pieces: tuple[Piece, ...]) -> str:
    return " ".join(filter(None, map(_piece, pieces)))


def _piece(p: Piece) -> str:
    if isinstance(p, Words):
        return " ".join("NUMBER" if w.isdigit() else f'"{w}"' for w in p.words)
    if isinstance(p, Maybe):
        return f"({_pieces(p.pieces)})?"
    return "(" + " | ".join(f'"{w}"' for w in p.choices) + ")" if p.choices else RULES[p.codec]


def written(grammar: str) -> str:
    """The grammar with its explicit form as the rows have it."""
    start, stop = grammar.index(BEGIN), grammar.index(END) + len(END)
    return grammar[:start] + rules() + grammar[stop:]


if __name__ == "__main__":
    path = grammar_path()
    path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
