"""Arrays for the GPU tests: random inputs as torch tensors, outputs between canaries, verdicts in float64."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch

from wgdsl.foundation.dtypes import DTYPES as wgdsl_types
from wgdsl.reference.products import NO_EXPONENT
from wgdsl.targets.wgmma import SHORT_BITS, SHORT_STEP
from wgdsl.tools.judge import judge

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
DTYPES |= {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": torch.relu,
    "silu": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
}
CANARY, PAD = 0x5A, 4096  # a byte, and how many of them lie on each side of an output


def to_numpy(t: torch.Tensor) -> np.ndarray:
    from wgdsl.runtime.arrays import to_numpy as convert

    return convert("t", t)


def randn(*shape: int, dtype: str, seed: int) -> torch.Tensor:
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(shape, device="cuda", generator=generator).to(DTYPES[dtype])


@contextmanager
def captured() -> Iterator[torch.cuda.CUDAGraph]:
    """A graph of what the block launches. One that fails leaves torch on the stream of the capture, and its random numbers
    waiting for the end of it: here the tests that follow find both as they were."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    state = generator.clone_state()
    torch.cuda.synchronize()
    try:
        with torch.cuda.graph(graph):
            yield graph
    except BaseException:
        torch.cuda.set_stream(stream)
        generator.graphsafe_set_state(state)
        raise


def saturated(x: torch.Tensor, dtype: str) -> torch.Tensor:
    """Rounded to a type, and back: to those of 8 bits what is too large becomes the largest."""
    largest = wgdsl_types[dtype].largest
    return (x if largest is None else x.clamp(-largest, largest)).to(DTYPES[dtype]).double()


def short_sums(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b.T as the matrix engine adds up products of 8 bits (`wgdsl.reference.products`)."""
    a, b = a.double(), b.double()
    total = torch.zeros(len(a), len(b), dtype=torch.float64, device=a.device)
    a_exponent, b_exponent = _exponents(a), _exponents(b)
    for start in range(0, a.shape[1], SHORT_STEP):
        inner = range(start, min(start + SHORT_STEP, a.shape[1]))
        top = _exponents(total)
        for k in inner:
            top = torch.maximum(top, a_exponent[:, k, None] + b_exponent[None, :, k])
        unit = _unit(top)
        total = torch.trunc(total / unit)
        for k in inner:
            total += torch.trunc(a[:, k, None] * (b[None, :, k] / unit))
        total *= unit
        unit = _unit(_exponents(total))
        total = torch.trunc(total / unit) * unit
    return total


def _exponents(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x == 0, 2 * NO_EXPONENT, torch.frexp(x)[1] - 1)


def _unit(exponents: torch.Tensor) -> torch.Tensor:
    return torch.ldexp(
        torch.ones(exponents.shape, dtype=torch.float64, device=exponents.device), exponents.clamp(min=NO_EXPONENT) - SHORT_BITS
    )


class Guarded:
    """An output filled with NaN, with canaries before and after it."""

    def __init__(self, shape: tuple[int, ...], dtype: str):
        element = DTYPES[dtype]
        count = int(np.prod(shape)) * element.itemsize
        self.memory = torch.full((count + 2 * PAD,), CANARY, dtype=torch.uint8, device="cuda")
        self.count = count
        self.array = self.memory[PAD : PAD + count].view(element).view(shape)
        self.array.fill_(float("nan"))

    def untouched(self) -> bool:
        """Whether nobody wrote beside it."""
        around = torch.cat([self.memory[:PAD], self.memory[PAD + self.count :]])
        return bool((around == CANARY).all())


@dataclass(frozen=True)
class Attention:
    """Lengths and counts of one call."""

    b: int
    g: int
    r: int
    m: int
    n: int

    def inputs(self, d: int, e: int, dtype: str, seed: int) -> dict[str, torch.Tensor]:
        return {
            "Q": randn(self.b, self.m, self.g * self.r, d, dtype=dtype, seed=seed),
            "K": randn(self.b, self.n, self.g, d, dtype=dtype, seed=seed + 1),
            "V": randn(self.b, self.n, self.g, e, dtype=dtype, seed=seed + 2),
        }

    def outputs(self, e: int, dtype: str, lse: bool = True) -> dict[str, Guarded]:
        out = {"O": Guarded((self.b, self.m, self.g * self.r, e), dtype)}
        return out | ({"L": Guarded((self.b, self.g * self.r, self.m), "f32")} if lse else {})


def attention_cases(count: int, seed: int) -> list[Attention]:
    """Odd lengths, ones and zeros among them."""
    rng = random.Random(seed)

    def length() -> int:
        return rng.choice([0, 1, 2, 63, 64, 65, 127, 128, 129, 255, 256, 257, rng.randint(1, 700), rng.randint(1, 700)])

    return [Attention(rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 4), length(), length()) for _ in range(count)]


@dataclass
class Tally:
    """The largest error over many runs, and which of them were beyond their bar."""

    largest: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def add(self, what: object, got: torch.Tensor, exact: torch.Tensor, rounded: torch.Tensor) -> None:
        """Results of 16 and 8 bits: twice the error that rounding makes, and 1e-5 of the largest value. f32: 1e-4 and 2e-6 of
        each, or twice the error that rounding makes if that is larger."""
        if not got.numel():
            return
        wide, got = got.dtype is torch.float32, got.double()
        finite = torch.isfinite(exact)
        same = torch.equal(got[~finite], exact[~finite]) and bool(torch.isfinite(got[finite]).all())
        off = torch.where(finite, (got - exact).abs(), 0.0)
        slack = torch.where(finite, (rounded - exact).abs(), 0.0).max()
        if wide:
            allowed = torch.maximum(1e-4 + 2e-6 * exact.abs(), 2 * slack)
        else:
            allowed = 2 * slack + 1e-5 * exact[finite].abs().max() if bool(finite.any()) else torch.zeros((), device=got.device)
        worst = float(off.max()) if same else float("inf")
        self.largest = max(self.largest, worst)
        if not same or bool((finite & (off > allowed)).any()):
            self.wrong.append(f"{what}: error {worst:.3g}, allowed {float(allowed.max()):.3g}")


def attention_reference(q, k, v, causal: bool) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Output -> (exact, rounded): in float64; with exp(x - row maximum) and the result rounded to the type of V."""
    heads = q.shape[2] // max(k.shape[2], 1)
    kk, vv = (t.double().repeat_interleave(heads, 2) for t in (k, v))
    m, n = q.shape[1], k.shape[1]
    x = torch.einsum("bmhd,bnhd->bhmn", q.double(), kk) * float(np.float32(q.shape[-1] ** -0.5))
    if causal:
        hidden = torch.arange(n, device="cuda")[None] > torch.arange(m, device="cuda")[:, None] + n - m
        x = x.masked_fill(hidden, -float("inf"))
    top = x.amax(-1, keepdim=True) if n else torch.full((*x.shape[:3], 1), -float("inf"), device="cuda", dtype=torch.float64)
    p = torch.exp(x - torch.where(torch.isinf(top), 0.0, top))
    total = p.sum(-1, keepdim=True)
    inverse = torch.where(total > 0, 1 / total, 0.0)

    def result(weights: torch.Tensor) -> torch.Tensor:
        return (torch.einsum("bhmn,bnhe->bhme", weights, vv) * inverse).transpose(1, 2)

    rows = (torch.where(total > 0, top + torch.log(total), -float("inf")))[..., 0]
    return {"O": (result(p), result(p.to(v.dtype).double()).to(v.dtype).double()), "L": (rows, rows)}


def worst(kernel, inputs: dict[str, torch.Tensor], outputs: dict[str, torch.Tensor], **named) -> tuple[float, list]:
    """The largest error among the outputs, and the verdicts."""
    given = kernel.interface.sort((), {**inputs, **named}, None)
    bound = kernel.bound(given)
    arrays = {name: to_numpy(t) for name, t in inputs.items()}
    results = {name: to_numpy(t) for name, t in outputs.items()}
    verdicts = judge(kernel.graph, arrays, bound.scalars, bound.dims, results, kernel.approximated)
    return max((v.error for v in verdicts), default=0.0), verdicts
