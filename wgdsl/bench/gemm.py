"""Suite `gemm`: C = A B beside cuBLAS, where B has rows along k, as a linear layer's weights do. Operations: 2 m n k."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ..foundation.resources import resource
from .case import Call, Case, Ground, Own
from .proof import proven, some_rows, torch_dtype

SIZES = ((4096, 4096, 4096), (8192, 8192, 8192), (16384, 4096, 4096))
SLACK = 2.0  # times the error that rounding to the dtype alone makes
Size = tuple[int, int, int]


def gemm(target: str | None) -> list[Case]:
    return [_case(dtype, size, target or "auto") for dtype in ("bf16", "f16") for size in SIZES]


def _case(dtype: str, size: Size, target: str) -> Case:
    m, n, k = size
    return Case(
        suite="gemm",
        name=f"{dtype} {m}x{n}x{k}",
        facts={"dtype": dtype},
        own=Own(
            program=str(resource("examples", "gemm", "gemm.wg")),
            target=target,
            types={"T": dtype},
            options={"layout": "nk"},
            lengths={"M": m, "N": n, "K": k},
        ),
        peers=("cuBLAS",),
        usual=("cuBLAS",),
        ground=partial(_ground, dtype, size),
    )


def _ground(dtype: str, size: Size, site: Path | None) -> Ground:
    import torch

    m, n, k = size
    a, b = (torch.randn(shape, device="cuda").to(torch_dtype(dtype)) for shape in ((m, k), (n, k)))
    rows = some_rows(m, 32, 64)
    exact = a[rows].double() @ b.double().T
    parts = [(rows, exact, float((exact.to(a.dtype).double() - exact).abs().max()))]
    return Ground(
        work=2.0 * m * n * k,
        peers={"cuBLAS": lambda: _cublas(a, b)},
        own=lambda kernel: _own_call(kernel, a, b),
        check=lambda call, peer: proven(call, parts, SLACK),
    )


def empty_product(a, b):
    """Where a product of a and b's rows goes; NaN before."""
    import torch

    return torch.full((a.shape[0], b.shape[0]), float("nan"), device="cuda", dtype=a.dtype)


def _cublas(a, b) -> Call:
    import torch

    out = empty_product(a, b)
    return lambda: torch.matmul(a, b.T, out=out)


def _own_call(kernel, a, b) -> Call:
    out = empty_product(a, b)

    def call():
        kernel(A=a, B=b, out={"C": out})
        return out

    return call
