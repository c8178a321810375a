"""Calls that come again, with a real torch: what its own check tells apart, streams, graphs, threads, allocations."""

from __future__ import annotations

import threading

import pytest

import wgdsl
from wgdsl.foundation.resources import resource

torch = pytest.importorskip("torch")
from tests.gpu.support import Attention, captured  # noqa: E402
from wgdsl.runtime import torch_guard  # noqa: E402

pytestmark = pytest.mark.gpu
PROGRAM = resource("examples", "attention", "attention.wg")
CASE = Attention(2, 2, 2, 200, 180)
WARM = 3


@pytest.fixture(scope="module")
def kernel():
    return wgdsl.compile(PROGRAM, schedule="simple", dims={"D": 64, "E": 64}, types={"T": "bf16"})


@pytest.fixture
def inputs():
    return CASE.inputs(64, 64, "bf16", 1)


def results(case: Attention = CASE) -> dict[str, torch.Tensor]:
    heads = case.g * case.r
    o = torch.full((case.b, case.m, heads, 64), float("nan"), device="cuda", dtype=torch.bfloat16)
    return {"O": o, "L": torch.full((case.b, heads, case.m), float("nan"), device="cuda")}


def same(got, want) -> bool:
    return torch.equal(got.O, want.O) and torch.equal(got.L, want.L)


def test_torch_has_the_check():
    assert torch_guard._trusted(), "calls work without it, but take longer"


def test_every_form_of_a_call_computes_the_same(kernel, inputs):
    q, k, v = inputs.values()
    want = kernel(q, k, v)
    forms = [
        lambda: kernel(q, k, v),
        lambda: kernel(Q=q, K=k, V=v),
        lambda: kernel(V=v, Q=q, K=k),
        lambda: kernel(q, V=v, K=k, scale=0.125),
        lambda: kernel(q, k, v, 0.125, out=results()),
        lambda: kernel(q, k, v, out={"L": results()["L"]}),
        lambda: kernel(*[torch.nn.Parameter(t, requires_grad=False) for t in (q, k, v)]),
    ]
    for call in forms:
        assert all(same(call(), want) for _ in range(WARM))


def test_lengths_in_turn(kernel):
    """More layouts than have a check, and than a form remembers."""
    cases = [Attention(1, 1, 2, 1 + 7 * n, 3 + 11 * n) for n in range(9)]
    inputs = [c.inputs(64, 64, "bf16", n) for n, c in enumerate(cases)]
    fresh = wgdsl.compile(PROGRAM, schedule="simple", dims={"D": 64, "E": 64}, types={"T": "bf16"})
    want = [fresh(**i) for i in inputs]
    for _ in range(20):
        assert all(same(kernel(**i), w) for i, w in zip(inputs, want, strict=True))


CHANGES = {
    "element type": (lambda t: t.half(), "WG0602"),
    "host": (lambda t: t.cpu(), "WG0603"),
    "gradient": (lambda t: t.clone().requires_grad_(), "WG0611"),
    "innermost stride": (lambda t: torch.cat([t, t], -1)[..., ::2], "WG0607"),
    "row pitch": (lambda t: torch.cat([t, t], -1)[..., 3:67], "WG0609"),
    "sparse": (lambda t: t.to_sparse(), "WG0617"),
    "no memory": (lambda t: t.to("meta"), "WG0617"),
    "a sign to come": (lambda t: torch._neg_view(t), "WG0617"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_the_first_look_refuses_is_refused_later(kernel, inputs, name):
    change, code = CHANGES[name]
    out = results()
    for _ in range(WARM):
        want = kernel(**inputs, out=out)
    for _ in range(2):
        with pytest.raises(wgdsl.WgError, match=code):
            kernel(**(inputs | {"Q": change(inputs["Q"])}), out=out)
    assert same(kernel(**inputs), want)


def test_a_tensor_changed_in_place(kernel, inputs):
    """The same object, but its memory, its shape or its need of a gradient is another one."""
    other = CASE.inputs(64, 64, "bf16", 2)
    want, q = kernel(**other), inputs["Q"]
    for _ in range(WARM):
        kernel(**inputs)
    q.data = other["Q"]
    assert same(kernel(Q=q, K=other["K"], V=other["V"]), want)
    q.requires_grad_()
    with pytest.raises(wgdsl.WgError, match="WG0611"):
        kernel(Q=q, K=other["K"], V=other["V"])
    with torch.no_grad():
        assert same(kernel(Q=q, K=other["K"], V=other["V"]), want)
    with torch.inference_mode():
        assert same(kernel(Q=q, K=other["K"], V=other["V"]), want)


def test_outputs_are_new_each_time(kernel, inputs):
    kept = [kernel(**inputs) for _ in range(6)]
    assert len({r.O.data_ptr() for r in kept}) == 6 and all(same(r, kept[0]) for r in kept)
    assert kept[0].O.is_contiguous() and not kept[0].O.requires_grad


def test_the_stream_of_each_call(kernel, inputs):
    """The same arrays on a side stream: the call has to wait for what that stream writes into them."""
    out, late = results(), {name: torch.zeros_like(t) for name, t in inputs.items()}
    want = kernel(**inputs)
    for _ in range(WARM):
        kernel(**late, out=out)
    for side in (torch.cuda.Stream(), torch.cuda.Stream()):
        for t in late.values():
            t.zero_()
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(100_000_000)
            for name, t in inputs.items():
                late[name].copy_(t)
            kernel(**late, out=out)
        side.synchronize()
        assert torch.equal(out["O"], want.O)


def test_another_device(kernel, inputs):
    """Its own plan and stream; the current device stays; a mixture is refused each time."""
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    want = kernel(**inputs)
    there = {name: t.to("cuda:1") for name, t in inputs.items()}
    for _ in range(WARM):
        kernel(**inputs)
        got = kernel(**there)
        assert got.O.device.index == 1 and torch.equal(got.O.cpu(), want.O.cpu()) and torch.cuda.current_device() == 0
        with pytest.raises(wgdsl.WgError, match="cuda:1"):
            kernel(**(inputs | {"K": there["K"]}))
    with torch.cuda.device(1):
        assert same(kernel(**inputs), want) and torch.cuda.current_device() == 1


def test_capture_of_a_call_that_has_come_before(kernel, inputs):
    out = results()
    for _ in range(WARM):
        kernel(**inputs, out=out)
    with captured() as graph:
        made = kernel(**inputs)  # allocated in the graph's own pool
        kernel(**inputs, out=out)
    for seed in (5, 6):
        for name, t in CASE.inputs(64, 64, "bf16", seed).items():
            inputs[name].copy_(t)
        graph.replay()
        torch.cuda.synchronize()
        want = kernel(**inputs)
        assert same(made, want) and torch.equal(out["O"], want.O)


def test_threads_with_arrays_of_their_own(kernel):
    cases = [CASE.inputs(64, 64, "bf16", seed) for seed in range(8)]
    want, wrong = [kernel(**c) for c in cases], []
    torch.cuda.synchronize()

    def work(n: int):
        out = results()
        with torch.cuda.stream(torch.cuda.Stream()):
            for k in range(50):
                m = 1 + (n * 50 + k) % CASE.m  # lengths come and go, so that plans are made and dropped meanwhile
                part = kernel(Q=cases[n]["Q"][:, :m], K=cases[n]["K"], V=cases[n]["V"])
                kernel(**cases[n], out=out)
                torch.cuda.current_stream().synchronize()
                if not (torch.equal(out["O"], want[n].O) and torch.equal(part.O, want[n].O[:, :m])):
                    wrong.append((n, k))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_many_threads_call_first(inputs, monkeypatch):
    """One compilation and one loading, whoever comes first."""
    from wgdsl.runtime import module, nvrtc
    from wgdsl.runtime.cache import Cache

    fresh = wgdsl.compile(PROGRAM, schedule="fa3", dims={"D": 64, "E": 64}, types={"T": "bf16"}, build=False)
    compiled, loaded, load = [], [], module.Module._loaded
    monkeypatch.setattr(module.Module, "_loaded", lambda *args: (loaded.append(1), load(*args))[1])

    def compiler(text: str, arch: str, name: str):
        compiled.append(1)
        return nvrtc.compile(text, arch, name)

    own = type(fresh)(fresh.forms, Cache(resource("examples") / "nowhere" / "at-all", compiler))
    own.cache.folder.writable = False
    got, gate = [], threading.Barrier(8)

    def work():
        gate.wait()
        out = own(**inputs)
        torch.cuda.current_stream().synchronize()
        got.append(out)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    want = fresh(**inputs)
    assert len(got) == 8 and all(same(g, want) for g in got) and len(compiled) == 1 and len(loaded) == 2
