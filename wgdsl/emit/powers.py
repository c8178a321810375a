"""Powers with small whole exponents as products: `program.expr.exponent` says which."""

from __future__ import annotations

from .ptx import DEVICE, Function, wrapper

PRODUCTS = {1: "b", 2: "b * b", 3: "b * b * b", 4: "b * b * (b * b)"}


@wrapper
def power(n: int) -> Function:
    """b to the n. The reciprocal comes first: the square of a large number is infinite before that of its reciprocal is 0."""
    product = PRODUCTS[abs(n)]
    if n > 0:
        return Function(f"power_{n}", (f"{DEVICE} float power_{n}(float b) {{", f"  return {product};", "}"))
    name = f"power_minus_{-n}"
    lines = (f"{DEVICE} float {name}(float a) {{", "  const float b = __frcp_rn(a);", f"  return {product};", "}")
    return Function(name, lines)
