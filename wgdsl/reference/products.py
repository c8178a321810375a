"""Two reductions that a plain NumPy reduction doesn't do well: sums of products, and positions of extremes.

In and out: float64 arrays with one axis for each index of their order.
"""

from __future__ import annotations

import math

import numpy as np

from ..targets.wgmma import SHORT_BITS, SHORT_STEP
from .boxes import Part

NO_EXPONENT = -200  # below that of every product of 8-bit floats, and of their sums


def multiplied(
    a: np.ndarray,
    a_order: tuple[str, ...],
    b: np.ndarray,
    b_order: tuple[str, ...],
    order: tuple[str, ...],
    extents: tuple[int, ...],
    short: bool = False,
) -> np.ndarray:
    """sum over everything that isn't in `order` of a * b, by matrix multiplication. Shapes follow the orders. short: summed up
    as the matrix engine does for 8-bit operands."""
    a, a_order = _summed(a, a_order, {*b_order, *order})
    b, b_order = _summed(b, b_order, {*a_order, *order})
    batch = [i for i in order if i in a_order and i in b_order]
    rows = [i for i in order if i in a_order and i not in b_order]
    columns = [i for i in order if i in b_order and i not in a_order]
    inner = [i for i in a_order if i not in order]
    left, right = _matrix(a, a_order, batch, rows, inner), _matrix(b, b_order, batch, inner, columns)
    product = _short_sums(left, right) if short else left @ right
    found = [*batch, *rows, *columns]
    sizes = dict(zip(order, extents, strict=True))
    product = product.reshape([sizes[i] for i in found])
    product = product.transpose([found.index(i) for i in order if i in found])
    return np.broadcast_to(product[tuple(slice(None) if i in found else None for i in order)], extents)


def _short_sums(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b as the matrix engine adds up products of 8 bits, bit by bit as measured: of each step's products and of the sum so
    far it cuts off what lies too many bits below the largest exponent among them, and of their sum what lies as many below its
    own. The exponent of a product is the sum of its factors' ones."""
    total = np.zeros((*a.shape[:-1], b.shape[-1]))
    a_exponent, b_exponent = _exponents(a), _exponents(b)
    for start in range(0, a.shape[-1], SHORT_STEP):
        inner = range(start, min(start + SHORT_STEP, a.shape[-1]))
        top = _exponents(total)
        for k in inner:
            np.maximum(top, a_exponent[..., k, None] + b_exponent[..., None, k, :], out=top)
        unit = np.ldexp(1.0, np.maximum(top, NO_EXPONENT) - SHORT_BITS)
        total = np.trunc(total / unit)
        for k in inner:
            total += np.trunc(a[..., k, None] * (b[..., None, k, :] / unit))
        total *= unit
        unit = np.ldexp(1.0, np.maximum(_exponents(total), NO_EXPONENT) - SHORT_BITS)
        total = np.trunc(total / unit) * unit
    return total


def _exponents(x: np.ndarray) -> np.ndarray:
    """Of leading bits; so low for zeros that no other is lower."""
    return np.where(x == 0, 2 * NO_EXPONENT, np.frexp(x)[1] - 1)


def _summed(a: np.ndarray, a_order: tuple[str, ...], kept: set[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    return a.sum(axis=tuple(k for k, i in enumerate(a_order) if i not in kept)), tuple(i for i in a_order if i in kept)


def _matrix(a: np.ndarray, order: tuple[str, ...], *groups: list[str]) -> np.ndarray:
    """The axes of each group joined into one, in this order."""
    sizes = dict(zip(order, a.shape, strict=True))
    return a.transpose([order.index(i) for g in groups for i in g]).reshape([math.prod(sizes[i] for i in g) for g in groups])


def position(part: Part, op: str) -> np.ndarray:
    """The smallest index of the extreme along the last axis; NaN only if all are, -1 if nothing exists."""
    value = part.value if op == "argmax" else -part.value
    exists = np.ones(value.shape, bool) if part.exists is None else part.exists
    if not value.shape[-1]:
        return np.full(value.shape[:-1], -1.0)
    number = exists & ~np.isnan(value)
    best = np.where(number, value, -np.inf).max(axis=-1, keepdims=True)
    first = (number & (value == best)).argmax(axis=-1)
    return np.where(number.any(-1), first, np.where(exists.any(-1), exists.argmax(-1), -1)).astype(np.float64)
