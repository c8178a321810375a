"""Every message of a call and of the compiler below, rendered: one snapshot each."""

from __future__ import annotations

import pytest

from tests.snapshots import TextFile
from wgdsl.diagnostics import emit, runtime
from wgdsl.diagnostics.catalogue import problems_of
from wgdsl.diagnostics.render import render_plain
from wgdsl.foundation.source import Source, Span

SCHEDULE = "schedule s for p on sm_90a {\n  role math : 1 warpgroup, registers 240\n}\n"
SPAN = Span(Source("mine.wg", SCHEDULE), 31, 69)
SERIAL = "Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources"

PROBLEMS = [
    emit.Spills(kernel="p_s", role="math", stores=48, loads=52, registers=240, span=SPAN),
    emit.StackFrame(kernel="p_s", nbytes=640),
    emit.Serialised(kernel="p_s", number="7512", text=SERIAL, span=SPAN),
    emit.RegistersIgnored(
        kernel="p_s", number="7508", text="'setmaxnreg' ignored; unable to determine register count", span=SPAN
    ),
    emit.AssemblerNote(kernel="p_s", number="", text="something new"),
    runtime.WrongRank(name="Q", declared=("B", "M", "H", "D"), got=(2, 77, 64)),
    runtime.WrongDType(name="Q", got="f32", expected="bf16", type_name="T"),
    runtime.WrongDevice(name="K", got="cpu", other="Q", expected="cuda:0"),
    runtime.DimsDisagree(dim="M", value=77, where="Q axis 1", other=78, other_where="O axis 1"),
    runtime.NoWholeRatio(dim="R", formula="H = G * R", total=33, where="Q axis 2", known="G = 2 (K axis 2)", by=2),
    runtime.FixedDim(dim="D", value=128, got=64, where="the call"),
    runtime.FixedExtent(where="Q axis 3", got=64, expected=128, dims=("D", "E")),
    runtime.InnerStride(name="Q", axis=3, stride=2),
    runtime.StrideRule(name="B", axis=0, nbytes=2370),
    runtime.BaseRule(name="Q", off=2),
    runtime.WholeGroups(name="K", axis=1, length=510, group=4),
    runtime.OverlappingOutput(name="O", axis=2),
    runtime.SharedOutput(name="O", other="Q"),
    runtime.NeedsGrad(name="Q"),
    runtime.MissingArgument(name="V", signature="kernel(Q, K, V, scale=..., out={'O': ..., 'L': ...})"),
    runtime.UnknownArgument(name="scal", known=("Q", "K", "V", "scale")),
    runtime.BadScalar(name="scale", got="1e+60", expected="f32, up to 3.4e38"),
    runtime.RequireFails(condition="scale > 0.0", values={"scale": -1.0}),
    runtime.NegativeStride(name="b", axis=0, stride=-1),
    runtime.NotAnArray(name="V", got="of type list"),
    runtime.GridTooLarge(total=2**31, axes=("i: 33554432", "j: 64"), limit=2**31 - 1),
    runtime.DimNotGiven(dim="W"),
    runtime.DimTooLarge(dim="M", value=2**31),
    runtime.MapRefused(
        name="Q", code_name="CUDA_ERROR_INVALID_VALUE", what="extents [64, 100], strides [128] bytes, box [64, 64]"
    ),
    runtime.WrongGpu(target="sm_90a", device="NVIDIA B200", has="sm_100a", instead="sm_80"),
    runtime.ReadOnlyOutput(name="O"),
    runtime.UnknownProgram(name="atention", known=("attention",), path="a.wg"),
    runtime.UnknownSchedule(name="fa4", program="attention", known=("fa3", "simple")),
    runtime.TargetMismatch(
        target="sm_86",
        schedule="fa3",
        needs="sm_90a",
        gpu="NVIDIA RTX A6000",
        engines={"sm_90a": ("wgmma", "tma"), "sm_86": ("mma", "cp_async")},
        instead=("fa2",),
        retarget="sm_80",
        span=SPAN,
    ),
    runtime.UnknownTarget(target="sm_9", known=("sm_90a",)),
    runtime.UnknownSetting(text="causl", known=("causal", "lse", "T", "D")),
    runtime.DimsDontFit(why="dim `K` of `gemm` does not follow from the shapes: give it", dims=("M", "N", "K")),
    runtime.DimsToFix(schedule="fa3", dims={"D": 128, "E": 128}, span=SPAN),
    runtime.AmbiguousSchedule(name="s", program="p", paths=("a.wg", "b.wg"), first=SPAN, span=SPAN),
    runtime.TilesDontFit(
        why="`tiles` are for N = 450, and N is 449 in this call", cure="list the tiles of these arrays: `list_tiles`"
    ),
    runtime.BadCandidate(text="three {tile j = 96}", why="`tile j = 96` is no value of a `tune` entry"),
    runtime.NothingLegal(
        program="attention",
        target="sm_90a",
        refused=(("fa3", "WG0707", "role `math` needs 272 registers"), ("simple", "WG0708", "262144 bytes are needed")),
    ),
    runtime.BadTable(path="my.sm_90a.json", row=3, why="it has no times"),
    runtime.EditedTextRefused(path="edited.cu", log='edited.cu(1): error: identifier "x" is undefined\n1 error detected'),
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=[p.code for p in PROBLEMS])
def test_text(problem, snapshot):
    assert render_plain(problem) + "\n" == snapshot(extension_class=TextFile, name=problem.code)


def test_every_problem_has_a_snapshot():
    defined = {c for module in (emit, runtime) for c in problems_of(module)}
    assert {type(p) for p in PROBLEMS} == defined
    assert all(c.doc for c in defined)
