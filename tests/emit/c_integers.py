"""C++ integer expressions and small loop bodies, run in Python: what emitted address arithmetic comes to."""

from __future__ import annotations

import ast
import re


def evaluate(text: str, **names: int) -> int:
    """The value of a C++ expression on ints: `/` and `%` truncate, `? :` is allowed once."""
    if "?" in text and ":" in text:
        cond, rest = text.split("?", 1)
        yes, no = rest.split(":", 1)
        return evaluate(yes if evaluate(cond, **names) else no, **names)
    text = re.sub(r"(\d)u\b", r"\1", text).replace("ptx::", "").replace("&&", " and ").replace("||", " or ")
    return int(_value(ast.parse(text.strip(), mode="eval").body, names))


def _value(node: ast.expr, names: dict[str, int]) -> int:
    match node:
        case ast.Constant():
            return int(node.value)
        case ast.Name():
            return names[node.id]
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand, names)
        case ast.BinOp():
            return _BINARY[type(node.op)](_value(node.left, names), _value(node.right, names))
        case ast.Compare(ops=[op]):
            return int(_COMPARE[type(op)](_value(node.left, names), _value(node.comparators[0], names)))
        case ast.BoolOp():
            values = [bool(_value(v, names)) for v in node.values]
            return int(all(values) if isinstance(node.op, ast.And) else any(values))
        case ast.Call():
            return _CALLS[node.func.id](*(_value(a, names) for a in node.args))
    raise AssertionError(f"not understood: {ast.dump(node)}")


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_BINARY = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: truncated,
    ast.Mod: lambda a, b: a - truncated(a, b) * b,
    ast.RShift: lambda a, b: a >> b,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitXor: lambda a, b: a ^ b,
    ast.BitOr: lambda a, b: a | b,
}
_COMPARE = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
}
_CALLS = {"min": min, "max": max, "floor_div": lambda a, b: a // b, "floor_mod": lambda a, b: a % b}


def definitions(text: str) -> dict[str, str]:
    """`const T name = expression;` of a text, also several in one line."""
    found = {}
    for m in re.finditer(r"const (?:int|unsigned|float) ([^;]*);", text):
        for part in re.split(r", (?=\w+ = )", m[1]):
            name, _, value = part.partition(" = ")
            found[name] = value
    return found


def resolve(name: str, text: str, **names: int) -> int:
    """The value of a defined name, through the other definitions."""
    table = definitions(text)

    def value(n: str) -> int:
        if n in names:
            return names[n]
        free = set(re.findall(r"\b[A-Za-z_]\w*\b", table[n])) - set(_CALLS)
        return evaluate(table[n], **{f: value(f) for f in free})

    return value(name)
