"""Variants of attention beside FlashAttention-3, or compiled FlexAttention where that hasn't the variant: head dim 128, bf16.

Each case is the attention program with one statement changed, and inputs of its own; a peer is given the same. TFLOP/s count
4 * d operations for each pair of a query and a key that it sees. Ratios above 1 mean faster than the peer.

    python bench/variants_vs_peers.py --fa3-site DIR --cases window,alibi --schedule fa3 --schedule three

DIR is that of `attention_vs_peers.py`. `--windows 256,512,1024` are the widths of the windows; their cost is that of the table.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import measure
from attention_vs_peers import OWN_SLACK, PEER_SLACK, PROGRAM, load_fa3

DIM, DTYPE = 128, "bf16"
SCORE = "S[b,g,r,i,j] * scale"
CAP = 30.0
DOCUMENTS = 16
FLEX = "Flex"
LISTED = "schedule listed extends fa3 { stream j descending listed }"

Score = Callable[..., Any]  # (x, b, h, i, j) -> scores, of tensors that broadcast


@dataclass(frozen=True, kw_only=True)
class Case:
    """A variant. shape: batch, length, heads, key heads; packed: of one batch that is all sequences, whose axis arrays lack.
    statement: what stands for X. declarations: lines that it needs. example: where the program is, in place of a statement.
    schedules: those of its own, in the example's folder or `beside` the program. inputs: what is declared, by name. score and
    mask: the same for FlexAttention and for the reference. fa3: arguments of FlashAttention-3, of the inputs; None where it has
    no such variant."""

    name: str
    shape: tuple[int, int, int, int]
    statement: str = ""
    declarations: tuple[str, ...] = ()
    example: str = ""
    schedules: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=lambda: {"lse": False})
    packed: bool = False
    inputs: Callable[[tuple[int, int, int, int]], dict[str, Any]] = lambda shape: {}
    score: Callable[[dict[str, Any]], Score] | None = None
    mask: Callable[[dict[str, Any]], Score] | None = None
    fa3: Callable[[dict[str, Any]], dict[str, Any]] | None = None

    @property
    def program(self) -> Path | str:
        """A file, or the text of what has no file."""
        if self.example:
            return PROGRAM.parents[1] / self.example / f"{self.example}.wg"
        lines = PROGRAM.read_text("utf-8").splitlines()
        at = next(k for k, line in enumerate(lines) if line.lstrip().startswith("X["))
        lines[at] = f"  X[b,g,r,i,j] = {self.statement}"
        first = next(k for k, line in enumerate(lines) if line.lstrip().startswith("let h"))
        return "\n".join([*lines[:first], *self.declarations, *lines[first:], *self.beside]) + "\n"


def every_case(given: argparse.Namespace) -> Iterator[Case]:
    long, square, grouped = (1, 16384, 16, 16), (4, 4096, 16, 16), (2, 8192, 32, 8)
    for w in given.windows:
        yield Case(
            name=f"window {w}",
            shape=long,
            statement=f"{SCORE} where i - {w} <= j <= i",
            mask=lambda t, w=w: lambda b, h, i, j: (j <= i) & (i - j <= w),
            fa3=lambda t, w=w: {"window_size_left": w, "window_size_right": 0},
        )
    yield Case(name="grouped full", shape=grouped, statement=SCORE, fa3=lambda t: {})
    yield Case(
        name="grouped causal",
        shape=grouped,
        statement=f"{SCORE} where j <= i",
        mask=lambda t: lambda b, h, i, j: j <= i,
        fa3=lambda t: {"is_causal": True},
    )
    yield Case(
        name="soft cap",
        shape=square,
        statement=f"{CAP} * tanh({SCORE} / {CAP})",
        score=lambda t: lambda x, b, h, i, j: CAP * (x / CAP).tanh(),
    )
    yield Case(
        name="ALiBi causal",
        shape=square,
        declarations=("in slope: f32[H]",),
        statement=f"{SCORE} + slope[h] * (j - i) where j <= i",
        inputs=slopes,
        score=lambda t: lambda x, b, h, i, j: x + t["slope"][h] * (j - i),
        mask=lambda t: lambda b, h, i, j: j <= i,
    )
    yield Case(
        name="ALiBi",
        shape=square,
        declarations=("in slope: f32[H]",),
        statement=f"{SCORE} - slope[h] * abs(i - j)",
        inputs=slopes,
        score=lambda t: lambda x, b, h, i, j: x - t["slope"][h] * (i - j).abs(),
    )
    yield Case(
        name="bias",
        shape=square,
        example="attention_bias",
        schedules=("biased",),
        options={},
        inputs=biases,
        score=lambda t: lambda x, b, h, i, j: x + t["W"][h, i, j],
    )
    for name, also in (("documents", ""), ("documents causal", " and j <= i")):
        yield Case(
            name=name,
            shape=long,
            declarations=("in here: i32[B, M]", "in there: i32[B, N]"),
            statement=f"{SCORE} where here[b,i] == there[b,j]{also}",
            inputs=documents,
            mask=partial(same_document, causal=bool(also)),
            schedules=("listed",),
            beside=(LISTED,),
        )

    for name, causal, schedule in (("packed", False, "varlen"), ("packed causal", True, "varlen_longest")):
        yield Case(
            name=name,
            shape=long,
            packed=True,
            example="attention_varlen",
            schedules=(schedule,),
            options={"lse": False, "causal": causal},
            inputs=sequences,
            mask=partial(same_sequence, causal=causal),
            fa3=partial(varlen, causal=causal),
        )


def same_document(given: dict[str, Any], causal: bool) -> Score:
    here, there = given["here"], given["there"]
    if causal:
        return lambda b, h, i, j: (here[b, i] == there[b, j]) & (j <= i)
    return lambda b, h, i, j: here[b, i] == there[b, j]


def same_sequence(given: dict[str, Any], causal: bool) -> Score:
    import torch

    ends = given["cu_k"][1:].long()
    places = torch.arange(int(ends[-1]), device="cuda")
    numbers = torch.searchsorted(ends, places, right=True)[None]
    return same_document({"here": numbers, "there": numbers}, causal)


def varlen(given: dict[str, Any], causal: bool) -> dict[str, Any]:
    offsets = {"cu_seqlens_q": given["cu_q"], "cu_seqlens_k": given["cu_k"]}
    return {**offsets, "max_seqlen_q": given["LongestQ"], "max_seqlen_k": given["LongestK"], "is_causal": causal}


def slopes(shape: tuple[int, int, int, int]) -> dict[str, Any]:
    import torch

    heads = shape[2]
    return {"slope": torch.exp2(-8.0 * torch.arange(1, heads + 1, device="cuda") / heads)}


def biases(shape: tuple[int, int, int, int]) -> dict[str, Any]:
    import torch

    _, length, heads, _ = shape
    return {"W": torch.randn(heads, length, length, device="cuda", dtype=torch.bfloat16)}


def documents(shape: tuple[int, int, int, int]) -> dict[str, Any]:
    """Documents of random lengths, in order; the mean is length / DOCUMENTS."""
    import torch

    batch, length, _, _ = shape
    edges = torch.stack([torch.randperm(length - 1, device="cuda")[: DOCUMENTS - 1].sort().values + 1 for _ in range(batch)])
    places = torch.arange(length, device="cuda").expand(batch, -1).contiguous()
    numbers = torch.searchsorted(edges, places, right=True).to(torch.int32)
    return {"here": numbers, "there": numbers}


def sequences(shape: tuple[int, int, int, int]) -> dict[str, Any]:
    """Sequences as long as the documents, one behind the other."""
    import torch

    numbers = documents(shape)["here"][0]
    lengths = torch.bincount(numbers, minlength=DOCUMENTS)
    offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).to(torch.int32)
    longest = int(lengths.max())
    return {"cu_q": offsets, "cu_k": offsets, "LongestQ": longest, "LongestK": longest}


def scores(case: Case, given: dict[str, Any], q, k, b: int, h: int, rows):
    """The scores of some rows, in float64, -inf where a key isn't seen."""
    import torch

    keys = torch.arange(case.shape[1], device="cuda")
    at = (torch.tensor(b, device="cuda"), torch.tensor(h, device="cuda"), rows[:, None], keys[None])
    x = q[b, rows, h].double() @ k[b, :, h // (case.shape[2] // case.shape[3])].double().T * DIM**-0.5
    if case.score:
        exact = {n: t.double() if torch.is_tensor(t) and t.is_floating_point() else t for n, t in given.items()}
        x = case.score(exact)(x, *at)
    return x.masked_fill(~case.mask(given)(*at), float("-inf")) if case.mask else x


def reference_parts(case: Case, given: dict[str, Any], q, k, v) -> list[tuple[object, object, float]]:
    """As that of `attention_vs_peers.py`."""
    import torch

    batch, length, heads, key_heads = case.shape
    rows = torch.unique(torch.cat([torch.arange(64), torch.randint(length, (128,)), length - 1 - torch.arange(64)])).cuda()
    parts = []
    for b, h in {(0, 0), (batch - 1, heads - 1), (batch // 2, heads // 3)}:
        values = v[b, :, h // (heads // key_heads)].double()
        x = scores(case, given, q, k, b, h, rows)
        p = torch.exp(x - x.max(1, keepdim=True).values)
        total = p.sum(1, keepdim=True)
        exact = p @ values / total
        rounded = (p.to(q.dtype).double() @ values / total).to(q.dtype).double()
        parts.append(((b, rows, h), exact, float((rounded - exact).abs().max())))
    return parts


def pairs(case: Case, given: dict[str, Any]) -> int:
    """Pairs of a query and a key that it sees, of all heads."""
    import torch

    batch, length, heads, _ = case.shape
    if not case.mask:
        return batch * heads * length * length
    keys, seen = torch.arange(length, device="cuda"), 0
    for b in range(batch):
        for first in range(0, length, 1024):
            rows = torch.arange(first, min(first + 1024, length), device="cuda")
            seen += int(case.mask(given)(torch.tensor(b, device="cuda"), 0, rows[:, None], keys[None]).sum())
    return heads * seen


def fa3(case: Case, given: dict[str, Any], q, k, v, site) -> Callable[[], object]:
    forward, more = load_fa3(site), case.fa3(given) if case.fa3 else {}
    if not case.packed:
        return lambda: forward(q, k, v, softmax_scale=DIM**-0.5, num_splits=1, **more)[0]
    q, k, v = q[0], k[0], v[0]
    return lambda: forward(q, k, v, softmax_scale=DIM**-0.5, num_splits=1, **more)[0][None]


def flex(case: Case, given: dict[str, Any], q, k, v) -> Callable[[], object]:
    import torch
    from torch.nn.attention import flex_attention as flexible  # pyright: ignore[reportMissingImports]

    torch._dynamo.reset()
    attend = torch.compile(flexible.flex_attention, dynamic=False)
    batch, length, heads, key_heads = case.shape
    blocks = None
    if case.mask:
        blocks = flexible.create_block_mask(case.mask(given), batch, None, length, length, device="cuda")
    score = case.score(given) if case.score else None
    grouped = {"enable_gqa": True} if heads != key_heads else {}
    q, k, v = (x.transpose(1, 2).contiguous() for x in (q, k, v))

    def call():
        with torch.no_grad():
            return attend(q, k, v, score_mod=score, block_mask=blocks, scale=DIM**-0.5, **grouped).transpose(1, 2)

    return call


def own(case: Case, given: dict[str, Any], q, k, v, schedule: str, target: str) -> Callable[[], object]:
    import torch

    import wgdsl

    kernel = wgdsl.compile(
        case.program,
        schedule=schedule,
        target=target,
        dims={"D": DIM, "E": DIM},
        types={"T": DTYPE},
        options=case.options,
    )
    out = torch.full_like(q, float("nan"))
    arrays = {"Q": q, "K": k, "V": v, **given}
    results = {"O": out[0] if case.packed else out}
    if case.packed:
        arrays |= {name: arrays[name][0] for name in "QKV"}
    if schedule == "listed":
        arrays["tiles"] = kernel.list_tiles(**arrays)

    def call():
        kernel(**arrays, out=results)
        return out

    return call


def contestants(given: argparse.Namespace, case: Case | None = None) -> tuple[dict[str, Callable], list[str]]:
    """Name -> builder of (case, inputs, q, k, v), for a case or for any; and which of them are peers."""
    peers: dict[str, Callable] = {}
    if given.fa3_site and (case is None or case.fa3 is not None):
        peers["FA3"] = partial(fa3, site=given.fa3_site)
    if case is None or "FA3" not in peers:
        peers[FLEX] = flex
    names = (given.schedule or ["fa3"]) + [s for c in every_case(given) for s in c.schedules]
    if case is not None:
        names = list(case.schedules) or given.schedule or ["fa3"]
    ours = {f"wgdsl {s}": partial(own, schedule=s, target=given.target) for s in names}
    return {**peers, **ours}, list(peers)


def work_through(given: argparse.Namespace, journal: measure.Journal) -> None:
    import torch

    done = {row["case"] for row in journal.rows}
    for number, case in enumerate(every_case(given)):
        if case.name in done or not any(case.name.startswith(c) for c in given.cases):
            continue
        everyone, peers = contestants(given, case)
        torch.manual_seed(given.seed + number)
        batch, length, heads, key_heads = case.shape
        q, k, v = (torch.randn(batch, length, h, DIM, device="cuda").bfloat16() for h in (heads, key_heads, key_heads))
        inputs = case.inputs(case.shape)
        parts = reference_parts(case, inputs, q, k, v)
        builders = {who: partial(build, case, inputs, q, k, v) for who, build in everyone.items()}
        measure.run_case(
            journal,
            case.name,
            builders,
            lambda who, call, parts=parts, peers=peers: measure.proven(call, parts, PEER_SLACK if who in peers else OWN_SLACK),
            given,
            4.0 * DIM * pairs(case, inputs),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fa3-site", type=Path, metavar="DIR")
    parser.add_argument("--cases", type=lambda text: text.split(","), default=[""], metavar="NAME,...", help="how names begin")
    parser.add_argument("--windows", type=lambda t: [int(x) for x in t.split(",")], default=[1024], metavar="W,...")
    given = measure.arguments(parser)
    if given.child:
        return work_through(given, measure.begin(given))
    everyone, peers = contestants(given)
    measure.report(measure.supervise(given), list(everyone), peers, given.json)


if __name__ == "__main__":
    main()
