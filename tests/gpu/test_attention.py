"""Every shipped attention schedule on a GPU: right numbers, nothing else written, the same twice."""

from __future__ import annotations

import pytest

import wgdsl
from tests.shipped import KERNELS, attention, field_ids

torch = pytest.importorskip("torch")
from tests.gpu.support import Attention, Tally, attention_cases, attention_reference, worst  # noqa: E402

pytestmark = pytest.mark.gpu
ATTENTION = [k for k in KERNELS if k.program.startswith("examples/attention/")]
RUNS = 100  # of each kernel


def run(kernel, case: Attention, inputs, e: int, dtype: str):
    outputs = case.outputs(e, dtype, lse="L" in kernel.interface.outputs)
    kernel(**inputs, out={name: o.array for name, o in outputs.items()})
    torch.cuda.synchronize()
    assert all(o.untouched() for o in outputs.values()), f"wrote beside an output: {case}"
    return {name: o.array for name, o in outputs.items()}


def bits(t):
    return t.contiguous().view(torch.uint8)


def compiled(schedule: str, d: int, dtype: str, causal: bool):
    return attention(schedule, causal, d, dtype=dtype).compile(build=True)


@pytest.mark.parametrize("shipped", ATTENTION, ids=field_ids(ATTENTION))
def test_random_lengths(record, shipped):
    kernel, fixed = shipped.compile(build=True), dict(shipped.dims)
    causal, tally = dict(shipped.options)["causal"], Tally()
    for seed, case in enumerate(attention_cases(RUNS, seed=fixed["D"] + causal)):
        inputs = case.inputs(fixed["D"], fixed["E"], shipped.dtype, 10 * seed)
        first, second = (run(kernel, case, inputs, fixed["E"], shipped.dtype) for _ in range(2))
        assert all(torch.equal(bits(first[n]), bits(second[n])) for n in first), f"two runs differ: {case}"
        wanted = attention_reference(inputs["Q"], inputs["K"], inputs["V"], causal)
        for name, got in first.items():
            tally.add((name, case), got, *wanted[name])
    record(kernel.cuda, shipped.name, tally.largest, runs=2 * RUNS)
    assert not tally.wrong, f"{len(tally.wrong)} wrong\n" + "\n".join(tally.wrong[:10])


def test_the_float64_evaluator_agrees():
    """The same bar, by the project's own reference."""
    kernel = compiled("fa3", 64, "bf16", True)
    for seed, case in enumerate([Attention(2, 2, 3, 200, 333), Attention(1, 1, 1, 129, 64)]):
        inputs = case.inputs(64, 64, "bf16", seed)
        _, verdicts = worst(kernel, inputs, run(kernel, case, inputs, 64, "bf16"))
        assert all(v.right for v in verdicts), verdicts


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("m, n", [(5, 0), (0, 5), (130, 64), (1, 20), (300, 1)])
def test_rows_without_a_key(m, n, causal):
    kernel, case = compiled("fa3", 64, "f16", causal), Attention(1, 1, 2, m, n)
    out = run(kernel, case, case.inputs(64, 64, "f16", 1), 64, "f16")
    empty = max(0, m - n) if causal else (m if n == 0 else 0)
    assert (out["O"][:, :empty] == 0).all() and (out["L"][:, :, :empty] == -float("inf")).all()
    assert torch.isfinite(out["L"][:, :, empty:]).all() and torch.isfinite(out["O"]).all()


@pytest.mark.parametrize("b, g, r", [(0, 1, 1), (2, 0, 1)])
def test_no_batch_and_no_heads(b, g, r):
    kernel, case = compiled("fa3", 64, "f16", False), Attention(b, g, r, 7, 9)
    out = kernel(**case.inputs(64, 64, "f16", 1))
    assert out.O.shape == (b, 7, g * r, 64) and out.L.shape == (b, g * r, 7)
    torch.cuda.synchronize()


def test_many_heads():
    kernel, case = compiled("fa3", 64, "f16", False), Attention(65536, 1, 1, 1, 3)
    inputs = case.inputs(64, 64, "f16", 3)
    out = run(kernel, case, inputs, 64, "f16")
    x = torch.einsum("bmhd,bnhd->bhmn", inputs["Q"].double(), inputs["K"].double()) / 8
    want = torch.einsum("bhmn,bnhd->bmhd", torch.softmax(x, -1), inputs["V"].double())
    assert (out["O"].double() - want).abs().max() < 4e-3


def test_transposed_and_fused_layouts():
    """[B, H, S, D] memory, and Q, K, V as slices of one array."""
    kernel, case = compiled("fa3", 64, "bf16", True), Attention(2, 3, 1, 150, 150)
    dense = case.inputs(64, 64, "bf16", 5)
    want = run(kernel, case, dense, 64, "bf16")
    swapped = {name: t.transpose(1, 2).contiguous().transpose(1, 2) for name, t in dense.items()}
    packed = torch.stack(list(dense.values()), dim=2)
    fused = {name: packed[:, :, k] for k, name in enumerate(dense)}
    for views in (swapped, fused):
        got = run(kernel, case, views, 64, "bf16")
        assert all(torch.equal(bits(got[n]), bits(want[n])) for n in want)


def test_output_in_another_layout():
    """[B, H, S, D] memory for the output; rows that the copy engine can't reach are refused by name."""
    kernel, case = compiled("simple", 64, "f16", False), Attention(2, 2, 1, 100, 90)
    inputs = case.inputs(64, 64, "f16", 6)
    want = run(kernel, case, inputs, 64, "f16")["O"]
    swapped = torch.full((2, 2, 100, 64), float("nan"), dtype=torch.float16, device="cuda").transpose(1, 2)
    kernel(**inputs, out={"O": swapped})
    assert torch.equal(swapped, want)
    wide = torch.full((2, 100, 2, 65), 7.0, dtype=torch.float16, device="cuda")
    with pytest.raises(wgdsl.WgError, match="`O` along axis"):
        kernel(**inputs, out={"O": wide[..., :64]})


def test_broadcast_heads():
    """Stride 0: right, or refused by name."""
    kernel, case = compiled("fa3", 64, "f16", False), Attention(1, 1, 8, 64, 96)
    inputs = case.inputs(64, 64, "f16", 7)
    want = run(kernel, case, inputs, 64, "f16")
    expanded = {"Q": inputs["Q"], **{n: inputs[n].expand(1, 96, 8, 64) for n in ("K", "V")}}
    try:
        got = kernel(**expanded)
    except wgdsl.WgError as e:
        assert "`K`" in str(e) and "axis 2" in str(e)
        return
    assert torch.equal(got.O, want["O"])
