"""Attention as people vary it: the cookbook's masks and scores, any layout and head dim, under the shipped schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tests.fuzz.attention import Arrays, Part, Positions, attention, mask, score
from tests.fuzz.case import Case
from tests.fuzz.choices import Choices
from tests.programs.edits import ATTENTION, edit, plain

FILES = {
    "simple": "hopper/attention_simple",
    "fa3": "hopper/attention_fa3",
    "fa3_persistent": "hopper/attention_fa3_persistent",
    "three": "hopper/attention_three",
    "three_longest": "hopper/attention_three",
    "two": "hopper/attention_two",
    "two_longest": "hopper/attention_two",
    "two_joined": "hopper/attention_two",
    "four": "hopper/attention_four",
    "four_longest": "hopper/attention_four",
    "two_80": "hopper/attention_two",
    "two_64": "hopper/attention_two",
    "two_64_longest": "hopper/attention_two",
    "softmax_turns": "hopper/attention_softmax_turns",
    "unordered": "hopper/attention_unordered",
    "fa2": "ampere/attention_fa2",
    "fa2_longest": "ampere/attention_fa2",
    "fa2_narrow": "ampere/attention_fa2_narrow",
    "fa2_narrow_longest": "ampere/attention_fa2_narrow",
    "fa2_wide": "ampere/attention_fa2_wide",
    "fa2_wide_longest": "ampere/attention_fa2_wide",
}
SMALL = ("simple", "fa3", "fa3_persistent", "two", "three", "two_joined", "four", "softmax_turns", "unordered")
SCHEDULES = {  # by target and head dim: without any order, and those that begin with long items
    ("sm_90a", 64): (SMALL, ("two_longest", "three_longest", "four_longest")),
    ("sm_90a", 128): (("simple", "fa3", "two", "three", "two_80"), ("two_longest", "three_longest")),
    ("sm_90a", 256): (("two_80", "two_64"), ("two_64_longest",)),
    ("sm_80", 64): (("fa2", "fa2_narrow", "fa2_wide"), ("fa2_longest",)),
    ("sm_80", 128): (("fa2_narrow", "fa2_wide"), ("fa2_narrow_longest",)),
    ("sm_80", 256): (("fa2_wide",), ("fa2_wide_longest",)),
}
LISTED = ("documents", "truth", "keys", "dilation", "bands")  # masks that are more than bounds
WIDTHS = {64: (64, 40, 8, 24, 56), 128: (128, 72, 120, 96), 256: (256, 192, 136, 248)}
AXES = {"Q": ("BMHD", "bihd"), "K": ("BNGD", "bjgd"), "V": ("BNGE", "bjge"), "O": ("BMHE", "bihe")}
SIZES = ((70, 200), (200, 70), (130, 0), (1, 1), (129, 257), (64, 65), (300, 300))
SINK = (
    "m[b,g,r,i] = max(max[j] X[b,g,r,i,j], sink[h])\np[b,g,r,i,j] = exp(X[b,g,r,i,j] - m[b,g,r,i])\n"
    "l[b,g,r,i] = sum[j] p[b,g,r,i,j] + exp(sink[h] - m[b,g,r,i])\nP[b,g,r,i,j] = p[b,g,r,i,j] / l[b,g,r,i]"
)


@dataclass(frozen=True, kw_only=True)
class Combination(Case):
    """A case with right values of its own. orders: tensor -> where each axis of its usual order stands."""

    scores: tuple[Part, ...]
    mask: Part | None
    sink: bool
    orders: dict[str, tuple[int, ...]]
    together: int | None  # where the axis of keys and values stands, if they are one tensor
    poisoned: bool

    def prepared(self, arrays: dict[str, np.ndarray], dims: Mapping[str, int]) -> dict[str, np.ndarray]:
        """Keys before the first and behind the last that any row sees hold NaN."""
        if not self.poisoned or self.mask is None:
            return arrays
        i, j = np.ogrid[: dims["M"], : dims["N"]]
        one = np.zeros((1, 1), int)
        seen = np.broadcast_to(self.mask.value(Positions(i, j, one, one, dims["M"], dims["N"]), {}), (dims["M"], dims["N"]))
        there = np.nonzero(seen.any(axis=0))[0]
        outside = np.ones(dims["N"], bool)
        if there.size:
            outside[there[0] : there[-1] + 1] = False
        _, k, v = self.operands(arrays)
        k[:, outside] = np.nan
        if self.orders["V"][3] == 3:  # keys that run along V's last axis aren't cleared
            v[:, outside] = np.nan
        return arrays

    def operands(self, arrays: Arrays) -> list[np.ndarray]:
        """Views of Q, K and V with their axes in the usual order."""
        if self.together is None:
            return [arrays[t].transpose(np.argsort(self.orders[t])) for t in "QKV"]
        both = np.moveaxis(arrays["KV"], self.together, 0)
        return [arrays["Q"].transpose(np.argsort(self.orders["Q"])), both[0], both[1]]

    def expected(self, arrays: Arrays, dims: Mapping[str, int]) -> dict[str, np.ndarray]:
        given = {n: x if x.dtype == bool or x.dtype.kind == "i" else x.astype(np.float64) for n, x in arrays.items()}
        given["scale"] = np.float64(np.float32(dims["D"] ** -0.5))
        q, k, v = map(np.nan_to_num, self.operands(given))
        out = attention(q, k, v, self.scores, self.mask, self.sink, given)
        return out | {"O": out["O"].transpose(self.orders["O"])}


def combination(c: Choices) -> Combination:
    target = c.pick("sm_90a", "sm_80")
    wide = c.pick(64, 64, 128, 64, 128, 256)
    d = c.pick(*WIDTHS[wide])
    e = c.pick(d, *[x for w, xs in WIDTHS.items() if w <= wide for x in xs])
    kept, scores, sink = mask(c), score(c), c.chance(20)
    usual, longest = SCHEDULES[(target, wide)]
    name = c.pick(*usual, *(longest if kept is None or kept.longest else ()))
    sink = sink and name != "softmax_turns"  # which names the maximum as the softmax has it
    schedules = plain(f"schedules/{FILES[name]}.wg").removeprefix("wg 1\n")
    if "over Qs" in schedules and e > d:
        d, e = e, d  # the result has to fit where Q was
    orders = _orders(c)
    together = c.index(4) if c.chance(20) else None
    if together is not None:
        e = d
        schedules = edit(schedules, ("= K[j]", "= KV[j, d]"), ("= V[j]", "= KV[j, e]"))
    m, n = c.pick(*SIZES)
    fixed = {"D": d} if together is not None else {"D": d, "E": e}
    sizes = {"M": m, "N": n, "B": c.pick(2, 1), "G": c.pick(1, 2), "R": c.pick(2, 1, 3), **fixed}
    parts = (*scores, *([kept] if kept else []))
    dtype, poisoned = c.pick("bf16", "f16"), kept is not None and kept.bounds and c.chance(40)
    packs = all(order[-1] == 3 for order in orders.values()) and c.chance(30)
    if packs:
        fixed["R"] = sizes["R"] = c.pick(2, 8, 4, 1, 3, 7, 6)
        schedules = _packed(schedules)
    listed = kept is not None and any(part in kept.name for part in LISTED) and not name.endswith(("longest", "joined"))
    listed = listed and c.chance(50)
    if listed:
        schedules += f"schedule listed extends {name} {{\nstream j {c.pick('descending ', '')}listed\n}}\n"
    return Combination(
        kind=f"{kept.name if kept else 'no mask'}; {', '.join(p.name for p in scores)}{'; sink' if sink else ''}; {name}"
        + "; heads in rows" * packs
        + "; listed" * listed,
        text=_program(kept, scores, sink, orders, together) + schedules,
        schedule="listed" if listed else name,
        target=target,
        sizes=(sizes,),
        dims=fixed,
        dtype=dtype,
        fills={n: f for p in parts for n, f in p.fills.items()},
        scores=scores,
        mask=kept,
        sink=sink,
        orders=orders,
        together=together,
        poisoned=poisoned,
    )


def _packed(schedules: str) -> str:
    """Schedules whose rows are the queries of all heads that share a key head."""
    new = {"(b, g, r, i)": "(b, g, m)", "(b, g, r)": "(b, g)", "tile i": "fuse m = (i, r)\ntile m", "split i": "split m"}
    for old, text in {**new, "[i]": "[m]"}.items():
        schedules = schedules.replace(old, text)
    return schedules


def _orders(c: Choices) -> dict[str, tuple[int, ...]]:
    """The last axis stays, or is exchanged with the one of the rows where the engines take that."""
    orders = dict.fromkeys(AXES, (0, 1, 2, 3))
    if not c.chance(50):
        return orders
    for t in AXES:
        orders[t] = (*c.order(range(3)), 3)
    if c.chance(30):
        t = c.pick("Q", "K", "V")
        orders[t] = (*c.order((0, 2, 3)), 1)
    return orders


def _program(
    kept: Part | None, scores: tuple[Part, ...], sink: bool, orders: dict[str, tuple[int, ...]], together: int | None
) -> str:
    x = "S[b,g,r,i,j]"
    for part in scores:
        x = part.text.format(x)
    old = "X[b,g,r,i,j] = S[b,g,r,i,j] * scale where not causal or j <= i + N - M"
    parts = (*scores, *([kept] if kept else []))
    lines = [*dict.fromkeys(line for p in parts for line in p.lines), *(["in sink: f32[H]"] if sink else [])]
    text = edit(
        ATTENTION,
        (old, f"X[b,g,r,i,j] = {x}" + (f" where {kept.text}" if kept else "")),
        ("in scale", "\n".join((*lines, "in scale"))),
    )
    if sink:
        text = edit(
            text,
            ("P[b,g,r,i,j] = softmax[j] X[b,g,r,i,j]", SINK),
            ("L[b,h,i] = logsumexp[j] X[b,g,r,i,j]", "L[b,h,i] = log(l[b,g,r,i]) + m[b,g,r,i]"),
        )
    for tensor, order in orders.items():
        if together is not None and tensor in "KV":
            continue
        (shape, access), new = AXES[tensor], [AXES[tensor][0][k] for k in order]
        text = edit(text, (f"{tensor}: T[{', '.join(shape)}]", f"{tensor}: T[{', '.join(new)}]"))
        text = edit(text, (f"{tensor}[{','.join(access)}]", f"{tensor}[{','.join(access[k] for k in order)}]"))
    return text if together is None else _together(text, together)


def _together(text: str, at: int) -> str:
    """Keys and values as one tensor, with an axis of two at a place among the others."""
    shape = ["B", "N", "G"]
    shape.insert(at, "2")
    k, v = (
        ",".join([*(str(n) if x == "2" else {"B": "b", "N": "j", "G": "g"}[x] for x in shape), w]) for n, w in enumerate("de")
    )
    return edit(
        text,
        ("in K: T[B, N, G, D]\nin V: T[B, N, G, E]", f"in KV: T[{', '.join(shape)}, D]\nindex d < D, e < D"),
        ("K[b,j,g,d]", f"KV[{k}]"),
        ("V[b,j,g,e]", f"KV[{v}]"),
        (", D, E", ", D"),
        (", E]", ", D]"),
    )
