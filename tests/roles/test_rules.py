"""The form's own rules: each broken once, and named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.docs.test_cookbook_page import changed
from tests.shipped import attention as shipped_attention
from tests.shipped import gemm as shipped_gemm
from tests.sim.copying import Copying, build
from tests.sim.programs import attention, drop, edit, gemm
from wgdsl.driver import compile
from wgdsl.foundation.dtypes import BF16, F32
from wgdsl.foundation.resources import resource
from wgdsl.program.poly import Poly
from wgdsl.roles.model import (
    Advance,
    Arrive,
    Begun,
    CopyAsync,
    Elect,
    FenceAsync,
    Fetch,
    Items,
    Leave,
    Mma,
    NextItem,
    Pack,
    Registers,
    RoleProgram,
    Slot,
    Step,
    TakeItem,
    Tally,
    Tma,
    Wait,
    Wgmma,
)
from wgdsl.roles.rules import broken


def whys(program: RoleProgram) -> list[str]:
    return [why for k in program.kernels for _, _, why in broken(k)]


@pytest.mark.parametrize("program", [gemm(), attention()], ids=["gemm", "attention"])
def test_right_programs_break_none(program):
    assert whys(program) == []


def change(kind, **fields):
    return lambda s: replace(s, **fields) if isinstance(s, kind) else s


def kernel_with(program: RoleProgram, **fields) -> RoleProgram:
    return replace(program, kernels=(replace(program.kernels[0], **fields),))


def test_names():
    assert "there is no ring `Xs`" in whys(edit(gemm(), change(Advance, ring="Xs")))
    assert "there is no barrier `Xs.full`" in whys(edit(gemm(), change(Wait, barrier="Xs.full")))
    assert "there is no map `X`" in whys(edit(gemm(), change(Tma, map="X")))
    assert "there is no value `X` in this role" in whys(edit(gemm(), change(Wgmma, acc="X")))
    k = gemm().kernels[0]
    assert "buffer `As` is declared twice" in whys(kernel_with(gemm(), buffers=(*k.buffers, k.buffers[0])))


def test_threads():
    alone = "this step is for one thread, and all threads of the warpgroup would execute it"
    assert alone in whys(edit(gemm(), lambda s: s.body if isinstance(s, Elect) else s))
    together = "this step is for a whole warpgroup, and one thread would execute it"
    assert together in whys(edit(gemm(), lambda s: Elect(body=(s,)) if isinstance(s, FenceAsync) else s))


def test_register_counts():
    assert "role `load` sets its registers 0 times; it does so once, first of all" in whys(
        edit(gemm(), drop(lambda s: isinstance(s, Registers)))
    )
    assert "role `math` has 232 registers" in whys(edit(gemm(), change(Registers, count=224), role="math"))


def test_adding():
    program = shipped_gemm("nk", schedule="split").compile().roles
    assert whys(program) == []
    main = program.kernels[1]
    rounded = tuple(replace(t, dtype=BF16) for t in main.tensors)
    assert "`Acc.sum` holds bf16, and several CTAs add to it" in whys(
        kernel_with(replace(program, kernels=(main,)), tensors=rounded)
    )


def test_numbers_of_items():
    program = shipped_gemm("nk", schedule="turns").compile().roles
    assert whys(program) == []
    assert "it asks for the item's number, and the items aren't counted" in whys(edit(program, change(Items, counted=False)))


def test_items_that_nobody_leaves():
    """Those that are taken from a counter or from another role end where there is none."""
    program = shipped_attention("four_longest", True, 64).compile().roles
    found = whys(edit(program, drop(lambda s: isinstance(s, Leave))))
    assert [w.split("`")[0] for w in found] == [f"items from {x} end at a " for x in ("counter", "work")]


def test_items_that_nobody_takes():
    program = shipped_attention("four_longest", True, 64).compile().roles
    why = "items from work take one `take item`, directly in their body, before they leave"
    assert whys(edit(program, drop(lambda s: isinstance(s, TakeItem)))) == [why]


@pytest.mark.parametrize("name", ["cu_q.b", "cu_q.b.1", "i.left"])
def test_items_passed_over_by_what_another_one_is(name):
    path = resource("examples", "attention_varlen", "attention_varlen.wg")
    program = compile(path, schedule="varlen", target="sm_90a", dims={"D": 64, "E": 64}, types={"T": "f16"}, build=False).roles
    assert whys(program) == []

    def forgetting(s: Step) -> Step:
        return replace(s, reads=tuple(r for r in s.reads if r.name != name)) if isinstance(s, Fetch) else s

    found = whys(edit(program, forgetting))
    assert found == [f"`{name}` is another item's there: it isn't read of the item that may be passed over"]


def test_lists_without_their_lengths():
    mask = "X[b,g,r,i,j] = S[b,g,r,i,j] * scale where doc[b,i] == other[b,j]"
    text = changed(f"in doc: i32[B, M]\nin other: i32[B, N]\n{mask}")
    listed = "schedule listed extends fa3 {\n  stream j descending listed\n}"
    program = compile(text, schedule=listed, target="sm_90a", dims={"D": 64, "E": 64}, build=False).roles
    assert whys(program) == []
    why = "`tally` stores `j.listed` in front of the list once, behind the last tile"
    assert whys(edit(program, drop(lambda s: isinstance(s, Tally)))) == [why]
    early = lambda s: replace(s, body=(s.body[-1], *s.body[:-1])) if isinstance(s, Items) else s  # noqa: E731
    assert why in whys(edit(program, early, role="list"))
    assert why in whys(edit(program, change(Tally, access=(Poly(), Poly(), Poly.of(1)))))


def test_warpgroups():
    assert "the roles take warpgroups [0, 1, 2] of a CTA of 512 threads" in whys(kernel_with(gemm(), threads=512))


def test_arrivals():
    assert "each warp would arrive 4 times" in whys(edit(gemm(), change(Arrive, count=4)))


def test_rings():
    k = gemm().kernels[0]
    shallow = (replace(k.buffers[0], stages=1), *k.buffers[1:])
    assert "buffer `As` has ring `As` and 1 stages, ring `As` has 2" in whys(kernel_with(gemm(), buffers=shallow))
    assert "`As.full` belongs to ring `As`, not `Cs`" in whys(edit(gemm(), change(Wait, slot=Slot(ring="Cs"))))


def test_copies():
    k = gemm().kernels[0]
    other = (replace(k.maps[0], swizzle=64), *k.maps[1:])
    assert "map `A` moves f16 in swizzle 64, `As` holds f16 in swizzle 128" in whys(kernel_with(gemm(), maps=other))
    tall = (replace(k.maps[0], box=(64, 96)), *k.maps[1:])
    assert "the box of map `A` is neither whole panels of `As` nor rows of one" in whys(kernel_with(gemm(), maps=tall))
    assert "map `A` has 2 dimensions" in whys(edit(gemm(), change(Tma, map="A", coords=(Poly.of(0),))))


def test_products():
    assert "`Acc` is a tile of 128 columns, the product has n 64" in whys(edit(gemm(), change(Wgmma, n=64)))
    assert any("is no K-major operand" in w for w in whys(edit(gemm(), change(Wgmma, k=128))))
    k = gemm().kernels[0]
    wide = tuple(replace(b, cols=b.cols * 2) if b.name == "Cs" else b for b in k.buffers)
    assert any("elements, a tile of `Cs`" in w for w in whys(kernel_with(gemm(), buffers=wide)))
    assert any("64 x 64 of f16" in w for w in whys(edit(gemm(), change(Wgmma, dtype=BF16))))


def test_values():
    k = attention().kernels[0]
    narrow = tuple(replace(v, cols=32) if v.name == "P" else v for v in k.values)
    assert "`P` of `math` can't live in the registers of `S`: another kind or size" in whys(
        kernel_with(attention(), values=narrow)
    )
    assert "`S` must be an operand and `P` a tile" in whys(edit(attention(), change(Pack, dst="S")))


def joined(*steps, **fields) -> RoleProgram:
    """The matrix product with these steps at the end of its items."""
    return edit(gemm(), lambda s: replace(s, body=(*s.body, *steps), **fields) if isinstance(s, Items) else s)


def test_joined_items():
    begun = Begun(value=Poly.of(0))
    assert whys(joined(NextItem(), begun, joined=True)) == []
    assert "its body names the next item 0 times" in whys(joined(joined=True))
    assert "`begun` is its last step" in whys(joined(begun, NextItem(), joined=True))
    assert "it tells of the next item, which items learn of only where they are joined" in whys(joined(NextItem()))


def copied(**cols):
    return lambda s: replace(s, cols=replace(s.cols, **cols)) if isinstance(s, CopyAsync) else s


def test_copies_of_threads():
    program, uneven = build(Copying()), "its rows begin and end at multiples of 16 bytes"
    assert whys(program) == []
    assert uneven in whys(edit(program, copied(origin=Poly.of(4))))
    assert uneven in whys(edit(program, copied(origin=Poly.of("M"))))
    assert uneven not in whys(edit(program, copied(origin=Poly.of(8))))
    assert any("elements, and a tile of" in w for w in whys(edit(program, copied(count=8))))


def test_products_of_warps():
    program = build(Copying())
    assert any("n and k in steps of 16" in w for w in whys(edit(program, change(Mma, k=56))))
    assert any("n and k in steps of 16" in w for w in whys(edit(program, change(Mma, n=272))))
    assert "a product of warps takes bf16 and f16, not f32" in whys(edit(program, change(Mma, dtype=F32)))
