"""The PTX wrappers of 8-bit floats (PTX ISA: "cvt"): those that `ptx.py` has for other types."""

from __future__ import annotations

from ..foundation.dtypes import DType
from .asm import Asm
from .ptx import Function, _convert, _function, _load_shared, _store_shared, wrapper


@wrapper
def pack_8(dtype: str) -> Function:
    """Two numbers rounded into 16 bits, `a` in the low byte; what is too large becomes the largest."""
    text = f"cvt.rn.satfinite.{dtype}x2.f32 {{}}, {{}}, {{}};"
    return _convert(f"pack_{dtype}", "unsigned short", "h", text, ("f", "float", "b"), ("f", "float", "a"))


@wrapper
def bytes_of() -> Function:
    """Four bytes of two registers, by the digits of `which`: 0 to 3 of the first, 4 to 7 of the second."""
    head = "unsigned bytes_of(unsigned a, unsigned b, unsigned which)"
    return _function(head, ["return __byte_perm(a, b, which);"])


@wrapper
def round_to_8(dtype: str) -> Function:
    a = Asm(volatile=False)
    pair, zero, low = a.output("=h", "r"), a.input("f", "0.0f"), a.input("f", "a")
    a.row(f"cvt.rn.satfinite.{dtype}x2.f32 {pair}, {zero}, {low};")
    body = ["unsigned short r;", *a.lines(), "return (unsigned char)r;"]
    return _function(f"unsigned char to_{dtype}(float a)", body)


@wrapper
def widen_8(dtype: str) -> Function:
    """By f16, which holds every 8-bit float."""
    a = Asm(volatile=False)
    out, value = a.output("=f", "r"), a.input("h", "(unsigned short)a")
    a.row("{")
    a.row(".reg .b32 both;")
    a.row(".reg .b16 low, high;")
    a.row(f"cvt.rn.f16x2.{dtype}x2 both, {value};")
    a.row("mov.b32 {low, high}, both;")
    a.row(f"cvt.f32.f16 {out}, low;")
    a.row("}")
    return _function(f"float from_{dtype}(unsigned char a)", ["float r;", *a.lines(), "return r;"])


@wrapper
def load_shared_b8() -> Function:
    return _load_shared("load_shared_b8", "u8", "unsigned short", "h")


@wrapper
def store_shared_b16() -> Function:
    return _store_shared("store_shared_b16", "b16", "unsigned short", "h")


def narrowing(dtype: DType) -> str:
    """The wrapper that rounds a number to an element of a type."""
    return "round_to_8" if dtype.nbytes == 1 else "round_to"


def widening(dtype: DType) -> str:
    """The wrapper that makes a number of an element of a type."""
    return "widen_8" if dtype.nbytes == 1 else "widen"
