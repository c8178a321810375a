"""Arrays for the GPU tests: random inputs as torch tensors, outputs between canaries, verdicts in float64."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import torch

from wgdsl.tools.judge import judge

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
CANARY, PAD = 0x5A, 4096  # a byte, and how many of them lie on each side of an output


def to_numpy(t: torch.Tensor) -> np.ndarray:
    from wgdsl.runtime.arrays import to_numpy as convert

    return convert("t", t)


def randn(*shape: int, dtype: str, seed: int) -> torch.Tensor:
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(shape, device="cuda", generator=generator).to(DTYPES[dtype])


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

    def outputs(self, e: int, dtype: str) -> dict[str, Guarded]:
        return {
            "O": Guarded((self.b, self.m, self.g * self.r, e), dtype),
            "L": Guarded((self.b, self.g * self.r, self.m), "f32"),
        }


def attention_cases(count: int, seed: int) -> list[Attention]:
    """Odd lengths, ones and zeros among them."""
    rng = random.Random(seed)

    def length() -> int:
        return rng.choice([0, 1, 2, 63, 64, 65, 127, 128, 129, 255, 256, 257, rng.randint(1, 700), rng.randint(1, 700)])

    return [Attention(rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 4), length(), length()) for _ in range(count)]


def worst(kernel, inputs: dict[str, torch.Tensor], outputs: dict[str, torch.Tensor], **named) -> tuple[float, list]:
    """The largest error among the outputs, and the verdicts."""
    given = kernel.interface.sort((), {**inputs, **named}, None)
    bound = kernel.bound(given)
    arrays = {name: to_numpy(t) for name, t in inputs.items()}
    results = {name: to_numpy(t) for name, t in outputs.items()}
    verdicts = judge(kernel.graph, arrays, bound.scalars, bound.dims, results)
    return max((v.error for v in verdicts), default=0.0), verdicts
