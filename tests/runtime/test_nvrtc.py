"""NVRTC, its log, and the warnings that become of it."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from tests.runtime.graphs import GROUPED
from wgdsl.diagnostics.emit import CompilerWarning
from wgdsl.diagnostics.model import EnvironmentFault, InternalError
from wgdsl.foundation.dtypes import F32
from wgdsl.foundation.source import Source, Span
from wgdsl.program.poly import Poly
from wgdsl.roles.model import Grid, GridAxis, Role, RoleProgram, Value
from wgdsl.roles.model import Kernel as RoleKernel
from wgdsl.runtime import nvrtc
from wgdsl.runtime.cache import Cache
from wgdsl.runtime.kernel import Forms, Kernel
from wgdsl.runtime.log import read_log
from wgdsl.runtime.sass import disassemble

TEXT = 'extern "C" __global__ void __launch_bounds__(128) scale(float* x) { x[threadIdx.x] *= 2.0f; }'
# Without launch bounds setmaxnreg is ignored: C7508.
IGNORED = 'extern "C" __global__ void k(float* x) { asm volatile("setmaxnreg.inc.sync.aligned.u32 240;"); x[0] = 1; }'
SPILLS = """extern "C" __global__ void __launch_bounds__(1024) k(float* x) {
  float a[200];
  #pragma unroll
  for (int i = 0; i < 200; ++i) a[i] = x[i * 1024 + threadIdx.x];
  __syncthreads();
  #pragma unroll
  for (int i = 0; i < 200; ++i) x[i * 1024 + threadIdx.x] = a[(i * 7) % 200] * a[i];
}"""


def test_cubin_ptx_and_resources():
    made = nvrtc.compile(TEXT, "sm_90a")
    (k,) = made.kernels
    assert made.cubin[:4] == b"\x7fELF" and ".target sm_90a" in made.ptx and made.ptx.rstrip().endswith("}")
    assert (k.name, k.target, k.complaints) == ("scale", "sm_90a", ()) and 0 < k.registers < 40
    assert (k.stack, k.spill_stores, k.spill_loads) == (0, 0, 0)


def test_sass():
    assert "EXIT" in disassemble(nvrtc.compile(TEXT, "sm_90a").cubin)


def test_a_refused_text_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("WGDSL_CRASH_DIR", str(tmp_path))
    with pytest.raises(InternalError) as e:
        nvrtc.compile('#line 7 "my.wg"\nint nonsense = ;', "sm_90a", "bad.cu")
    assert "my.wg(7): error" in str(e.value)
    (kept,) = tmp_path.rglob("bad.cu")
    assert "nonsense" in kept.read_text() and str(kept) in str(e.value)


def test_log_of_several_kernels():
    a, b = read_log(
        "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to reasons in "
        "function 'b'\nptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function 'a' for 'sm_90a'\n"
        "ptxas info    : Function properties for a\n"
        "ptxas         .     640 bytes stack frame, 48 bytes spill stores, 52 bytes spill loads\n"
        "ptxas info    : Used 168 registers, used 6 barriers, 16 bytes smem\n"
        "ptxas info    : Compiling entry function 'b' for 'sm_90a'\n"
        "ptxas info    : Used 90 registers\n"
    )
    assert (a.registers, a.stack, a.spill_stores, a.spill_loads, a.barriers, a.shared) == (168, 640, 48, 52, 6, 16)
    assert not a.complaints and [c.number for c in b.complaints] == ["7510"] and b.registers == 90


def kernel_with(text: str, folder: Path) -> Kernel:
    source = Source("mine.wg", "schedule s {\n  role math : 1 warpgroup\n}\n")
    role = Role(name="math", first=0, count=1, registers=240, elected=False, steps=(), span=Span(source, 15, 38))
    kernel = RoleKernel(
        name="k", program="p", schedule="s", target="sm_90a", threads=128, roles=(role,), rings=(), buffers=(), barriers=(),
        grid=Grid(axes=(GridAxis(index="i", tile=1, blocks=Poly.of(1)),)), maps=(), tensors=(), params=(), index_extents={},
        values=(Value(name="A", role="math", kind="tile", dtype=F32, cols=256),), shared_bytes=0,
    )  # fmt: skip
    roles = RoleProgram(program="p", schedule="s", target="sm_90a", kernels=(kernel,))
    forms = Forms(
        graph=GROUPED, stream=None, roles=roles, texts={"k": text}, entries={"k": "k"}, backends={}, seconds={"emit": 0.1}
    )
    return Kernel(forms, Cache(folder))


@pytest.mark.parametrize("text, code", [(IGNORED, "WG0504"), (SPILLS, "WG0501")])
def test_one_warning_a_kernel_tied_to_the_schedule_and_again_from_the_cache(tmp_path, text, code):
    for _ in range(2):
        kernel = kernel_with(text, tmp_path)
        with pytest.warns(CompilerWarning) as said:
            kernel.build()
            assert kernel.cubin
        assert len(said) == 1 and f"warning[{code}]" in str(said[0].message) and "mine.wg:2:3" in str(said[0].message)
        assert code in str(kernel.report)
    assert kernel.binaries["k"].cached


def test_warnings_can_be_filtered(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CompilerWarning)
        kernel_with(IGNORED, tmp_path).build()


def test_clean_kernels_are_quiet(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel = kernel_with(TEXT, tmp_path).build()
    report = str(kernel.report)
    assert "1 x 128 threads; 128 registers a thread hold its values, of 240" in report and "NVRTC 13" in report


def test_without_nvrtc_the_places_and_the_cure_are_named():
    code = """
import sys
from cuda.bindings import nvrtc
def missing(): raise RuntimeError("searched in /a and /b")
nvrtc.nvrtcVersion = missing
from wgdsl.runtime import nvrtc as ours
try: ours.compile("", "sm_90a")
except Exception as e: print(type(e).__name__, e)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "EnvironmentFault NVRTC can't be loaded: searched in /a and /b" in done.stdout and "pip install" in done.stdout


def test_an_architecture_that_nvrtc_doesn_t_know():
    with pytest.raises(EnvironmentFault, match=r"NVRTC 13\.\d+ doesn't compile for sm_999; it has .*sm_90.*") as e:
        nvrtc.compile(TEXT, "sm_999")
    assert "pip install" in str(e.value)
    with pytest.raises(EnvironmentFault, match="doesn't compile for sm_20; it has") as e:
        nvrtc.compile(TEXT, "sm_20")
    assert "take another target" in str(e.value)


def test_replacing_a_text_changes_what_is_compiled(tmp_path):
    kernel = kernel_with(TEXT, tmp_path)
    other = Kernel(replace(kernel.forms, texts={"k": TEXT.replace("2.0f", "3.0f")}), Cache(tmp_path))
    assert kernel.cubin != other.cubin
