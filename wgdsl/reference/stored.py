"""Rounding to stored types, in float64."""

from __future__ import annotations

import numpy as np

from ..foundation.dtypes import DType

_FINITE_ONLY = {"e4m3": 448.0, "e5m2": 57344.0}  # conversions saturate (PTX ISA, cvt .satfinite)


def rounded(x: np.ndarray, dtype: DType) -> np.ndarray:
    """The nearest values of a stored type, as float64. Integers truncate and saturate, NaN becomes 0 (PTX ISA, cvt.rzi); 8-bit
    floats saturate."""
    if dtype.kind == "int":
        most = 2.0 ** (dtype.bits - 1)
        return np.clip(np.where(np.isnan(x), 0.0, np.trunc(x)), -most, most - 1)
    if dtype.name in _FINITE_ONLY:
        x = np.clip(x, -_FINITE_ONLY[dtype.name], _FINITE_ONLY[dtype.name])
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(x, np.float64).astype(dtype.numpy()).astype(np.float64)
