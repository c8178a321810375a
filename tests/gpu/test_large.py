"""Large arrays and grids on a GPU, under schedules of both targets: the hand-over cases B21 and B22 at their sizes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from tests.gpu.support import DTYPES, Tally, attention_reference, randn  # noqa: E402
from tests.handover.running import made, program  # noqa: E402

pytestmark = pytest.mark.gpu
TABLE = program(where="keep[i,j]", declared="in keep: bool[M, N]")
on_schedules = pytest.mark.parametrize("schedule", ["fa3", "fa2"])


def needs(gigabytes: int) -> None:
    if torch.cuda.mem_get_info()[0] < gigabytes << 30:
        pytest.skip(f"needs {gigabytes} GB of free memory")


def alone(kernel, inputs: dict[str, torch.Tensor], got, part: slice) -> None:
    """Some batches of a call, as if run alone on contiguous copies."""
    want = kernel(**{name: t[part].contiguous() for name, t in inputs.items()})
    assert torch.equal(got.O[part], want.O) and torch.equal(got.L[part], want.L) and torch.isfinite(want.O).all()


@pytest.mark.parametrize("b", [699, 700])
@pytest.mark.parametrize("schedule", ["fa3", "fa2_narrow"])
def test_b21_keys_of_which_the_last_lie_past_2_to_31_elements(schedule, b):
    """Stored [N, B, D] and seen as [B, N, 1, D]."""
    needs(24)
    n, d, m = 24000, 128, 256
    kernel = made(program(), schedule, "bf16", d=d)
    inputs = {t: randn(n, b, 1, d, dtype="bf16", seed=k).transpose(0, 1) for k, t in enumerate("KV")}
    inputs["Q"] = randn(b, m, 1, d, dtype="bf16", seed=3)
    got = kernel(**inputs)
    for batch in (0, b // 2, b - 1):
        alone(kernel, inputs, got, slice(batch, batch + 1))


@on_schedules
@pytest.mark.parametrize("n", [46340, 46341])
def test_b21_a_table_of_more_than_2_to_31_elements(schedule, n):
    """The last rows see by the table's last elements."""
    needs(8)
    kernel = made(TABLE, schedule, "bf16")
    inputs = {t: randn(1, n, 1, 64, dtype="bf16", seed=k) for k, t in enumerate("QKV")}
    keep = torch.zeros(n, n, dtype=torch.bool, device="cuda")
    keep.view(-1)[::3] = True
    got = kernel(**inputs, keep=keep)
    for rows in (slice(0, 100), slice(n - 100, n)):
        want = kernel(Q=inputs["Q"][:, rows].contiguous(), K=inputs["K"], V=inputs["V"], keep=keep[rows].contiguous())
        assert torch.equal(got.O[:, rows], want.O) and torch.equal(got.L[:, :, rows], want.L)


@pytest.mark.parametrize("schedule", ["fa3", "fa2_wide"])
def test_b21_more_than_2_to_31_bytes(schedule):
    """[1600, 16, 729, 72]: the last batch, the last head among them."""
    needs(16)
    kernel = made(program(), schedule, "bf16", d=72)
    inputs = {t: randn(1600, 16, 729, 72, dtype="bf16", seed=k).transpose(1, 2) for k, t in enumerate("QKV")}
    got = kernel(**inputs)
    for part in (slice(0, 1), slice(1599, 1600)):
        alone(kernel, inputs, got, part)


@on_schedules
@pytest.mark.parametrize("b, h, s", [(65536, 1, 8), (1, 65536, 8), (256, 256, 8), (65535, 1, 8), (32768, 4, 3)])
def test_b22_many_batches_and_heads(schedule, b, h, s):
    """Every element is written, and right."""
    kernel = made(program(), schedule, "f16", d=16)
    inputs = {t: randn(b, s, h, 16, dtype="f16", seed=k) for k, t in enumerate("QKV")}
    out = {"O": torch.full((b, s, h, 16), float("nan"), dtype=DTYPES["f16"], device="cuda")}
    out["L"] = torch.full((b, h, s), float("nan"), device="cuda")
    kernel(**inputs, out=out)
    assert torch.isfinite(out["O"]).all() and torch.isfinite(out["L"]).all()
    tally = Tally()
    for name, (exact, rounded) in attention_reference(*inputs.values(), causal=False).items():
        tally.add(name, out[name], exact, rounded)
    assert tally.wrong == []
