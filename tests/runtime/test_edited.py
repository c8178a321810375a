"""Edited CUDA texts: what may change, and what the launch relies on."""

from __future__ import annotations

import re
import sys

import pytest

import wgdsl
from tests.lowering import GEMM, PIPELINED
from wgdsl import cli
from wgdsl.runtime import cuda
from wgdsl.runtime.edited import edited_texts

SET = ["--set", "T=bf16", "--dims", "M=64,N=64,K=64"]


@pytest.fixture(scope="module")
def kernel() -> wgdsl.Kernel:
    return wgdsl.compile(GEMM, schedule=PIPELINED, types={"T": "bf16"}, build=False)


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Runs an edited text: exit code and what was said."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gemm.wg").write_text(GEMM + PIPELINED.replace("wg 1\n", ""))

    def call(edited: str) -> tuple[int, str]:
        (tmp_path / "mine.cu").write_text(edited)
        args = ["run", "gemm.wg", *SET, "--cuda", "mine.cu", "--check"]
        monkeypatch.setattr(sys, "argv", ["wgdsl", *args])  # what a GPU run starts again under its watch
        with pytest.raises(SystemExit) as e:
            cli.main(args)
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return int(e.value.code or 0), out + err

    return call


HARMLESS = {
    "as it is": lambda t: t,
    "a comment": lambda t: t.replace("// role math", "/* __global__ void other(int x) { */ // role math"),
    "without a header": lambda t: t.split("\n", 2)[2],
    "other names and qualifiers": lambda t: re.sub(r"\bM\b", "rows", t).replace(" __restrict__", ""),
    "a helper kernel": lambda t: 'extern "C" __global__ void helper(int *x) { *x = 0; }\n' + t,
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_may_change(kernel, name):
    edited = HARMLESS[name](kernel.cuda)
    assert kernel.with_cuda(edited).cuda == edited


BOUNDS = "threads of `__launch_bounds__`"
WRONG = {
    "another schedule's": (lambda t: t.replace("schedule pipelined,", "schedule other,", 1), "the header comment"),
    "another entry": (lambda t: t.replace("gemm_pipelined(", "mine("), "the entry"),
    "no kernel": (lambda t: "// nothing\n", "no `__global__` function"),
    "a parameter less": (lambda t: t.replace("int M, ", "", 1), "the number of parameters"),
    "another type": (lambda t: t.replace("int M, ", "float M, ", 1), "the type of parameter"),
    "other threads": (lambda t: t.replace("__launch_bounds__(384, 1)", "__launch_bounds__(512, 1)"), BOUNDS),
    "no bounds": (lambda t: t.replace("__launch_bounds__(384, 1)", ""), BOUNDS),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_the_launch_relies_on(kernel, name):
    change, said = WRONG[name]
    assert change(kernel.cuda) != kernel.cuda
    with pytest.raises(wgdsl.WgError, match="WG1005") as e:
        kernel.with_cuda(change(kernel.cuda), "mine.cu")
    assert said in str(e.value) and "mine.cu" in str(e.value)


def test_a_text_that_nvrtc_refuses(kernel):
    with pytest.raises(wgdsl.WgError, match=r"NVRTC refuses mine\.cu"):
        kernel.with_cuda(kernel.cuda.replace("const unsigned smem =", "smem ="), "mine.cu")


def test_the_kernel_itself_stays(kernel):
    before = kernel.cuda
    edited = kernel.with_cuda("// mine\n" + before)
    assert kernel.cuda == before and edited.cuda != before and edited.cubin[:4] == b"\x7fELF"
    assert edited.roles == kernel.roles


@pytest.mark.skipif(cuda.available(), reason="there is a GPU")
def test_without_a_gpu_it_is_compiled_all_the_same(run, kernel):
    code, said = run(kernel.cuda)
    assert code == 69 and "mine.cu compiles (168 registers at launch, 0 bytes spilled)" in said and "on a GPU only" in said
    code, said = run(kernel.cuda.replace("int M, ", "", 1))
    assert code == 1 and "WG1005" in said


@pytest.mark.gpu
def test_on_a_gpu_it_is_checked(run, kernel):
    code, said = run(kernel.cuda)
    assert code == 0, said
    code, said = run(kernel.cuda.replace('"f"(b), "f"(a)', '"f"(a), "f"(b)'))  # columns change places in pairs
    assert code == 1 and "C: WRONG" in said


def test_a_schedule_of_several_kernels_is_one_text_after_the_other(kernel):
    (text,) = kernel.forms.texts.values()
    texts = {name: text.replace("gemm_pipelined", name) for name in ("first", "second")}
    entries = {name: name for name in texts}
    joined = "// mine\n" + "\n".join(texts.values()).replace("int M, int N, int K", "int rows, int N, int K")
    pieces = edited_texts(texts, entries, joined, "mine.cu")
    assert list(pieces) == ["first", "second"] and all("int rows, int N" in p for p in pieces.values())
    assert "first(" in pieces["first"] and "second(" not in pieces["first"]
    with pytest.raises(wgdsl.WgError, match="the kernels, each under its header comment"):
        edited_texts(texts, entries, texts["first"], "mine.cu")
