"""How a kernel is called on a GPU: streams, graphs, devices, frameworks, refusals."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import wgdsl
from wgdsl.foundation.resources import resource

torch = pytest.importorskip("torch")
from tests.gpu.support import Attention, captured  # noqa: E402

pytestmark = pytest.mark.gpu
PROGRAM = resource("examples", "attention", "attention.wg")
CASE = Attention(2, 2, 2, 200, 180)


@pytest.fixture(scope="module")
def kernel():
    return wgdsl.compile(PROGRAM, schedule="fa3", dims={"D": 64, "E": 64}, types={"T": "bf16"})


@pytest.fixture
def inputs():
    return CASE.inputs(64, 64, "bf16", 1)


def test_side_stream_waits_for_what_stands_before_it(kernel, inputs):
    want = kernel(**inputs).O
    late = {name: torch.zeros_like(t) for name, t in inputs.items()}
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        for name, t in inputs.items():
            late[name].copy_(t)
        got = kernel(**late).O
    side.synchronize()
    assert torch.equal(got, want)


def test_two_streams(kernel):
    cases = [CASE.inputs(64, 64, "bf16", seed) for seed in (1, 2)]
    want = [kernel(**c).O for c in cases]
    streams = [torch.cuda.Stream() for _ in cases]
    torch.cuda.synchronize()
    for _ in range(100):
        got = []
        for stream, c in zip(streams, cases, strict=True):
            with torch.cuda.stream(stream):
                got.append(kernel(**c).O)
        torch.cuda.synchronize()
        assert all(torch.equal(g, w) for g, w in zip(got, want, strict=True))


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_graph_capture(inputs, warm):
    fresh = wgdsl.compile(PROGRAM, schedule="simple", dims={"D": 64, "E": 64}, types={"T": "bf16"}, options={"causal": warm})
    out = {"O": torch.empty_like(inputs["Q"]), "L": torch.empty((2, 4, 200), device="cuda")}
    if warm:
        fresh(**inputs, out=out)
    with captured() as graph:
        fresh(**inputs, out=out)
    for seed in (5, 6, 7):
        for name, t in CASE.inputs(64, 64, "bf16", seed).items():
            inputs[name].copy_(t)
        out["O"].fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(out["O"], fresh(**inputs).O)


def test_threads(kernel, inputs):
    want, wrong = kernel(**inputs).O, []

    def work():
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(20):
                got = kernel(**inputs).O
                torch.cuda.current_stream().synchronize()
                if not torch.equal(got, want):
                    wrong.append(1)

    torch.cuda.synchronize()
    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_numpy_arrays_are_copied_in_and_out(kernel, inputs):
    want = kernel(**inputs)
    from tests.gpu.support import to_numpy

    arrays = {name: to_numpy(t) for name, t in inputs.items()}
    got = kernel(**arrays)
    assert isinstance(got.O, np.ndarray) and got.O.dtype == to_numpy(want.O).dtype
    assert np.array_equal(got.O.view(np.uint16), to_numpy(want.O).view(np.uint16))
    backward = {**arrays, "K": np.ascontiguousarray(arrays["K"][:, ::-1])[:, ::-1]}
    assert np.array_equal(kernel(**backward).O.view(np.uint16), got.O.view(np.uint16))


def test_cupy_arrays(inputs):
    kernel = wgdsl.compile(PROGRAM, schedule="fa3", dims={"D": 64, "E": 64}, types={"T": "f16"})
    inputs = {name: t.half() for name, t in inputs.items()}
    want = kernel(**inputs).O
    cupy = pytest.importorskip("cupy")
    got = kernel(**{name: cupy.from_dlpack(t) for name, t in inputs.items()})
    assert isinstance(got.O, cupy.ndarray) and torch.equal(torch.from_dlpack(got.O), want)


def test_jax_arrays(inputs):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax")
    kernel = wgdsl.compile(PROGRAM, schedule="fa3", dims={"D": 64, "E": 64}, types={"T": "bf16"})
    want = kernel(**inputs).O
    got = kernel(**{name: jax.dlpack.from_dlpack(t) for name, t in inputs.items()})
    assert isinstance(got.O, jax.Array) and torch.equal(torch.from_dlpack(got.O), want)


REFUSED = {
    "K on the host": (lambda i: i | {"K": i["K"].cpu()}, "WG0603"),
    "all on the host": (lambda i: {n: t.cpu() for n, t in i.items()}, "WG0603"),
    "f32": (lambda i: i | {"Q": i["Q"].float()}, "WG0602"),
    "gradient": (lambda i: i | {"Q": i["Q"].clone().requires_grad_()}, "WG0611"),
    "innermost stride": (lambda i: i | {"K": torch.cat([i["K"], i["K"]], -1)[..., ::2]}, "WG0607"),
    "base": (
        lambda i: i | {"Q": torch.zeros(i["Q"].numel() + 1, dtype=torch.bfloat16, device="cuda")[1:].view(i["Q"].shape)},
        "WG0609",
    ),
    "row pitch": (lambda i: i | {"V": torch.zeros(2, 180, 2, 65, dtype=torch.bfloat16, device="cuda")[..., :64]}, "WG0608"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(kernel, inputs, name):
    change, code = REFUSED[name]
    with pytest.raises(wgdsl.WgError) as e:
        kernel(**change(inputs))
    assert code in str(e.value)
    assert torch.isfinite(kernel(**inputs).O).all(), "the process is usable afterwards"


def test_gradients_are_no_matter_without_grad_mode(kernel, inputs):
    want = kernel(**inputs).O
    with torch.no_grad():
        assert torch.equal(kernel(**(inputs | {"Q": inputs["Q"].clone().requires_grad_()})).O, want)


def test_the_current_device_stays(kernel, inputs):
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    want = kernel(**inputs).O
    there = {name: t.to("cuda:1") for name, t in inputs.items()}
    got = kernel(**there).O
    assert torch.cuda.current_device() == 0 and torch.equal(got.cpu(), want.cpu())
    with pytest.raises(wgdsl.WgError, match="cuda:1"):
        kernel(**(inputs | {"K": there["K"]}))


WITH_OUT, ALLOCATED = 10e-6, 20e-6  # seconds of host time; a slow host may take 2 and 4 of torch's own launches


def test_overhead_of_a_call(kernel, inputs):
    """A call on arrays of a known layout costs little more than one of torch's own launches."""
    import time

    def typical(call) -> float:
        times = []
        for _ in range(500):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
            torch.cuda.synchronize()
        return sorted(times)[len(times) // 2]

    out = {"O": torch.empty_like(inputs["Q"]), "L": torch.empty((2, 4, 200), device="cuda")}
    theirs = typical(lambda: torch.neg(out["L"], out=out["L"]))
    ours, allocated = typical(lambda: kernel(**inputs, out=out)), typical(lambda: kernel(**inputs))
    print(f"a call takes {1e6 * ours:.1f} us, {1e6 * allocated:.1f} with results; one of torch's {1e6 * theirs:.1f} us")
    assert ours < max(WITH_OUT, 2 * theirs) and allocated < max(ALLOCATED, 4 * theirs)


def test_the_command_line_runs_and_checks(tmp_path):
    command = [sys.executable, "-m", "wgdsl", "run", str(PROGRAM), "--schedule", "fa3", "--set", "D=64", "E=64", "T=bf16"]
    command += ["--dims", "B=1,G=1,R=2,M=100,N=130", "--check", "--time", "--timeout", "60"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ran on gpu" in done.stdout and "right" in done.stdout and "median" in done.stdout


def test_a_hang_ends_with_a_message(tmp_path, kernel):
    text = kernel.cuda
    start = text.index("{", text.index("(", text.index("__launch_bounds__") + 20))  # where the body of the kernel opens
    edited = text[:start] + "{ for (volatile int k = 0; k >= 0;) k = 1; }\n"
    path = tmp_path / "hang.cu"
    path.write_text(edited)
    command = [sys.executable, "-m", "wgdsl", "run", str(PROGRAM), "--schedule", "fa3", "--set", "D=64", "E=64", "T=bf16"]
    command += ["--dims", "B=1,G=1,R=1,M=64,N=64", "--cuda", str(path), "--timeout", "12"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 70 and "didn't end within" in done.stderr, done.stdout + done.stderr
