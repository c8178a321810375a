"""The text of a role program: its vocabulary, and that it holds everything."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from tests.emit.checks import check as filecheck
from tests.shipped import attention as shipped_attention
from tests.shipped import gemm as shipped_gemm
from tests.sim.programs import attention, gemm
from wgdsl.foundation.dtypes import DTYPES, DType
from wgdsl.program.expr import Affine, Apply, Cmp, Expr, IndexValue, Logic, Reg, Scalar, Select, const
from wgdsl.program.poly import Poly
from wgdsl.roles.expressions import expr_text
from wgdsl.roles.model import Axis, RoleProgram, Step, StoreGlobal, Value
from wgdsl.roles.text import roles_text


def test_the_vocabulary_of_an_attention():
    filecheck(
        roles_text(attention()),
        """
        CHECK: {{^}}roles by_hand for attention on sm_90a {
        CHECK-NEXT: from "hand.wg"
        CHECK-NEXT: rounds "P to bf16 (operand)"
        CHECK: grid persistent over (i in (M + 127) / (128) by 128)
        CHECK: threads 384
        CHECK-NEXT: shared 49248
        CHECK: map Q of Q: bf16 dims (axis 1 < D, axis 0 < M) box (64, 64) swizzle 128
        CHECK: smem Ks = K[j, d]: bf16 64 x 64 swizzle 128 ring Ks parts 1 stages 2 at 16384 # 8192 bytes a tile
        CHECK: smem Os = O[i, e]: bf16 64 x 64 swizzle 128 ring Os parts 2 stages 1 at 0 over Qs
        CHECK: ring Qs stages 1 holds (Qs) full Qs.full empty Qs.empty
        CHECK: barrier Ks.empty of Ks count 8 parts 1 stages 2 at 49200
        CHECK: role load : warpgroups 0 +: 1 registers 24 {
        CHECK-NEXT: registers dec 24
        CHECK-NEXT: one thread {
        CHECK-NEXT: items {
        CHECK-NEXT: let j.n = (N + 63) / (64)
        CHECK-NEXT: wait Qs.empty[0, s] parity not p @10
        CHECK-NEXT: expect Qs.full[0, s] bytes 8192
        CHECK-NEXT: tma Qs[0, s] = Q[i.lo +: 64, 0 +: 64] by Q signals Qs.full[0, s]
        CHECK: loop t 0 .. j.n - 1 {
        CHECK: role math : warpgroups 1 +: 2 registers 240 {
        CHECK: value P: tile 64 x 64 f32 over S # 0 registers
        CHECK: value l: row f32 partial # 2 registers
        CHECK-NEXT: # 88 registers of values a thread
        CHECK: if -wg >= 0 {
        CHECK-NEXT: arrive bar 1 threads 256
        CHECK: wait Qs.full[wg, s] parity p
        CHECK: sync bar wg + 1 threads 256
        CHECK-NEXT: fence wgmma
        CHECK-NEXT: wgmma S = Qs[wg, s] k_major * Ks[s] k_major first shape 64 x 64 x 64 bf16
        CHECK-NEXT: commit
        CHECK-NEXT: wait Vs.full[s] parity p
        CHECK-NEXT: wgmma O += Pr * Vs[s] mn_major first if -t + 1 >= 0 shape 64 x 64 x 64 bf16
        CHECK: wait_group 1 ready S
        CHECK-NEXT: arrive Ks.empty[s] by lane 0 of each warp
        CHECK-NEXT: advance Ks
        CHECK-NEXT: compute {
        CHECK-NEXT: S[i = i.lo + 64 * wg +: 64, j = 64 * t +: 64] = select(N - j - 1 >= 0, (S * scale), -inf)
        CHECK-NEXT: x[i = i.lo + 64 * wg +: 64] = max[j = 64 * t +: 64] S from m lanes full
        CHECK: pack Pr = P
        CHECK: } else {
        CHECK-NEXT: zero O
        CHECK: put L[i] = {{.*}} over i = i.lo + 64 * wg +: 64
        CHECK: write Os[wg, s] = O
        CHECK-NEXT: fence async
        CHECK-NEXT: sync bar wg + 8 threads 128
        CHECK-NEXT: one thread {
        CHECK-NEXT: store O[i.lo + 64 * wg +: 64, 0 +: 64] by O = Os[wg, s]
        CHECK-NEXT: commit_store
        CHECK-NEXT: wait_read 0
        CHECK-NEXT: arrive Qs.empty[wg, s] by one thread
        """,
    )


def test_a_lagging_slot_and_a_panel():
    filecheck(
        roles_text(gemm(), lines=False),
        """
        CHECK: tma Bs[s] panel 1 = B[64 * t +: 64, j.lo + 64 +: 64] by B signals As.full[s]
        CHECK: if t - 1 >= 0 {
        CHECK-NEXT: arrive As.empty[s-1] by lane 0 of each warp
        """,
    )


def test_lines_can_be_left_out_and_nothing_else_goes_with_them():
    whole = roles_text(gemm()).splitlines()
    assert any(x.endswith("  @10") for x in whole)
    bare = roles_text(gemm(), lines=False).splitlines()
    assert not any("@" in x for x in bare)
    assert [x.split("  @")[0].rstrip() for x in whole if "from" not in x] == bare


def test_integers_predicates_and_numbers_are_told_apart():
    i, s = Poly.of("i"), Reg(name="S")
    texts = [
        expr_text(e)
        for e in (
            Affine(poly=i),
            Cmp(op="ge", left=IndexValue(poly=i), right=const(0)),
            Cmp(op="ge", left=s, right=const(0.0)),
            IndexValue(poly=i - 1),
            Apply(fn="sub", args=(IndexValue(poly=i), const(1))),
            Apply(fn="sub", args=(IndexValue(poly=i), const(1.0))),
            Logic(op="and", args=(Affine(poly=i), Logic(op="or", args=(Affine(poly=-i), const(True))))),
            Logic(op="not", args=(Affine(poly=i),)),
            Select(cond=Affine(poly=i), then=s, other=Scalar(name="x")),
        )
    ]
    assert texts == [
        "i >= 0",
        "(int(i) >= 0)",
        "(S >= 0.0)",
        "int(i - 1)",
        "(int(i) - 1)",
        "(int(i) - 1.0)",
        "i >= 0 and (-i >= 0 or true)",
        "not i >= 0",
        "select(i >= 0, S, x)",
    ]


# Nothing is left out.

TEXT_ONLY = {"span", "note"}
PROGRAMS = {
    "gemm": gemm,
    "attention": attention,
    "fa3": lambda: shipped_attention("fa3_persistent", True, 64).compile().forms.roles,
    "pipelined": lambda: shipped_gemm("kn", bias=True).compile().forms.roles,
}


def variants(x: Any) -> Iterator[tuple[str, Any]]:
    """The value with one leaf changed, for every leaf: (what, changed)."""
    if isinstance(x, bool):
        yield "bool", not x
    elif isinstance(x, int):
        yield "int", x + 8
    elif isinstance(x, float):
        yield "float", -x if math.isinf(x) else x + 0.5
    elif isinstance(x, Poly):
        yield "poly", x + 1
    elif isinstance(x, DType):
        yield "dtype", next(d for d in DTYPES.values() if d != x and d.nbytes == x.nbytes)
    elif isinstance(x, tuple):
        for k, v in enumerate(x):
            for what, changed in variants(v):
                yield f"{k}.{what}", (*x[:k], changed, *x[k + 1 :])
    elif is_dataclass(x) and not isinstance(x, type):
        for f in fields(x):
            if f.name in TEXT_ONLY or (isinstance(x, Step) and f.metadata.get("region")):
                continue
            if f.name == "cols" and isinstance(x, Value) and x.kind == "row":
                continue  # a row value has no columns
            for what, changed in variants(getattr(x, f.name)):
                yield f"{type(x).__name__}.{f.name}.{what}", replace(x, **{f.name: changed})


NAMED = {"by": ("warps", "thread"), "major": ("K", "MN"), "direction": ("inc", "dec"), "lanes": ("full", "partial"),
         "op": ("sum", "max")}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_change_shows(name: str):
    program = PROGRAMS[name]()
    before = roles_text(program, lines=False)
    seen = set()
    for what, changed in all_variants(program):
        assert roles_text(changed, lines=False) != before, what
        seen.add(what.split(".")[0])
    assert {"Wgmma", "Tma", "Buffer", "Barrier", "TensorMap", "Value", "Wait"} <= seen


def all_variants(program: RoleProgram) -> Iterator[tuple[str, RoleProgram]]:
    (kernel,) = program.kernels
    for f in fields(kernel):
        if f.name in ("roles", "index_extents"):
            continue
        for what, changed in variants(getattr(kernel, f.name)):
            yield f"{kind_of(getattr(kernel, f.name), what)}.{f.name}.{what}", with_kernel(program, **{f.name: changed})
    for k, role in enumerate(kernel.roles):
        for what, changed in step_variants(role.steps):
            roles = (*kernel.roles[:k], replace(role, steps=changed), *kernel.roles[k + 1 :])
            yield what, with_kernel(program, roles=roles)


def kind_of(value: Any, what: str) -> str:
    return type(value[0]).__name__ if isinstance(value, tuple) and value else what


def with_kernel(program: RoleProgram, **changes) -> RoleProgram:
    return replace(program, kernels=(replace(program.kernels[0], **changes),))


def step_variants(steps: tuple[Step, ...]) -> Iterator[tuple[str, tuple[Step, ...]]]:
    for k, s in enumerate(steps):
        for what, changed in (*variants(s), *named_variants(s)):
            yield what, (*steps[:k], changed, *steps[k + 1 :])
        for f in fields(s):
            if f.metadata.get("region"):
                for what, block in step_variants(getattr(s, f.name)):
                    yield what, (*steps[:k], replace(s, **{f.name: block}), *steps[k + 1 :])


def named_variants(s: Step) -> Iterator[tuple[str, Step]]:
    for f in fields(s):
        for other in NAMED.get(f.name, ()) if not isinstance(s, StoreGlobal) else ("max",) if f.name == "by" and s.add else ():
            if getattr(s, f.name) != other:
                yield f"{type(s).__name__}.{f.name}", replace(s, **{f.name: other})
        v = getattr(s, f.name)
        if isinstance(v, Expr | Axis) or f.name in TEXT_ONLY:
            continue
        if f.name in ("acc", "src", "dst", "value", "var", "name") and isinstance(v, str):
            yield f"{type(s).__name__}.{f.name}", replace(s, **{f.name: v + "2"})
