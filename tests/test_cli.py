"""The command line: what each command prints, and its exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from wgdsl import cli
from wgdsl.foundation.resources import resource
from wgdsl.runtime import cuda

ATTENTION = str(resource("examples", "attention", "attention.wg"))
GEMM = str(resource("examples", "gemm", "gemm.wg"))
SMALL = ["--set", "D=64", "E=64", "T=bf16", "--schedule", "simple"]


@pytest.fixture
def wgdsl(capfd, tmp_path, monkeypatch):
    """wgdsl(words...) -> exit code, standard output, standard error."""
    monkeypatch.setenv("WGDSL_CRASH_DIR", str(tmp_path / "crash"))

    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as e:
            cli.main([str(w) for w in words])
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return int(e.value.code or 0), out, err

    return call


def test_run_checks_in_the_simulator(wgdsl):
    code, out, _ = wgdsl("run", ATTENTION, *SMALL, "--dims", "B=1,G=1,H=2,M=70,N=40", "--device", "sim", "--check")
    assert code == 0 and "ran on sim" in out and "R = 2" in out and out.count("right") == 2


def test_a_seed_is_one_of_the_inputs_and_of_the_order_of_events(wgdsl):
    words = ("run", GEMM, "--dims", "M=30,N=40,K=80", "--device", "sim", "--check")
    code, out, _ = wgdsl(*words)
    assert code == 0 and "order of events" not in out
    (code, one, _), (_, again, _), (_, other, _) = (wgdsl(*words, "--seed", n) for n in ("3", "3", "4"))
    assert code == 0 and one == again != other and all("\n  order of events: " in o and "right" in o for o in (one, other))


def test_run_in_float64_keeps_inputs_and_results(wgdsl, tmp_path):
    path = tmp_path / "out.npz"
    code, out, _ = wgdsl("run", GEMM, "--dims", "M=3,N=4,K=8", "--device", "reference", "--seed", "7", "-o", path)
    assert code == 0 and "C: [3, 4] float16" in out
    kept = np.load(path)
    assert np.allclose(kept["C"], kept["A"].astype(float) @ kept["B"].astype(float).T, rtol=1e-3)


def test_a_wrong_result_is_an_error(wgdsl, monkeypatch):
    from wgdsl.tools import running
    from wgdsl.tools.judge import Verdict

    monkeypatch.setattr(running, "judge", lambda *_: [Verdict(output="C", error=2.0, bar=1.0, largest=3.0, elements=1)])
    code, out, _ = wgdsl("run", GEMM, "--dims", "M=3,N=4,K=8", "--device", "reference", "--check")
    assert code == 1 and "C: WRONG, error 2, bar 1" in out


@pytest.mark.skipif(cuda.available(), reason="there is a GPU")
@pytest.mark.parametrize(
    "more, simulated", [(["--device", "gpu"], True), (["--time"], False), (["--time", "--device", "gpu"], False)]
)
def test_without_a_gpu(wgdsl, more, simulated):
    code, _, err = wgdsl("run", GEMM, "--dims", "M=3,N=4,K=8", *more)
    assert code == 69 and "NVIDIA GPU" in err and ("simulator" in err) == simulated


@pytest.mark.parametrize("dims", ["M=0,N=8,K=8", "M=5,N=0,K=8", "M=5,N=8,K=0"])
def test_arrays_without_elements(wgdsl, dims):
    code, out, _ = wgdsl("run", GEMM, "--dims", dims, "--device", "sim", "--check")
    assert code == 0 and "right" in out


@pytest.mark.parametrize("words", [["--dims", "M=5", "--dims", "N=8,K=16"], ["--dims", "M=5", "N=8", "K=16"]])
def test_dims_accumulate(wgdsl, words):
    code, out, _ = wgdsl("run", GEMM, *words, "--device", "sim", "--set", "bias=true,T=bf16")
    assert code == 0 and "M = 5, K = 16, N = 8" in out and "bfloat16" in out and "note" not in out


def test_bf16_is_kept_as_f32(wgdsl, tmp_path):
    path = tmp_path / "out.npz"
    assert wgdsl("run", GEMM, "--dims", "M=3,N=4,K=8", "--set", "T=bf16", "--device", "reference", "-o", path)[0] == 0
    assert {a.dtype.name for a in np.load(path).values()} == {"float32"}


def test_the_simulator_says_what_a_gpu_would_refuse(wgdsl):
    code, out, _ = wgdsl("run", GEMM, "--dims", "M=5,N=7,K=7", "--device", "sim")
    notes = [line for line in out.splitlines() if line.startswith("note")]
    assert code == 0 and len(notes) == 2, "the result is stored another way"
    assert notes[0].startswith("note: on a GPU `A` would be refused: the stride of `A` along axis 0 is 14 bytes")


def test_set_takes_several_and_sorts_them(wgdsl):
    code, out, _ = wgdsl("compile", ATTENTION, "--set", "causal=true", "D=128", "E=64", "T=bf16", "--emit", "graph")
    assert code == 0
    assert "options causal=true lse=true" in out and "types T=bf16" in out and "fixed D=128 E=64" in out


def test_spread():
    assert cli.spread(["x", "--set", "a=1", "b=2", "--dims", "c=3", "e=5", "y", "f=6", "--set", "d=4"]) == [
        "x", "--set", "a=1", "--set", "b=2", "--dims", "c=3", "--dims", "e=5", "y", "f=6", "--set", "d=4",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "emit, mark",
    [
        ("ast", "program gemm {"),
        ("graph", "contract Acc"),
        ("stream", "streamed gemm along k"),
        ("roles", "kernel gemm_"),
        ("cuda", 'extern "C" __global__'),
        ("ptx", ".target sm_90a"),
        ("sass", "HGMMA"),
        ("report", "0 + 0 spilled"),
    ],
)
def test_emit(wgdsl, emit, mark):
    code, out, _ = wgdsl("compile", GEMM, "--emit", emit)
    assert code == 0 and mark in out


def test_emit_to_a_file(wgdsl, tmp_path):
    path = tmp_path / "k.cubin"
    assert wgdsl("compile", GEMM, "--emit", "cubin", "-o", path)[0] == 0
    assert path.read_bytes()[:4] == b"\x7fELF"


def test_explain_prints_the_role_program(wgdsl):
    assert wgdsl("explain", GEMM)[1] == wgdsl("compile", GEMM, "--emit", "roles")[1]


def test_print_after(wgdsl):
    code, out, _ = wgdsl("compile", GEMM, "--emit", "stream", "--print-after", "analyse", "--print-after", "canonicalise")
    assert code == 0 and out.index("# after analyse") < out.index("# after canonicalise") < out.index("streamed gemm")


@pytest.mark.parametrize(
    "words, said",
    [
        (["compile", "none.wg"], "WG0101"),
        (["compile", str(Path(GEMM).parent)], "WG0101"),
        (["compile", GEMM, "--set", "Z=1"], "program and schedule have no option, dim or type `Z`"),
        (["compile", GEMM, "--set", "T=f64"], "expected `f16` or `bf16`"),
        (["compile", GEMM, "--set", "M=x"], "which isn't a whole number"),
        (["compile", GEMM, "--set", "layout"], "isn't of the form NAME=VALUE"),
        (["compile", GEMM, "--schedule", "pipeline"], "did you mean `pipelined`?"),
        (["compile", GEMM, "--schedule", "fa3"], "no schedule for program `gemm` is called `fa3`"),
        (["compile", GEMM, "--program", "gem"], "did you mean `gemm`?"),
        (["compile", GEMM, "--schedule", "turns", "--target", "80"], "schedule `turns` is written for sm_90a, not sm_80"),
        (["compile", GEMM, "--target", "sm_90"], "compile for `sm_90a`"),
        (["compile", GEMM, "--target", "sm_100a"], "WG0653"),
        (["compile", GEMM, "--target", "sm_9"], "`sm_9` is not a target"),
        (["compile", GEMM, "--emit", "all"], "there is no form `all`"),
        (["compile", GEMM, "--print-after", "all"], "no pass is called `all`"),
        (["compile", ATTENTION], "for example `--set D=128 E=128`"),
        (["compile", ATTENTION, "--set", "D=64", "--schedule", "simple"], "needs E fixed at compile time"),
        (["supports", GEMM, "--format", "xml"], "there is no format `xml`"),
        (["run", GEMM, "--dims", "M=3,N=4", "--device", "sim"], "WG0655"),
        (["run", GEMM, "--dims", "M=3,N=4,K=8,Q=1", "--device", "sim"], "the program has no dim `Q`"),
        (["run", GEMM, "--dims", "M", "--device", "sim"], "isn't of the form NAME=VALUE"),
        (["run", GEMM, "--dims", "M=3,N=4,K=8", "--cuda", "none.cu"], "none.cu"),
        (["run", GEMM, "--dims", "M=3,N=4,K=8", "--device", "cpu"], "`cpu` is no device to run on"),
        (["run"], "Missing argument"),
        (["frobnicate"], "No such command"),
        (["help", "WG9999"], "no error has the code WG9999"),
    ],
)
def test_mistakes_of_the_user(wgdsl, words, said):
    code, out, err = wgdsl(*words)
    assert code == 1 and said in err and not out
    assert len(err.splitlines()) < 40


@pytest.mark.parametrize("spelling", ["sm_90a", "SM90A", "90a", "auto"])
def test_spellings_of_a_target(wgdsl, spelling):
    assert wgdsl("compile", GEMM, "--target", spelling, "--emit", "stream")[0] == 0


def test_several_errors_in_one_run(wgdsl, tmp_path):
    path = tmp_path / "bad.wg"
    path.write_text("wg 1\nprogram p {\n dims M\n in X: f32[M]\n out Y: f32[M]\n Y[i] = W[i]\n Z[i] = V[i]\n}\n")
    code, _, err = wgdsl("check", path)
    assert code == 1 and f"{path}:6:" in err and f"{path}:7:" in err


def test_check_of_what_is_right(wgdsl):
    assert wgdsl("check", ATTENTION, GEMM, *resource("schedules", "hopper").glob("*.wg"))[:2] == (0, "")
    assert wgdsl("check", ATTENTION, "--set", "D=64", "E=64", "--schedule", "fa3")[0] == 0


@pytest.fixture
def two_texts(tmp_path, monkeypatch):
    """(attention, a schedule for it), without the version line of the second; the folder is the current one."""
    monkeypatch.chdir(tmp_path)
    schedule = resource("schedules", "hopper", "attention_simple.wg").read_text()
    return Path(ATTENTION).read_text(), schedule.replace("wg 1\n", "")


def test_check_takes_the_schedules_of_the_file(wgdsl, two_texts):
    program, schedule = two_texts
    Path("a.wg").write_text(program + schedule)
    note = "note: a.wg: schedule `simple` needs D and E fixed at compile time; checked with `--set D=128 E=128`\n"
    assert wgdsl("check", "a.wg") == (0, note, "")
    assert wgdsl("check", "a.wg", "--set", "D=64,E=64") == (0, "", "")
    Path("a.wg").write_text(program + schedule.replace("await O[j]", ""))
    code, _, err = wgdsl("check", "a.wg")
    assert code == 1 and "WG04" in err.replace("WG0406", "").replace("WG0407", "")


def test_a_schedule_for_a_name_that_is_misspelt(wgdsl, two_texts):
    program, schedule = two_texts
    Path("a.wg").write_text(program + schedule.replace("for attention", "for atention"))
    for words in (["check", "a.wg"], ["compile", "a.wg", "--schedule", "none"]):
        code, _, err = wgdsl(*words)
        assert code == 1 and "no program is called `atention`" in err and "did you mean `attention`?" in err


def test_a_refused_choice_is_the_only_mistake(wgdsl, tmp_path):
    path = tmp_path / "p.wg"
    path.write_text(
        "wg 1\nprogram p {\n option act in {none, relu}\n type T in {f16, bf16}\n dims M\n in X: T[M]\n out Y: T[M]\n"
        " Y[i] = relu(X[i]) when act == relu\n Y[i] = X[i] when act == none\n}\nschedule s for p on sm_90a {\n stream i\n}\n"
    )
    code, _, err = wgdsl("compile", path, "--set", "act=gelu", "T=f64")
    assert code == 1 and err.count("error[") == 2 and "one of none, relu" in err and "expected `f16` or `bf16`" in err


def test_fmt(wgdsl, tmp_path):
    path = tmp_path / "p.wg"
    path.write_text("wg 1\nprogram p {\n dims  M\n in X:f32[M]\n out Y: f32[M]\n   Y[i]=X[i] # why\n}\n")
    assert wgdsl("fmt", "--check", path)[0] == 1
    code, out, _ = wgdsl("fmt", path)
    assert code == 0 and f"formatted {path}" in out and "# why" in path.read_text()
    assert wgdsl("fmt", "--check", path) == (0, "", "")


def test_help_of_a_code(wgdsl):
    code, out, _ = wgdsl("help", "wg0605")
    assert code == 0 and out.startswith("WG0605: no whole ratio\n")


def test_help_without_a_code_lists_them(wgdsl):
    code, out, _ = wgdsl("help")
    assert code == 0 and "WG0605  no whole ratio\n" in out and "WG0101" in out


def test_version(wgdsl):
    from wgdsl import __version__

    assert wgdsl("--version") == (0, f"wgdsl {__version__}\n", "")


def test_a_defect_leaves_a_bundle(wgdsl, monkeypatch, tmp_path):
    import wgdsl.transform.stream as module

    def broken(*_):
        raise AssertionError("a broken pass")

    monkeypatch.setattr(module, "stream", broken)
    code, _, err = wgdsl("compile", GEMM)
    assert code == 70 and "AssertionError: a broken pass" in err
    (bundle,) = (tmp_path / "crash").iterdir()
    assert str(bundle) in err
    names = {p.name for p in bundle.iterdir()}
    assert {"source0.wg", "source1.wg", "traceback.txt", "facts.json", "1-analyse.txt", "2-resolve.txt"} <= names
    assert "contract Acc" in next(bundle.glob("*-canonicalise.txt")).read_text()
    assert '"lark"' in (bundle / "facts.json").read_text()


def test_a_refused_text_is_ours_unless_it_was_edited(wgdsl, tmp_path, monkeypatch):
    from wgdsl.driver import Settings, prepare

    kernel, _ = prepare(GEMM, schedule="pipelined", settings=Settings())
    edited = tmp_path / "edited.cu"
    edited.write_text(kernel.cuda.replace("const unsigned smem =", "nonsense smem ="))
    code, _, err = wgdsl("run", GEMM, "--schedule", "pipelined", "--dims", "M=3,N=4,K=8", "--cuda", edited)
    assert code == 1 and "WG0656" in err and f"NVRTC refuses {edited}" in err and "nonsense" in err
    monkeypatch.setattr("wgdsl.emit.emit_program", lambda program: {program.kernels[0].name: "nonsense"})
    code, _, err = wgdsl("compile", GEMM, "--schedule", "pipelined", "--emit", "ptx")
    assert code == 70 and "NVRTC refuses the emitted CUDA text" in err


def test_as_a_module():
    done = subprocess.run([sys.executable, "-m", "wgdsl", "compile", GEMM, "--schedule", "x"], capture_output=True, text=True)
    assert done.returncode == 1 and "there are: `persistent`, `pipelined`" in done.stderr


def test_a_watched_process_is_killed(monkeypatch):
    import time

    from wgdsl.tools import watch

    code = "import os, sys, time; os.write(int(sys.argv[-1]), b'+'); time.sleep(60)"
    monkeypatch.setattr(watch, "MODULE", ["-c", code])
    start = time.monotonic()
    with pytest.raises(watch.Hung, match=r"didn't end within 0\.5 s"):
        watch.watched([], 0.5)
    assert time.monotonic() - start < 10


def test_only_work_on_the_gpu_is_limited(monkeypatch):
    """The float64 check after it may take as long as it likes."""
    from wgdsl.tools import watch

    code = "import os, sys, time; p = int(sys.argv[-1]); os.write(p, b'+'); os.write(p, b'-'); time.sleep(1.5); sys.exit(3)"
    monkeypatch.setattr(watch, "MODULE", ["-c", code])
    assert watch.watched([], 0.5) == 3
