"""Suite `dual_gemm`: silu(A B1^T) * (A B2^T) beside cuBLAS products and one fused elementwise kernel. Operations: 4 m n k.

`cuBLAS x 2` multiplies twice; `cuBLAS joined` multiplies once by both matrices, laid beside each other beforehand. Both round
the products to the dtype between the kernels, and are held to the error of that.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ..foundation.resources import resource
from .case import Call, Case, Ground, Own
from .gemm import SLACK, Size, empty_product
from .proof import Part, proven, some_rows, torch_dtype

SIZES = ((4096, 4096, 4096), (8192, 8192, 8192), (8192, 14336, 4096))
# torch's own generator of elementwise kernels makes one kernel of this
GATED = """template <typename T> T gated(T g, T u) {
  float x = static_cast<float>(g);
  return static_cast<T>(x / (1.0f + expf(-x)) * static_cast<float>(u));
}"""
PEERS = ("cuBLAS x 2", "cuBLAS joined")


def dual_gemm(target: str | None) -> list[Case]:
    return [_case(dtype, size, target or "auto") for dtype in ("bf16", "f16") for size in SIZES]


def _case(dtype: str, size: Size, target: str) -> Case:
    m, n, k = size
    return Case(
        suite="dual_gemm",
        name=f"{dtype} {m}x{n}x{k}",
        facts={"dtype": dtype},
        own=Own(
            program=str(resource("examples", "dual_gemm", "dual_gemm.wg")),
            target=target,
            types={"T": dtype},
            lengths={"M": m, "N": n, "K": k},
        ),
        peers=PEERS,
        usual=PEERS,
        ground=partial(_ground, dtype, size),
    )


def _ground(dtype: str, size: Size, site: Path | None) -> Ground:
    import torch

    m, n, k = size
    # factors of the size that a layer has: f16 holds their products
    a, b1, b2 = (torch.randn(shape, device="cuda").to(torch_dtype(dtype)) for shape in ((m, k), (n, k), (n, k)))
    b1, b2 = (b * k**-0.5 for b in (b1, b2))
    parts = {between: _parts(a, b1, b2, between) for between in (False, True)}
    return Ground(
        work=4.0 * m * n * k,
        peers={PEERS[0]: lambda: _twice(a, b1, b2), PEERS[1]: lambda: _joined(a, b1, b2)},
        own=lambda kernel: _own_call(kernel, a, b1, b2),
        check=lambda call, peer: proven(call, parts[peer], SLACK),
    )


def _parts(a, b1, b2, rounded_between: bool) -> list[Part]:
    """Some rows in float64, and the error there of rounding the result (and, if so, the products) to the dtype."""
    import torch

    rows = some_rows(a.shape[0], 32, 64)
    gate, up = (a[rows].double() @ b.double().T for b in (b1, b2))
    exact = torch.nn.functional.silu(gate) * up
    if rounded_between:
        gate, up = (x.to(a.dtype).double() for x in (gate, up))
    rounded = (torch.nn.functional.silu(gate) * up).to(a.dtype).double()
    return [(rows, exact, float((rounded - exact).abs().max()))]


def _twice(a, b1, b2) -> Call:
    import torch

    gated = torch.cuda.jiterator._create_jit_fn(GATED)
    gate, up = empty_product(a, b1), empty_product(a, b2)

    def call():
        torch.matmul(a, b1.T, out=gate)
        torch.matmul(a, b2.T, out=up)
        return gated(gate, up)

    return call


def _joined(a, b1, b2) -> Call:
    import torch

    gated = torch.cuda.jiterator._create_jit_fn(GATED)
    n, both = b1.shape[0], torch.cat([b1, b2])
    out = empty_product(a, both)

    def call():
        torch.matmul(a, both.T, out=out)
        return gated(out[:, :n], out[:, n:])

    return call


def _own_call(kernel, a, b1, b2) -> Call:
    out = empty_product(a, b1)

    def call():
        kernel(A=a, B1=b1, B2=b2, out={"Y": out})
        return out

    return call
