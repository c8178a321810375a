"""The register budget beside what the assembler says of the same kernels: it warns where the verifier refuses, and only there.

The budget is 24 + the values of a role, at most its registers less 8; an operand that is packed in place counts nothing.
Between that and the role's registers the assembler has been seen to do without spills (236 of 240) and to fail (160 of 160):
the verifier refuses there.
"""

from __future__ import annotations

import pytest

from tests.lowering import FA3, SIMPLE, attention, lowered
from wgdsl.diagnostics.verify import RegisterNeed
from wgdsl.emit import emit_program
from wgdsl.roles.model import RoleProgram
from wgdsl.runtime import nvrtc
from wgdsl.verify.packed import packed_in_place
from wgdsl.verify.registers import register_problems

SHARES = {2: (24, 240), 3: (32, 160), 4: (24, 112)}  # warpgroups -> registers of the loader, of each


def program(base: str, warpgroups: int, d: int, keys: int, causal: bool) -> RoleProgram:
    load, math = SHARES[warpgroups]
    text = base.replace("i 128, j 128", f"i {64 * warpgroups}, j {keys}").replace("registers 24\n", f"registers {load}\n")
    own = f"{warpgroups} warpgroups, registers {math}"
    return lowered(attention(causal, d), text.replace("2 warpgroups, registers 240", own))


def need(p: RoleProgram) -> int | None:
    """The registers for which a kernel is refused; None if it isn't."""
    found = [x for x in register_problems(p.kernels[0]) if isinstance(x, RegisterNeed)]
    return found[0].need if found else None


def complaints(p: RoleProgram) -> set[str]:
    (text,) = emit_program(p).values()
    (r,) = nvrtc.compile(text, "sm_90a").kernels
    return {c.number for c in r.complaints} | ({"spills"} if r.spill_stores + r.spill_loads else set())


# (schedule, warpgroups, D, the widest key tile that fits, the next, what that one needs). `simple` packs P where S was.
EDGES = [
    (FA3, 3, 128, 80, 96, 160),
    (FA3, 4, 64, 64, 80, 116),
    (FA3, 3, 64, 128, 144, 164),
    (FA3, 2, 128, 192, 208, 244),
    (SIMPLE, 3, 128, 128, 144, 160),
    (SIMPLE, 4, 64, 96, 112, 112),
]
IDS = [f"{'fa3' if base is FA3 else 'simple'}-{n}x-d{d}" for base, n, d, *_ in EDGES]


LEVERS = [
    ("rescale O", "rescale O when grown by 8"),
    ("  grid   over (b, g, r, i)", "  grid persistent dynamic over (b, g, r, i) longest_first section (b, g, r) within 32 MB"),
    ("  role load", "  skip empty per warpgroup\n  role load"),
]


def levered(base: str) -> str:
    """The schedule with every lever that takes row values and flags beside the tiles."""
    for old, new in LEVERS:
        assert old in base
        base = base.replace(old, new, 1)
    return base


def check_edge(base: str, warpgroups: int, d: int, fits: int, over: int, registers: int, causal: bool) -> None:
    right, wrong = (program(base, warpgroups, d, keys, causal) for keys in (fits, over))
    assert need(right) is None and complaints(right) == set()
    assert need(wrong) == registers and complaints(wrong) == {"7512", "spills"}


@pytest.mark.parametrize("edge", EDGES, ids=IDS)
def test_the_edge_is_the_assemblers(edge):
    check_edge(*edge, causal=False)


@pytest.mark.slow
@pytest.mark.parametrize("edge", EDGES, ids=IDS)
def test_the_edge_under_a_mask(edge):
    check_edge(*edge, causal=True)


@pytest.mark.parametrize("edge", EDGES[:3], ids=IDS[:3])
def test_levers_fit_where_the_tiles_do(edge):
    """At the very edge they may cost a few bytes of spills, of which the caller is warned; products stay asynchronous."""
    base, warpgroups, d, fits, *_ = edge
    p = program(levered(base), warpgroups, d, fits, causal=True)
    assert need(p) is None and complaints(p) <= {"spills"}


@pytest.mark.slow
@pytest.mark.parametrize("edge", EDGES, ids=IDS)
def test_the_edge_with_levers(edge):
    base, warpgroups, d, fits, over, registers = edge
    right, wrong = (program(levered(base), warpgroups, d, keys, causal=True) for keys in (fits, over))
    assert need(right) is None and complaints(right) <= {"spills"}
    assert need(wrong) == registers and "spills" in complaints(wrong)


def test_an_operand_that_lives_beside_its_tile_has_registers_of_its_own():
    for base, inside in ((SIMPLE, {"P.frag": "S"}), (FA3, {})):
        (kernel,) = lowered(attention(), base).kernels
        assert packed_in_place(kernel, kernel.roles[1]) == inside


def test_heads_that_no_key_tile_suits():
    """Three warpgroups hold 128 accumulator registers each of the 152 that they may use: nothing is left for scores."""
    p = program(FA3, 3, 256, 16, causal=False)
    assert need(p) == 24 + 128 + 8 + 4
