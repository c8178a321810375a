"""What is shipped: every program under every schedule, with the options that goldens, cubins and GPU records cover."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import wgdsl
import wgdsl.driver

ROOT = Path(__file__).parent.parent
ATTENTION_SCHEDULES = ("simple", "fa3", "fa3_persistent")
DUAL_SCHEDULES = ("dual", "dual_columns", "dual_three", "dual_turns")


@dataclass(frozen=True)
class Shipped:
    """One kernel: program file, schedule name, and what is fixed at compile time."""

    program: str
    schedule: str
    options: tuple[tuple[str, object], ...] = ()
    dims: tuple[tuple[str, int], ...] = ()
    dtype: str = "bf16"
    target: str | None = "sm_90a"  # None: what the schedule is written for
    result: str | None = None  # the type `U` of results, where a program has one

    @property
    def name(self) -> str:
        options = [{True: k, False: f"no_{k}"}.get(v, str(v)) for k, v in self.options]
        dims = [f"{k.lower()}{v}" for k, v in self.dims]
        types = [self.dtype, *([self.result] if self.result else [])]
        return "-".join([Path(self.program).parent.name, self.schedule, *types, *options, *dims])

    @property
    def types(self) -> dict[str, str]:
        return {"T": self.dtype} | ({"U": self.result} if self.result else {})

    def compile(self, build: bool = False) -> wgdsl.Kernel:
        return _compiled(self, build)


@cache
def _compiled(s: Shipped, build: bool) -> wgdsl.Kernel:
    return wgdsl.driver.compile(
        ROOT / s.program,
        schedule=s.schedule,
        target=s.target,
        dims=dict(s.dims),
        types=s.types,
        options=dict(s.options),
        build=build,
    )


def attention(schedule: str, causal: bool, d: int, e: int | None = None, dtype: str = "bf16", lse: bool = True) -> Shipped:
    options = (("causal", causal), *((("lse", lse),) if not lse else ()))
    return Shipped("examples/attention/attention.wg", schedule, options, (("D", d), ("E", e or d)), dtype)


def gemm(layout: str, bias: bool = False, dtype: str = "bf16", schedule: str = "pipelined", **more: object) -> Shipped:
    return Shipped("examples/gemm/gemm.wg", schedule, (("layout", layout), ("bias", bias), *more.items()), (), dtype)


def batched(schedule: str, dtype: str = "bf16", **options: object) -> Shipped:
    return Shipped("examples/batched_gemm/batched_gemm.wg", schedule, tuple(options.items()), (), dtype)


def row_softmax(k: int, dtype: str = "bf16", schedule: str = "two_pass") -> Shipped:
    return Shipped("examples/row_softmax/row_softmax.wg", schedule, (), (("K", k),), dtype)


def dual(schedule: str, dtype: str = "bf16", **options: object) -> Shipped:
    return Shipped("examples/dual_gemm/dual_gemm.wg", schedule, tuple(options.items()), (), dtype)


def scaled(schedule: str, dtype: str, result: str, **options: object) -> Shipped:
    return Shipped("examples/gemm_scaled/gemm_scaled.wg", schedule, tuple(options.items()), (), dtype, result=result)


def eight(schedule: str, causal: bool, d: int, dtype: str = "e4m3", result: str = "bf16") -> Shipped:
    """Those that transpose values take them as keys are."""
    dims = (("D", d), ("E", d))
    options = (("causal", causal), *((("values", "plain"),) if schedule.startswith("turning") else ()))
    return Shipped("examples/attention_eight_bits/attention_eight_bits.wg", schedule, options, dims, dtype, result=result)


KERNELS = (
    *(attention(s, causal, d) for s in ATTENTION_SCHEDULES for d in (64, 128) for causal in (False, True)),
    *(attention(s, True, 128, dtype="f16") for s in ATTENTION_SCHEDULES),
    attention("fa3", False, 64, dtype="f16"),
    attention("fa3", False, 128, e=64),
    attention("fa3", True, 128, lse=False),
    *(attention(s, causal, 128) for s in ("softmax_turns", "unordered") for causal in (False, True)),
    *(attention(s, causal, 128) for s in ("three", "two") for causal in (False, True)),
    attention("three_longest", True, 128),
    attention("two_longest", True, 128),
    *(attention("two_joined", causal, 128) for causal in (False, True)),
    attention("two_joined_longest", True, 128),
    attention("four", False, 64),
    attention("four_longest", True, 64),
    attention("four_static", True, 64),
    attention("three_128", False, 64),
    attention("three_128_longest", True, 64),
    attention("two_80", False, 256),
    attention("two_64", False, 256),
    attention("two_64_longest", True, 256),
    attention("three", False, 128, dtype="f16"),
    attention("two_64_longest", True, 256, dtype="f16", lse=False),
    *(gemm(layout, bias) for layout in ("nk", "kn") for bias in (False, True)),
    gemm("nk", dtype="f16"),
    gemm("nk", True, act="relu"),
    gemm("nk", act="gelu"),
    gemm("kn", act="none", residual=True),
    gemm("nk", schedule="turns"),
    gemm("kn", True, "f16", "turns", act="relu"),
    gemm("nk", schedule="persistent"),
    gemm("kn", True, "f16", "persistent", act="relu"),
    gemm("nk", schedule="split"),
    gemm("nk", True, "f16", "split", act="gelu", residual=True),
    row_softmax(64),
    row_softmax(128, "f16"),
    batched("batched"),
    batched("batched", bias=True, act="silu"),
    batched("batched_narrow", bias=True, act="gelu", residual=True),
    batched("batched_narrow", "f16", act="relu", residual=True),
    *(dual(s) for s in DUAL_SCHEDULES),
    dual("dual", layout="kn", act="gelu"),
    dual("dual", "f16", act="relu"),
    dual("dual_columns", act="gelu_tanh"),
    scaled("scaled", "e4m3", "bf16"),
    scaled("scaled", "e5m2", "f16", act="relu"),
    scaled("scaled", "e4m3", "e4m3", act="silu"),
    scaled("scaled_128", "e4m3", "f32"),
    scaled("scaled_promoted", "e4m3", "bf16"),
    eight("eight", False, 128),
    eight("eight_longest", True, 128, result="f16"),
    eight("eight_128", False, 64),
    eight("eight_128_longest", True, 64),
    eight("eight_wide", False, 256),
    eight("eight_wide_longest", True, 256),
    eight("turning", False, 128),
    eight("turning_lagging", False, 128),
    eight("turning_apart", False, 64),
    eight("turning_longest", True, 64, result="f16"),
    eight("turning_longest", True, 128),
    eight("turning_lagging_longest", True, 128),
    eight("turning_wide", False, 256),
    eight("turning_wide_longest", True, 256),
)


def warps(s: Shipped) -> Shipped:
    """The same by a schedule for sm_80."""
    return replace(s, target="sm_80")


KERNELS = (
    *KERNELS,
    *(
        warps(attention(name, causal, d))
        for name, d in (("fa2", 64), ("fa2_narrow", 128), ("fa2_wide", 256))
        for name, causal in ((name, False), (f"{name}_longest", True))
    ),
    warps(attention("fa2", True, 64, dtype="f16", lse=False)),
    warps(attention("fa2_narrow", False, 128, e=64, dtype="f16")),
    *(warps(gemm(layout, schedule="warps")) for layout in ("nk", "kn")),
    warps(gemm("nk", True, "f16", "warps", act="relu")),
    warps(gemm("nk", schedule="split_warps")),
    warps(row_softmax(64, schedule="two_pass_warps")),
    warps(batched("batched_warps", bias=True, act="silu")),
    warps(dual("dual_warps")),
    warps(dual("dual_warps", "f16", layout="kn", act="gelu")),
)


def field_ids(kernels=KERNELS) -> list[str]:
    return [k.name for k in kernels]
