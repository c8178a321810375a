"""Every shipped attention of 8 bits on a GPU: right, nothing else written, the same twice."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.shipped import KERNELS, field_ids

torch = pytest.importorskip("torch")
from tests.gpu.support import Guarded, to_numpy  # noqa: E402
from wgdsl.tools.judge import judge  # noqa: E402

pytestmark = pytest.mark.gpu
RUNS = 20  # of each kernel
EIGHT = [k for k in KERNELS if k.program.startswith("examples/attention_eight_bits")]


def lengths(count: int, seed: int, turned: bool) -> list[tuple[int, ...]]:
    """Batches, key heads, query heads of each, queries and keys: rows of values are the copy engine's, 16 bytes at a time."""
    rng = random.Random(seed)
    keys = (
        [0, 16, 80, 96, 112, 128, 144, 256, 272, 16 * rng.randint(1, 60)]
        if turned
        else [0, 1, 95, 127, 129, rng.randint(1, 900)]
    )
    rows = [0, 1, 63, 64, 65, 128, 191, 192, 193, rng.randint(1, 900)]
    return [(rng.randint(1, 2), rng.randint(1, 2), rng.randint(1, 3), rng.choice(rows), rng.choice(keys)) for _ in range(count)]


@pytest.mark.parametrize("shipped", EIGHT, ids=field_ids(EIGHT))
def test_random_lengths(record, shipped):
    kernel, d, largest, wrong = shipped.compile(build=True), dict(shipped.dims)["D"], 0.0, []
    turned = "values" not in dict(shipped.options)
    for seed, (b, g, r, m, n) in enumerate(lengths(RUNS, 13, turned)):
        generator = torch.Generator("cuda").manual_seed(seed)
        shapes = {"Q": (b, m, g * r, d), "K": (b, n, g, d), "V": (b, g, d, n) if turned else (b, n, g, d)}
        made = {x: torch.randn(s, device="cuda", generator=generator).to(torch.float8_e4m3fn) for x, s in shapes.items()}
        made |= {x: torch.rand(b, g, device="cuda", generator=generator) + 0.5 for x in "qkv"}
        outs = []
        for _ in range(2):
            out = {"O": Guarded((b, m, g * r, d), shipped.types["U"]), "L": Guarded((b, g * r, m), "f32")}
            kernel(**made, out={name: x.array for name, x in out.items()})
            torch.cuda.synchronize()
            assert all(x.untouched() for x in out.values()), f"wrote beside the result: {(b, g, r, m, n)}"
            outs.append(out)
        assert all(torch.equal(outs[0][x].memory, outs[1][x].memory) for x in "OL"), f"two runs differ: {(b, g, r, m, n)}"
        arrays = {name: to_numpy(x) for name, x in made.items()}
        dims = {"B": b, "G": g, "R": r, "M": m, "N": n}
        scale = {"scale": float(np.float32(d**-0.5))}
        found = judge(kernel.graph, arrays, scale, dims, {name: to_numpy(x.array) for name, x in outs[0].items()})
        largest = max(largest, *(v.error for v in found))
        wrong += [f"{(b, g, r, m, n)}: {v}" for v in found if not v.right]
    record(kernel.cuda, shipped.name, largest, runs=2 * RUNS)
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong[:10])
