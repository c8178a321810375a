"""Who else computes attention: builders of their calls, by name, and what keeps one from being asked.

FlashAttention-3 is a build against torch's stable ABI: DIR/flash_attn_3/_C.so and, if that needs one, DIR/lib/libcudart.so.12.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .case import Call


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """(B, S, H, D) tensors of one call."""

    q: Any
    k: Any
    v: Any
    causal: bool
    site: Path | None

    @property
    def scale(self) -> float:
        return self.q.shape[-1] ** -0.5


@cache
def load_fa3(site: Path) -> Callable[..., tuple]:
    """The forward operator of a build of FlashAttention-3."""
    import torch

    runtime = site / "lib" / "libcudart.so.12"
    if runtime.exists():
        ctypes.CDLL(str(runtime))
    torch.ops.load_library(str(site / "flash_attn_3" / "_C.so"))
    return torch.ops.flash_attn_3.fwd


def fa3(x: Inputs) -> Call:
    assert x.site is not None, "it isn't asked without one"
    forward = load_fa3(x.site)
    return lambda: forward(x.q, x.k, x.v, softmax_scale=x.scale, is_causal=x.causal, num_splits=1)[0]


def torchs(backend: str, x: Inputs) -> Call:
    """torch's scaled dot product attention by one of its backends."""
    import torch

    attend, kernels = torch.nn.functional.scaled_dot_product_attention, torch.nn.attention
    q, k, v = (t.transpose(1, 2) for t in (x.q, x.k, x.v))
    chosen = getattr(kernels.SDPBackend, backend)

    def call():
        with torch.no_grad(), kernels.sdpa_kernel(chosen):
            return attend(q, k, v, is_causal=x.causal).transpose(1, 2)

    return call


def fa4(x: Inputs) -> Call:
    """FlashAttention-4's forward, in CuTe's Python."""
    import torch
    from flash_attn.cute.interface import _flash_attn_fwd  # pyright: ignore[reportMissingImports]

    def call():
        with torch.no_grad():
            return _flash_attn_fwd(x.q, x.k, x.v, softmax_scale=x.scale, causal=x.causal)[0]

    return call


def flex(x: Inputs) -> Call:
    mask = (lambda b, h, i, j: j <= i) if x.causal else None
    return flexible(x.q, x.k, x.v, x.scale, None, mask)


def flexible(q, k, v, scale: float, score: Callable | None, mask: Callable | None) -> Call:
    """FlexAttention, compiled for these sizes."""
    import torch
    from torch.nn.attention import flex_attention as module  # pyright: ignore[reportMissingImports]

    torch._dynamo.reset()
    attend = torch.compile(module.flex_attention, dynamic=False)
    batch, length, heads, _ = q.shape
    blocks = module.create_block_mask(mask, batch, None, length, k.shape[1], device="cuda") if mask else None
    grouped = {"enable_gqa": True} if heads != k.shape[2] else {}
    q, k, v = (t.transpose(1, 2).contiguous() for t in (q, k, v))

    def call():
        with torch.no_grad():
            return attend(q, k, v, score_mod=score, block_mask=blocks, scale=scale, **grouped).transpose(1, 2)

    return call


PEERS: dict[str, Callable[[Inputs], Call]] = {
    "FA3": fa3,
    "cuDNN": partial(torchs, "CUDNN_ATTENTION"),
    "FA2": partial(torchs, "FLASH_ATTENTION"),
    "FA4": fa4,
    "Flex": flex,
}
MODULES = {"FA4": "flash_attn.cute", "Flex": "torch.nn.attention.flex_attention"}


def missing(peer: str, site: Path | None) -> str:
    """Why a peer can't be asked here; empty if it can, as far as that is known before it is."""
    if peer == "FA3":
        return _missing_fa3(site)
    module = MODULES.get(peer)
    return f"no module {module}" if module and not _there(module) else ""


def _missing_fa3(site: Path | None) -> str:
    if site is None:
        return "`--fa3-site DIR` names no build of it"
    return "" if (site / "flash_attn_3" / "_C.so").exists() else "there is no flash_attn_3/_C.so in the folder of `--fa3-site`"


def _there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
