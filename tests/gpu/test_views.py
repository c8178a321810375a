"""Views of every kind: right without a copy, or refused by name. Aliases, large offsets."""

from __future__ import annotations

import pytest

import wgdsl
from wgdsl.foundation.resources import resource

torch = pytest.importorskip("torch")
from tests.gpu.support import Attention  # noqa: E402

pytestmark = pytest.mark.gpu
PROGRAM = resource("examples", "attention", "attention.wg")
CASE = Attention(2, 4, 1, 150, 150)


@pytest.fixture(scope="module")
def kernel():
    return wgdsl.compile(PROGRAM, schedule="fa3", dims={"D": 64, "E": 64}, types={"T": "bf16"})


@pytest.fixture
def inputs():
    return CASE.inputs(64, 64, "bf16", 1)


def within(t: torch.Tensor, axis: int, room: int) -> torch.Tensor:
    """The same elements as a slice of a longer buffer, whose rest is NaN."""
    shape = list(t.shape)
    shape[axis] += room
    buffer = torch.full(shape, float("nan"), dtype=t.dtype, device="cuda")
    buffer.narrow(axis, 0, t.shape[axis]).copy_(t)
    return buffer.narrow(axis, 0, t.shape[axis])


VIEWS = {
    "heads before rows": lambda t: t.transpose(1, 2).contiguous().transpose(1, 2),
    "rows before the batch": lambda t: t.transpose(0, 1).contiguous().transpose(0, 1),
    "a part of longer rows": lambda t: within(t, 3, 16),
    "a part of a longer cache": lambda t: within(t, 1, 500),
    "some of the heads": lambda t: within(t, 2, 3),
    "every other row": lambda t: t.repeat_interleave(2, 1)[:, ::2],
    "shifted by eight elements": lambda t: torch.cat([t.flatten()[:8], t.flatten()])[8:].view(t.shape),
}


@pytest.mark.parametrize("names", ["Q", "K", "V", "QKV"])
@pytest.mark.parametrize("view", VIEWS)
def test_views_compute_the_same(kernel, inputs, view, names):
    want = kernel(**inputs)
    given = {name: VIEWS[view](t) if name in names else t for name, t in inputs.items()}
    assert all(torch.equal(given[n], inputs[n]) for n in inputs)
    got = kernel(**given)
    assert torch.equal(got.O, want.O) and torch.equal(got.L, want.L)


def test_views_of_every_shape_in_turn(kernel, inputs):
    """Plans of one layout aren't taken for another's."""
    want = kernel(**inputs).O
    for _ in range(3):
        for make in VIEWS.values():
            assert torch.equal(kernel(**{name: make(t) for name, t in inputs.items()}).O, want)


def test_one_tensor_as_all_inputs(kernel, inputs):
    q = inputs["Q"]
    want = kernel(Q=q, K=q.clone(), V=q.clone()).O
    assert torch.isfinite(want).all()
    for _ in range(3):
        assert torch.equal(kernel(Q=q, K=q, V=q).O, want)


def test_slices_of_one_projection(kernel):
    packed = torch.randn(2, 150, 3, 4, 64, device="cuda").bfloat16()
    q, k, v = packed.unbind(2)
    want = kernel(Q=q.clone(), K=k.clone(), V=v.clone()).O
    assert torch.equal(kernel(Q=q, K=k, V=v).O, want)
    room = torch.full((2, 150, 4, 4, 64), float("nan"), device="cuda").bfloat16()
    room[:, :, :3] = packed
    q, k, v, o = room.unbind(2)
    kernel(Q=q, K=k, V=v, out={"O": o})  # between its inputs, but on none of them
    assert torch.equal(o, want) and torch.equal(room[:, :, :3], packed)


def test_an_output_on_an_input_is_refused(kernel, inputs):
    before = {name: t.clone() for name, t in inputs.items()}
    room = torch.zeros(2, 151, 4, 64, dtype=torch.bfloat16, device="cuda")
    for out, given in [
        (inputs["Q"], inputs),
        (inputs["V"], inputs),
        (room[:, 1:], {**inputs, "K": room[:, :150]}),
    ]:
        with pytest.raises(wgdsl.WgError, match="WG0625"):
            kernel(**given, out={"O": out})
    assert all(torch.equal(inputs[n], before[n]) for n in inputs)


def test_two_outputs_on_each_other_are_refused(kernel, inputs):
    memory = torch.zeros(2 * 150 * 4 * 64, dtype=torch.bfloat16, device="cuda")
    out = {"O": memory.view(2, 150, 4, 64), "L": memory.view(torch.float32)[: 2 * 4 * 150].view(2, 4, 150)}
    with pytest.raises(wgdsl.WgError, match="WG0625"):
        kernel(**inputs, out=out)


def test_broadcast_heads_and_batches(kernel, inputs):
    """Stride 0: right without a copy, or refused with the argument, the axis and what to do."""
    one = {name: t[:1, :, :1] for name, t in inputs.items()}
    dense = {name: t.expand(2, 150, 4, 64).contiguous() for name, t in one.items()}
    want = kernel(**dense).O
    given = {name: t.expand(2, 150, 4, 64) for name, t in one.items()}
    try:
        got = kernel(**given).O
    except wgdsl.WgError as e:
        assert "stride" in str(e) and "axis" in str(e) and "contiguous copy" in str(e)
        return
    assert torch.equal(got, want)


REFUSED = {
    "base": (
        lambda t: torch.cat([t.flatten()[:1], t.flatten()])[1:].view(t.shape),
        ["WG0609", "`K` starts 2 bytes", ".clone()"],
    ),
    "pitch": (lambda t: within(t, 3, 1), ["WG0608", "`K` along axis", "multiple of 16", "pad the rows"]),
    "innermost": (lambda t: torch.cat([t, t], -1)[..., ::2], ["WG0607", "stride 2 along axis 3", ".contiguous()"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_argument_the_number_and_the_cure(kernel, inputs, name):
    make, said = REFUSED[name]
    for _ in range(2):
        with pytest.raises(wgdsl.WgError) as e:
            kernel(**(inputs | {"K": make(inputs["K"])}))
        assert all(text in str(e.value) for text in said), str(e.value)


def test_offsets_past_2_to_31():
    """K and V stored [N, B, D]: the last batches begin beyond 2^31 elements of the buffer's start."""
    b, n, d = 700, 24000, 128
    if torch.cuda.get_device_properties(0).total_memory < 40 << 30:
        pytest.skip("needs 14 GB")
    kernel = wgdsl.compile(PROGRAM, schedule="fa3", dims={"D": d, "E": d}, types={"T": "bf16"})
    k, v = (torch.empty(n, b, d, dtype=torch.bfloat16, device="cuda").normal_() for _ in range(2))
    assert (n - 1) * b * d + (b - 1) * d > 2**31
    q = torch.randn(b, 16, 1, d, device="cuda").bfloat16()
    k, v = (t.view(n, b, 1, d).transpose(0, 1) for t in (k, v))
    got = kernel(Q=q, K=k, V=v)
    for batch in (0, 350, 698, 699):
        part = {"Q": q[batch : batch + 1], "K": k[batch : batch + 1].contiguous(), "V": v[batch : batch + 1].contiguous()}
        want = kernel(**{name: t.clone() for name, t in part.items()})
        assert torch.equal(got.O[batch], want.O[0]) and torch.equal(got.L[batch], want.L[0])


def test_an_output_past_2_to_31():
    """An output that lies spread over more than 2^31 elements, its last rows too."""
    b, m = 3, 130
    if torch.cuda.get_device_properties(0).total_memory < 40 << 30:
        pytest.skip("needs 7 GB")
    kernel = wgdsl.compile(PROGRAM, schedule="fa3", dims={"D": 64, "E": 64}, types={"T": "bf16"}, options={"lse": False})
    inputs = Attention(b, 1, 1, m, 70).inputs(64, 64, "bf16", 4)
    far = 1_100_000_000 // 64 * 64
    memory = torch.empty(2 * far + m * 64, dtype=torch.bfloat16, device="cuda")
    out = memory.as_strided((b, m, 1, 64), (far, 64, 64, 1))
    out.fill_(float("nan"))
    kernel(**inputs, out=out)
    assert torch.equal(out, kernel(**inputs))
