"""Views of public bug reports: every tensor with strides of its own, and one memory for several (B23), axes of stride 0 and
negative strides (B24), and the rules of 16 bytes (B25). What a launch refuses is asked of a driver made of Python."""

from __future__ import annotations

import numpy as np
import pytest

import wgdsl
from tests.handover.launches import launched, viewed
from tests.handover.reference import attention, hashed, qkv
from tests.handover.running import DEVICES, SCHEDULES, SCORE, attend, call, made, program, rows_first

on_schedules = pytest.mark.parametrize("schedule", SCHEDULES)
on_devices = pytest.mark.parametrize("device", DEVICES)
WIDE = {"fa3": "fa3", "fa2": "fa2_narrow"}  # for head dim 128
PLAIN = program()


def same(kernel, device: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The results on views, which are those on contiguous copies bit for bit."""
    got = call(kernel, device, arrays)
    for name, dense in call(kernel, device, {n: np.ascontiguousarray(x) for n, x in arrays.items()}).items():
        assert np.array_equal(got[name], dense), name
    return got


@on_devices
@on_schedules
def test_b23_values_alone_are_a_view(schedule, device):
    """Q and K are contiguous [B, H, S, D]; V is [B, S, H D] seen as that."""
    q, k = (hashed(seed, (1, 16, 62, 128), dtype="bf16") for seed in (1, 2))
    v = hashed(3, (1, 62, 16 * 128), dtype="bf16").reshape(1, 62, 16, 128).swapaxes(1, 2)
    kernel = made(PLAIN, WIDE[schedule], "bf16", d=128)
    got = same(kernel, device, {"Q": rows_first(q), "K": rows_first(k), "V": rows_first(v)})
    assert attention(q, k, v).faults(rows_first(got["O"]), got["L"]) == []


@on_devices
@on_schedules
def test_b23_slices_of_one_projection(schedule, device):
    packed = hashed(1, (2, 62, 3, 4, 64), dtype="bf16")
    q, k, v = (packed[:, :, n] for n in range(3))
    got = same(made(PLAIN, schedule, "bf16"), device, {"Q": q, "K": k, "V": v})
    assert attention(*map(rows_first, (q, k, v))).faults(rows_first(got["O"]), got["L"]) == []


@on_devices
@on_schedules
def test_b23_one_tensor_three_times(schedule, device):
    x = hashed(1, (2, 8, 1024, 64) if device == "gpu" else (1, 2, 1024, 64), dtype="bf16")
    assert attention(x, x, x).faults(*attend(made(PLAIN, schedule, "bf16"), device, x, x, x)) == []


@on_devices
@on_schedules
def test_b23_the_first_slots_of_a_longer_cache(schedule, device):
    q, (k, v) = hashed(1, (2, 4, 62, 64)), (hashed(seed, (2, 4, 500, 64)) for seed in (2, 3))
    k[:, :, 130:], v[:, :, 130:] = np.nan, np.nan
    k, v = k[:, :, :130], v[:, :, :130]
    got = same(made(PLAIN, schedule, "f16"), device, {"Q": rows_first(q), "K": rows_first(k), "V": rows_first(v)})
    assert attention(q, k, v).faults(rows_first(got["O"]), got["L"]) == []


@on_schedules
@pytest.mark.parametrize("over", ["Q", "K", "V"])
def test_b23_a_result_on_an_argument_is_refused(monkeypatch, schedule, over):
    """In whole or in part, by name; beside it is fine."""
    kernel = made(PLAIN, schedule, "bf16")
    arrays = {n: viewed((1, 62, 4, 64), "bf16", at=k << 24) for k, n in enumerate("QKVO", 1)}
    rows = {"L": viewed((1, 4, 62), "f32", at=9 << 24)}
    assert launched(monkeypatch, kernel, arrays | rows)
    for shift in (0, 16, -16, 62 * 4 * 64 * 2 - 16):
        on = arrays["O"]._replace(pointer=arrays[over].pointer + shift)
        with pytest.raises(wgdsl.WgError, match="WG0625") as error:
            launched(monkeypatch, kernel, {**arrays, "O": on, **rows})
        assert "`O`" in str(error.value) and f"`{over}`" in str(error.value)


@on_devices
@on_schedules
def test_b24_one_head_of_keys_for_eight(schedule, device):
    """Stride 0 along heads: right without a copy, or on a GPU refused by its axis with the copy to make."""
    q, k, v = hashed(1, (2, 8, 77, 64)), hashed(2, (2, 1, 77, 64)), hashed(3, (2, 1, 77, 64))
    many = [np.broadcast_to(x, (2, 8, 77, 64)) for x in (k, v)]
    try:
        got = attend(made(PLAIN, schedule, "f16"), device, q, *many)
    except wgdsl.WgError as e:
        assert device == "gpu" and "along axis 2 is 0 bytes" in str(e) and "contiguous copy" in str(e)
        return
    assert attention(q, k, v).faults(*got) == []


@on_devices
@on_schedules
@pytest.mark.parametrize("bias", ["f32", "T"])
def test_b24_a_bias_for_all_batches_and_heads(schedule, device, bias):
    """[1, 1, 77, 77] seen as [2, 8, 77, 77]: rows 77 elements apart, no multiple of 16 bytes."""
    q, k, v = qkv(77, 77, b=2, h=8)
    w = hashed(4, (1, 1, 77, 77), -3, 3, "f32" if bias == "f32" else "f16")
    kernel = made(program(f"{SCORE} + w[b,h,i,j]", declared=f"in w: {bias}[B, H, M, N]"), schedule, "f16")
    got = attend(kernel, device, q, k, v, w=np.broadcast_to(w, (2, 8, 77, 77)))
    assert attention(q, k, v, bias=w.astype(np.float64)).faults(*got) == []


@on_schedules
def test_b24_keys_backwards(schedule):
    """NumPy has negative strides, which the simulator takes as they are; a GPU gets a dense copy of a NumPy array."""
    q, k, v = qkv(62, 77, h=2)
    got = attend(made(PLAIN, schedule, "f16"), "sim", q, k[:, :, ::-1], v)
    assert attention(q, k[:, :, ::-1], v).faults(*got) == []


@pytest.mark.gpu
@on_schedules
def test_b24_numpy_keys_backwards_on_a_gpu(schedule):
    q, k, v = qkv(62, 77, h=2)
    o, lse = made(PLAIN, schedule, "f16")(Q=rows_first(q), K=rows_first(k[:, :, ::-1]), V=rows_first(v))
    assert attention(q, k[:, :, ::-1], v).faults(rows_first(o), lse) == []


@on_devices
@on_schedules
def test_b24_every_other_element_of_keys(schedule, device):
    """Stride 2 along the last axis: right in the simulator, refused by a GPU's copies."""
    q, (k, v) = hashed(1, (1, 2, 62, 64)), (hashed(seed, (1, 2, 77, 128))[..., ::2] for seed in (2, 3))
    kernel = made(PLAIN, schedule, "f16")
    if device == "sim":
        assert attention(q, k, v).faults(*attend(kernel, device, q, k, v)) == []
        return
    with pytest.raises(wgdsl.WgError, match="stride 2 along axis 3, which must be 1"):
        attend(kernel, device, q, k, v)


SHAPE = {"Q": (1, 62, 2, 64), "K": (1, 77, 2, 64), "V": (1, 77, 2, 64), "O": (1, 62, 2, 64), "L": (1, 2, 62)}
STRIDES = {"pitch": (77 * 1185, 1185, 64, 1), "last": (77 * 256, 256, 128, 2), "backwards": (77 * 128, -128, 64, 1)}
REFUSED = {
    "a base that is off by one element": ({"at": 2}, "WG0609", "`K` starts 2 bytes past a multiple of 16", "K.clone()"),
    "rows of 1185 elements": (
        {"strides": STRIDES["pitch"]},
        "WG0608",
        "`K` along axis 1 is 2370 bytes",
        "pad the rows to 2384",
    ),
    "every other element": ({"strides": STRIDES["last"]}, "WG0607", "`K` has stride 2 along axis 3", ".contiguous()"),
    "rows backwards": ({"strides": STRIDES["backwards"]}, "WG0608", "`K` along axis 1 is -256 bytes", "contiguous copy"),
}


@on_schedules
@pytest.mark.parametrize("name", REFUSED)
def test_b25_what_copies_of_16_bytes_can_t_reach(monkeypatch, schedule, name):
    """Before the launch, with the argument, the number of bytes and the cure."""
    change, code, said, cure = REFUSED[name]
    arrays = {n: viewed(s, "f32" if n == "L" else "f16", at=k << 24) for k, (n, s) in enumerate(SHAPE.items(), 1)}
    arrays["K"] = viewed(SHAPE["K"], "f16", **{"at": 2 << 24, **change} if "at" not in change else {"at": (2 << 24) + 2})
    with pytest.raises(wgdsl.WgError) as e:
        launched(monkeypatch, made(PLAIN, schedule, "f16"), arrays)
    assert [p.code for p in e.value.problems] == [code] and said in str(e.value) and cure in str(e.value)


VIEWS = {
    "a base off by 8 elements": lambda x: _moved(x, 8),
    "72 of rows of 80": lambda x: _within(x, 80),
    "rows of 1192": lambda x: _within(x, 1192),
}


def _moved(x: np.ndarray, by: int) -> np.ndarray:
    room = np.zeros(x.size + by, x.dtype)
    room[by:] = x.ravel()
    return room[by:].reshape(x.shape)


def _within(x: np.ndarray, row: int) -> np.ndarray:
    room = np.full((*x.shape[:-1], row), np.nan, x.dtype)
    room[..., : x.shape[-1]] = x
    return room[..., : x.shape[-1]]


@on_devices
@on_schedules
@pytest.mark.parametrize("view", VIEWS)
def test_b25_what_keeps_the_rules_is_right(schedule, device, view):
    """Head dim 72, whose rows are 144 bytes."""
    q, k, v = (VIEWS[view](hashed(seed, (1, 2, n, 72))) for seed, n in ((1, 62), (2, 77), (3, 77)))
    got = attend(made(PLAIN, "fa2_wide" if schedule == "fa2" else schedule, "f16", d=72), device, q, k, v)
    assert attention(q, k, v).faults(*got) == []


@on_devices
@on_schedules
@pytest.mark.parametrize("pitch", [1185, 1733])
@pytest.mark.parametrize("start", [0, 1])
def test_b25_elementwise_tensors_may_lie_anywhere(schedule, device, pitch, start):
    """A bias of f32 whose rows are 6932 bytes apart, one whose first element is off by 4 bytes: threads load those."""
    q, k, v = qkv(70, 100)
    room = hashed(4, (70 * pitch + start,), -3, 3, "f32")
    w = room[start:].reshape(70, pitch)[:, :100]
    kernel = made(program(f"{SCORE} + w[i,j]", declared="in w: f32[M, N]"), schedule, "f16")
    assert attention(q, k, v, bias=w.astype(np.float64)).faults(*attend(kernel, device, q, k, v, w=w)) == []


@on_schedules
def test_b25_another_type_of_the_same_memory_is_refused_by_name(schedule):
    """x[2:] seen as elements of twice the width."""
    q, k, v = (rows_first(x) for x in qkv(62, 77, h=2))
    wide = np.ascontiguousarray(k).reshape(-1)[2:].view(np.float32)[: 76 * 64].reshape(1, 76, 1, 64)
    with pytest.raises(wgdsl.WgError, match="WG0602") as e:
        made(PLAIN, schedule, "f16")(Q=q, K=wide, V=v, device="sim")
    assert "`K` has elements of f32, but the kernel takes f16" in str(e.value)
