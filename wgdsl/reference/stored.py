"""Rounding to stored types, in float64."""

from __future__ import annotations

import numpy as np

from ..foundation.dtypes import DType


def rounded(x: np.ndarray, dtype: DType) -> np.ndarray:
    """The nearest values of a stored type, as float64. Integers truncate and saturate, NaN becomes 0 (PTX ISA, cvt.rzi); 8-bit
    floats saturate."""
    if dtype.kind == "int":
        most = 2.0 ** (dtype.bits - 1)
        return np.clip(np.where(np.isnan(x), 0.0, np.trunc(x)), -most, most - 1)
    if dtype.largest is not None:
        x = np.clip(x, -dtype.largest, dtype.largest)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(x, np.float64).astype(dtype.numpy()).astype(np.float64)
