"""What attention is, in NumPy alone: the right values of combinations, told by nothing of the compiler's.

A mask is a text for a `where` and a function of positions and arrays; so is a change of the scores. Positions come as columns
and rows that broadcast to (batch, query head, row, column).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tests.fuzz.choices import Choices

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Positions:
    """i: rows, j: columns, h: query heads, b: batches, in arrays that broadcast; m, n: how many rows and columns."""

    i: np.ndarray
    j: np.ndarray
    h: np.ndarray
    b: np.ndarray
    m: int
    n: int

    @staticmethod
    def of(b: int, h: int, m: int, n: int) -> Positions:
        bs, hs, i, j = np.ogrid[:b, :h, :m, :n]
        return Positions(i, j, hs, bs, m, n)


@dataclass(frozen=True)
class Part:
    """A piece of a program and what it means."""

    name: str
    text: str
    value: Callable[..., np.ndarray]
    lines: tuple[str, ...] = ()
    fills: dict[str, str] = field(default_factory=dict)
    bounds: bool = False  # a row sees all that lies between its first and its last key, or those two at least
    longest: bool = False  # trip counts only rise or only fall along the rows


def mask(c: Choices, depth: int = 2) -> Part | None:
    """None, one of the cookbook's, or several together."""
    if c.chance(12):
        return None
    one = c.pick(*MASKS)(c)
    if depth == 0 or not c.chance(35):
        return one
    way, other = c.pick("and", "or", "and not"), mask(c, depth - 1)
    if other is None:
        return one

    def value(p: Positions, a: Arrays) -> np.ndarray:
        x, y = one.value(p, a), other.value(p, a)
        return (x & y) if way == "and" else (x | y) if way == "or" else (x & ~y)

    text = f"({one.text}) {way} ({other.text})"
    return Part(
        f"{one.name} {way} {other.name}",
        text,
        value,
        tuple(dict.fromkeys((*one.lines, *other.lines))),
        one.fills | other.fills,
    )


def _causal(c: Choices) -> Part:
    shift, aligned = c.pick(0, 0, 17, -5), c.pick(True, False)
    text = f"j <= i{' + N - M' if aligned else ''}{f' + {shift}' if shift > 0 else f' - {-shift}' if shift else ''}"
    return Part("causal", text, lambda p, a: p.j <= p.i + (p.n - p.m if aligned else 0) + shift, bounds=True, longest=True)


def _window(c: Choices) -> Part:
    left, right, aligned = c.pick(40, 100, 64, 0), c.pick(0, 30, 20), c.pick(False, True)
    off = " + N - M" if aligned else ""

    def value(p: Positions, a: Arrays) -> np.ndarray:
        at = p.i + (p.n - p.m if aligned else 0)
        return (at - left <= p.j) & (p.j <= at + right)

    return Part("window", f"i{off} - {left} <= j <= i{off} + {right}", value, bounds=True)


def _prefix(c: Choices) -> Part:
    k = c.pick(70, 50, 1, 130)
    return Part("prefix", f"j < {k} or j <= i", lambda p, a: (p.j < k) | (p.j <= p.i), bounds=True)


def _chunks(c: Choices) -> Part:
    k, causal = c.pick(64, 48, 128, 7), c.pick(True, False)

    def value(p: Positions, a: Arrays) -> np.ndarray:
        return (p.i // k == p.j // k) & ((p.j <= p.i) | (not causal))

    return Part("chunks", f"i / {k} == j / {k}{' and j <= i' if causal else ''}", value)


def _dilation(c: Choices) -> Part:
    k = c.pick(3, 2, 5)
    text = f"(i - j) % {k} == 0 and 0 <= i - j < 90"
    return Part("dilation", text, lambda p, a: ((p.i - p.j) % k == 0) & (p.i - p.j >= 0) & (p.i - p.j < 90))


def _documents(c: Choices) -> Part:
    def value(p: Positions, a: Arrays) -> np.ndarray:
        return a["here"][:, None, :, None] == a["there"][:, None, None, :]

    lines = ("in here: i32[B, M]", "in there: i32[B, N]")
    return Part("documents", "here[b,i] == there[b,j]", value, lines, {"here": "ids", "there": "ids"})


def _lengths(c: Choices) -> Part:
    def value(p: Positions, a: Arrays) -> np.ndarray:
        return p.j < a["len"][:, None, None, None]

    return Part("lengths", "j < len[b]", value, ("in len: i32[B]",), {"len": "lengths:N"})


def _truth(c: Choices) -> Part:
    return Part("truth", "keep[b,i,j]", lambda p, a: a["keep"][:, None], ("in keep: bool[B, M, N]",))


def _row_of_truth(c: Choices) -> Part:
    return Part("keys", "not gone[b,j]", lambda p, a: ~a["gone"][:, None, None, :], ("in gone: bool[B, N]",))


def _bands(c: Choices) -> Part:
    def value(p: Positions, a: Arrays) -> np.ndarray:
        d = p.i - p.j
        return ((d >= 0) & (d < 20)) | ((d >= 60) & (d < 80))

    return Part("bands", "0 <= i - j < 20 or 60 <= i - j < 80", value, bounds=True)


MASKS = (_causal, _window, _prefix, _chunks, _dilation, _documents, _lengths, _truth, _row_of_truth, _bands)


def score(c: Choices) -> tuple[Part, ...]:
    """Changes of the score, one after the other."""
    parts = [c.pick(_scaled, _scaled, _temperature)(c)]
    for _ in range(c.index(3)):
        part = c.pick(_soft_cap, _alibi, _bias, _key_bias, _table, _clipped_table)(c)
        if part.name not in [p.name for p in parts]:
            parts.append(part)
    return tuple(parts)


def _scaled(c: Choices) -> Part:
    return Part("scale", "{0} * scale", lambda x, p, a: x * a["scale"])


def _temperature(c: Choices) -> Part:
    line, fills = ("in temperature: f32[H]",), {"temperature": "small"}
    return Part("temperature", "{0} * temperature[h]", lambda x, p, a: x * a["temperature"][p.h], line, fills)


def _soft_cap(c: Choices) -> Part:
    k = c.pick(30.0, 5.0)
    lines = (f"option cap = {k}", "def softcap(x, c) = c * tanh(x / c)")
    return Part("soft cap", "softcap({0}, cap)", lambda x, p, a: k * np.tanh(x / k), lines)


def _alibi(c: Choices) -> Part:
    lines, fills = ("in slope: f32[H]",), {"slope": "slopes"}
    return Part("alibi", "{0} + slope[h] * (j - i)", lambda x, p, a: x + a["slope"][p.h] * (p.j - p.i), lines, fills)


def _bias(c: Choices) -> Part:
    kind = c.pick("T", "f32")
    return Part("bias", "{0} + w[h,i,j]", lambda x, p, a: x + a["w"][None], (f"in w: {kind}[H, M, N]",))


def _key_bias(c: Choices) -> Part:
    return Part("key bias", "{0} + v[b,0,0,j]", lambda x, p, a: x + a["v"], ("in v: f32[B, 1, 1, N]",))


def _table(c: Choices) -> Part:
    def value(x: np.ndarray, p: Positions, a: Arrays) -> np.ndarray:
        return x + a["table"][p.h, p.j - p.i + p.m - 1]

    return Part("table", "{0} + table[h, j - i + M - 1]", value, ("in table: f32[H, M + N - 1]", "require M + N > 0"))


def _clipped_table(c: Choices) -> Part:
    def value(x: np.ndarray, p: Positions, a: Arrays) -> np.ndarray:
        return x + a["near"][p.h, np.clip(p.j - p.i, -16, 16) + 16]

    return Part("clipped table", "{0} + near[h, min(max(j - i, -16), 16) + 16]", value, ("in near: f32[H, 33]",))


def attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, scores: tuple[Part, ...], kept: Part | None, sink: bool, a: Arrays
) -> dict[str, np.ndarray]:
    """O as (b, row, head, width) and L as (b, head, row), in float64. q: (b, row, head, d); k, v: (b, column, group, width)."""
    (b, m, h, _), n = q.shape, k.shape[1]
    repeat = h // max(k.shape[2], 1)
    k, v = (np.repeat(x, repeat, axis=2) for x in (k, v))
    p = Positions.of(b, h, m, n)
    seen = np.broadcast_to(np.asarray(kept.value(p, a)) if kept else np.True_, (b, h, m, n))
    x = np.einsum("bmhd,bnhd->bhmn", q, k)
    for part in scores:
        x = part.value(x, p, a)
    x = np.where(seen, x, -np.inf)
    rest = a["sink"][None, :, None] if sink else np.full((1, h, 1), -np.inf)
    top = np.maximum(x.max(axis=-1, initial=-np.inf), rest)
    weights = np.exp(x - np.where(np.isinf(top), 0.0, top)[..., None], where=seen, out=np.zeros_like(x))
    with np.errstate(divide="ignore"):
        total = weights.sum(axis=-1) + np.exp(rest - np.where(np.isinf(top), 0.0, top))
        rows = np.log(total) + np.where(np.isinf(top), 0.0, top)
    weights = weights / np.where(total > 0, total, 1.0)[..., None]
    anyone = seen.any(axis=2)  # of a key's rows: what nobody sees may hold anything
    v = np.where(anyone.transpose(0, 2, 1)[..., None], v, 0.0)
    return {"O": np.einsum("bhmn,bnhe->bmhe", weights, v), "L": rows}
