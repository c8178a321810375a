"""Attention in float64, written apart from the compiler and its evaluator: what the cases of public bug reports are held to.

Arrays are [B, heads, rows, elements]. Inputs are rounded to the kernel's type before the reference sees them.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

TYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype(np.float32)}
LOG_SUM = 1e-4  # what a log-sum-exp may be off, with 2e-6 of its value: accumulation in f32


def hashed(seed: int, shape: tuple[int, ...], low: float = -1.0, high: float = 1.0, dtype: str = "f16") -> np.ndarray:
    """Numbers that depend on nothing but the seed and the place: a 32-bit integer hash of the flat index."""
    x = np.arange(int(np.prod(shape)), dtype=np.uint64) + np.uint64(0x9E3779B9) * np.uint64(seed + 1)
    x &= np.uint64(0xFFFFFFFF)
    for factor in (0x7FEB352D, 0x846CA68B):
        x ^= x >> np.uint64(16)
        x = x * np.uint64(factor) & np.uint64(0xFFFFFFFF)
        x ^= x >> np.uint64(15)
    return (low + (high - low) * x.astype(np.float64) / 2.0**32).reshape(shape).astype(TYPES[dtype])


def qkv(m: int, n: int, dtype: str = "f16", d: int = 64, most: float = 1.0, b: int = 1, h: int = 1) -> list[np.ndarray]:
    """Queries, keys and values of the cases, within `most`: seeds 1, 2 and 3."""
    shapes = ((b, h, m, d), (b, h, n, d), (b, h, n, d))
    return [hashed(seed, shape, -most, most, dtype) for seed, shape in enumerate(shapes, 1)]


def seen(m: int, n: int, left: float = np.inf, right: float = np.inf) -> np.ndarray:
    """Which keys a query sees: those from `left` before it to `right` behind it, both ends included, the last query beside the
    last key. Causal is `right=0`."""
    distance = np.arange(n)[None] - np.arange(m)[:, None] - (n - m)
    return (-left <= distance) & (distance <= right)


@dataclass(frozen=True)
class Answer:
    """What is right, and how far a run is off that rounds weights and result to the type: `o` [B, H, M, E], `lse` [B, H, M]."""

    o: np.ndarray
    lse: np.ndarray
    rounding: float

    def faults(self, o: np.ndarray, lse: np.ndarray | None = None) -> list[str]:
        """What is wrong with a result, in words."""
        found = off("O", o, self.o, 2 * self.rounding + 1e-5)
        return found if lse is None else found + off("L", lse, self.lse, LOG_SUM + 2e-6 * np.abs(self.lse))


def off(name: str, got: np.ndarray, want: np.ndarray, allowed: float | np.ndarray) -> list[str]:
    """Infinities and NaN stand where they should; other elements are within what is allowed."""
    got = got.astype(np.float64)
    if got.shape != want.shape:
        return [f"{name} has shape {got.shape}, not {want.shape}"]
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True) or not np.isfinite(got[finite]).all():
        return [f"{name}: {np.argwhere(np.isfinite(got) != finite)[:3].tolist()} are the first that aren't finite, or are"]
    error = np.where(finite, np.abs(np.where(finite, got, 0) - np.where(finite, want, 0)), 0)
    beyond = error > np.where(finite, allowed, np.inf)
    return [f"{name}: error {error.max():.3g} at {np.argwhere(beyond)[0].tolist()}"] if beyond.any() else []


def attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    keep: np.ndarray | None = None,
    *,
    cap: float = 0.0,
    bias: np.ndarray | float = 0.0,
    sink: np.ndarray | None = None,
    scale: float | None = None,
) -> Answer:
    """Score -> scale -> cap -> bias -> mask -> softmax. `sink` [H] takes part in maximum and sum, and has no value. A row that
    sees nothing: 0, and a log-sum-exp of -inf."""
    dtype, group = v.dtype, q.shape[1] // max(k.shape[1], 1)
    q, k, v = (np.asarray(x, np.float64) for x in (q, np.repeat(k, group, 1), np.repeat(v, group, 1)))
    with np.errstate(invalid="ignore"):
        x = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    x = (cap * np.tanh(x / cap) if cap else x) + bias
    keep = np.broadcast_to(True if keep is None else keep, x.shape)
    x = np.where(keep, x, -np.inf)
    start = np.full(x.shape[1], -np.inf) if sink is None else np.asarray(sink, np.float64)
    top = np.maximum(x.max(-1, initial=-np.inf), start[None, :, None])
    safe = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = np.exp(x - safe[..., None])
        total = p.sum(-1) + np.exp(start[None, :, None] - safe)
        lse = np.where(total == 0, -np.inf, safe + np.log(total))
    exact = _divided(_weighted(p, v, keep), total)
    rounded = _divided(_weighted(p.astype(dtype).astype(np.float64), v, keep), total).astype(dtype).astype(np.float64)
    finite = np.isfinite(exact)
    return Answer(exact, lse, float(np.abs(rounded[finite] - exact[finite]).max(initial=0.0)))


def _weighted(p: np.ndarray, v: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """The sum over the keys that are seen. What isn't seen contributes nothing, whatever it holds."""
    if np.isfinite(v).all():
        return p @ v
    with np.errstate(invalid="ignore"):
        return np.where(keep[..., None], p[..., None] * v[:, :, None], 0.0).sum(-2)


def _divided(sums: np.ndarray, total: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total[..., None] == 0, 0.0, sums / total[..., None])
