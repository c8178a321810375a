"""Attention forward beside FlashAttention-3, FlashAttention-2 and cuDNN: same inputs, same process, turn and turn about.

Sizes: batch * length = 16384 and heads * head dim = 2048. TFLOP/s count 4 * b * h * s * s * d operations, half of them under
a causal mask. Ratios above 1 mean faster than the peer.

    python bench/attention_vs_peers.py --fa3-site DIR                       # the schedules that are chosen
    python bench/attention_vs_peers.py --fa3-site DIR --schedule fa3 --schedule my.wg --lengths 4096,16384

DIR holds `flash_attn_3/_C.so`, a build of FlashAttention-3 against torch's stable ABI, and, if that needs one,
`lib/libcudart.so.12`. Without it only cuDNN is a peer.
"""

from __future__ import annotations

import argparse
import ctypes
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import measure

PROGRAM = Path(__file__).parents[1] / "examples" / "attention" / "attention.wg"
TOKENS, WIDTH = 16384, 2048
PEER_SLACK, OWN_SLACK = 4.0, 2.0  # times the error that rounding to the dtype alone makes


@dataclass(frozen=True)
class Case:
    """One configuration: head dim, dtype name, mask, length."""

    d: int
    dtype: str
    causal: bool
    s: int

    @property
    def name(self) -> str:
        return f"d{self.d} {self.dtype} {'causal' if self.causal else 'full'} {self.s}"

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return TOKENS // self.s, self.s, WIDTH // self.d, self.d

    @property
    def work(self) -> float:
        b, s, h, d = self.shape
        return 4.0 * b * h * s * s * d * (0.5 if self.causal else 1.0)


def cases(given: argparse.Namespace) -> Iterator[Case]:
    for d in given.head_dims:
        for dtype in given.dtypes:
            for mask in given.masks:
                for s in given.lengths:
                    yield Case(d, dtype, mask == "causal", s)


def torch_dtype(name: str):
    import torch

    return {"f16": torch.float16, "bf16": torch.bfloat16}[name]


def reference_parts(case: Case, q, k, v) -> list[tuple[object, object, float]]:
    """Some query rows of some heads in float64, and the error there of rounding exp(x - rowmax) and the result."""
    import torch

    batch, length, heads, _ = case.shape
    rows = torch.unique(torch.cat([torch.arange(64), torch.randint(length, (128,)), length - 1 - torch.arange(64)])).cuda()
    parts = []
    for b, h in {(0, 0), (batch - 1, heads - 1), (batch // 2, heads // 3)}:
        keys, values = k[b, :, h].double(), v[b, :, h].double()
        x = q[b, rows, h].double() @ keys.T * case.d**-0.5
        if case.causal:
            x.masked_fill_(rows[:, None] < torch.arange(length, device="cuda")[None], float("-inf"))
        p = torch.exp(x - x.max(1, keepdim=True).values)
        total = p.sum(1, keepdim=True)
        exact = p @ values / total
        rounded = (p.to(q.dtype).double() @ values / total).to(q.dtype).double()
        parts.append(((b, rows, h), exact, float((rounded - exact).abs().max())))
    return parts


def load_fa3(site: Path) -> Callable[..., tuple]:
    """The forward operator of a build of FlashAttention-3."""
    import torch

    runtime = site / "lib" / "libcudart.so.12"
    if runtime.exists():
        ctypes.CDLL(str(runtime))
    torch.ops.load_library(str(site / "flash_attn_3" / "_C.so"))
    return torch.ops.flash_attn_3.fwd


def fa3(case: Case, q, k, v, site: Path) -> Callable[[], object]:
    forward = load_fa3(site)
    return lambda: forward(q, k, v, softmax_scale=case.d**-0.5, is_causal=case.causal, num_splits=1)[0]


def torchs(case: Case, q, k, v, backend: str) -> Callable[[], object]:
    """torch's scaled dot product attention by one of its backends."""
    import torch

    attend, kernels = torch.nn.functional.scaled_dot_product_attention, torch.nn.attention
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    chosen = getattr(kernels.SDPBackend, backend)

    def call():
        with torch.no_grad(), kernels.sdpa_kernel(chosen):
            return attend(q, k, v, is_causal=case.causal).transpose(1, 2)

    return call


BACKENDS = {"cuDNN": "CUDNN_ATTENTION", "FA2": "FLASH_ATTENTION"}


def kernel_of(case: Case, schedule: str | None, target: str):
    """A kernel by a schedule; without one by what is chosen for the case."""
    import wgdsl

    kernel = wgdsl.compile(
        PROGRAM,
        schedule=schedule,
        target=target,
        dims={"D": case.d, "E": case.d},
        types={"T": case.dtype},
        options={"causal": case.causal, "lse": False},
    )
    b, s, h, _ = case.shape
    return kernel if schedule else kernel.pick(B=b, G=h, R=1, M=s, N=s).build()


def ahead(given: argparse.Namespace) -> None:
    """Compile all kernels in processes, so that the GPU's time isn't spent on it. What fails does so again in its turn."""
    jobs = [(c, s, given.target) for c in cases(given) for s in given.schedule or [None]]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for job in [pool.submit(kernel_of, *j) for j in jobs]:
            job.exception()


def own(case: Case, q, k, v, schedule: str | None, target: str) -> Callable[[], object]:
    import torch

    kernel = kernel_of(case, schedule, target)
    out = torch.full_like(q, float("nan"))

    def call():
        kernel(Q=q, K=k, V=v, out={"O": out})
        return out

    return call


def contestants(given: argparse.Namespace) -> tuple[dict[str, Callable], list[str]]:
    """Name -> builder of (case, q, k, v); and which of them are peers."""
    peers: dict[str, Callable] = {name: partial(torchs, backend=BACKENDS[name]) for name in given.peers}
    if given.fa3_site:
        peers = {"FA3": partial(fa3, site=given.fa3_site), **peers}
    named = {f"wgdsl {s}" if s else "wgdsl": s for s in given.schedule or [None]}
    ours = {name: partial(own, schedule=s, target=given.target) for name, s in named.items()}
    return {**peers, **ours}, list(peers)


def work_through(given: argparse.Namespace, journal: measure.Journal) -> None:
    import torch

    everyone, peers = contestants(given)
    done = {row["case"] for row in journal.rows}
    for number, case in enumerate(cases(given)):
        if case.name in done:
            continue
        torch.manual_seed(given.seed + number)
        q, k, v = (torch.randn(case.shape, device="cuda").to(torch_dtype(case.dtype)) for _ in range(3))
        parts = reference_parts(case, q, k, v)
        builders = {who: partial(build, case, q, k, v) for who, build in everyone.items()}
        measure.run_case(
            journal,
            case.name,
            builders,
            lambda who, call, parts=parts: measure.proven(call, parts, PEER_SLACK if who in peers else OWN_SLACK),
            given,
            case.work,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(x) for x in text.split(",")]  # noqa: E731
    words = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("--fa3-site", type=Path, metavar="DIR")
    parser.add_argument("--peers", type=words, default=["cuDNN"], metavar="cuDNN,FA2", help="backends of torch")
    parser.add_argument("--head-dims", type=numbers, default=[128, 64], metavar="D,...")
    parser.add_argument("--lengths", type=numbers, default=[1024, 4096, 16384], metavar="S,...")
    parser.add_argument("--masks", type=words, default=["full", "causal"], metavar="full,causal")
    parser.add_argument("--dtypes", type=words, default=["bf16"], metavar="bf16,f16")
    given = measure.arguments(parser)
    if given.child:
        return work_through(given, measure.begin(given))
    everyone, peers = contestants(given)
    ahead(given)
    measure.report(measure.supervise(given), list(everyone), peers, given.json)


if __name__ == "__main__":
    main()
