"""Every way in which a schedule may not fit is refused with its own code, at a place in the schedule."""

from __future__ import annotations

import pytest

from tests.lowering import ATTENTION, FA3, PIPELINED, SIMPLE, attention, gemm, graph, lowered
from wgdsl.diagnostics.model import WgError

PROGRAMS = {
    "attention": attention,
    "attention64": lambda: attention(d=64, e=128),
    "free dims": lambda: graph(ATTENTION, dims={"E": 128}),
    "gemm": gemm,
}
CASES = {
    # name: (program, schedule, (old, new), code)
    "unknown role": ("attention", SIMPLE, ("  load {", "  lod {"), "WG0401"),
    "unknown tensor": ("attention", SIMPLE, ("= K[j]", "= KK[j]"), "WG0401"),
    "unknown index in tile": ("attention", SIMPLE, ("tile   i 128", "tile ii 128"), "WG0401"),
    "no stream": ("attention", SIMPLE, ("stream j descending", ""), "WG0402"),
    "no grid": ("attention", SIMPLE, ("grid   over (b, g, r, i)", ""), "WG0402"),
    "no tile along the stream": ("attention", SIMPLE, (", j 128", ""), "WG0402"),
    "home twice": ("attention", SIMPLE, ("  smem Vs", "  smem Ks = K[j] by tma\n  smem Vs"), "WG0403"),
    "ring of 0": ("attention", SIMPLE, ("K[j] by tma ring 2", "K[j] by tma ring 0"), "WG0404"),
    "registers not of 8": ("attention", SIMPLE, ("registers 24\n", "registers 25\n"), "WG0404"),
    "items of no grid": ("attention", SIMPLE, ("  smem Qs", "  smem work by atomic ring 2\n  smem Qs"), "WG0417"),
    "output index not covered": ("gemm", PIPELINED, ("grid   over (i, n)", "grid over (i)"), "WG0406"),
    "extent not fixed": ("free dims", SIMPLE, None, "WG0407"),
    "wrong product": ("attention", SIMPLE.replace("(Qs, Ks[j])", "(Qs, Vs[j])"), ("(P[j], Vs[j])", "(P[j], Ks[j])"), "WG0408"),
    "no home": ("attention", SIMPLE, ("wgmma(Qs, Ks[j])", "wgmma(Q, Ks[j])"), "WG0409"),
    "accumulator in flight": ("attention", SIMPLE, ("await S[j]", ""), "WG0410"),
    "operand in flight": ("attention", FA3, ("await O[j]", ""), "WG0410"),
    "used before computed": ("attention", SIMPLE, ("compute P[j]", ""), "WG0411"),
    "not rescaled": ("attention", SIMPLE, ("rescale O", ""), "WG0412"),
    "rows per warpgroup": ("attention", SIMPLE, ("tile   i 128", "tile i 192"), "WG0414"),
    "not split": ("attention", SIMPLE, (", split i", ""), "WG0414"),
    "operands swapped": ("gemm", PIPELINED, ("wgmma(As[k], Bs[k])", "wgmma(Bs[k], As[k])"), "WG0408"),
    "n of 8": ("attention", SIMPLE, ("j 128", "j 264"), "WG0415"),
    "staging larger than what it lies over": ("attention64", SIMPLE, None, "WG0416"),
    "never filled": ("attention", SIMPLE, ("fill Vs[j]", ""), "WG0417"),
    "filled but never read": ("attention", SIMPLE, ("smem Ks", "smem Ls = K[j] by tma ring 2\n  smem Ks"), "WG0417"),
    "a product of another target": ("attention", SIMPLE, ("= wgmma(Qs", "= mma(Qs"), "WG0418"),
    "an engine of another target": ("attention", SIMPLE, ("K[j] by tma", "K[j] by cp_async"), "WG0418"),
    "output never stored": ("attention", SIMPLE, ("finish O, L via Os", "finish O via Os"), "WG0419"),
    "more threads than a CTA has": ("attention", SIMPLE, ("role load : 1 warpgroup", "role load : 7 warpgroups"), "WG0404"),
    "several warpgroups fill": ("attention", SIMPLE, ("role load : 1 warpgroup", "role load : 2 warpgroups"), "WG0405"),
    "another target": ("attention", SIMPLE, ("sm_90a", "sm_100a"), "WG0653"),
    "unknown part": ("attention", FA3, ("fill Qs.0", "fill Qs.2"), "WG0401"),
    "a line twice": ("attention", SIMPLE, ("stream j descending", "stream j stream j"), "WG0403"),
    "part never filled": ("attention", FA3, ("once { fill Qs.rest }", ""), "WG0417"),
    "filled twice": ("attention", SIMPLE, ("fill Ks[j]", "fill Ks[j] fill Ks[j]"), "WG0417"),
    "one tile filled in every iteration": ("attention", FA3, ("once { fill Qs.rest }", "fill Qs.rest"), "WG0417"),
    "filled after the loop": ("attention", SIMPLE, ("fill Qs\n", "fill Qs.0\n"), "WG0417"),
    "await of a staging buffer": (
        "attention",
        SIMPLE.replace("grid   over", "grid persistent over"),
        ("await Qs", "await Os await Qs"),
        "WG0417",
    ),
    "once in a turn": ("attention", SIMPLE, ("await Qs", "in turn { once { await Os } } await Qs"), "WG0405"),
    "staging in a ring that is lent too late": (
        "attention",
        FA3.replace("grid   over", "grid persistent over").replace("over Qs", "over Vs"),
        ("K[j] by tma ring 2", "K[j] by tma"),
        "WG0416",
    ),
    "ring full": ("gemm", PIPELINED.replace("ring 3", "ring 1"), None, "WG0420"),
    "no such tile": ("attention", SIMPLE, ("await S[j]", "await S[i]"), "WG0421"),
    "no tile": ("attention", SIMPLE, ("compute P[j]", "compute P"), "WG0421"),
    "issued twice": ("attention", SIMPLE, ("await S[j]", "await S[j] issue S[j] = wgmma(Qs, Ks[j])"), "WG0422"),
    "computed twice": ("attention", SIMPLE, ("compute P[j]", "compute P[j] compute P[j]"), "WG0422"),
    "computed from nothing": ("attention", SIMPLE, ("await Qs\n    for j {", "await Qs for j { compute P.max[j]"), "WG0411"),
    "part of a contraction": ("attention", SIMPLE, ("j 128", "j 128, d 64"), "WG0423"),
    "finished in the loop": (
        "attention",
        SIMPLE,
        ("await O[j]\n    }\n    finish O, L via Os", "await O[j] finish O, L via Os }"),
        "WG0424",
    ),
    "finished by a role without products": (
        "attention",
        SIMPLE.replace("finish O, L", "finish O"),
        ("  load {", "  role last : 1 warpgroup last { finish L }  load {"),
        "WG0405",
    ),
    "computed outside the loop": ("attention", SIMPLE, ("await Qs", "compute P.max[j] await Qs"), "WG0405"),
}


@pytest.mark.parametrize("name", CASES)
def test_refused(name):
    program, text, edit, code = CASES[name]
    if edit is not None:
        assert edit[0] in text
        text = text.replace(*edit, 1)
    with pytest.raises(WgError) as caught:
        lowered(PROGRAMS[program](), text)
    assert code in [p.code for p in caught.value.problems], str(caught.value)
    assert all(p.span is not None for p in caught.value.problems)


def test_several_at_once():
    text = SIMPLE.replace("ring 2", "ring 0").replace("registers 24\n", "registers 25\n")
    with pytest.raises(WgError) as caught:
        lowered(attention(), text)
    assert len(caught.value.problems) >= 3
