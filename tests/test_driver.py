"""`wgdsl.compile`: what it finds, and what it fixes."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

import wgdsl
from wgdsl.foundation.resources import resource

ATTENTION = resource("examples", "attention", "attention.wg")
GEMM = resource("examples", "gemm", "gemm.wg")
PIPELINED = resource("schedules", "hopper", "gemm_pipelined.wg")


def test_the_forms_of_a_kernel():
    kernel = wgdsl.compile(GEMM, "pipelined", build=False)
    assert kernel.graph.name == "gemm" and kernel.stream.axis == "k" and kernel.roles.schedule == "pipelined"
    assert 'extern "C"' in kernel.cuda and kernel.cubin[:4] == b"\x7fELF" and ".target sm_90a" in kernel.ptx
    assert "HGMMA" in kernel.sass and "role math" in str(kernel.report)
    passes = ["parse", "analyse", "resolve", "reciprocals", "cut", "fuse", "canonicalise", "approximate", "stream"]
    assert list(kernel.report.seconds) == [*passes, "lower", "verify", "emit", "nvrtc"]


def test_schedules_by_name_file_and_text(tmp_path):
    text = PIPELINED.read_text()
    mine = tmp_path / "mine.wg"
    mine.write_text(text.replace("pipelined", "mine"))
    for given, name in [
        ("pipelined", "pipelined"),
        (mine, "mine"),
        (str(mine), "mine"),
        (text.replace("pipelined", "other"), "other"),
    ]:
        assert wgdsl.compile(GEMM, schedule=given, build=False).roles.schedule == name


def test_program_and_schedule_in_one_text_and_beside_the_file(tmp_path):
    program, schedule = GEMM.read_text(), PIPELINED.read_text()
    both = program + schedule.replace("wg 1", "").replace("pipelined", "own")
    assert wgdsl.compile(both, build=False).roles.schedule == "own", "those of the text come first"
    (tmp_path / "p.wg").write_text(program)
    (tmp_path / "q.wg").write_text(schedule.replace("pipelined", "near"))
    assert wgdsl.compile(tmp_path / "p.wg", build=False).roles.schedule == "near"
    assert wgdsl.compile(tmp_path / "p.wg", schedule="pipelined", build=False).roles.schedule == "pipelined"


def test_several_schedules_of_one_name(tmp_path):
    program, schedule = GEMM.read_text(), PIPELINED.read_text()
    own = schedule.replace("wg 1", "")
    with pytest.raises(wgdsl.WgError, match=r"WG0658.*`pipelined`: in <text>"):
        wgdsl.compile(program + own + own, build=False)
    for name, text in (("p", program), ("a", schedule), ("b", schedule)):
        (tmp_path / f"{name}.wg").write_text(text)
    for wanted in (None, "pipelined"):
        with pytest.raises(wgdsl.WgError, match=r"WG0658.*in .*a\.wg and in .*b\.wg"):
            wgdsl.compile(tmp_path / "p.wg", schedule=wanted, build=False)
    assert wgdsl.compile(tmp_path / "p.wg", schedule=tmp_path / "b.wg", build=False).roles.schedule == "pipelined"
    (tmp_path / "p.wg").write_text(program + own)
    assert wgdsl.compile(tmp_path / "p.wg", build=False).roles.schedule == "pipelined", "the program's own file comes first"


def test_an_edit_shows_at_once(tmp_path):
    path = tmp_path / "p.wg"
    path.write_text(GEMM.read_text())
    before = wgdsl.compile(path, build=False).cuda
    path.write_text(re.sub(r"= Acc\[i,n\] (\s*when not bias)", r"= 2.0 * Acc[i,n] \1", GEMM.read_text()))
    assert wgdsl.compile(path, build=False).cuda != before


def test_shipped_files_are_named_by_their_place(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    cuda = wgdsl.compile(GEMM, "pipelined", build=False).cuda
    assert str(GEMM.parents[2]) not in cuda and '"schedules/hopper/gemm_pipelined.wg"' in cuda


def test_several_programs_need_a_name():
    text = GEMM.read_text() + GEMM.read_text().replace("wg 1", "").replace("program gemm", "program other")
    with pytest.raises(wgdsl.WgError, match="WG0650"):
        wgdsl.compile(text, build=False)
    assert wgdsl.compile(text, program="gemm", build=False).graph.name == "gemm"


def test_what_an_import_leaves_for_later():
    late = ("networkx", "cuda", "torch", "numpy", "lark")
    code = f"import sys, wgdsl; wgdsl.compile; print([m for m in {late} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_the_same_kernel_serves_every_length():
    kernel = wgdsl.compile(GEMM, types={"T": "f16"}, build=False)
    for m, n, k in [(1, 1, 8), (130, 20, 72), (0, 5, 8), (5, 7, 0)]:
        a, b = (np.ones(s, np.float16) for s in ((m, k), (n, k)))
        assert np.array_equal(kernel(a, b, device="sim"), np.full((m, n), k, np.float16))


def test_simulated_in_random_order():
    kernel = wgdsl.compile(ATTENTION, schedule="fa3", dims={"D": 64, "E": 64}, build=False)
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, s, 2, 64)).astype(np.float16) for s in (150, 300, 300))
    first = kernel.simulate(q, k, v)
    for seed in range(3):
        again = kernel.simulate(q, k, v, seed=seed)
        assert np.array_equal(first.O, again.O) and np.array_equal(first.L, again.L)
