"""Attention forward, layout (B, S, H, D): suites `attention`, `lengths` and `ampere`.

About 16384 tokens, and heads x head dim = 2048. Operations: 4 b h s s d, half of them under a causal mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..foundation.resources import resource
from .attention_peers import PEERS, Inputs
from .case import Call, Case, Ground, Own
from .proof import proven, some_rows, torch_dtype

TOKENS, WIDTH = 16384, 2048
GRID = (512, 1024, 2048, 4096, 8192, 16384)
AWKWARD = (1000, 4097, 9999)
MASKS = ("full", "causal")
PEER_SLACK, OWN_SLACK = 4.0, 2.0  # times the error that rounding to the dtype alone makes


@dataclass(frozen=True)
class Shape:
    """One configuration: head dim, dtype, mask, length."""

    d: int
    dtype: str
    mask: str
    s: int

    @property
    def name(self) -> str:
        return f"d{self.d} {self.dtype} {self.mask} {self.s}"

    @property
    def causal(self) -> bool:
        return self.mask == "causal"

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """b, s, h, d"""
        return max(1, TOKENS // self.s), self.s, WIDTH // self.d, self.d

    @property
    def work(self) -> float:
        b, s, h, d = self.sizes
        return 4.0 * b * h * s * s * d * (0.5 if self.causal else 1.0)

    @property
    def lengths(self) -> dict[str, int]:
        """The dims of a call: each head has its keys."""
        b, s, h, d = self.sizes
        return {"B": b, "G": h, "R": 1, "M": s, "N": s, "D": d, "E": d}


def attention(target: str | None) -> list[Case]:
    """The grid of 72 points."""
    shapes = _shapes((64, 128, 256), ("bf16", "f16"), GRID)
    return _cases("attention", shapes, target or "auto", ("FA3", "cuDNN"))


def lengths(target: str | None) -> list[Case]:
    """Lengths that no tile divides."""
    shapes = _shapes((64, 128, 256), ("bf16", "f16"), AWKWARD)
    return _cases("lengths", shapes, target or "auto", ("FA3", "cuDNN"))


def ampere(target: str | None) -> list[Case]:
    """The grid of FlashAttention-2, 48 points: schedules for sm_80 beside one that uses the same instructions."""
    return _cases("ampere", _shapes((64, 128), ("bf16", "f16"), GRID), target or "sm_80", ("FA2",))


def _shapes(dims: Iterable[int], dtypes: Sequence[str], lengths: Sequence[int]) -> list[Shape]:
    return [Shape(d, dtype, mask, s) for d in dims for dtype in dtypes for mask in MASKS for s in lengths]


def _cases(suite: str, shapes: Iterable[Shape], target: str, usual: tuple[str, ...]) -> list[Case]:
    return [
        Case(
            suite=suite,
            name=x.name,
            facts={"head dim": x.d, "dtype": x.dtype, "mask": x.mask, "length": x.s},
            own=_own(x, target),
            peers=tuple(PEERS),
            usual=usual,
            ground=partial(_ground, x),
        )
        for x in shapes
    ]


def _own(x: Shape, target: str) -> Own:
    return Own(
        program=str(resource("examples", "attention", "attention.wg")),
        target=target,
        dims={"D": x.d, "E": x.d},
        types={"T": x.dtype},
        options={"causal": x.causal, "lse": False},
        lengths=x.lengths,
    )


def _ground(x: Shape, site: Path | None) -> Ground:
    import torch

    q, k, v = (torch.randn(x.sizes, device="cuda").to(torch_dtype(x.dtype)) for _ in range(3))
    inputs = Inputs(q=q, k=k, v=v, causal=x.causal, site=site)
    parts = reference_parts(x, q, k, v)
    return Ground(
        work=x.work,
        peers={name: partial(build, inputs) for name, build in PEERS.items()},
        own=partial(own_call, q=q, k=k, v=v),
        check=lambda call, peer: proven(call, parts, PEER_SLACK if peer else OWN_SLACK),
    )


def own_call(kernel, q, k, v) -> Call:
    """The kernel's call, which writes where NaN was."""
    import torch

    out = torch.full_like(q, float("nan"))

    def call():
        kernel(Q=q, K=k, V=v, out={"O": out})
        return out

    return call


def reference_parts(x: Shape, q, k, v) -> list[tuple[object, object, float]]:
    """Some query rows of some heads in float64, and the error there of rounding exp(x - rowmax) and the result."""
    import torch

    keys = torch.arange(x.s, device="cuda")
    seen = (lambda rows: rows[:, None] >= keys[None]) if x.causal else None
    return [softmax_part(q, k, v, at, rows, x.d**-0.5, seen) for at, rows in sampled(x.sizes)]


def sampled(sizes: tuple[int, int, int, int]) -> list[tuple[tuple[int, int], object]]:
    """Some heads, and the rows of each that are looked at."""
    b, s, h, _ = sizes
    rows = some_rows(s, 64, 128)
    return [(at, rows) for at in sorted({(0, 0), (b - 1, h - 1), (b // 2, h // 3)})]


def softmax_part(q, k, v, at: tuple[int, int], rows, scale: float, seen: Callable | None):
    """One head's rows of softmax(scale q k) v where a key is seen."""
    b, h = at
    scores = q[b, rows, h].double() @ k[b, :, h].double().T * scale
    if seen is not None:
        scores = scores.masked_fill(~seen(rows), float("-inf"))
    return rounded_part((b, rows, h), scores, v[b, :, h].double(), q.dtype)


def rounded_part(index, scores, values, dtype) -> tuple[object, object, float]:
    """The result of some rows of scores, and the error that rounding makes there."""
    import torch

    p = torch.exp(scores - scores.max(1, keepdim=True).values)
    total = p.sum(1, keepdim=True)
    exact = p @ values / total
    rounded = (p.to(dtype).double() @ values / total).to(dtype).double()
    return index, exact, float((rounded - exact).abs().max())
