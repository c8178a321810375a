"""What a schedule can't say of a role that copies for itself: each refusal, and where it stands. And what one may say."""

from __future__ import annotations

import pytest

from tests.lowering import attention, gemm, lowered, shipped
from wgdsl.diagnostics.model import Problem, WgError
from wgdsl.driver import verified
from wgdsl.roles import model as m
from wgdsl.roles.model import RoleProgram, Step

FA2 = shipped("schedules/ampere/attention_fa2.wg").split("\n\n# The longest")[0]
WARPS = shipped("schedules/ampere/gemm_warps.wg")


def refused(text: str, program: str = "attention") -> Problem:
    with pytest.raises(WgError) as e:
        lowered(gemm() if program == "gemm" else attention(d=64), text)
    (p,) = e.value.problems
    return p


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


GRID = "grid   over (b, g, r, i)"
LATER = "await Vs[j]                  # and one that V is there and that K has been read\n      fill Ks[j+1]"

# what is refused -> (changes, code, title, the text it stands at)
ATTENTION = {
    "a turn": (
        [("compute P[j]\n", "in turn { compute P[j] }\n")],
        "WG0405", "`in turn` in a role that copies for itself is not yet supported", "in turn { compute P[j] }",
    ),
    "a second role": (
        [("  smem Qs", "  role more : 4 warps, registers 64\n  smem Qs"), ("  math {", "  more { await Qs }\n  math {")],
        "WG0405", "a second role here is not yet supported", "role more : 4 warps, registers 64",
    ),
    "joined items": (
        [(GRID, "grid persistent static joined over (b, g, r, i)")],
        "WG0405", "`joined` items on sm_80 is not yet supported", "grid persistent static joined over (b, g, r, i)",
    ),
    "a skip": (
        [("  smem Qs", "  skip empty per warpgroup\n  smem Qs")],
        "WG0405", "`skip` on sm_80 is not yet supported", "skip empty per warpgroup",
    ),
    "whole items": (
        [
            ("4 warps, registers 255, split i", "8 warps, registers 255, split tiles"),
            (GRID, "grid persistent static over (b, g, r, i)"),
            ("by copy over Qs", "by copy"),
            ("    for j {", "    in turn { for j {"),
            ("mma(P[j], Vs[j])\n    }", "mma(P[j], Vs[j])\n    } }"),
            *((f"{x} by cp_async", f"{x} by cp_async ring 2") for x in ("Q[i]", "K[j]", "V[j]")),
        ],
        "WG0405", "`split tiles` on sm_80 is not yet supported", "role math : 8 warps, registers 255, split tiles",
    ),
    "a fill in the first iteration": (
        [("    fill Qs\n", ""), ("      fill Vs[j]\n", "      once { fill Qs }\n      fill Vs[j]\n")],
        "WG0405", "`once` in a role that copies for itself is not yet supported", "once { fill Qs }",
    ),
    "a fill behind the loop": (
        [("    fill Qs\n", ""), ("    finish O, L via Os", "    finish O, L via Os\n    fill Qs")],
        "WG0417", "`Qs` isn't filled before it is read", "issue S[j] = mma(Qs, Ks[j])",
    ),
    "a ring for what is filled once": (
        [("smem Qs = Q[i] by cp_async", "smem Qs = Q[i] by cp_async ring 2")],
        "WG0405", "a ring for what is filled once an item is not yet supported", "smem Qs = Q[i] by cp_async ring 2",
    ),
    "a part of a fill": (
        [("    fill Qs\n", "    fill Qs.0\n    fill Qs.rest\n")],
        "WG0405", "`fill Qs.0` is not yet supported", "fill Qs.0",
    ),
    "a result over a ring": (
        [("by copy over Qs", "by copy over Vs"), ("i 128, j 96", "i 128, j 128")],
        "WG0405", "a result staged over a ring by threads is not yet supported", "smem Os = O[i] by copy over Vs",
    ),
    "a fill of a tile outside the loop": (
        [("    fill Qs\n", "    fill Qs\n    fill Ks[0]\n")],
        "WG0405", "a fill of `Ks` outside the loop is not yet supported", "fill Ks[0]",
    ),
    "a fill in every iteration": (
        [("    fill Qs\n", ""), ("      fill Vs[j]\n", "      fill Vs[j]\n      fill Qs\n")],
        "WG0417", "`Qs` is filled in every iteration, but holds one tile for all of them", "fill Qs",
    ),
    "two fills of one tile": (
        [("    fill Qs\n", "    fill Qs\n    fill Qs\n")],
        "WG0417", "`Qs` is filled twice for one tile", "fill Qs",
    ),
    "tiles out of order": (
        [(LATER, LATER + "\n      fill Ks[j+1]")],
        "WG0417", "`Ks` isn't filled tile by tile", "fill Ks[j+1]",
    ),
    "no fill": ([("      fill Vs[j]\n", "")], "WG0417", "`Vs` is never filled", "smem Vs = V[j] by cp_async"),
    "read before its fill": (
        [("      fill Vs[j]\n", ""), ("mma(P[j], Vs[j])\n", "mma(P[j], Vs[j])\n      fill Vs[j]\n")],
        "WG0417", "`Vs[j]` isn't filled before it is read", "await Vs[j]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTENTION)
def test_a_refusal(name: str):
    changes, code, title, where = ATTENTION[name]
    p = refused(changed(FA2, *changes))
    assert (p.code, p.title()) == (code, title)
    assert p.span is not None and p.span.text == where
    assert p.help()


GEMM = {
    "a slot that is still read": (
        [("ring 2", "")],
        "WG0420", "ring `As` of 1 is full: its tiles are released later, so this step would wait for ever",
        "fill As[k+1], Bs[k+1]",
    ),
    "a fill that nothing reads": (
        [("      issue Acc += mma(As[k], Bs[k])\n", "")],
        "WG0417", "`As` is filled, but no product reads it", "smem As = A[i, k] by cp_async ring 2",
    ),
    "items that are fetched": (
        [("over (i, n)", "persistent dynamic over (i, n)")],
        "WG0405", "a `dynamic` grid on sm_80 is not yet supported", "grid   persistent dynamic over (i, n)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GEMM)
def test_a_refusal_of_a_plain_product(name: str):
    changes, code, title, where = GEMM[name]
    text = WARPS.replace(*changes[0]) if name == "a slot that is still read" else changed(WARPS, *changes)
    p = refused(text, "gemm")
    assert (p.code, p.title()) == (code, title)
    assert p.span is not None and p.span.text == where
    assert p.help()


# What comes out.


def steps(program: RoleProgram, kind: type[Step]) -> list[Step]:
    return [s for r in program.kernels[0].roles for s in m.walk(r.steps) if isinstance(s, kind)]


@pytest.mark.parametrize("grid", ["over", "persistent static over"])
def test_the_warps_meet_before_the_next_item_fills(grid: str):
    program = lowered(gemm(), changed(WARPS, ("over (i, n)", f"{grid} (i, n)")))
    notes = [s.note for s in steps(program, m.BarSync)]
    assert ("the next item may fill what this one has read" in notes) == ("persistent" in grid)
    verified(program)


@pytest.mark.parametrize("over, meets", [(" over Qs", True), ("", False)])
def test_the_warps_meet_where_nothing_is_streamed(over: str, meets: bool):
    """A result is staged over copies that nobody has waited for; with memory of its own there is nothing to tell."""
    program = lowered(attention(d=64), changed(FA2, ("by copy over Qs", f"by copy{over}")))
    assert ("what was filled once an item has arrived" in [s.note for s in steps(program, m.BarSync)]) == meets
    verified(program)


def test_a_wait_counts_the_groups_that_may_stay_in_flight():
    """Two slots to spare: the copies of the next slice go on while this one is read."""
    early = changed(
        WARPS,
        ("      await As[k]  # and what was copied with it; one barrier tells also that the slice before is read\n", ""),
        ("      fill As[k+1], Bs[k+1]\n", "      fill As[k+1], Bs[k+1]\n      await As[k]\n"),
    ).replace("ring 2", "ring 3")
    program = lowered(gemm(), early)
    assert [s.pending for s in steps(program, m.WaitCopies)] == [1, 0]  # type: ignore[attr-defined]
    assert len({(s.id, s.note) for s in steps(program, m.BarSync)}) == 2  # and that the result is staged  # type: ignore[attr-defined]
    verified(program)


def test_a_barrier_in_front_of_a_fill_where_no_slot_is_spare():
    early = changed(
        WARPS,
        ("      await As[k]  # and what was copied with it; one barrier tells also that the slice before is read\n", ""),
        ("      fill As[k+1], Bs[k+1]\n", "      fill As[k+1], Bs[k+1]\n      await As[k]\n"),
    )
    program = lowered(gemm(), early)
    assert "all warps have read As" in [s.note for s in steps(program, m.BarSync)]
    verified(program)


AHEAD = """wg 1
schedule ahead for attention on sm_80 {
  tile   i 64, j 48
  stream j ORDER
  grid   over (b, g, r, i)
  role math : 4 warps, registers 255, split i
  smem Qs = Q[i] by cp_async
  smem Ks = K[j] by cp_async
  smem Vs = V[j] by cp_async
  smem Os = O[i] by copy over Qs
  math {
    fill Qs
    for j { fill Ks[j+1]  fill Vs[j]  issue S[j+1] = mma(Qs, Ks[j+1])  BODY }
    finish O, L via Os
  }
}
"""
BODIES = (
    "issue O += mma(P[j], Vs[j])  compute P[j+1]  pack P[j+1]  rescale O",
    "compute P[j+1]  issue O += mma(P[j], Vs[j])  rescale O  pack P[j+1]",
)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("order", ["descending", ""])
@pytest.mark.parametrize("body", BODIES)
def test_the_warps_meet_behind_a_loop_that_may_not_run(body: str, order: str, causal: bool):
    """What the prologue has read is still being read where the next loop fills the one slot."""
    verified(lowered(attention(d=64, causal=causal), AHEAD.replace("ORDER", order).replace("BODY", body)))
