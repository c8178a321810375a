"""Random schedules for attention and GEMM: levers drawn one by one, kept if the compiler takes the combination.

What is drawn for a seed doesn't change with the machine: a schedule that was verified and simulated in one place is the one
that runs on a GPU in another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from wgdsl.diagnostics.model import WgError
from wgdsl.driver import compile
from wgdsl.runtime.kernel import Kernel

REGISTERS = {1: (24, 240), 2: (24, 240), 3: (32, 160)}


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A schedule text, and what is fixed at compile time. `program`: attention or gemm."""

    seed: int
    program: str
    text: str
    dims: dict[str, int]
    options: dict[str, object]
    dtype: str

    def compile(self, build: bool = False) -> Kernel:
        return compile(
            f"examples/{self.program}/{self.program}.wg",
            schedule=self.text,
            dims=self.dims,
            types={"T": self.dtype},
            options=self.options,
            target="sm_90a",
            build=build,
        )


def drawn(seed: int) -> Drawn:
    rng = Random(seed)
    return _gemm(rng, seed) if rng.random() < 0.25 else _attention(rng, seed)


def legal(count: int, start: int = 0) -> Iterator[Drawn]:
    """The first drawn schedules from a seed on that the compiler takes."""
    seed = start
    while count:
        one, seed = drawn(seed), seed + 1
        try:
            one.compile()
        except WgError:
            continue
        count -= 1
        yield one


def _attention(rng: Random, seed: int) -> Drawn:
    groups, d, causal = rng.choice((1, 2, 2, 3)), rng.choice((64, 64, 128)), rng.random() < 0.5
    keys = rng.choice((32, 48, 64, 80, 96, 112, 128))
    persistent = rng.random() < 0.6
    dynamic = persistent and rng.random() < 0.5
    grid = "persistent dynamic " if dynamic else "persistent " if persistent else ""
    order = rng.choice(("", " longest_first", " longest_first section (b, g, r) within 1 MB")) if causal else ""
    load, math = REGISTERS[groups]
    if dynamic and groups == 2:
        load, math = 40, 232
    q, k, v = rng.choice((1, 1, 2)), rng.choice((1, 2, 2, 3, 4)), rng.choice((1, 2, 2, 3, 4))
    over = rng.choice(("", "", " over Qs", " over Vs"))
    lines = [
        f"tile i {64 * groups}, j {keys}",
        f"stream j{rng.choice(('', ' descending', ' descending'))}",
        f"grid {grid}over (b, g, r, i){order}",
        *(["skip empty per warpgroup"] if rng.random() < 0.4 else []),
        f"role load : 1 warpgroup, registers {load}",
        f"role math : {groups} warpgroups, registers {math}{', split i' if groups > 1 else ''}",
        f"smem Qs = Q[i] by tma{_ring(q)}",
        f"smem Ks = K[j] by tma{_ring(k)}",
        f"smem Vs = V[j] by tma{_ring(v)}",
        f"smem Os = O[i] by tma{over}",
    ]
    ahead = rng.random() < 0.6
    lines += _loader(rng, ahead)
    lines += _math(rng, ahead, persistent and q > 1 and over != " over Vs")
    text = f"wg 1\nschedule drawn{seed} for attention on sm_90a {{\n" + "\n".join(lines) + "\n}\n"
    options = {"causal": causal, "lse": rng.random() < 0.7}
    return Drawn(
        seed=seed, program="attention", text=text, dims={"D": d, "E": d}, options=options, dtype=rng.choice(("bf16", "f16"))
    )


def _ring(n: int) -> str:
    return f" ring {n}" if n > 1 else ""


def _loader(rng: Random, ahead: bool) -> list[str]:
    if rng.random() < 0.4:
        return [f"load {{ fill Qs for j {{ fill Ks[{'j+1' if ahead else 'j'}] fill Vs[j] }} }}"]
    return [f"load {{ fill Qs.0 for j {{ fill Ks[{'j+1' if ahead else 'j'}] once {{ fill Qs.rest }} fill Vs[j] }} }}"]


def _math(rng: Random, ahead: bool, deferred: bool) -> list[str]:
    rescale = f"rescale O{rng.choice(('', ' when grown by 8', ' when grown by 2'))}"
    turn = rng.choice(("", "issues", "issues", "compute"))
    await_store = ["once { await Os }"] if deferred and rng.random() < 0.5 else []
    out = "finish O, L via Os"
    if ahead:
        first, second = "issue S[j+1] = wgmma(Qs, Ks[j+1])", "issue O += wgmma(P[j], Vs[j])"
        both = [first, second] if rng.random() < 0.7 else [second, first]
        issues = ["in turn {", *both, "}"] if turn == "issues" else both
        compute = ["in turn {", "compute P[j+1]", "}"] if turn == "compute" else ["compute P[j+1]"]
        body = [*issues, *await_store, "await S[j+1]", *compute, "await O[j]", "pack P[j+1]", rescale]
    else:
        issue = ["in turn {", "issue S[j] = wgmma(Qs, Ks[j])", "}"] if turn == "issues" else ["issue S[j] = wgmma(Qs, Ks[j])"]
        compute = ["in turn {", "compute P[j]", "}"] if turn == "compute" else ["compute P[j]"]
        after = [rescale, "pack P[j]"] if rng.random() < 0.5 else ["pack P[j]", rescale]
        body = [*issue, *await_store, "await S[j]", *compute, *after, "issue O += wgmma(P[j], Vs[j])", "await O[j]"]
    return ["math {", "await Qs", "for j {", *body, "}", out, "}"]


def _gemm(rng: Random, seed: int) -> Drawn:
    groups, n, k = rng.choice((1, 2, 2, 3)), rng.choice((64, 128, 192, 256)), rng.choice((32, 64, 64, 128))
    depth, persistent = rng.choice((1, 2, 3, 4, 5)), rng.random() < 0.5
    load, math = REGISTERS[groups]
    behind = rng.choice(("k", "k-1", "k-1")) if depth > 1 else "k"
    lines = [
        f"tile i {64 * groups}, n {n}, k {k}",
        "stream k",
        f"grid {'persistent ' if persistent else ''}over {rng.choice(('(i, n)', '(n, i)'))}",
        f"role load : 1 warpgroup, registers {load}",
        f"role math : {groups} warpgroups, registers {math}{', split i' if groups > 1 else ''}",
        f"smem As = A[i, k] by tma{_ring(depth)}",
        f"smem Bs = B[n, k] by tma{_ring(depth)}",
        f"smem Cs = C[i, n] by tma{rng.choice(('', '', ' over As'))}",
        rng.choice(("load { for k { fill As[k], Bs[k] } }", "load { for k { fill As[k] fill Bs[k] } }")),
        f"math {{ for k {{ issue Acc += wgmma(As[k], Bs[k]) await Acc[{behind}] }} finish C via Cs }}",
    ]
    text = f"wg 1\nschedule drawn{seed} for gemm on sm_90a {{\n" + "\n".join(lines) + "\n}\n"
    options = {"layout": "nk", "bias": rng.random() < 0.5, "act": rng.choice(("none", "relu", "gelu_tanh"))}
    return Drawn(seed=seed, program="gemm", text=text, dims={}, options=options, dtype=rng.choice(("bf16", "f16")))
