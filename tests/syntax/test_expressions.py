"""Literals, precedence and chains mean what Python means by the same text, or are refused."""

from __future__ import annotations

import math
import operator

import pytest

from tests.syntax.texts import codes, expression
from wgdsl.syntax import ast
from wgdsl.syntax.printer import show

BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "**": operator.pow,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
}
COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def value(e: ast.Expr, names: dict):
    match e:
        case ast.Number() | ast.Bool():
            return e.value
        case ast.Name():
            return names[e.id]
        case ast.Unary():
            operand = value(e.operand, names)
            return (not operand) if e.op == "not" else -operand
        case ast.Binary():
            return BINARY[e.op](value(e.left, names), value(e.right, names))
        case ast.Compare():
            values = [value(o, names) for o in e.operands]
            return all(COMPARE[op](a, b) for op, a, b in zip(e.ops, values, values[1:], strict=False))
    raise AssertionError(e)


@pytest.mark.parametrize(
    "text",
    [
        *("0 < i < 5", "i < j < k", "i < j >= k != 2", "i + 2 < j * 3", "(0 < i) < 5", "not i == j", "not not i == j"),
        *("not i < j and j < k", "i == 2 and j == 2 or k == 4", "i == 2 or j == 2 and k == 5", "i or not j and k"),
        *("-i**2", "-i ** -2", "2 ** -1", "2 ** 3 ** 2", "(2 ** 3) ** 2", "-i * j", "- - i", "-(i + j) % 3"),
        *("i - j - k", "i - (j - k)", "i / j / k", "i * j % k", "i - j * k + 2"),
        *("1_000 + 1_0.5_0", ".5 + 1. + 1e3 + 1E-3 + 1.5e+2", "2147483648", "9223372036854775807", "0_0 + 00.5"),
        *("4.9e-324 + 1.7976931348623157e308", "1e1_0", "0", "0e5"),
    ],
)
def test_as_in_python(text):
    for i, j, k in ((1, 2, 3), (4, 2, 4), (-1, 3, 5), (7, 3, 2)):
        names = {"i": i, "j": j, "k": k}
        assert repr(value(expression(text), names)) == repr(eval(text, {}, names))


def test_a_chain_is_no_pair_of_comparisons():
    chain = expression("0 < i < 5")
    assert isinstance(chain, ast.Compare) and chain.ops == ("<", "<") and len(chain.operands) == 3
    assert [value(chain, {"i": i}) for i in range(7)] == [False, True, True, True, True, False, False]


@pytest.mark.parametrize("text, expected", [("inf", math.inf), ("-inf", -math.inf), ("1e39", 1e39), ("1e-45", 1e-45)])
def test_constants(text, expected):
    assert value(expression(text), {}) == expected


def test_nan_and_negative_zero():
    assert math.isnan(value(expression("nan"), {}))
    assert math.copysign(1, value(expression("-0.0"), {})) == -1


@pytest.mark.parametrize(
    "text, code",
    [
        ("1e400", "WG0106"),
        ("1e-400", "WG0106"),
        ("9223372036854775808", "WG0106"),
        ("1" + "0" * 5000, "WG0106"),
        ("0x1p-3", "WG0105"),
        ("0x10", "WG0105"),
        ("007", "WG0105"),
        ("1__0", "WG0105"),
        ("1_", "WG0105"),
        ("1._5", "WG0105"),
        ("1e", "WG0105"),
        ("1.2.3", "WG0105"),
        ("1f", "WG0105"),
        ("2x", "WG0105"),
        ("+ 1", "WG0108"),
        ("1 // 2", "WG0108"),
        ("i <> j", "WG0108"),
        ("not", "WG0108"),
        ("i not j", "WG0108"),
    ],
)
def test_refused(text, code):
    assert codes(f"program p {{ let x = {text}\n}}") == [code]


@pytest.mark.parametrize(
    "text, same",
    [
        ("sum[j] a * b + c", "(sum[j] (a * b)) + c"),
        ("sum[j] a / b % c - d", "(sum[j] ((a / b) % c)) - d"),
        ("a + sum[j] b * c", "a + (sum[j] (b * c))"),
        ("a * sum[j] b * c", "a * (sum[j] (b * c))"),
        ("-sum[j] a * b", "-(sum[j] (a * b))"),
        ("a / -sum[j] b * c", "a / (-(sum[j] (b * c)))"),
        ("sum[i] max[j] a * b", "sum[i] (max[j] (a * b))"),
        ("sum[i] -max[j] a * b", "sum[i] (-(max[j] (a * b)))"),
        ("sum[j] -a * b", "sum[j] ((-a) * b)"),
        ("sum[j] a ** 2", "sum[j] (a ** 2)"),
        ("sum[j] a < b", "(sum[j] a) < b"),
        ("not sum[j] a == b", "not ((sum[j] a) == b)"),
        ("sum[j] (a + b) * c", "sum[j] ((a + b) * c)"),
    ],
)
def test_a_reduction_takes_the_product_that_follows(text, same):
    assert expression(text) == expression(same)


def test_a_reduction_over_several_axes():
    assert expression("sum[j, k] a[j,k]") == expression("sum [j,k]a[ j , k ]")
    assert expression("sum[j, k] a").axes == ("j", "k")


def test_max_and_min_are_functions_too():
    assert expression("max(a, max[j] b)") == ast.Call(
        function="max",
        arguments=(ast.Name(id="a"), ast.Reduce(op="max", axes=("j",), operand=ast.Name(id="b"))),
    )


@pytest.mark.parametrize("text", ["a - (b - c)", "(-a) ** 2", "-a ** 2", "(sum[j] a) * b", "(not a) == b", "(a < b) < c"])
def test_shown_with_the_parentheses_that_are_needed(text):
    assert show(expression(text)) == text


@pytest.mark.parametrize(
    "text, shown", [("((a))", "a"), ("(a * b) + c", "a * b + c"), ("1_000", "1_000"), ("x[i , j+1]", "x[i, j + 1]")]
)
def test_shown_without_the_others(text, shown):
    assert show(expression(text)) == shown


def test_spans_hold_the_whole_text_of_a_node():
    e = expression("(a + b) * max(c, d[i])  # end")
    assert isinstance(e, ast.Binary) and isinstance(e.right, ast.Call)
    spans = [e.span, e.left.span, e.right.span, e.right.arguments[1].span]
    assert [s.text for s in spans if s] == ["(a + b) * max(c, d[i])", "(a + b)", "max(c, d[i])", "d[i]"]
