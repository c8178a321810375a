"""Suite `variants`: attention with a statement changed, beside FlashAttention-3, or FlexAttention where that lacks it
or isn't there.

Head dim 128, bf16. Each variant has inputs of its own; a peer is given the same. Operations: 4 d for each pair of a query and a
key that it sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..foundation.resources import resource
from .attention import OWN_SLACK, PEER_SLACK, rounded_part, sampled
from .attention_peers import flexible, load_fa3
from .case import Call, Case, Ground, Own
from .proof import Part, proven

DIM, DTYPE = 128, "bf16"
SCORE = "S[b,g,r,i,j] * scale"
CAP = 30.0
DOCUMENTS = 16
WINDOWS = (256, 512, 1024, 2048, 4096)
LISTED = "schedule listed extends fa3 { stream j descending listed }"

Sizes = tuple[int, int, int, int]  # batch, length, heads, key heads
Score = Callable[..., Any]  # (x, b, h, i, j) -> scores, of tensors that broadcast
Given = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Variant:
    """packed: of one batch that is all sequences, whose axis arrays lack. statement: what stands for X. declarations: lines
    that it needs. example: where the program is, in place of a statement. schedules: those of its own, in the example's folder
    or `beside` the program. inputs: what is declared, by name. score and mask: the same for FlexAttention and for the
    reference. fa3: arguments of FlashAttention-3, of the inputs; None where it has no such variant."""

    name: str
    sizes: Sizes
    statement: str = ""
    declarations: tuple[str, ...] = ()
    example: str = ""
    schedules: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=lambda: {"lse": False})
    packed: bool = False
    inputs: Callable[[Sizes], Given] = lambda sizes: {}
    score: Callable[[Given], Score] | None = None
    mask: Callable[[Given], Score] | None = None
    fa3: Callable[[Given], dict[str, Any]] | None = None

    @property
    def program(self) -> str:
        """A file, or the text of what has no file."""
        if self.example:
            return str(resource("examples", self.example, f"{self.example}.wg"))
        lines = resource("examples", "attention", "attention.wg").read_text("utf-8").splitlines()
        at = next(k for k, line in enumerate(lines) if line.lstrip().startswith("X["))
        lines[at] = f"  X[b,g,r,i,j] = {self.statement}"
        first = next(k for k, line in enumerate(lines) if line.lstrip().startswith("let h"))
        return "\n".join([*lines[:first], *self.declarations, *lines[first:], *self.beside]) + "\n"

    @property
    def lengths(self) -> dict[str, int]:
        """The dims of a call, as far as they are known without the inputs."""
        batch, length, heads, key_heads = self.sizes
        known = {"G": key_heads, "R": heads // key_heads, "M": length, "N": length, "D": DIM, "E": DIM}
        return {} if self.packed else {"B": batch, **known}


def variants(target: str | None) -> list[Case]:
    return [_case(v, target or "auto") for v in _every()]


def _case(v: Variant, target: str) -> Case:
    own = Own(
        program=v.program,
        target=target,
        dims={"D": DIM, "E": DIM},
        types={"T": DTYPE},
        options=v.options,
        lengths=v.lengths,
    )
    peers = ("FA3", "Flex") if v.fa3 is not None else ("Flex",)
    return Case(
        suite="variants",
        name=v.name,
        facts={"head dim": DIM, "dtype": DTYPE},
        own=own,
        peers=peers,
        usual=peers[:1],
        otherwise=peers[1:],
        ground=partial(_ground, v),
        schedules=v.schedules,
    )


def _every() -> Iterator[Variant]:
    yield from map(_window, WINDOWS)
    yield from _grouped((2, 8192, 32, 8))
    yield from _scored((4, 4096, 16, 16))
    yield from _documents((1, 16384, 16, 16))
    yield from _packed((1, 16384, 16, 16))


def _window(w: int) -> Variant:
    return Variant(
        name=f"window {w}",
        sizes=(1, 16384, 16, 16),
        statement=f"{SCORE} where i - {w} <= j <= i",
        mask=lambda t: lambda b, h, i, j: (j <= i) & (i - j <= w),
        fa3=lambda t: {"window_size_left": w, "window_size_right": 0},
    )


def _causal(t: Given) -> Score:
    return lambda b, h, i, j: j <= i


def _grouped(sizes: Sizes) -> Iterator[Variant]:
    yield Variant(name="grouped full", sizes=sizes, statement=SCORE, fa3=lambda t: {})
    yield Variant(
        name="grouped causal",
        sizes=sizes,
        statement=f"{SCORE} where j <= i",
        mask=_causal,
        fa3=lambda t: {"is_causal": True},
    )


def _scored(sizes: Sizes) -> Iterator[Variant]:
    yield Variant(
        name="soft cap",
        sizes=sizes,
        statement=f"{CAP} * tanh({SCORE} / {CAP})",
        score=lambda t: lambda x, b, h, i, j: CAP * (x / CAP).tanh(),
    )
    yield Variant(
        name="ALiBi causal",
        sizes=sizes,
        declarations=("in slope: f32[H]",),
        statement=f"{SCORE} + slope[h] * (j - i) where j <= i",
        inputs=_slopes,
        score=lambda t: lambda x, b, h, i, j: x + t["slope"][h] * (j - i),
        mask=_causal,
    )
    yield Variant(
        name="ALiBi",
        sizes=sizes,
        declarations=("in slope: f32[H]",),
        statement=f"{SCORE} - slope[h] * abs(i - j)",
        inputs=_slopes,
        score=lambda t: lambda x, b, h, i, j: x - t["slope"][h] * (i - j).abs(),
    )
    yield Variant(
        name="bias",
        sizes=sizes,
        example="attention_bias",
        schedules=("biased",),
        options={},
        inputs=_biases,
        score=lambda t: lambda x, b, h, i, j: x + t["W"][h, i, j],
    )


def _documents(sizes: Sizes) -> Iterator[Variant]:
    for name, also in (("documents", ""), ("documents causal", " and j <= i")):
        yield Variant(
            name=name,
            sizes=sizes,
            declarations=("in here: i32[B, M]", "in there: i32[B, N]"),
            statement=f"{SCORE} where here[b,i] == there[b,j]{also}",
            inputs=_numbered,
            mask=partial(_same_document, causal=bool(also)),
            schedules=("listed",),
            beside=(LISTED,),
        )


def _packed(sizes: Sizes) -> Iterator[Variant]:
    for name, causal, schedule in (("packed", False, "varlen"), ("packed causal", True, "varlen_longest")):
        yield Variant(
            name=name,
            sizes=sizes,
            packed=True,
            example="attention_varlen",
            schedules=(schedule,),
            options={"lse": False, "causal": causal},
            inputs=_sequences,
            mask=partial(_same_sequence, causal=causal),
            fa3=partial(_offsets, causal=causal),
        )


def _same_document(given: Given, causal: bool) -> Score:
    here, there = given["here"], given["there"]
    if causal:
        return lambda b, h, i, j: (here[b, i] == there[b, j]) & (j <= i)
    return lambda b, h, i, j: here[b, i] == there[b, j]


def _same_sequence(given: Given, causal: bool) -> Score:
    import torch

    ends = given["cu_k"][1:].long()
    places = torch.arange(int(ends[-1]), device="cuda")
    numbers = torch.searchsorted(ends, places, right=True)[None]
    return _same_document({"here": numbers, "there": numbers}, causal)


def _offsets(given: Given, causal: bool) -> dict[str, Any]:
    offsets = {"cu_seqlens_q": given["cu_q"], "cu_seqlens_k": given["cu_k"]}
    return {**offsets, "max_seqlen_q": given["LongestQ"], "max_seqlen_k": given["LongestK"], "is_causal": causal}


def _slopes(sizes: Sizes) -> Given:
    import torch

    heads = sizes[2]
    return {"slope": torch.exp2(-8.0 * torch.arange(1, heads + 1, device="cuda") / heads)}


def _biases(sizes: Sizes) -> Given:
    import torch

    _, length, heads, _ = sizes
    return {"W": torch.randn(heads, length, length, device="cuda", dtype=torch.bfloat16)}


def _numbered(sizes: Sizes) -> Given:
    """Documents of random lengths, in order; the mean is length / DOCUMENTS."""
    import torch

    batch, length, _, _ = sizes
    edges = torch.stack([torch.randperm(length - 1, device="cuda")[: DOCUMENTS - 1].sort().values + 1 for _ in range(batch)])
    places = torch.arange(length, device="cuda").expand(batch, -1).contiguous()
    numbers = torch.searchsorted(edges, places, right=True).to(torch.int32)
    return {"here": numbers, "there": numbers}


def _sequences(sizes: Sizes) -> Given:
    """Sequences as long as the documents, one behind the other."""
    import torch

    numbers = _numbered(sizes)["here"][0]
    lengths = torch.bincount(numbers, minlength=DOCUMENTS)
    offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).to(torch.int32)
    longest = int(lengths.max())
    return {"cu_q": offsets, "cu_k": offsets, "LongestQ": longest, "LongestK": longest}


def _ground(v: Variant, site: Path | None) -> Ground:
    import torch

    batch, length, heads, key_heads = v.sizes
    q, k, value = (torch.randn(batch, length, h, DIM, device="cuda").bfloat16() for h in (heads, key_heads, key_heads))
    given = v.inputs(v.sizes)
    parts = _parts(v, given, q, k, value)
    score, mask = (make(given) if make else None for make in (v.score, v.mask))
    peers = {"Flex": partial(flexible, q, k, value, DIM**-0.5, score, mask)}
    if site is not None:
        peers["FA3"] = partial(_fa3, v, given, q, k, value, site)
    return Ground(
        work=4.0 * DIM * _pairs(v, given),
        peers=peers,
        own=lambda kernel: _own_call(kernel, v, given, q, k, value),
        check=lambda call, peer: proven(call, parts, PEER_SLACK if peer else OWN_SLACK),
    )


def _parts(v: Variant, given: Given, q, k, values) -> list[Part]:
    """As `attention.reference_parts`."""
    _, _, heads, key_heads = v.sizes
    return [
        rounded_part(
            (b, rows, h), _scores(v, given, q, k, b, h, rows), values[b, :, h // (heads // key_heads)].double(), q.dtype
        )
        for (b, h), rows in sampled(v.sizes)
    ]


def _scores(v: Variant, given: Given, q, k, b: int, h: int, rows):
    """The scores of some rows, in float64, -inf where a key isn't seen."""
    import torch

    keys = torch.arange(v.sizes[1], device="cuda")
    at = (torch.tensor(b, device="cuda"), torch.tensor(h, device="cuda"), rows[:, None], keys[None])
    x = q[b, rows, h].double() @ k[b, :, h // (v.sizes[2] // v.sizes[3])].double().T * DIM**-0.5
    if v.score:
        exact = {n: t.double() if torch.is_tensor(t) and t.is_floating_point() else t for n, t in given.items()}
        x = v.score(exact)(x, *at)
    return x.masked_fill(~v.mask(given)(*at), float("-inf")) if v.mask else x


def _pairs(v: Variant, given: Given) -> int:
    """Pairs of a query and a key that it sees, of all heads."""
    import torch

    batch, length, heads, _ = v.sizes
    if not v.mask:
        return batch * heads * length * length
    keys, seen = torch.arange(length, device="cuda"), 0
    for b in range(batch):
        for first in range(0, length, 1024):
            rows = torch.arange(first, min(first + 1024, length), device="cuda")
            seen += int(v.mask(given)(torch.tensor(b, device="cuda"), 0, rows[:, None], keys[None]).sum())
    return heads * seen


def _fa3(v: Variant, given: Given, q, k, values, site: Path) -> Call:
    forward, more = load_fa3(site), v.fa3(given) if v.fa3 else {}
    if not v.packed:
        return lambda: forward(q, k, values, softmax_scale=DIM**-0.5, num_splits=1, **more)[0]
    q, k, values = q[0], k[0], values[0]
    return lambda: forward(q, k, values, softmax_scale=DIM**-0.5, num_splits=1, **more)[0][None]


def _own_call(kernel, v: Variant, given: Given, q, k, values) -> Call:
    import torch

    out = torch.full_like(q, float("nan"))
    arrays = {"Q": q, "K": k, "V": values, **given}
    results = {"O": out[0] if v.packed else out}
    if v.packed:
        arrays |= {name: arrays[name][0] for name in "QKV"}
    if v.beside:  # a schedule that has lists of tiles, which are kept
        arrays["tiles"] = kernel.list_tiles(**arrays)

    def call():
        kernel(**arrays, out=results)
        return out

    return call
