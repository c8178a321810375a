"""Element types: names in `.wg` text, sizes in bytes, NumPy and CUDA spellings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DType:
    """One element type. `bits` of storage; `cuda` is the C++ type that holds it in memory. `largest`: of a float to which
    larger numbers, infinite ones too, are rounded (PTX ISA: "cvt", .satfinite); None where those become infinite."""

    name: str
    bits: int
    kind: str  # float, int, bool
    cuda: str
    largest: float | None = None

    @property
    def nbytes(self) -> int:
        return self.bits // 8

    def __str__(self) -> str:
        return self.name

    def numpy(self):
        """The NumPy dtype (ml_dtypes for those that NumPy lacks)."""
        import ml_dtypes
        import numpy as np

        special = {"bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
        plain = {"f64": "float64", "f32": "float32", "f16": "float16", "i32": "int32", "i64": "int64", "bool": "bool"}
        return np.dtype(special[self.name] if self.name in special else plain[self.name])


DTYPES = {
    d.name: d
    for d in (
        DType("f32", 32, "float", "float"),
        DType("f16", 16, "float", "unsigned short"),
        DType("bf16", 16, "float", "unsigned short"),
        DType("e4m3", 8, "float", "unsigned char", 448.0),
        DType("e5m2", 8, "float", "unsigned char", 57344.0),
        DType("i32", 32, "int", "int"),
        DType("i64", 64, "int", "long long"),
        DType("bool", 8, "bool", "unsigned char"),
    )
}
F32, F16, BF16, I32, BOOL = (DTYPES[n] for n in ("f32", "f16", "bf16", "i32", "bool"))
