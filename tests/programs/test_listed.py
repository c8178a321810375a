"""`stream j listed`: the lists are NumPy's, what goes through them is right, and lists are kept between calls."""

from __future__ import annotations

import numpy as np
import pytest

from tests.programs.edits import ROOT, edit, plain
from tests.programs.test_masks_and_scores import MASKS, SCHEDULES, arrays, called, scored, where
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import Settings, compile, prepare
from wgdsl.forms import explained
from wgdsl.roles.model import ListTile, MapOp, Read, walk
from wgdsl.runtime.kernel import Kernel
from wgdsl.tools.running import run

TEXTS = {**SCHEDULES, "fa3": plain("schedules/hopper/attention_fa3.wg")}
BASES = {"simple": (128, 128), "fa3": (128, 128), "three": (192, 80), "fa2": (128, 96)}  # rows and columns of a tile
DOC = ("in doc: i32[B, M]", "in other: i32[B, N]")
PROGRAMS = {
    "documents": where("doc[b,i] == other[b,j]", *DOC),
    "documents, causal": where("doc[b,i] == other[b,j] and j <= i", *DOC),
    "documents in a window": where("doc[b,i] == other[b,j] and i - 90 < j <= i + 20", *DOC),
    "documents of some length": where("doc[b,i] == other[b,j] and j < len[b]", *DOC, "in len: i32[B]"),
    "blocks of a head": where("keep[b,h,i,j]", "in keep: bool[B, H, M, N]"),
    "keys": where("not keep[b,j] and j <= i", "in keep: bool[B, N]"),
    "integers": where("keep[b,i,j] != 0", "in keep: i32[B, M, N]"),
    "dilated": where("(i - j) % 3 == 0 and 0 <= i - j < 90"),
    "with a slope": scored("S[b,g,r,i,j] * scale + slope[h] * (j - i) where doc[b,i] == other[b,j]", *DOC, "in slope: f32[H]"),
}
SIZES = ((201, 450), (70, 200), (130, 0), (1, 129), (0, 64))
FIXED = {"dims": {"D": 64, "E": 64}, "types": {"T": "bf16"}}
STREAM = {"descending": "stream j descending listed", "ascending": "stream j listed"}


def listed(program: str, base: str, *lines: str, stream: str = STREAM["descending"]) -> Kernel:
    """The program under a shipped schedule, listed, with other lines of its own."""
    return compile(whole(program, base, "\n".join((stream, *lines))), schedule="listed", build=False, **FIXED)


def whole(program: str, base: str, lines: str) -> str:
    return f"{program}{TEXTS[base].removeprefix('wg 1')}schedule listed extends {base} {{\n{lines}\n}}\n"


def inputs(kernel: Kernel, program: str, m: int, n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Random arrays in which tiles of each class occur: documents are runs, and of blocks some are empty and some are full."""
    found = arrays(program, {"B": 2, "G": 1, "H": 2, "M": m, "N": n, "D": 64, "E": 64}, seed)
    rng = np.random.default_rng(seed)
    for name in ("doc", "other"):
        if name in found:
            found[name] = np.sort(found[name], axis=1)
    if found.get("keep") is not None and found["keep"].ndim > 2:
        keep = found["keep"]
        blocks = rng.integers(0, 3, (*keep.shape[:-2], -(-m // 64), -(-n // 40)))
        wide = np.repeat(np.repeat(blocks, 64, axis=-2), 40, axis=-1)[..., :m, :n]
        found["keep"] = np.where(wide == 0, 0, np.where(wide == 1, 1, keep)).astype(keep.dtype)
    return {name: a for name, a in found.items() if name in kernel.interface.inputs}


def mask(name: str, a: dict[str, np.ndarray], m: int, n: int) -> np.ndarray:
    """[B or B x H, M, N]: what counts, by NumPy."""
    i, j = np.arange(m)[:, None], np.arange(n)[None, :]
    if name in ("blocks of a head", "integers"):
        return a["keep"] != 0
    if name == "dilated":
        return (((i - j) % 3 == 0) & (i - j >= 0) & (i - j < 90))[None]
    if name == "keys":
        return ~a["keep"][:, None, :] & (j <= i)
    same = a["doc"][:, :, None] == a["other"][:, None, :]
    beside = {
        "documents, causal": j <= i,
        "documents in a window": (i - 90 < j) & (j <= i + 20),
        "documents of some length": j < a["len"][:, None, None] if "len" in a else None,
    }
    return same & beside[name] if name in beside else same


def tiles(seen: np.ndarray, rows: int, cols: int, descending: bool) -> np.ndarray:
    """The lists of a mask: for each tile of rows how many tiles there are, then these; -1 behind them."""
    *outer, m, n = seen.shape
    many = -(-n // cols)
    out = np.full((*outer, -(-m // rows), many + 1), -1)
    for at in np.ndindex(*out.shape[:-1]):
        strip = seen[at[:-1]][at[-1] * rows : (at[-1] + 1) * rows]
        found = []
        for t in range(many)[:: -1 if descending else 1]:
            tile = strip[:, t * cols : (t + 1) * cols]
            if tile.any():
                found.append(2 * t + (tile.all() and tile.shape[1] == cols))
        out[at][: len(found) + 1] = len(found), *found
    return out


def shown(array: np.ndarray) -> np.ndarray:
    """Lists with -1 behind them, where nobody has written."""
    array = np.asarray(array).astype(np.int64)
    return np.where(np.arange(array.shape[-1]) <= array[..., :1], array, -1)


@pytest.mark.parametrize("order", STREAM)
@pytest.mark.parametrize("base", ["fa3", "three", "fa2"])
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "with a slope"])
def test_lists_are_numpys(name, base, order):
    program = PROGRAMS[name]
    kernel = listed(program, base, stream=STREAM[order])
    for m, n in SIZES:
        a = inputs(kernel, program, m, n)
        made = kernel.list_tiles(**a, device="sim", seed=m)
        seen = mask(name, a, m, n)
        if name == "dilated":
            assert made.array.ndim == 2, "it depends on rows alone"
            seen = seen[0]
        if name == "blocks of a head":
            seen = seen.reshape(2, 1, 2, m, n)
        want = tiles(seen, *BASES[base], descending=order == "descending")
        assert made.array.shape == want.shape
        np.testing.assert_array_equal(shown(made.array), want)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_listed_program_is_right(name, base):
    program = PROGRAMS[name]
    kernel = listed(program, base)
    for (m, n), seed in zip(SIZES[:-1], (None, 1, 2, 3), strict=True):
        a = inputs(kernel, program, m, n)
        assert called(kernel, program, m, n, seed, **a) == [], (m, n, seed)


TWICE = "smem Qs = Q[i] by tma ring 2"


@pytest.mark.parametrize(
    "base, lines, order",
    [
        ("fa3", ("grid persistent over (b, g, r, i)", TWICE), "descending"),
        ("fa3", ("grid persistent dynamic over (b, g, r, i)", TWICE), "descending"),
        ("three", ("grid persistent over (b, g, r, i) longest_first",), "descending"),
        ("fa2", ("grid persistent over (b, g, r, i)",), "descending"),
        ("fa3", (), "ascending"),
        ("fa2", (), "ascending"),
    ],
)
def test_grids_and_orders(base, lines, order):
    program = PROGRAMS["documents, causal"]
    kernel = listed(program, base, *lines, stream=STREAM[order])
    for seed in (None, 1):
        a = inputs(kernel, program, 300, 410)
        assert called(kernel, program, 300, 410, seed, **a) == []


@pytest.mark.parametrize("base", ["fa3", "fa2"])
@pytest.mark.parametrize("name", ["documents", "documents, causal", "blocks of a head"])
def test_heads_in_the_rows_of_a_tile(name, base):
    """`fuse`: a list for each tile of queries of all heads that share a key head."""
    program = PROGRAMS[name]
    packed = "fuse m = (i, r)\ngrid over (b, g, m)\nstream j descending listed"
    text = f"{program}{TEXTS[base].removeprefix('wg 1')}schedule packed extends {base} with i = m {{\n{packed}\n}}\n"
    kernel = compile(text, schedule="packed", build=False, dims={**FIXED["dims"], "R": 2}, types=FIXED["types"])
    for m, n in ((100, 300), (1, 130)):
        a = inputs(kernel, program, m, n)
        assert called(kernel, program, m, n, 1, **a) == []
        made = kernel.list_tiles(**a, device="sim")
        rows, cols = BASES[base]
        seen = mask(name, a, m, n).reshape(2, -1, m, n)
        seen = seen.any(axis=1) if name != "documents" else seen[:, 0]
        want = tiles(seen, rows // 2, cols, descending=True)
        shape = (2, 1) if name == "blocks of a head" else (2,)
        assert made.array.shape == (*shape, *want.shape[1:])
        if name != "blocks of a head":
            np.testing.assert_array_equal(shown(made.array), want)


@pytest.mark.parametrize("name", MASKS)
def test_every_mask_can_be_listed_or_is_bounds_alone(name):
    bounds = {
        "causal, last rows aligned", "causal, first rows aligned", "causal, moved", "strictly causal", "window of both sides",
        "window of the past", "chunks that tiles are made of", "chunks of tiles", "this chunk and the last", "lengths",
        "lengths, causal", "not a conjunction", "prefix", "the other diagonal",
    }  # fmt: skip
    if name in bounds:
        with pytest.raises(WgError, match="lists nothing"):
            listed(MASKS[name], "simple")
        return
    kernel = listed(MASKS[name], "simple")
    assert called(kernel, MASKS[name], 201, 129, 1) == []


def test_rows_that_see_nothing():
    program = PROGRAMS["documents"]
    for base in ("fa3", "fa2"):
        kernel = listed(program, base)
        a = inputs(kernel, program, 300, 300)
        a["doc"][:, 40:] = 7
        made = kernel.list_tiles(**a, device="sim")
        assert (made.array[:, 1:, 0] == 0).all() and (made.array[:, 0, 0] > 0).all()
        got = kernel.simulate(**a)
        assert (np.asarray(got.O[:, 40:], np.float32) == 0).all() and (got.L[:, :, 40:] == -np.inf).all()
        assert called(kernel, program, 300, 300, None, **a) == []


@pytest.mark.parametrize("base", ["simple", "fa3", "fa2"])
@pytest.mark.parametrize("name, m, n, outside", [
    ("documents in a window", 40, 400, slice(60, 400)),
    ("documents in a window", 300, 600, slice(320, 600)),
    ("documents, causal", 60, 300, slice(60, 300)),
])  # fmt: skip
def test_what_no_row_of_a_tile_sees_may_be_anything(name, m, n, outside, base):
    program = PROGRAMS[name]
    kernel = listed(program, base)
    a = inputs(kernel, program, m, n)
    for t in ("K", "V"):
        a[t][:, outside] = np.nan
    assert called(kernel, program, m, n, None, **a) == []


@pytest.mark.parametrize("base", ["fa3", "fa2"])
def test_a_tile_that_is_not_listed_is_not_read(base):
    """Also one between two that are."""
    program = PROGRAMS["blocks of a head"]
    kernel = listed(program, base)
    rows, cols = BASES[base]
    a = inputs(kernel, program, rows, 3 * cols)
    a["keep"][...] = True
    a["keep"][..., cols : 2 * cols] = False
    for t in ("K", "V"):
        a[t][:, cols : 2 * cols] = np.nan
    assert called(kernel, program, rows, 3 * cols, None, **a) == []


@pytest.mark.parametrize("base", ["fa3", "three", "fa2"])
def test_only_partial_tiles_are_tested(base):
    main = listed(PROGRAMS["documents, causal"], base).roles.kernels[-1]
    ops = [op for r in main.roles for s in walk(r.steps) for op in getattr(s, "ops", ())]
    masks = [op for op in ops if isinstance(op, MapOp) and "doc" in str(op.expr)]
    assert masks and all(op.when is not None for op in masks)


# Lists between calls.


@pytest.mark.parametrize("base", ["three", "fa2"])
def test_lists_are_kept(base):
    program = PROGRAMS["documents, causal"]
    kernel = listed(program, base)
    a = inputs(kernel, program, 201, 450)
    made = kernel.list_tiles(**a, device="sim")
    alone = kernel.list_tiles(doc=a["doc"], other=a["other"], device="sim")
    np.testing.assert_array_equal(shown(made.array), shown(alone.array))
    assert made.dims == {"B": 2, "M": 201, "N": 450}
    want = kernel.simulate(**a)
    for got in (kernel.simulate(**a, tiles=made), kernel(**a, tiles=alone, device="sim"), kernel.simulate(**a, tiles=None)):
        for x, y in zip(got, want, strict=True):
            assert np.array_equal(x.view(np.uint8), y.view(np.uint8))
    made.array[..., 0] = 0  # and they are what is gone through
    assert (-np.inf == kernel.simulate(**a, tiles=made).L).all()


def test_the_evaluator_takes_lists_and_needs_none():
    program = PROGRAMS["documents"]
    kernel = listed(program, "fa2")
    a = inputs(kernel, program, 40, 100)
    made = kernel.list_tiles(**a, device="sim")
    want = kernel(**a, device="reference")
    for x, y in zip(kernel(**a, tiles=made, device="reference"), want, strict=True):
        np.testing.assert_array_equal(x, y)


def test_what_is_missing_of_a_mask():
    kernel = listed(PROGRAMS["documents"], "fa2")
    a = inputs(kernel, PROGRAMS["documents"], 40, 100)
    with pytest.raises(WgError, match=r"`other` is missing\n.*the call is kernel.list_tiles\(doc, other\)"):
        kernel.list_tiles(doc=a["doc"], device="sim")


def test_sizes_that_the_arrays_of_a_mask_do_not_tell():
    kernel = listed(PROGRAMS["dilated"], "fa2")
    assert kernel.list_tiles(M=201, N=450, device="sim").array.shape == (2, 6)
    with pytest.raises(WgError, match="WG0619"):
        kernel.list_tiles(M=201, device="sim")
    with pytest.raises(WgError, match=r"WG0659.*on which device"):
        kernel.list_tiles(M=201, N=450)
    with pytest.raises(ValueError, match="gpu and sim"):
        kernel.list_tiles(M=201, N=450, device="reference")


def test_lists_of_others_are_refused():
    program = PROGRAMS["documents"]
    kernel, causal = listed(program, "fa2"), listed(PROGRAMS["documents, causal"], "fa2")
    a = inputs(kernel, program, 201, 450)
    b = inputs(kernel, program, 201, 449)
    made = kernel.list_tiles(**a, device="sim")
    with pytest.raises(WgError, match=r"WG0659.*N = 450, and N is 449"):
        kernel.simulate(**b, tiles=made)
    with pytest.raises(WgError, match=r"WG0659.*N = 450, and N is 449"):
        kernel.simulate(**a, N=449, tiles=made)
    with pytest.raises(WgError, match=r"WG0659.*whose lists aren't those of"):
        causal.simulate(**a, tiles=made)
    with pytest.raises(WgError, match=r"WG0659.*of type ndarray"):
        kernel.simulate(**a, tiles=made.array)
    with pytest.raises(WgError, match=r"WG0659.*don't depend on `Q`"):
        kernel.list_tiles(doc=a["doc"], other=a["other"], Q=a["Q"], device="sim")
    plainly = compile(program, schedule=TEXTS["fa2"], build=False, **FIXED)
    for call in (lambda: plainly.list_tiles(**a, device="sim"), lambda: plainly.simulate(**a, tiles=made)):
        with pytest.raises(WgError, match=r"WG0659.*lists no tiles"):
            call()


def test_a_kernel_made_again_takes_them():
    program = PROGRAMS["documents"]
    first = listed(program, "fa2")
    a = inputs(first, program, 70, 200)
    other = Kernel(first.forms)
    assert other.simulate(**a, tiles=first.list_tiles(**a, device="sim")).L.shape == (2, 2, 70)


# What a schedule may say.


@pytest.mark.parametrize("base, stream, lines, what", [
    ("two", "stream j descending listed", ("grid persistent joined over (b, g, r, i)",), "where items are joined"),
    ("three", "stream j descending listed", ("skip empty per warpgroup",), "`skip` beside a listed stream"),
    ("fa3", "stream j listed split s in 2", ("grid over (s, b, g, r, i)",), None),
])  # fmt: skip
def test_what_is_not_listed_yet(base, stream, lines, what):
    texts = {**TEXTS, "two": plain("schedules/hopper/attention_two.wg")}
    more = "\n".join((stream, *lines))
    text = f"{PROGRAMS['documents']}{texts[base].removeprefix('wg 1')}schedule listed extends {base} {{\n{more}\n}}\n"
    with pytest.raises(WgError, match=what):
        compile(text, schedule="listed", build=False, **FIXED)


def test_what_is_not_known_before_is_not_listed():
    with pytest.raises(WgError, match="which isn't an input"):
        listed(where("S[b,g,r,i,j] > 0.0"), "simple")


@pytest.mark.parametrize("base", ["fa3", "fa2"])
def test_the_explicit_form_is_the_same(base):
    text = whole(PROGRAMS["documents of some length"], base, STREAM["descending"])
    kernel, journal = prepare(text, schedule="listed", settings=Settings(**FIXED))
    again, _ = prepare(explained(journal.forms))
    assert again.roles == kernel.roles
    assert any(isinstance(s, ListTile) for k in again.roles.kernels for r in k.roles for s in walk(r.steps))
    assert any(isinstance(s, Read) for r in again.roles.kernels[-1].roles for s in walk(r.steps))


@pytest.mark.parametrize("base, target", [("varlen", "sm_90a"), ("varlen_warps", "sm_80")])
@pytest.mark.parametrize("causal", [False, True])
def test_packed_sequences(base, target, causal):
    """Each with documents of its own, and NaN in the rows of nobody beside them: as without lists."""
    folder = ROOT / "examples" / "attention_varlen"
    program = edit(
        plain("examples/attention_varlen/attention_varlen.wg"),
        ("j <= i + n - m)", "j <= i + n - m) and doc[cu_q[b] + i] == other[cu_k[b] + j]"),
        ("in scale", "in doc: i32[RowsQ]\nin other: i32[RowsK]\nin scale"),
    )
    lines = f"schedule listed extends {base} {{\nstream j descending listed\n}}\n"
    text = program + plain(str(folder.relative_to(ROOT) / "schedules.wg")).removeprefix("wg 1") + lines
    rng, cu_q, cu_k = np.random.default_rng(0), np.array([5, 105, 105, 405, 406]), np.array([5, 205, 255, 255, 655])
    a = {t: rng.standard_normal((n, h, 64)).astype(np.float16) for t, n, h in (("Q", 411, 2), ("K", 660, 1), ("V", 660, 1))}
    for t in ("K", "V"):
        a[t][:5] = a[t][655:] = np.nan
    a |= {"doc": np.sort(rng.integers(0, 4, 411)).astype(np.int32), "other": np.sort(rng.integers(0, 4, 660)).astype(np.int32)}
    a |= {"cu_q": cu_q.astype(np.int32), "cu_k": cu_k.astype(np.int32)}
    found = []
    for schedule in ("listed", base):
        made = compile(text, schedule=schedule, target=target, build=False, dims={"D": 64, "E": 64}, options={"causal": causal})
        out = {"O": np.full((411, 2, 64), np.nan, np.float16), "L": np.full((2, 411), np.nan, np.float32)}
        made.simulate(**a, G=1, R=2, LongestQ=300, LongestK=400, out=out)
        found.append(out)
    assert not np.isnan(found[0]["O"][5:406]).any()
    for name, want in found[1].items():
        np.testing.assert_allclose(found[0][name].astype(float), want.astype(float), atol=2e-3)


@pytest.mark.parametrize("base, heads", [("fa3", 3), ("fa2", 7), ("fa2", 3)])
def test_heads_that_fill_no_whole_tile(base, heads):
    """Each item has a list of its own, however many of a tile's rows it uses."""
    packed = "fuse m = (i, r)\ngrid over (b, g, m)\nstream j listed"
    text = (
        f"{PROGRAMS['documents']}{TEXTS[base].removeprefix('wg 1')}schedule packed extends {base} with i = m {{\n{packed}\n}}\n"
    )
    kernel = compile(text, schedule="packed", build=False, dims={**FIXED["dims"], "R": heads}, types=FIXED["types"])
    for m, n in ((100, 300), (300, 130)):
        assert run(kernel, {"B": 2, "G": 2, "M": m, "N": n}, device="sim", check=True).right, (m, n)
