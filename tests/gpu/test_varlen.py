"""Packed sequences on a GPU: each as if it were alone, whatever lies beside it, wherever it lies."""

from __future__ import annotations

import pytest

from tests.examples.test_varlen import PATH, SCHEDULES
from wgdsl.driver import compile

torch = pytest.importorskip("torch")
from tests.gpu.support import Guarded, randn  # noqa: E402

pytestmark = pytest.mark.gpu
ROWS, KEYS = [0, 1, 0, 1, 130, 1000, 64, 513], [0, 3, 5, 0, 77, 1024, 129, 2000]


def offsets(lengths: list[int], first: int = 0) -> torch.Tensor:
    return torch.tensor([first, *lengths], device="cuda").cumsum(0).int()


def made(schedule: str, target: str, causal: bool, d: int):
    return compile(
        PATH, schedule=schedule, target=target, dims={"D": d, "E": d}, types={"T": "bf16"}, options={"causal": causal}
    )  # fmt: skip


@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("schedule", "target"), SCHEDULES)
def test_each_sequence_as_if_alone(schedule, target, causal, d):
    run, around = made(schedule, target, causal, d), 300
    cu_q, cu_k = offsets(ROWS, around), offsets(KEYS, around)
    shape = lambda lengths, h: (sum(lengths) + 2 * around, h, d)  # noqa: E731
    q, k, v = (randn(*shape(n, h), dtype="bf16", seed=s) for s, (n, h) in enumerate(((ROWS, 8), (KEYS, 2), (KEYS, 2))))
    dims = {"G": 2, "R": 4}
    o, lse = Guarded(q.shape, "bf16"), Guarded((8, len(q)), "f32")
    out = {"O": o.array, "L": lse.array}
    run(Q=q, K=k, V=v, cu_q=cu_q, cu_k=cu_k, **dims, LongestQ=max(ROWS), LongestK=max(KEYS), out=out)
    assert o.untouched() and lse.untouched()
    inside = slice(around, around + sum(ROWS))
    for array, axis in ((o.array, 0), (lse.array, 1)):
        others = torch.cat([array.narrow(axis, 0, around), array.narrow(axis, inside.stop, around)], axis)
        assert torch.isnan(others).all() and not torch.isnan(array.narrow(axis, around, sum(ROWS))).any()
    for b, (m, n) in enumerate(zip(ROWS, KEYS, strict=True)):
        if not m:
            continue
        mine, keys = slice(*cu_q[b : b + 2].tolist()), slice(*cu_k[b : b + 2].tolist())
        poisoned = [torch.full_like(t, float("nan")) for t in (q, k, v)]
        for t, p, at in zip((q, k, v), poisoned, (mine, keys, keys), strict=True):
            p[at] = t[at]
        sizes = {**dims, "LongestQ": max(m, 1), "LongestK": max(n, 1)}
        alone = run(Q=q, K=poisoned[1], V=poisoned[2], cu_q=cu_q, cu_k=cu_k, **sizes)
        assert torch.equal(alone.O[mine], o.array[mine]) and torch.equal(alone.L[:, mine], lse.array[:, mine])
        # a warp whose rows aren't all finite computes exponents in another order
        alone = run(**dict(zip("QKV", poisoned, strict=True)), cu_q=cu_q, cu_k=cu_k, **sizes)
        torch.testing.assert_close(alone.L[:, mine], lse.array[:, mine], rtol=2e-6, atol=2e-6)
        torch.testing.assert_close(alone.O[mine], o.array[mine], rtol=2**-7, atol=2**-12)


@pytest.mark.parametrize(("schedule", "target"), SCHEDULES)
def test_b21_a_sequence_that_lies_past_2_to_31_elements(schedule, target):
    if torch.cuda.mem_get_info()[0] < 24 << 30:
        pytest.skip("needs 24 GB of free memory")
    run, d, h = made(schedule, target, True, 128), 128, 16
    lengths = [2**20, 300, 1000]  # the first alone has 2^31 elements: no row of it is asked for
    rows = sum(lengths)
    q, k, v = (randn(rows, h, d, dtype="bf16", seed=s) for s in range(3))
    cu = offsets(lengths[1:], lengths[0])
    got = run(Q=q, K=k, V=v, cu_q=cu, cu_k=cu, G=h, R=1, LongestQ=1000, LongestK=1000)
    tail = slice(lengths[0], rows)
    small = {n: t[tail].contiguous() for n, t in zip("QKV", (q, k, v), strict=True)}
    want = run(**small, cu_q=cu - lengths[0], cu_k=cu - lengths[0], G=h, R=1, LongestQ=1000, LongestK=1000)
    assert torch.equal(got.O[tail], want.O) and torch.equal(got.L[:, tail], want.L) and torch.isfinite(want.O).all()
