"""`wgdsl compare`: the numbers of shipped schedules, and of a warp's own products in a hand-written text."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from tests.lowering import ROOT
from tests.sass import sass_shape
from tests.shipped import attention, dual, gemm
from wgdsl import cli
from wgdsl.driver import compile
from wgdsl.foundation.resources import resource
from wgdsl.roles import model as m
from wgdsl.runtime import cuda, nvrtc
from wgdsl.runtime.machine_code import Code, read_code
from wgdsl.runtime.sass import disassemble
from wgdsl.targets.machine import INSTRUCTIONS, MATRIX, flops
from wgdsl.tools import comparing, running
from wgdsl.tools.comparing import Column, Comparison, Request, column, columns_of, compare
from wgdsl.tools.comparison_text import ROWS
from wgdsl.tools.comparison_text import comparison_text as text_of
from wgdsl.tools.steady import Product, groups, overlaps, steady
from wgdsl.tools.work import work

ATTENTION = resource("examples", "attention", "attention.wg")
DIMS = ("D=128", "E=128", "T=bf16")


def only(shipped) -> Column:
    (found,) = columns_of(shipped.schedule, shipped.compile(build=True))
    return found


@pytest.mark.parametrize(
    "shipped, keys, count, granted, registers",
    [(attention("fa3", False, 128), 128, 2, 240, 168), (attention("three", False, 128), 80, 3, 160, 128)],
)
def test_what_a_good_hopper_kernel_shows(shipped, keys, count, granted, registers):
    """D * 2 / 32 instructions of m64n<keys>k16 and keys * 2 / 32 of m64n128k16 in the steady loop; nothing spilled; P through
    registers, all else from shared memory; one CTA to an SM."""
    c = only(shipped)
    assert (c.target, c.role, c.issuer, c.asynchronous) == ("sm_90a", "math", "warpgroup", True)
    assert c.matrix_instructions == 128 * 2 // 32 + keys * 2 // 32
    one, other = 2 * 64 * keys * 16, 2 * 64 * 128 * 16
    assert {s.instruction: s.flops for s in c.shapes} == {f"wgmma m64n{keys}k16": one, "wgmma m64n128k16": other}
    assert c.flops == count * (2 * 64 * keys * 128) * 2 == count * (8 * one + keys // 16 * other)
    assert c.operands == comparing.Operands(
        packed=count * 64 * keys * 2, loaded=0, shared=count * 2 * (64 * 128 + keys * 128 + keys * 128)
    )
    assert (c.held.accumulators, c.held.operands) == (64 + keys // 2, keys // 4)
    assert c.held.sum < c.held.granted == granted
    assert c.assembled == comparing.Assembled(registers=registers, spilled=0)
    assert (c.threads, c.resident) == (128 * (count + 1), 1)


def test_instructions_and_slots_are_those_of_the_steady_loop():
    """354 for 13 products of three warpgroups and 504 for 16 of two were measured on like kernels: bounds, not totals."""
    fa3, three = only(attention("fa3", False, 128)), only(attention("three", False, 128))
    by_role = {s.role: s for s in fa3.slots}
    assert 448 <= by_role["math"].instructions < 560 and by_role["math"].warps == 8
    assert 30 <= by_role["load"].instructions < 80 and by_role["load"].warps == 1
    issued = by_role["math"].instructions * 8 + by_role["load"].instructions
    assert fa3.slots_per_flop == issued / fa3.flops
    assert 354 <= next(s.instructions for s in three.slots if s.role == "math") < 450
    assert three.slots_per_flop > fa3.slots_per_flop, "fewer keys a tile: fewer operations for the same row work"


def test_the_overlap_is_counted_in_the_machine_code():
    """The next score product runs under the issue of the other, which runs under the row maxima; `simple` waits at once."""
    names = [(("S",), ("O",))] * 2
    fa3, simple = only(attention("fa3", False, 128)), only(attention("simple", False, 128))
    assert [tuple(o.products for o in c.overlaps) for c in (fa3, simple)] == names
    s, o = (o.instructions for o in fa3.overlaps)
    assert 8 <= s < 60 and 100 <= o < 250, "8 products of O stand behind those of S; the row maxima behind both"
    assert [o.instructions for o in simple.overlaps] == [0, 0]


@pytest.mark.parametrize(
    "shipped", [attention("fa3", True, 128), attention("two_joined", True, 128), gemm("nk"), dual("dual")], ids=lambda s: s.name
)
def test_placed_operations_are_those_of_the_machine_code(shipped):
    """Every matrix instruction of the loop, by the shape that its own name says; four warps issue one together."""
    kernel = shipped.compile(build=True)
    (placed,) = kernel.roles.kernels
    math = next(r for r in placed.roles if not r.elected)
    found = steady(placed, math, read_code(kernel.sass))
    assert found is not None
    issued = [i.op for i in found.code if i.mnemonic in MATRIX]
    assert sum(flops(sass_shape(op)) for op in issued) * math.count == found.flops * found.tiles


def test_a_product_may_be_awaited_in_the_next_pass():
    c = only(gemm("nk"))
    (overlap,) = c.overlaps
    assert overlap.products == ("Acc",) and overlap.instructions >= next(s.instructions for s in c.slots if s.role == "math")


def test_a_kernel_without_products_has_gaps():
    columns = list(columns_of("split", gemm("nk", schedule="split").compile(build=True)))
    assert [c.role for c in columns] == [None, "math", None]
    text = text_of(Comparison(program="gemm", settings={}, dims={}, columns=tuple(columns)), "text")
    assert "split: gemm_split_finish_C" in text and "registers placed" in text
    assert columns[0].resident == 16 and columns[0].held is None and columns[0].overlaps == ()


# A warp's own products: a text by hand, for the steps of a target with `mma.sync`.

BY_WARPS = r"""
extern "C" __global__ void __launch_bounds__(128) by_warps(float* out, int n) {
  __shared__ __align__(128) unsigned char tiles[16384];
  unsigned base = (unsigned)__cvta_generic_to_shared(tiles) + threadIdx.x * 16;
  float c[2][4] = {};
  #pragma unroll UNROLL
  for (int k = 0; k < n; ++k) {
    unsigned a0, a1, a2, a3, b0, b1, b2, b3, at = base + (k & 3) * 4096;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(b0), "=r"(b1), "=r"(b2), "=r"(b3) : "r"(at + 2048));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b2), "r"(b3));
  }
  for (int x = 0; x < 8; ++x) out[threadIdx.x * 8 + x] = c[x / 4][x % 4];
}
"""


class Mma(m.Wgmma):
    """A product that each warp makes of its own rows, from registers."""


def by_warps(unroll: int) -> tuple[m.Kernel, nvrtc.Compiled, Code]:
    """A kernel with one role of 4 warps whose loop multiplies [64, 16] by [16, 16]; and such a text, compiled for sm_80."""
    whole = gemm("nk").compile(build=True).roles.kernels[0]
    product = next(s for r in whole.roles for s in m.walk(r.steps) if isinstance(s, m.Wgmma))
    given: dict[str, Any] = {f.name: getattr(product, f.name) for f in fields(product)} | {"n": 16, "k": 16}
    loop = m.Loop(var="k", start=m.ONE, stop=m.ONE, body=(Mma(**given),))
    role = m.Role(name="math", first=0, count=1, registers=None, elected=False, steps=(loop,))
    value = m.Value(name=product.acc, role="math", kind="tile", dtype=whole.value(product.acc).dtype, cols=16)
    made = nvrtc.compile(BY_WARPS.replace("UNROLL", str(unroll)), "sm_80")
    kernel = replace(whole, roles=(role,), values=(value,), threads=128, shared_bytes=16384)
    return kernel, made, read_code(disassemble(made.cubin))


@pytest.mark.parametrize("unroll", [1, 2])
def test_products_of_a_warp(unroll):
    kernel, made, code = by_warps(unroll)
    c = column("by hand", kernel, code, made.kernels[0])
    assert (c.issuer, c.asynchronous, c.overlaps) == ("warp", False, ())
    assert [(s.instruction, s.flops) for s in c.shapes] == [("mma.sync m16n8k16", 2 * 16 * 8 * 16)]
    assert c.matrix_instructions == 2 and c.flops == 4 * 2 * 4096 == 2 * 64 * 16 * 16
    assert c.operands == comparing.Operands(packed=0, loaded=4 * (512 + 512), shared=0)
    (slots,) = c.slots
    assert (
        c.flops is not None
        and slots.warps == 4
        and slots.instructions >= 5
        and c.slots_per_flop == slots.instructions * 4 / c.flops
    )
    assert c.held == comparing.Held(accumulators=8, operands=0, rows=0, other=0, granted=None) and c.resident > 1
    rows = {name: cell(c) for name, cell in ROWS.items()}
    assert rows["matrix instructions a tile"] == "2 by each of 4 warps" and rows["products are"] == "synchronous"
    assert rows["operand bytes a tile through registers"] == "4096 loaded"
    assert rows["instructions from issue to wait"] == "0"


def test_instructions_that_a_placed_product_takes():
    """Those of one warp: HMMA 16 x 8 x 16 of its 16 rows of 64; wgmma by four warps together."""
    kernel, _, _ = by_warps(1)
    step = next(s for s in m.walk(kernel.roles[0].steps) if isinstance(s, m.Wgmma))
    large = replace(step, n=64, k=128)
    assert Product(step=large, engine=INSTRUCTIONS["Mma"], rows=64).instructions == 8 * 8
    assert Product(step=large, engine=INSTRUCTIONS["Mma"], rows=128).instructions == 2 * 8 * 8
    assert Product(step=large, engine=INSTRUCTIONS["Wgmma"], rows=64).instructions == 8
    assert groups((step, m.Commit(), step, step, m.Commit())) == [(step.acc,), (step.acc, step.acc)]


def test_groups_in_flight():
    """A group's wait may come in the next pass, and stands behind another group."""
    sass = """
        /*0000*/                   HGMMA.64x8x16.F32 R0, gdesc[UR0], R0, gsb0 ;
        /*0010*/                   MOV R9, R8 ;
        /*0020*/                   WARPGROUP.DEPBAR.LE gsb0, 0x1 ;
        /*0030*/                   HGMMA.64x8x16.F32 R4, gdesc[UR0], R4 ;
        /*0040*/                   HGMMA.64x8x16.F32 R4, gdesc[UR0], R4, gsb0 ;
        /*0050*/                   WARPGROUP.DEPBAR.LE gsb0, 0x1 ;
    """
    assert overlaps(INSTRUCTIONS["Wgmma"], read_code(sass).instructions) == [4, 3]


@pytest.mark.parametrize("causal", [False, True])
def test_the_work_of_a_program(causal):
    """Twice the elements of both products that exist, counted one by one."""
    graph = attention("fa3", causal, 128).compile().graph
    sizes = {"B": 2, "G": 3, "R": 2, "M": 37, "N": 50, "D": 128, "E": 128}
    i, j = np.indices((37, 50))
    kept = int((j <= i + 50 - 37).sum()) if causal else 37 * 50
    assert work(graph, sizes) == 2 * 2 * (2 * 3 * 2) * kept * 128
    assert work(graph, {**sizes, "N": 0}) == 0


def test_the_work_of_a_product_over_a_number():
    """`sum[j] P * V / N` is a product too."""
    path = ROOT / "examples" / "relu2_attention" / "relu2_attention.wg"
    graph = compile(path, target="sm_90a", dims={"D": 64, "E": 32}, types={"T": "bf16"}, build=False).graph
    assert work(graph, {"B": 2, "M": 3, "N": 5, "H": 7, "D": 64, "E": 32}) == 2 * 2 * 3 * 5 * 7 * (64 + 32)


# The command.


@pytest.fixture
def wgdsl(capfd):
    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as e:
            cli.main(["compare", str(ATTENTION), *words])
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return int(e.value.code or 0), out, err

    return call


def test_a_row_for_each_measure_and_a_column_for_each_schedule(wgdsl, monkeypatch):
    monkeypatch.setattr(cuda, "available", lambda: False)
    code, out, _ = wgdsl("--schedules", "fa3,three", "--set", *DIMS)
    title, _, heads, *rows = out.splitlines()
    assert code == 0 and title == "program attention, causal = false, lse = true, T = bf16, D = 128, E = 128"
    assert heads.split() == ["fa3", "three"] and len(rows) == len(ROWS)
    cells = {r[: heads.index("fa3")].strip(): r[heads.index("fa3") :].split("  ") for r in rows}
    assert list(cells) == list(ROWS)
    assert cells["issue slots a MFLOP"][0].isdigit()
    assert cells["registers placed"][0] == "170 of 240" and cells["time"][0] == "no GPU here"
    assert cells["matrix instructions a tile"][0] == "16 by each of 2 warpgroups"


def test_markdown(wgdsl):
    code, out, _ = wgdsl("--schedules", "fa3", "--set", *DIMS, "--format", "md")
    table = out.splitlines()[2:]
    assert code == 0 and table[:2] == ["|  | fa3 |", "| --- | --- |"] and "| instruction | wgmma m64n128k16 |" in table


def test_json_has_the_documented_names(wgdsl):
    code, out, _ = wgdsl("--schedules", "fa3,simple", "--set", *DIMS, "--format", "json")
    found = json.loads(out)
    assert code == 0 and list(found) == ["format", "program", "settings", "dims", "columns"] and found["format"] == 1
    (fa3, simple) = found["columns"]
    page = (ROOT / "docs" / "usage.md").read_text("utf-8")
    assert list(fa3) == list(simple) == [f.name for f in fields(Column)]
    for name in (*fa3, *fa3["shapes"][0], *fa3["slots"][0], *fa3["operands"], *fa3["held"], *fa3["assembled"], "tflops"):
        assert f"`{name}`" in page, name
    assert fa3["schedule"] == "fa3" and fa3["overlaps"][1]["products"] == ["O"] and simple["operands"]["packed"] == 32768


def test_for_a_terminal():
    done = Comparison(program="p", settings={"D": 8}, dims={"M": 3}, columns=(only(attention("fa3", False, 128)),))
    shown = text_of(done, "text", terminal=100)
    assert "┃" in shown and "wgmma m64n128k16" in shown and "program p, D = 8; called with M = 3" in shown


def test_the_same_name_twice_is_told_apart(wgdsl):
    path = resource("schedules", "hopper", "attention_fa3.wg")
    _, out, _ = wgdsl("--schedules", f"fa3,{path}", "--set", *DIMS, "--format", "json")
    assert [c["schedule"] for c in json.loads(out)["columns"]] == ["fa3", str(path)]


@pytest.mark.parametrize(
    "words, codes",
    [
        (("--schedules", "fa3,thre,pipelined"), ["WG0651", "WG1010"]),
        (("--schedules", str(resource("schedules", "hopper", "gemm_turns.wg"))), ["WG1010"]),
        (("--schedules", ","), ["WG1011"]),
        (("--schedules", "fa3", "--format", "html"), ["WG0654"]),
        (("--schedules", "fa3", "--set", "Z=1"), ["WG0654"]),
        (("--schedules", "fa3"), ["WG0657"]),
        (("--schedules", "fa3", "--set", *DIMS, "--dims", "B"), ["WG0654"]),
    ],
)
def test_mistakes(wgdsl, words, codes):
    code, _, err = wgdsl(*words)
    assert code == 1 and [line[6:12] for line in err.splitlines() if line.startswith("error[")] == codes


def test_times_are_medians_of_schedules_that_take_turns(monkeypatch):
    """Without a GPU: what would be measured goes into the columns, of several kernels of one schedule together."""
    monkeypatch.setattr(cuda, "available", lambda: True)
    sizes = {"B": 1, "G": 1, "R": 1, "M": 64, "N": 64}
    monkeypatch.setattr(comparing, "interleaved", lambda *_, **__: (sizes, [[3e-6, 1e-6, 2e-6], [4e-6]]))
    request = Request(file=ATTENTION, schedules="fa3,simple", settings=DIMS, dims=("B=1", "H=1", "G=1", "M=64", "N=64"))
    found = compare(request)
    assert isinstance(found, Comparison)
    assert [c.time.seconds for c in found.columns if c.time] == [2e-6, 4e-6]
    assert found.columns[0].time is not None and found.columns[0].time.tflops == 4 * 64 * 64 * 128 / 2e-6 / 1e12
    untimed = compare(replace(request, dims=()))
    assert isinstance(untimed, Comparison) and untimed.columns[0].untimed == comparing.NO_DIMS


def test_schedules_take_turns_on_the_same_inputs(monkeypatch):
    kernels = [attention(s, False, 128).compile() for s in ("fa3", "simple")]
    seen: list[tuple[object, int, int]] = []

    def once(kernel, inputs, dims, repeats):
        seen.append((kernel, id(inputs), repeats))
        return [float(len(seen))]

    monkeypatch.setattr(running, "time_kernel", once)
    dims, seconds = running.interleaved(kernels, {"B": 1, "G": 2, "H": 4, "M": 8, "N": 16}, rounds=2, repeats=7)
    assert dims["R"] == 2 and seconds == [[1.0, 3.0], [2.0, 4.0]]
    assert [k for k, _, _ in seen] == kernels * 2 and len({(inputs, repeats) for _, inputs, repeats in seen}) == 1


@pytest.mark.gpu
def test_times_on_a_gpu():
    dims = ("B=1", "G=4", "H=4", "M=512", "N=512")
    found = compare(Request(file=ATTENTION, schedules="fa3,simple", settings=DIMS, dims=dims))
    assert isinstance(found, Comparison)
    assert all(c.time is not None and c.time.seconds > 0 and 0 < c.time.tflops < 1000 for c in found.columns)


def test_a_watched_process_times(monkeypatch):
    monkeypatch.setattr(cuda, "available", lambda: True)
    monkeypatch.setattr(comparing, "watched", lambda arguments, seconds: len(arguments) + int(seconds))
    request = Request(file=ATTENTION, schedules="fa3", settings=DIMS, dims=("B=1",), timeout=7)
    assert compare(request, ["a", "b"]) == 9
